//! Publish/subscribe and keyspace events: random requests of several connections.
//!
//! A subscriber of protocol version 2 gets messages that look like replies, and one request has
//! several replies. So nothing is matched to a request: everything that a connection receives
//! must be the same bytes as from the simulated server, but for the order in which a real server's
//! hash tables list channels and patterns.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use redis_sim::profile::Profile;

use crate::dice::Dice;
use crate::real::{self, Connection};
use crate::reply::{self, Reply, escaped};
use crate::round::{Form, Word};
use crate::simulated::Simulated;

mod requests;

/// Number of connections of a round.
const CONNECTIONS: usize = 4;
/// Number of steps of a round; in one step one connection sends up to four requests.
const STEPS: usize = 120;
/// Longest time until a connection waits that was to wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of the last steps that a difference shows.
const SHOWN: usize = 40;

/// Commands that reset a server.
const BEGINNING: [&[&str]; 5] = [
    &["FLUSHALL"],
    &["CONFIG", "SET", "notify-keyspace-events", ""],
    &["ACL", "DELUSER", "judge"],
    &["ACL", "SETUSER", "judge", "on", "nopass", "+@all", "~*", "&wake:*"],
    &["SCRIPT", "FLUSH"],
];

/// Connections to the real server and to the simulated one.
struct Pair<'a> {
    server: &'a real::Server,
    simulated: Simulated,
    connections: Vec<Connection>,
    /// Numbers of the connections.
    ids: Vec<u64>,
    wall_us: i64,
    told: VecDeque<String>,
    pushes: u64,
}

/// Plays random rounds and fails if there is a difference.
pub(crate) fn compare(name: &str, program: &str) -> Result<(), Failed> {
    let profile = Profile::named(name).ok_or("no such profile")?;
    let seed = crate::number("JUDGE_SEED").unwrap_or(1);
    let only = crate::number("JUDGE_ROUND");
    let wanted = crate::number("JUDGE_COMMANDS").unwrap_or(crate::SAMPLE);
    let server = real::Server::start(program)?;
    let (mut compared, mut pushes) = (0, 0);
    for number in only.unwrap_or(0).. {
        let mut pair = Pair::begin(&server, profile)?;
        let mut dice = Dice::new(seed, (1 << 32) + number);
        compared += pair.round(&mut dice).map_err(|difference| {
            let told: Vec<_> = pair.told.iter().map(String::as_str).collect();
            let told = told.join("\n");
            format!("{name}: seed {seed}, round {number}\n{told}\n{difference}")
        })?;
        pushes += pair.pushes;
        if compared >= wanted || only.is_some() {
            break;
        }
    }
    println!("{name}: seed {seed}: {compared} requests on channels, {pushes} messages");
    if pushes == 0 && only.is_none() { Err("nothing was published".into()) } else { Ok(()) }
}

impl<'a> Pair<'a> {
    fn begin(server: &'a real::Server, profile: &'static Profile) -> io::Result<Self> {
        let mut control = server.connect()?;
        let wall_us = control.time_us()?;
        let simulated = Simulated::new(profile, wall_us as u64 / 1_000);
        let (connections, told) = (Vec::new(), VecDeque::new());
        let mut pair = Self {
            server,
            simulated,
            connections,
            ids: vec![0; CONNECTIONS],
            wall_us,
            told,
            pushes: 0,
        };
        // The last connection is the operator's.
        (0..=CONNECTIONS).for_each(|at| pair.simulated.open(at, at as u64));
        for words in BEGINNING {
            control.ask(words)?;
            let form = Form::Array(words.iter().map(|word| Word::text(word)).collect());
            pair.simulated.ask(CONNECTIONS, &form.encode(0), wall_us);
        }
        for at in 0..CONNECTIONS {
            pair.open(at)?;
        }
        pair.connections.push(control);
        Ok(pair)
    }

    fn open(&mut self, at: usize) -> io::Result<()> {
        let mut connection = self.server.connect()?;
        let Reply::One(b':', id) = connection.ask(&["CLIENT", "ID"])? else {
            return Err(io::Error::other("CLIENT ID is a number"));
        };
        let id = String::from_utf8_lossy(&id).parse().map_err(io::Error::other)?;
        self.simulated.open(at, id);
        self.ids[at] = id;
        match self.connections.get_mut(at) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
        // A connection is listed once it has sent a command.
        self.exchange(at, &[Form::Array(vec![Word::text("PING")])]).map_err(io::Error::other)
    }

    /// Sends the requests of a round and compares all that connections receive. Returns the number of
    /// requests.
    fn round(&mut self, dice: &mut Dice) -> Result<u64, String> {
        let mut compared = 0;
        for _ in 0..STEPS {
            compared += self.step(dice)?;
        }
        for at in 0..CONNECTIONS {
            self.unblock(at)?;
        }
        // A message that the real server alone has sent stands in front of the answer.
        for at in 0..CONNECTIONS {
            self.exchange(at, &[Form::Array(vec![Word::text("PING")])])?;
        }
        Ok(compared)
    }

    /// Sends the requests of one step and compares all that connections receive. Returns the number
    /// of requests.
    fn step(&mut self, dice: &mut Dice) -> Result<u64, String> {
        let mut at = dice.below(CONNECTIONS);
        if self.simulated.is_blocked(at) {
            let free = (0..CONNECTIONS).find(|&at| !self.simulated.is_blocked(at));
            match free.filter(|_| !dice.once_in(6)) {
                Some(free) => at = free,
                None => return self.unblock(at).map(|()| 1),
            }
        }
        let mut forms: Vec<_> = (0..1 + dice.below(4))
            .map(|_| {
                let form = requests::draw(dice);
                requests::with_id(form, self.ids[dice.below(CONNECTIONS)])
            })
            .collect();
        // The requests behind one that waits would wait, too.
        if let Some(waits) = forms.iter().position(requests::waits) {
            forms.truncate(waits + 1);
        }
        let alone = forms.iter().position(requests::is_alone);
        let forms = match alone {
            Some(alone) => vec![forms[alone].clone()],
            None => forms,
        };
        if requests::is_operators(&forms[0]) {
            at = CONNECTIONS;
        }
        self.exchange(at, &forms)?;
        for place in self.simulated.take_gone() {
            if !self.connections[place].is_closed() {
                return Err(format!("connection {place} was to be closed"));
            }
            self.open(place).map_err(|error| error.to_string())?;
        }
        Ok(forms.len() as u64)
    }

    /// Ends the wait of connection `at` on behalf of the operator.
    fn unblock(&mut self, at: usize) -> Result<(), String> {
        if !self.simulated.is_blocked(at) {
            return Ok(());
        }
        let words = ["CLIENT", "UNBLOCK", &self.ids[at].to_string()].map(Word::text);
        self.exchange(CONNECTIONS, &[Form::Array(words.to_vec())])
    }

    fn exchange(&mut self, at: usize, forms: &[Form]) -> Result<(), String> {
        for form in forms {
            self.told.push_back(format!("{at} {}", form.told()));
        }
        while self.told.len() > SHOWN {
            self.told.pop_front();
        }
        let sent: Vec<u8> = forms.iter().flat_map(|form| form.encode(0)).collect();
        let mut replies = self.simulated.ask(at, &sent, self.wall_us);
        if forms.last().is_some_and(requests::waits_shortly) {
            replies.extend(self.simulated.time_out(at));
        }
        self.connections[at].send(&sent).map_err(|error| error.to_string())?;
        for place in 0..self.connections.len() {
            let mut expected = if place == at { replies.clone() } else { Vec::new() };
            expected.extend(self.simulated.take_pushed(place));
            self.pushes += u64::from(place != at && !expected.is_empty());
            let real = self.connections[place].receive_exactly(expected.len());
            if canonical(&real) != canonical(&expected) {
                let [real, simulated] = [&real, &expected].map(|it| escaped(it));
                return Err(format!("connection {place}\nreal      {real}\nsimulated {simulated}"));
            }
        }
        if self.simulated.is_blocked(at) { self.await_block(at) } else { Ok(()) }
    }

    /// Waits until the real server has seen that connection `at` waits. It reads the requests of
    /// several connections in any order, and a wait has no reply that tells when it begins.
    fn await_block(&mut self, at: usize) -> Result<(), String> {
        let id = self.ids[at].to_string();
        let control = &mut self.connections[CONNECTIONS];
        let mut is_blocked = || match control.ask(&["CLIENT", "LIST", "ID", &id]) {
            Ok(Reply::One(_, text)) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let flags = text.split(' ').find_map(|word| word.strip_prefix("flags="));
                flags.is_some_and(|flags| flags.contains('b'))
            }
            _ => false,
        };
        let began = Instant::now();
        while !is_blocked() {
            if began.elapsed() > PATIENCE {
                return Err(format!("connection {at} was to wait"));
            }
        }
        Ok(())
    }
}

/// Returns the replies and messages in `bytes`, one after another. Names that follow each other in
/// the order of a hash table are sorted: those of ended subscriptions and of matching patterns.
fn canonical(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some((reply, length)) = reply::parse(&bytes[at..]) {
        flatten(reply, &mut frames);
        at += length;
    }
    frames.push(vec![bytes[at..].to_vec()]);
    let runs = frames.chunk_by_mut(|one, next| one.len() > 2 && one.get(..2) == next.get(..2));
    for run in runs {
        if run[0].len() > 2 && run[0][1] == b"$pmessage" {
            run.sort();
        } else if run[0].len() > 2 && run[0][1].ends_with(b"unsubscribe") {
            let mut names: Vec<_> = run.iter().map(|frame| frame[2].clone()).collect();
            names.sort();
            run.iter_mut().zip(names).for_each(|(frame, name)| frame[2] = name);
        }
    }
    frames
}

/// Appends the aggregates without aggregates in them, and the heads of the others.
fn flatten(reply: Reply, frames: &mut Vec<Vec<Vec<u8>>>) {
    let word = |mark: u8, text: Vec<u8>| [vec![mark], text].concat();
    match reply {
        Reply::One(mark, text) => frames.push(vec![word(mark, text)]),
        Reply::Many(head, parts) if parts.iter().all(|it| matches!(it, Reply::One(..))) => {
            let words = parts.into_iter().map(|part| match part {
                Reply::One(mark, text) => word(mark, text),
                Reply::Many(head, _) => head,
            });
            frames.push(std::iter::once(head).chain(words).collect());
        }
        Reply::Many(head, parts) => {
            frames.push(vec![head]);
            parts.into_iter().for_each(|part| flatten(part, frames));
        }
    }
}
