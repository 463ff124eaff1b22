//! Random rounds.

use bytes::Bytes;
use redis_sim::script::sha_of;

use crate::commands;
use crate::dice::Dice;
use crate::locks;
use crate::round::{Form, Item, Round, Word};
use crate::scripts;
use crate::tracking;
use crate::words::{anything, in_some_case};

/// Minimum number of requests in a round.
pub(crate) const ROUND_LENGTH: usize = 250;

/// Malformed requests; a server replies with an error and closes the connection.
const MALFORMED: [&[u8]; 11] = [
    b"*1\r\n:4\r\n",
    b"*1\r\n$-5\r\n",
    b"*1\r\n$abc\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$99999999999999999999\r\n",
    b"*abc\r\n",
    b"*2147483648\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\nGET\r\n",
    b"*2\r\n$3\r\nGET\r\n*1\r\n",
    b"GET \"open\r\n",
];

const LINES: [&[u8]; 14] = [
    b"PING\r\n",
    b"ping\n",
    b"  PING  \r\n",
    b"SET lock:a \"quoted \\x41\\n\\t\\\"\"\r\n",
    b"SET lock:a 'single \\' quoted \\x41'\r\n",
    b"GET lock:a\r\n",
    b"GET \"\"\r\n",
    b"set lock:b\tx\tpx 5000\r\n",
    b"nosuch a 'b c'\r\n",
    b"DEL lock:a lock:b\r\n",
    b"ECHO \x01\xfe\r\n",
    b"get\r\n",
    b"incr c\r\n",
    b"INCR c \r\n",
];

const EMPTY: [&[u8]; 5] = [b"*0\r\n", b"*-1\r\n", b"*-10\r\n", b"\r\n", b"   \r\n"];

struct Generator {
    dice: Dice,
    /// Scripts that the round calls by text or digest.
    scripts: Vec<Script>,
    locks: Vec<locks::Lock>,
    in_transaction: Vec<bool>,
    /// True if the connections track the keys they read.
    tracks: bool,
}

#[derive(Clone, Copy)]
enum Script {
    Random(u64),
    Lock(usize),
}

/// Generates round `number` of `seed`.
pub(crate) fn round(seed: u64, number: u64) -> Round {
    let mut dice = Dice::new(seed, number);
    let connections = 3 + dice.below(2);
    let in_transaction = vec![false; connections];
    let locks = locks::all();
    let tracks = dice.once_in(2);
    let mut generator = Generator { dice, scripts: Vec::new(), locks, in_transaction, tracks };
    let mut items: Vec<Item> = Vec::new();
    for connection in 0..if tracks { connections } else { 0 } {
        for words in tracking::begin(&mut generator.dice) {
            items.push(Item { connection, pause_ms: 0, joins: false, form: Form::Array(words) });
        }
    }
    while items.len() < ROUND_LENGTH {
        generator.batch(&mut items);
    }
    // All pending pushes arrive before the reply to this PING.
    for connection in 0..connections {
        let form = Form::Array(vec![Word::text("PING")]);
        items.push(Item { connection, pause_ms: 0, joins: false, form });
    }
    Round { connections, items }
}

impl Generator {
    fn batch(&mut self, items: &mut Vec<Item>) {
        let connection = self.dice.below(self.in_transaction.len());
        let pause_ms = if self.dice.once_in(30) { 1 + self.dice.below(4) as u64 } else { 0 };
        for index in 0..1 + self.dice.below(16) {
            let form = self.form(connection);
            let is_last = form.ends_connection();
            let pause_ms = if index == 0 { pause_ms } else { 0 };
            items.push(Item { connection, pause_ms, joins: index > 0, form });
            if is_last {
                self.in_transaction[connection] = false;
                break;
            }
        }
    }

    fn form(&mut self, connection: usize) -> Form {
        let is_open = self.in_transaction[connection];
        match self.dice.below(400) {
            0 => return Form::Malformed(Bytes::from_static(self.dice.pick(&MALFORMED))),
            1 => return Form::Array(vec![in_some_case(&mut self.dice, "QUIT")]),
            2..=7 => return Form::Line(Bytes::from_static(self.dice.pick(&LINES))),
            // An empty request would end the effect of CLIENT CACHING on a real server, but the
            // simulated server does not see it.
            8 if !self.tracks => return Form::Nothing(Bytes::from_static(self.dice.pick(&EMPTY))),
            _ if self.tracks && self.dice.once_in(10) => {
                return Form::Array(tracking::command(&mut self.dice));
            }
            _ => {}
        }
        let weights: &[(usize, u8)] = if is_open {
            &[(50, 0), (12, 1), (14, 2), (24, 3)]
        } else {
            &[(52, 0), (14, 1), (26, 2), (8, 3)]
        };
        let words = match self.dice.weighted(weights) {
            0 => commands::keyed(&mut self.dice),
            1 => commands::other(&mut self.dice),
            2 => self.script(),
            _ => commands::transaction(&mut self.dice, is_open),
        };
        let form = Form::Array(words);
        match form.name() {
            (name, 1) if name == b"MULTI" => self.in_transaction[connection] = true,
            (name, _) if name == b"EXEC" => self.in_transaction[connection] = false,
            (name, 1) if name == b"DISCARD" || name == b"RESET" => {
                self.in_transaction[connection] = false;
            }
            _ => {}
        }
        form
    }

    /// Draws a call of a script, or another command on scripts.
    fn script(&mut self) -> Vec<Word> {
        let script = if self.scripts.is_empty() || self.dice.once_in(3) {
            let new = if self.dice.once_in(3) {
                Script::Lock(self.dice.below(self.locks.len()))
            } else {
                Script::Random(self.dice.below(1 << 30) as u64)
            };
            self.scripts.push(new);
            new
        } else {
            self.scripts[self.dice.below(self.scripts.len())]
        };
        let text = match script {
            Script::Random(seed) => scripts::script(&mut Dice::new(seed, 0)),
            Script::Lock(at) => self.locks[at].script.to_owned(),
        };
        let dice = &mut self.dice;
        let sha = String::from_utf8_lossy(&sha_of(text.as_bytes())).into_owned();
        let mut words = match dice.below(24) {
            0..=9 => scripts::eval(dice, &text),
            10..=18 => vec![in_some_case(dice, "EVALSHA"), in_some_case(dice, &sha)],
            19 => return script_command(dice, "LOAD", vec![Word::text(&text)]),
            20 => {
                let other = anything(dice);
                let words = vec![in_some_case(dice, &sha), other];
                return script_command(dice, "EXISTS", words);
            }
            21 if dice.once_in(6) => {
                let mode = dice.pick(&["SYNC", "ASYNC", "nosuch"]);
                let words = vec![in_some_case(dice, mode)];
                return script_command(dice, "FLUSH", words);
            }
            21 => return script_command(dice, "KILL", vec![]),
            22 => {
                let name = dice.pick(&["LOAD", "EXISTS", "FLUSH", "KILL", "NOSUCH"]);
                let words = (0..dice.below(3)).map(|_| anything(dice)).collect();
                return script_command(dice, name, words);
            }
            _ => vec![in_some_case(dice, "EVAL_RO"), Word::text(&text)],
        };
        words.extend(match script {
            Script::Random(_) => scripts::arguments(dice),
            Script::Lock(at) => self.locks[at].call(dice),
        });
        words
    }
}

fn script_command(dice: &mut Dice, name: &str, arguments: Vec<Word>) -> Vec<Word> {
    let mut words = vec![in_some_case(dice, "SCRIPT"), in_some_case(dice, name)];
    words.extend(arguments);
    words
}
