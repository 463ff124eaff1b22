//! Plays a round to a real server and to the simulated one.

use std::io;

use redis_sim::profile::Profile;

use crate::real;
use crate::reply::{self, Reply, escaped};
use crate::round::{Form, Item, Round, Word};
use crate::simulated::{Simulated, Verdict};

/// Numbers of replies by the way they were compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Compared byte for byte.
    pub(crate) exact: u64,
    /// Matched one of the replies that the clock allows.
    pub(crate) interval: u64,
    /// Pushes of the real server; consecutive pushes before a reply count as one.
    pub(crate) pushes: u64,
    /// Not compared, because the real server's state was no longer known.
    pub(crate) skipped: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.exact += other.exact;
        self.interval += other.interval;
        self.skipped += other.skipped;
        self.pushes += other.pushes;
    }

    pub(crate) fn compared(&self) -> u64 {
        self.exact + self.interval
    }
}

/// A difference between the two servers.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Index of the request in the round.
    pub(crate) at: usize,
    pub(crate) real: String,
    pub(crate) simulated: String,
}

impl Difference {
    /// Returns a text that is equal for differences that probably have the same cause.
    pub(crate) fn signature(&self, round: &Round) -> String {
        let name = escaped(&round.items[self.at].form.name().0);
        let digits = |text: &str| {
            text.chars().filter(|it| !it.is_ascii_hexdigit()).take(40).collect::<String>()
        };
        format!("{name} {} {}", digits(&self.real), digits(&self.simulated))
    }
}

/// Plays rounds to a real server and to the simulated one.
pub(crate) struct Judge<'a> {
    server: &'a real::Server,
    profile: &'static Profile,
    /// Maximum age of the real server's cached time, in µs.
    slack_us: i64,
    control: real::Connection,
}

/// A round under way.
struct Play<'a, 'b> {
    judge: &'b mut Judge<'a>,
    simulated: Simulated,
    connections: Vec<real::Connection>,
    in_transaction: Vec<bool>,
    began_ms: i64,
    /// The last reading of the real server's clock.
    low_us: i64,
    counts: Counts,
}

/// A reply of the real server, and the request that it answers.
struct Heard {
    /// Index of the item; `None` for a reading of the clock.
    item: Option<usize>,
    /// Pushes that arrived before the reply.
    pushes: Vec<u8>,
    reply: Reply,
    bytes: Vec<u8>,
}

/// Commands that reset a server. One of them seeds Lua's random number generator, whose state
/// outlasts a script.
const BEGINNING: [&[&str]; 5] = [
    &[
        "CONFIG",
        "SET",
        "maxmemory",
        "0",
        "min-replicas-to-write",
        "0",
        "min-replicas-max-lag",
        "10",
        "appendfsync",
        "everysec",
    ],
    &["FLUSHALL"],
    &["ACL", "DELUSER", "judge"],
    &["EVAL", "math.randomseed(1)", "0"],
    &["SCRIPT", "FLUSH"],
];

const TIME: &[u8] = b"*1\r\n$4\r\nTIME\r\n";

type Outcome<T> = Result<T, Stop>;

/// Reason why a round ends early.
enum Stop {
    Different(Difference),
    Lost,
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl<'a> Judge<'a> {
    pub(crate) fn new(server: &'a real::Server, profile: &'static Profile) -> io::Result<Self> {
        // For up to a millisecond, Valkey computes the wall clock from an earlier reading and a
        // monotonic clock.
        let slack_us = if profile.server == "valkey" { 1_000 } else { 0 };
        Ok(Self { server, profile, slack_us, control: server.connect()? })
    }

    /// Plays `round` to empty servers, up to the first difference.
    pub(crate) fn play(&mut self, round: &Round) -> io::Result<(Counts, Option<Difference>)> {
        let low_us = self.control.time_us()?;
        let began_ms = low_us / 1_000;
        let mut simulated = Simulated::new(self.profile, began_ms as u64);
        simulated.open(0, 0);
        for words in BEGINNING {
            self.control.ask(words)?;
            let words = words.iter().map(|word| Word::text(word)).collect();
            simulated.ask(0, &Form::Array(words).encode(0), low_us);
        }
        let counts = Counts::default();
        let in_transaction = vec![false; round.connections];
        let connections = Vec::new();
        let mut play =
            Play { judge: self, simulated, connections, in_transaction, began_ms, low_us, counts };
        for at in 0..round.connections {
            play.open(at)?;
        }
        let mut begin = 0;
        while begin < round.items.len() {
            let joined = round.items[begin + 1..].iter().take_while(|item| item.joins).count();
            let end = begin + 1 + joined;
            match play.batch(&round.items[..end], begin) {
                Ok(()) => begin = end,
                Err(Stop::Different(difference)) => return Ok((play.counts, Some(difference))),
                Err(Stop::Lost) => {
                    let total: usize = round.items.iter().map(|item| item.form.replies()).sum();
                    play.counts.skipped = (total as u64).saturating_sub(play.counts.compared());
                    break;
                }
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
        Ok((play.counts, None))
    }
}

impl Play<'_, '_> {
    fn open(&mut self, at: usize) -> io::Result<()> {
        let mut connection = self.judge.server.connect()?;
        let Reply::One(b':', id) = connection.ask(&["CLIENT", "ID"])? else {
            return Err(io::Error::other("CLIENT ID is a number"));
        };
        let id = String::from_utf8_lossy(&id).parse().map_err(io::Error::other)?;
        self.simulated.open(at, id);
        self.in_transaction[at] = false;
        if at < self.connections.len() {
            self.connections[at] = connection;
        } else {
            self.connections.push(connection);
        }
        Ok(())
    }

    /// Sends a batch of items, from `begin` on, in one write. Receives the replies and compares
    /// them.
    fn batch(&mut self, items: &[Item], begin: usize) -> Outcome<()> {
        let at = items[begin].connection;
        if items[begin].pause_ms > 0 {
            std::thread::sleep(std::time::Duration::from_millis(items[begin].pause_ms));
        }
        self.low_us = self.judge.control.time_us()?;
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (index, item) in items.iter().enumerate().skip(begin) {
            bytes.extend_from_slice(&item.form.encode(self.began_ms));
            expected.extend(std::iter::repeat_n(Some(index), item.form.replies()));
            self.in_transaction[at] = stays_in_transaction(&item.form, self.in_transaction[at]);
            // Any command except those of CLIENT ends the effect of CLIENT CACHING.
            let may_ask = item.form.name().0 != b"CLIENT" && !item.form.ends_connection();
            if !self.in_transaction[at] && may_ask {
                bytes.extend_from_slice(TIME);
                expected.push(None);
            }
        }
        self.connections[at].send(&bytes)?;
        let mut heard = Vec::new();
        for &item in &expected {
            match self.connections[at].receive_reply() {
                Ok((pushes, reply, bytes)) => heard.push(Heard { item, pushes, reply, bytes }),
                Err(error) => {
                    let at = item.unwrap_or(begin);
                    let real = format!("(nothing: {error})");
                    let simulated = String::from("(a reply was expected)");
                    return Err(Stop::Different(Difference { at, real, simulated }));
                }
            }
        }
        let high_us = self.judge.control.time_us()?;
        self.compare(items, begin, &heard, high_us)?;
        if items.last().expect("there is one").form.ends_connection() {
            if !self.connections[at].is_closed() {
                let real = String::from("(goes on)");
                let simulated = String::from("(the connection was to be closed)");
                let at = items.len() - 1;
                return Err(Stop::Different(Difference { at, real, simulated }));
            }
            self.open(at)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        items: &[Item],
        begin: usize,
        heard: &[Heard],
        end_us: i64,
    ) -> Outcome<()> {
        let at = items[begin].connection;
        let slack_us = self.judge.slack_us;
        let mut replies = heard.iter().enumerate().peekable();
        for (index, item) in items.iter().enumerate().skip(begin) {
            let sent = item.form.encode(self.began_ms);
            let mut requests = self.simulated.read(at, &sent).into_iter();
            while let Some((place, reply)) =
                replies.next_if(|(_, it)| it.item.is_none() || it.item == Some(index))
            {
                self.hear(at, index, &reply.pushes)?;
                let reading = reply.item.is_none().then(|| reply::time_us(&reply.reply)).flatten();
                if let Some(now_us) = reading {
                    self.low_us = now_us;
                    continue;
                }
                let request = match reply.item {
                    None => Some(Ok(vec![bytes::Bytes::from_static(b"TIME")])),
                    Some(_) => requests.next(),
                };
                let later = heard[place + 1..].iter().filter(|it| it.item.is_none());
                let later = later.filter_map(|it| reply::time_us(&it.reply)).next();
                let bracket = (self.low_us - slack_us, later.unwrap_or(end_us));
                let verdict = match request {
                    None => Verdict::Different(b"(no request was read)".to_vec()),
                    Some(Err(error)) if error == reply.bytes => Verdict::Exact,
                    Some(Err(error)) => Verdict::Different(error),
                    Some(Ok(request)) => self.simulated.judge(at, &request, bracket, &reply.bytes),
                };
                match verdict {
                    Verdict::Exact => self.counts.exact += 1,
                    Verdict::Interval => self.counts.interval += 1,
                    Verdict::Lost => return Err(Stop::Lost),
                    Verdict::Different(simulated) => {
                        let real = escaped(&reply.bytes);
                        let simulated = escaped(&simulated);
                        return Err(Stop::Different(Difference { at: index, real, simulated }));
                    }
                }
            }
            if let Some(request) = requests.next() {
                let real = String::from("(no reply)");
                let simulated = format!("(reads one more: {request:?})");
                return Err(Stop::Different(Difference { at: index, real, simulated }));
            }
        }
        self.low_us = end_us;
        Ok(())
    }

    /// Compares the pushes that arrived on connection `at` before a reply to item `index`.
    fn hear(&mut self, at: usize, index: usize, pushes: &[u8]) -> Outcome<()> {
        self.counts.pushes += u64::from(!pushes.is_empty());
        match self.simulated.hear(at, pushes) {
            Verdict::Exact | Verdict::Interval => Ok(()),
            Verdict::Lost => Err(Stop::Lost),
            Verdict::Different(simulated) => {
                let [real, simulated] =
                    [pushes, &simulated].map(|it| format!("pushes {}", escaped(it)));
                Err(Stop::Different(Difference { at: index, real, simulated }))
            }
        }
    }
}

/// Returns true if a transaction is open on the connection after `form`.
fn stays_in_transaction(form: &Form, in_transaction: bool) -> bool {
    match form.name() {
        (name, 1) if name == b"MULTI" => true,
        (name, _) if name == b"EXEC" => false,
        (name, 1) if name == b"DISCARD" || name == b"RESET" => false,
        _ => in_transaction,
    }
}
