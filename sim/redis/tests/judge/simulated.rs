//! The simulated server in every state that it can be in.
//!
//! The instant at which the real server read its clock is not known; only two readings before and
//! after it are. If a millisecond ends in between, a request is executed at each of the
//! milliseconds, and every outcome that matches the real reply is followed further.

use bytes::Bytes;
use libtest_mimic::Failed;
use redis_sim::profile::{self, Feature, Profile};
use redis_sim::resp::{Protocol, Request, Requests};
use redis_sim::server::{Answer, Server, Session, Turn};
use redis_sim::{Master, Storage, Writer, run_id};

use crate::reply;

/// Maximum number of states that are followed.
const STATES_MAX: usize = 64;

/// Maximum distance between two readings of the clock, in µs. Beyond that too much can have
/// happened.
const BRACKET_MAX_US: i64 = 100_000;

/// A server and its connections.
#[derive(Clone)]
struct State {
    server: Server,
    sessions: Vec<Option<Session>>,
    /// Pushes to each connection since its last reply.
    pushed: Vec<Vec<u8>>,
}

/// All states that match the replies so far.
pub(crate) struct Simulated {
    profile: &'static Profile,
    states: Vec<State>,
    /// True if the real server may be in a state that is not among these. It reads its clock
    /// repeatedly within a transaction or a script, so a millisecond may end inside one; or there
    /// were too many states to follow.
    is_blurred: bool,
    parsers: Vec<Requests>,
}

/// Result of comparing a reply of the real server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Equals the reply of the simulated server.
    Exact,
    /// Equals one of the replies that the simulated server gives, depending on the clock.
    Interval,
    /// Lies between those replies, so that the server's state is no longer known.
    Lost,
    /// Differs from this reply of the simulated server.
    Different(Vec<u8>),
}

impl Simulated {
    /// Creates an empty server.
    pub(crate) fn new(profile: &'static Profile, wall_ms: u64) -> Self {
        let master = Master::new(Storage::default(), run_id(0, 0), wall_ms);
        let state = State {
            server: Server::new(master, profile),
            sessions: Vec::new(),
            pushed: Vec::new(),
        };
        Self { profile, states: vec![state], is_blurred: false, parsers: Vec::new() }
    }

    /// Opens connection `at`, to which the real server gave the id `id`.
    pub(crate) fn open(&mut self, at: usize, id: u64) {
        for state in &mut self.states {
            state.close(at);
            state.sessions[at] = Some(Session::new(id));
        }
        self.parsers.resize_with(self.parsers.len().max(at + 1), Requests::default);
        let mut parser = Requests::default();
        parser.set_quotes_join(self.profile.has(Feature::QuotesJoin));
        self.parsers[at] = parser;
    }

    /// Parses the requests in the bytes that connection `at` sends. A protocol error becomes the
    /// encoded error reply, and is the last item.
    pub(crate) fn read(&mut self, at: usize, bytes: &[u8]) -> Vec<Result<Request, Vec<u8>>> {
        let mut requests = Vec::new();
        // Split the bytes in the middle, because the requests must not depend on how the bytes
        // arrive.
        let (front, back) = bytes.split_at(bytes.len() / 2);
        for part in [front, back] {
            self.parsers[at].push(part);
            loop {
                match self.parsers[at].next_request() {
                    Ok(None) => break,
                    Ok(Some(request)) => requests.push(Ok(request)),
                    Err(error) => {
                        requests.push(Err(format!("-{error}\r\n").into_bytes()));
                        return requests;
                    }
                }
            }
        }
        requests
    }

    /// Returns all replies to the bytes that connection `at` sends when the clock reads `wall_us`.
    pub(crate) fn ask(&mut self, at: usize, bytes: &[u8], wall_us: i64) -> Vec<u8> {
        let mut answers = Vec::new();
        for request in self.read(at, bytes) {
            answers.append(&mut self.states[0].pushed[at]);
            answers.extend(match request {
                Ok(request) => self.states[0].execute(at, &request, wall_us),
                Err(error) => error,
            });
        }
        answers
    }

    /// Returns true if a request of connection `at` waits for an element of a list.
    pub(crate) fn is_blocked(&self, at: usize) -> bool {
        let state = &self.states[0];
        state.sessions[at].as_ref().is_some_and(|it| state.server.is_blocked(it.id()))
    }

    /// Returns the reply to the request of connection `at` that waits, after its timeout.
    pub(crate) fn time_out(&mut self, at: usize) -> Vec<u8> {
        let State { server, sessions, .. } = &mut self.states[0];
        let mut out = Vec::new();
        if let Some(session) = &sessions[at] {
            let value = session.time_out(server);
            value.iter().for_each(|value| value.encode(session.protocol(), &mut out));
        }
        out
    }

    /// Takes the pushes to connection `at` since its last reply.
    pub(crate) fn take_pushed(&mut self, at: usize) -> Vec<u8> {
        std::mem::take(&mut self.states[0].pushed[at])
    }

    /// Takes the connections that the server has closed.
    pub(crate) fn take_gone(&mut self) -> Vec<usize> {
        let state = &mut self.states[0];
        let killed = state.server.clients_mut().take_killed();
        let is_gone = |session: &Option<Session>| {
            session.as_ref().is_none_or(|session| killed.contains(&session.id()))
        };
        let places = 0..state.sessions.len();
        let gone: Vec<usize> = places.filter(|&at| is_gone(&state.sessions[at])).collect();
        gone.iter().for_each(|&at| drop(state.sessions[at].take()));
        gone
    }

    /// Compares the pushes that connection `at` received before its next reply.
    pub(crate) fn hear(&mut self, at: usize, real: &[u8]) -> Verdict {
        if !self.states.iter().any(|state| state.pushed[at] == real) {
            let simulated = self.states[0].pushed[at].clone();
            return self.differs(simulated);
        }
        self.states.retain(|state| state.pushed[at] == real);
        self.states.iter_mut().for_each(|state| state.pushed[at].clear());
        Verdict::Exact
    }

    /// Executes `request` of connection `at`, and compares the reply with `real`, which the real
    /// server gave between two readings of its clock.
    pub(crate) fn judge(
        &mut self,
        at: usize,
        request: &[Bytes],
        (low_us, high_us): (i64, i64),
        real: &[u8],
    ) -> Verdict {
        if high_us - low_us > BRACKET_MAX_US {
            return Verdict::Lost;
        }
        let moments = moments(low_us, high_us);
        if let ([state], [moment], false) =
            (self.states.as_mut_slice(), moments.as_slice(), reads_clock(request))
        {
            let reply = state.execute(at, request, *moment);
            return if reply == real { Verdict::Exact } else { self.differs(reply) };
        }
        let old = std::mem::take(&mut self.states);
        let mut outcomes = outcomes(&old, at, request, &moments);
        if let Some(request) = self.ends_at_once(request, &moments) {
            outcomes.extend(self::outcomes(&old, at, &request, &moments));
        }
        let fits = |(_, reply): &(State, Vec<u8>)| reply == real;
        if outcomes.iter().any(fits) {
            let exact = outcomes.iter().all(fits);
            let first = &outcomes[0].0;
            let is_alike = |it: &(State, Vec<u8>)| {
                *it.0.server == *first.server && it.0.pushed == first.pushed
            };
            let depends = !exact || !outcomes.iter().all(is_alike);
            self.is_blurred |= moments.len() > 1 && self.blurs(request) && depends;
            self.follow(outcomes.into_iter().filter(fits).map(|it| it.0));
            return if exact { Verdict::Exact } else { Verdict::Interval };
        }
        let told = outcomes[0].1.clone();
        let Some((real, _)) = reply::parse(real) else { return Verdict::Different(told) };
        // Within a millisecond, only TIME distinguishes two instants.
        let is_same_millisecond = low_us / 1_000 == high_us / 1_000;
        outcomes.extend(self::outcomes(&old, at, request, &[high_us]));
        let replies: Vec<_> =
            outcomes.iter().filter_map(|(_, reply)| Some(reply::parse(reply)?.0)).collect();
        let is_below = |one| replies.iter().any(|other| reply::is_between(&real, one, other));
        if !replies.iter().any(is_below) {
            self.is_blurred |= moments.len() > 1 && self.blurs(request);
            return self.differs(told);
        }
        if is_same_millisecond {
            self.follow(outcomes.into_iter().map(|it| it.0));
            Verdict::Interval
        } else {
            Verdict::Lost
        }
    }
}

impl Simulated {
    /// Returns true if the real server reads its clock more than once within `request`. Valkey does
    /// not.
    fn blurs(&self, request: &[Bytes]) -> bool {
        self.profile.server != "valkey" && reads_clock(request)
    }

    /// Returns the request that has the effect of `request` if the server reads its clock once for
    /// the instant at which the key ends, and again, after that instant, to see whether it has
    /// passed: then it deletes the key. Valkey reads its clock once.
    fn ends_at_once(&self, request: &[Bytes], moments: &[i64]) -> Option<Request> {
        let [name, _, life, ..] = request else { return None };
        if self.profile.server == "valkey" || !name.eq_ignore_ascii_case(b"PEXPIRE") {
            return None;
        }
        let life_ms: usize = std::str::from_utf8(life).ok()?.parse().ok()?;
        if !(1..moments.len()).contains(&life_ms) {
            return None;
        }
        let mut request = request.to_vec();
        request[2] = Bytes::from_static(b"0");
        Some(request)
    }

    /// Follows these states from now on, without duplicates. If there are too many, the real
    /// server's state may be among those that are left out.
    fn follow(&mut self, states: impl Iterator<Item = State>) {
        self.states.clear();
        for state in states {
            if self.states.iter().any(|other| other.is_like(&state)) {
                continue;
            }
            if self.states.len() == STATES_MAX {
                self.is_blurred = true;
                break;
            }
            self.states.push(state);
        }
    }

    /// Returns the verdict for a reply that differs from the real one: no difference is reported if
    /// the real server's state is unknown.
    fn differs(&self, reply: Vec<u8>) -> Verdict {
        if self.is_blurred { Verdict::Lost } else { Verdict::Different(reply) }
    }
}

impl State {
    fn is_like(&self, other: &Self) -> bool {
        let told = |state: &Self| format!("{:?}", state.sessions);
        *self.server == *other.server && self.pushed == other.pushed && told(self) == told(other)
    }

    /// Closes connection `at`, if it is open.
    fn close(&mut self, at: usize) {
        self.sessions.resize(self.sessions.len().max(at + 1), None);
        self.pushed.resize(self.sessions.len(), Vec::new());
        self.pushed[at].clear();
        if let Some(session) = self.sessions[at].take() {
            session.close(&mut self.server);
        }
    }

    fn execute(&mut self, at: usize, request: &[Bytes], wall_us: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(session) = &mut self.sessions[at] else { return out };
        let mut touched = Vec::new();
        let wall_ns = wall_us as u64 * 1_000;
        let turn = Turn { wall_ns, writer: Writer::Operator, touched: &mut touched };
        let answer = session.execute(&mut self.server, request, turn);
        let protocol: Protocol = session.protocol();
        match answer {
            Answer::Reply(value) => value.encode(protocol, &mut out),
            Answer::LastReply(value) => {
                value.encode(protocol, &mut out);
                self.close(at);
            }
            Answer::Silence | Answer::Block { .. } => {}
            // There are no replicas, so waiting changes nothing.
            Answer::Wait { .. } => out.extend_from_slice(b":0\r\n"),
        }
        self.push();
        out
    }

    fn push(&mut self) {
        for (id, message) in self.server.take_pushes() {
            let places = self.sessions.iter().enumerate();
            let mut meant = places.filter_map(|(at, it)| Some((at, it.as_ref()?)));
            if let Some((at, session)) = meant.find(|(_, session)| session.id() == id) {
                message.encode(session.protocol(), &mut self.pushed[at]);
            }
        }
    }
}

/// Returns the outcome of `request` in each of `states` at each of `moments`.
fn outcomes(
    states: &[State],
    at: usize,
    request: &[Bytes],
    moments: &[i64],
) -> Vec<(State, Vec<u8>)> {
    let pairs = states.iter().flat_map(|state| moments.iter().map(move |&moment| (state, moment)));
    let outcome = |(state, moment): (&State, i64)| {
        let mut state = state.clone();
        let reply = state.execute(at, request, moment);
        (state, reply)
    };
    pairs.map(outcome).collect()
}

/// Returns one instant in every millisecond from one reading to the other.
fn moments(low_us: i64, high_us: i64) -> Vec<i64> {
    let later = low_us / 1_000 + 1..=high_us / 1_000;
    std::iter::once(low_us).chain(later.map(|ms| ms * 1_000)).collect()
}

/// Returns true if the reply may contain the clock's microseconds, or depend on them.
fn reads_clock(request: &[Bytes]) -> bool {
    let name = request[0].to_ascii_uppercase();
    matches!(name.as_slice(), b"TIME" | b"EXEC") || name.starts_with(b"EVAL")
}

/// A life that ends between two readings of the clock is none: a key that lives for 1 ms may be gone
/// 3 µs later, one that lives for 2 ms may not.
pub(crate) fn shortest_lives() -> Result<(), Failed> {
    let exists_later = |life_ms: &'static str| {
        let mut simulated = Simulated::new(&profile::REDIS_7_0, 1_000);
        simulated.open(0, 1);
        let mut judge = |words: &[&'static str], bracket, reply: &str| {
            let words: Vec<_> = words.iter().map(|it| Bytes::from_static(it.as_bytes())).collect();
            simulated.judge(0, &words, bracket, reply.as_bytes())
        };
        assert_eq!(judge(&["SET", "a", "1"], (1_000_990, 1_000_999), "+OK\r\n"), Verdict::Exact);
        let set = judge(&["pexpire", "a", life_ms], (1_000_999, 1_001_002), ":1\r\n");
        assert_eq!(set, Verdict::Exact);
        judge(&["EXISTS", "a"], (1_001_002, 1_001_004), ":0\r\n")
    };
    assert_eq!(exists_later("1"), Verdict::Interval);
    assert_eq!(exists_later("2"), Verdict::Different(b":1\r\n".to_vec()));
    Ok(())
}
