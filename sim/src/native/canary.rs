//! The canary: the key by which clients recognise a master's data set. The production client's
//! script reads the key together with the server's introduction and rewrites a canary that does not
//! fit; this module does the same natively.

use core::time::Duration;

use redlock_protocol::{Canary, Digest};

use redis_sim::{
    Change, Command, Entry, Executed, Introduction, KeyCommand, Master, Reply, SetCondition,
    SetExpiry, SmallBytes, Writer,
};

/// Key that the production client uses by default.
const CANARY_KEY: &[u8] = b"redlock-client:canary";

/// The canary does not fit, and cannot be rewritten now: the introduction fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwritable;

/// Returns the introduction of `master` and its canary when its wall clock reads `wall_us`. Rewrites
/// a canary that does not fit. There is no canary on a replica, or if the value is not ours. A canary
/// that is still `seeded` is not parsed.
///
/// # Errors
///
/// If the server's memory is full.
///
/// # Panics
///
/// If the process is dead.
pub(crate) fn introduce(
    master: &mut Master,
    seeded: Option<&SeededCanary>,
    wall_us: u64,
) -> Result<(Introduction, Option<Canary>), Unwritable> {
    let introduction = master.introduction(wall_us / 1_000);
    if !introduction.is_master {
        return Ok((introduction, None));
    }
    let untouched = seeded.and_then(|it| it.untouched(master, &introduction, wall_us));
    let canary = match untouched {
        Some(canary) => Some(canary),
        None => canary(master, &introduction, wall_us)?,
    };
    Ok((introduction, canary))
}

/// Returns the replication history of `master` if it continues another one's.
pub(crate) fn succession(master: &Master) -> Option<Digest> {
    let (history_id, is_promoted) = master.history();
    is_promoted.then(|| Digest::of(hex(&history_id).as_bytes()))
}

fn canary(
    master: &mut Master,
    introduction: &Introduction,
    wall_us: u64,
) -> Result<Option<Canary>, Unwritable> {
    let run_id = &introduction.run_id;
    let (history_id, is_promoted) = master.history();
    let stored = on_canary(master, KeyCommand::Get, wall_us).reply;
    let stored = if let Reply::Bulk(bytes) = &stored { Some(&bytes[..]) } else { None };
    let found = match stored {
        Some(value) => match parse(value) {
            Some(written) => Some(written),
            None => return Ok(None),
        },
        None => None,
    };
    if let Some(Written { run, history, memory, at_us }) = found
        && is_hex(run, run_id)
        && (is_hex(history, &history_id) || !is_promoted)
        && at_us <= wall_us
    {
        let (history, memory) = (Digest::of(history), Digest::of(memory));
        let age = Duration::from_micros(wall_us - at_us);
        return Ok(Some(Canary { history, memory, age }));
    }
    let memory = found.map(|it| it.memory);
    let (run, history) = (hex(run_id), hex(&history_id));
    let memory = memory.map(|it| String::from_utf8_lossy(it).into_owned());
    let memory = memory.unwrap_or_else(|| format!("{run}-{wall_us}"));
    let value = text(&run, &history, &memory, wall_us);
    let set = KeyCommand::Set {
        value: value.as_bytes(),
        condition: SetCondition::Always,
        expiry: SetExpiry::Never,
        get: false,
    };
    if on_canary(master, set, wall_us).effect.change == Change::Nothing {
        return Err(Unwritable);
    }
    let (history, memory) = (Digest::of(history.as_bytes()), Digest::of(memory.as_bytes()));
    Ok(Some(Canary { history, memory, age: Duration::ZERO }))
}

fn on_canary(master: &mut Master, command: KeyCommand<'_>, wall_us: u64) -> Executed {
    let command = Command::Key { key: CANARY_KEY, command };
    master.execute(command, wall_us / 1_000, Writer::Operator)
}

/// Canary of a fleet that has been running for some time.
#[derive(Clone, Debug)]
pub(crate) struct SeededCanary {
    run_id: [u8; 20],
    started_wall_ms: u64,
    value: SmallBytes,
    /// Digests of the value's fields.
    history: Digest,
    memory: Digest,
}

impl SeededCanary {
    /// Returns the canary of the process `run_id`, started when its wall clock read
    /// `started_wall_ms`.
    #[must_use]
    pub(crate) fn new(run_id: [u8; 20], started_wall_ms: u64) -> Self {
        let (run, written_us) = (hex(&run_id), started_wall_ms * 1_000);
        let memory = format!("{run}-{written_us}");
        let value = SmallBytes::new(text(&run, &run, &memory, written_us).as_bytes());
        let (history, memory) = (Digest::of(run.as_bytes()), Digest::of(memory.as_bytes()));
        Self { run_id, started_wall_ms, value, history, memory }
    }

    /// Returns true if this canary belongs to the process `run_id` started at `started_wall_ms`.
    #[must_use]
    pub(crate) fn is_of(&self, run_id: [u8; 20], started_wall_ms: u64) -> bool {
        (self.run_id, self.started_wall_ms) == (run_id, started_wall_ms)
    }

    /// Returns the canary of `master` if it is this one and fits.
    fn untouched(&self, master: &Master, said: &Introduction, wall_us: u64) -> Option<Canary> {
        let stored = master.keyspace().stored(CANARY_KEY)?;
        let is_this =
            stored.expires_wall_ms.is_none() && stored.value.as_string() == Some(&self.value);
        let (history_id, is_promoted) = master.history();
        let fits = said.run_id == self.run_id && (history_id == self.run_id || !is_promoted);
        let age_us = wall_us.checked_sub(self.started_wall_ms * 1_000)?;
        let (history, memory, age) = (self.history, self.memory, Duration::from_micros(age_us));
        (is_this && fits).then_some(Canary { history, memory, age })
    }

    /// Stores the canary on `server` as written at the start of the process and already on disk. A
    /// replica gets the canary of its master.
    pub(crate) fn seed(&self, server: &mut Master) {
        server.join_history(self.run_id);
        let entry = Entry {
            value: self.value.clone().into(),
            expires_wall_ms: None,
            writer: Writer::Operator,
        };
        server.preload(0, CANARY_KEY, &entry);
    }
}

fn text(run: &str, history: &str, memory: &str, written_us: u64) -> String {
    format!("{run} {history} {memory} {written_us}")
}

/// The four fields of a canary.
#[derive(Clone, Copy)]
struct Written<'a> {
    run: &'a [u8],
    history: &'a [u8],
    memory: &'a [u8],
    at_us: u64,
}

/// Splits the value of a canary; returns `None` if the production client did not write it.
fn parse(value: &[u8]) -> Option<Written<'_>> {
    let mut words = value.split(|&byte| byte == b' ');
    let mut word = || words.next().filter(|it| !it.is_empty() && !it.iter().any(is_space));
    let (run, history, memory, at) = (word()?, word()?, word()?, word()?);
    let is_ours = run.iter().all(u8::is_ascii_hexdigit) && at.iter().all(u8::is_ascii_digit);
    // A time too large to parse counts as lying in the future.
    let at_us = core::str::from_utf8(at).ok()?.parse().unwrap_or(u64::MAX);
    (is_ours && words.next().is_none()).then_some(Written { run, history, memory, at_us })
}

fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

/// Returns true if `digits` are `id` in lower-case hexadecimal.
fn is_hex(digits: &[u8], id: &[u8; 20]) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pair = |byte: &u8| [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
    digits.len() == 2 * id.len()
        && digits.chunks_exact(2).zip(id).all(|(it, byte)| it == pair(byte))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
