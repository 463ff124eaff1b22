//! The key by which clients know a master's memory, as the production client's script keeps it: read with
//! what the server says of itself, and written anew if it does not fit.

use core::time::Duration;

use redlock_client::protocol::{Canary, Digest};

use super::bytes::SmallBytes;
use super::command::KeyCommand;
use super::entry::Entry;
use super::{Change, Command, Executed, Introduction, Master, Reply, SetCondition, SetExpiry};
use crate::history::Writer;

/// The default name of the production client.
pub const CANARY_KEY: &[u8] = b"redlock-client:canary";

impl Master {
    /// The introduction and the canary at the wall clock's reading `wall_us`; a canary that does not fit
    /// is rewritten. No canary on a replica, or where nothing can be written.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn introduce(&mut self, wall_us: u64) -> (Introduction, Option<Canary>) {
        let introduction = self.introduction(wall_us / 1_000);
        if self.is_replica {
            return (Introduction { is_master: false, ..introduction }, None);
        }
        (introduction, self.canary(wall_us))
    }

    fn canary(&mut self, wall_us: u64) -> Option<Canary> {
        let stored = self.on_canary(KeyCommand::Get, wall_us).reply;
        let stored = if let Reply::Bulk(bytes) = &stored { Some(&bytes[..]) } else { None };
        let found = match stored {
            Some(value) => Some(parse(value)?),
            None => None,
        };
        if let Some(Written { run, history, memory, at_us }) = found
            && is_hex(run, &self.run_id)
            && (is_hex(history, &self.history) || !self.is_promoted)
            && at_us <= wall_us
        {
            let (history, memory) = (Digest::of(history), Digest::of(memory));
            let age = Duration::from_micros(wall_us - at_us);
            return Some(Canary { history, memory, age });
        }
        let memory = found.map(|it| it.memory);
        let (run, history) = (hex(&self.run_id), hex(&self.history));
        let memory = memory.map(|it| String::from_utf8_lossy(it).into_owned());
        let memory = memory.unwrap_or_else(|| format!("{run}-{wall_us}"));
        let value = text(&run, &history, &memory, wall_us);
        let set = KeyCommand::Set {
            value: value.as_bytes(),
            condition: SetCondition::Always,
            expiry: SetExpiry::Never,
            get: false,
        };
        let written = self.on_canary(set, wall_us).effect.change != Change::Nothing;
        let (history, memory) = (Digest::of(history.as_bytes()), Digest::of(memory.as_bytes()));
        written.then_some(Canary { history, memory, age: Duration::ZERO })
    }

    fn on_canary(&mut self, command: KeyCommand<'_>, wall_us: u64) -> Executed {
        let command = Command::Key { key: CANARY_KEY, command };
        self.execute(command, wall_us / 1_000, Writer::Operator)
    }

    /// A canary that was written when the process was started, and is on disk. A replica has that of
    /// its `master`.
    pub fn seed_canary(&mut self, master: &SeededCanary) {
        self.history = master.run_id;
        let entry =
            Entry { value: master.value.clone(), expires_wall_ms: None, writer: Writer::Operator };
        let key = SmallBytes::new(CANARY_KEY);
        self.databases.at(0).load(&key, Some(&entry));
        self.disk.keep_for_long(0, CANARY_KEY, &entry);
    }
}

/// The canary of a fleet that has been running.
#[derive(Clone, Debug)]
pub struct SeededCanary {
    run_id: [u8; 20],
    started_wall_ms: u64,
    value: SmallBytes,
}

impl SeededCanary {
    /// That of the process `run_id`, which was started when its wall clock read `started_wall_ms`.
    #[must_use]
    pub fn new(run_id: [u8; 20], started_wall_ms: u64) -> Self {
        let (run, written_us) = (hex(&run_id), started_wall_ms * 1_000);
        let value = text(&run, &run, &format!("{run}-{written_us}"), written_us);
        Self { run_id, started_wall_ms, value: SmallBytes::new(value.as_bytes()) }
    }

    /// Whether it is the canary of that process, started then.
    #[must_use]
    pub fn is_of(&self, run_id: [u8; 20], started_wall_ms: u64) -> bool {
        (self.run_id, self.started_wall_ms) == (run_id, started_wall_ms)
    }
}

fn text(run: &str, history: &str, memory: &str, written_us: u64) -> String {
    format!("{run} {history} {memory} {written_us}")
}

/// The parts of a canary.
#[derive(Clone, Copy)]
struct Written<'a> {
    run: &'a [u8],
    history: &'a [u8],
    memory: &'a [u8],
    at_us: u64,
}

/// Splits the value of a canary; `None` if no client of ours wrote it.
fn parse(value: &[u8]) -> Option<Written<'_>> {
    let mut words = value.split(|&byte| byte == b' ');
    let mut word = || words.next().filter(|it| !it.is_empty() && !it.iter().any(is_space));
    let (run, history, memory, at) = (word()?, word()?, word()?, word()?);
    let is_ours = run.iter().all(u8::is_ascii_hexdigit) && at.iter().all(u8::is_ascii_digit);
    // What is too large to be read is in the future.
    let at_us = core::str::from_utf8(at).ok()?.parse().unwrap_or(u64::MAX);
    (is_ours && words.next().is_none()).then_some(Written { run, history, memory, at_us })
}

fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

/// Whether `digits` are `id` in hexadecimal.
fn is_hex(digits: &[u8], id: &[u8; 20]) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS[usize::from(half)];
    let of_id = id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    of_id.eq(digits.iter().copied())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
