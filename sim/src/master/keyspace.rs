//! The keys of one master: a pure function of state, wall clock and command.
//!
//! Expiry is Redis's: a key has an absolute instant on the node's *wall* clock, in milliseconds. It
//! counts as absent iff `now > when`, and the active cycle deletes it at `now >= when`, so that a
//! key lives between a millisecond less and a millisecond more than its PX says.

use super::bytes::SmallBytes;
use super::command::{
    Change, Effect, Ended, ErrorReply, Executed, ExpireCondition, KeyCommand, Reply, SetCondition,
    SetExpiry,
};
use crate::history::{KeyEnd, Writer};

/// What a key is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it holds.
    pub value: SmallBytes,
    /// When it expires by the node's wall clock; `None`: never.
    pub expires_wall_ms: Option<u64>,
    /// Whose command gave it its value, whatever the value says.
    pub writer: Writer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    key: SmallBytes,
    entry: Entry,
}

/// All the keys of a master. Lock nodes hold few: the keys are a sorted list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keyspace {
    slots: Vec<Slot>,
}

/// One command on its way: when, and whose it is.
#[derive(Clone, Copy)]
struct Turn {
    wall_ms: u64,
    writer: Writer,
}

/// What a command answers, and what it changed.
type Done = (Reply, Change);

impl Keyspace {
    /// Forgets every key, keeping what is allocated.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// How many keys are stored, expired ones that nobody has noticed among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What is stored under `key`, expired or not.
    #[must_use]
    pub fn stored(&self, key: &[u8]) -> Option<&Entry> {
        self.find(key).ok().map(|at| &self.slots[at].entry)
    }

    /// The first instant at which the active cycle has something to delete.
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        self.slots.iter().filter_map(|slot| slot.entry.expires_wall_ms).min()
    }

    /// Executes `command` at one instant of the node's wall clock: expiry is judged by it
    /// throughout. `writer` is whose command it is.
    ///
    /// A key found expired is deleted and reported first; the command sees it no more.
    pub fn execute(
        &mut self,
        key: &[u8],
        command: KeyCommand<'_>,
        wall_ms: u64,
        writer: Writer,
    ) -> Executed {
        let mut place = self.find(key);
        let mut expired = None;
        if let Ok(at) = place
            && self.slots[at].entry.expires_wall_ms.is_some_and(|when| wall_ms > when)
        {
            expired = Some(self.slots.remove(at).ended(KeyEnd::Expired, Writer::Nobody));
            place = Err(at);
        }
        let (Ok(at) | Err(at)) = place;
        let (before, before_ms) = match place {
            Ok(at) => (self.slots[at].entry.writer, self.slots[at].entry.expires_wall_ms),
            Err(_) => (Writer::Nobody, None),
        };
        let (reply, change) = self.apply(place, key, command, Turn { wall_ms, writer });
        let now = self.slots.get(at).filter(|slot| *slot.key == *key).map(|slot| &slot.entry);
        let after = now.map_or(Writer::Nobody, |entry| entry.writer);
        let expires_wall_ms = now.and_then(|entry| entry.expires_wall_ms);
        let ended = (before != Writer::Nobody && after != before).then(|| Ended {
            key: SmallBytes::new(key),
            writer: before,
            cause: KeyEnd::Command,
            by: writer,
            expires_wall_ms: before_ms,
        });
        Executed {
            reply,
            expired,
            effect: Effect { change, before, after, expires_wall_ms },
            ended,
        }
    }

    /// The active cycle: deletes every key whose time has come at `wall_ms`.
    pub fn expire_active(&mut self, wall_ms: u64, mut ended: impl FnMut(Ended)) {
        self.slots.retain(|slot| {
            let due = slot.entry.expires_wall_ms.is_some_and(|when| wall_ms >= when);
            if due {
                ended(slot.clone().ended(KeyEnd::Expired, Writer::Nobody));
            }
            !due
        });
    }

    /// Deletes `key` for want of memory.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        let at = self.find(key).ok()?;
        Some(self.slots.remove(at).ended(KeyEnd::Evicted, Writer::Nobody))
    }

    /// `DEL` of `key` by an operator.
    pub fn delete_by_operator(&mut self, key: &[u8]) -> Option<Ended> {
        let at = self.find(key).ok()?;
        Some(self.slots.remove(at).ended(KeyEnd::Command, Writer::Operator))
    }

    /// `FLUSHALL` by an operator.
    pub fn flush(&mut self, mut ended: impl FnMut(Ended)) {
        self.slots.drain(..).for_each(|slot| ended(slot.ended(KeyEnd::Flushed, Writer::Operator)));
    }

    /// Makes `key` what `entry` says, as loading from disk does: nothing is checked or reported.
    pub fn load(&mut self, key: &SmallBytes, entry: Option<&Entry>) {
        match (self.find(key), entry) {
            (Ok(at), Some(entry)) => self.slots[at].entry.clone_from(entry),
            (Ok(at), None) => drop(self.slots.remove(at)),
            (Err(at), Some(entry)) => {
                self.slots.insert(at, Slot { key: key.clone(), entry: entry.clone() });
            }
            (Err(_), None) => {}
        }
    }

    /// Drops every key whose time is over by `wall_ms`, as loading from disk does.
    pub fn forget_expired(&mut self, wall_ms: u64) {
        self.slots.retain(|slot| slot.entry.expires_wall_ms.is_none_or(|when| wall_ms <= when));
    }

    /// What becomes of keys when `new` takes the place of this keyspace, at `wall_ms`: `ended` is
    /// told of those that only this one has, which end because of `cause` unless their time is
    /// over, `returned` of those that only `new` has.
    pub fn compare(
        &self,
        new: &Self,
        wall_ms: u64,
        cause: KeyEnd,
        mut ended: impl FnMut(Ended),
        mut returned: impl FnMut(&[u8], &Entry),
    ) {
        let has = |all: &Self, slot: &Slot| {
            all.stored(&slot.key).is_some_and(|other| other.writer == slot.entry.writer)
        };
        for slot in self.slots.iter().filter(|slot| !has(new, slot)) {
            let expired = slot.entry.expires_wall_ms.is_some_and(|when| wall_ms > when);
            let cause = if expired { KeyEnd::Expired } else { cause };
            ended(slot.clone().ended(cause, Writer::Nobody));
        }
        for slot in new.slots.iter().filter(|slot| !has(self, slot)) {
            returned(&slot.key, &slot.entry);
        }
    }

    /// Every key and what it is, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&SmallBytes, &Entry)> {
        self.slots.iter().map(|slot| (&slot.key, &slot.entry))
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.slots.binary_search_by(|slot| (*slot.key).cmp(key))
    }

    fn apply(
        &mut self,
        place: Result<usize, usize>,
        key: &[u8],
        command: KeyCommand<'_>,
        turn: Turn,
    ) -> Done {
        match command {
            KeyCommand::CompareAndDelete { value } => self.delete(self.holding(place, value)),
            KeyCommand::CompareAndExtend { value, ttl_ms } => {
                self.extend(self.holding(place, value), ttl_ms, turn)
            }
            KeyCommand::CompareAndRetime { value, ttl_ms } => {
                match expiry_after(turn.wall_ms, Some(ttl_ms)) {
                    None => (Reply::Error(ErrorReply::SetRange), Change::Nothing),
                    Some(when) => {
                        let place = self.holding(place, value);
                        self.retime(place, when, ExpireCondition::Always, turn)
                    }
                }
            }
            KeyCommand::Del => self.delete(place),
            KeyCommand::Exists => (Reply::Integer(i64::from(place.is_ok())), Change::Nothing),
            KeyCommand::Expire { seconds, condition } => {
                match expiry_after(turn.wall_ms, seconds.checked_mul(1_000)) {
                    None => (Reply::Error(ErrorReply::ExpireRange), Change::Nothing),
                    Some(when) => self.retime(place, when, condition, turn),
                }
            }
            KeyCommand::Get => (self.get(place), Change::Nothing),
            KeyCommand::Incr => self.increment(place, key, turn),
            KeyCommand::Pexpire { ms, condition } => match expiry_after(turn.wall_ms, Some(ms)) {
                None => (Reply::Error(ErrorReply::PexpireRange), Change::Nothing),
                Some(when) => self.retime(place, when, condition, turn),
            },
            KeyCommand::Pttl => (Reply::Integer(self.time_to_live(place, turn)), Change::Nothing),
            KeyCommand::Set { value, condition, expiry, get } => {
                let old = get.then(|| self.get(place));
                let done = self.set(place, key, value, (condition, expiry), turn);
                match (done, old) {
                    ((Reply::Error(error), change), _) => (Reply::Error(error), change),
                    ((_, change), Some(old)) => (old, change),
                    (done, None) => done,
                }
            }
            KeyCommand::Setnx { value } => {
                let how = (SetCondition::Missing, SetExpiry::Never);
                let (_, change) = self.set(place, key, value, how, turn);
                (Reply::Integer(i64::from(change == Change::Set)), change)
            }
        }
    }

    fn get(&self, place: Result<usize, usize>) -> Reply {
        place.map_or(Reply::Nil, |at| Reply::Bulk(self.slots[at].entry.value.clone()))
    }

    /// `place` if the key there holds `value`.
    fn holding(&self, place: Result<usize, usize>, value: &[u8]) -> Result<usize, usize> {
        let at = place?;
        if *self.slots[at].entry.value == *value { Ok(at) } else { Err(at) }
    }

    fn delete(&mut self, place: Result<usize, usize>) -> Done {
        match place {
            Ok(at) => {
                self.slots.remove(at);
                (Reply::Integer(1), Change::Deleted)
            }
            Err(_) => (Reply::Integer(0), Change::Nothing),
        }
    }

    /// The expiry is validated before the condition: a `PX 0` that loses `NX` is an error.
    fn set(
        &mut self,
        place: Result<usize, usize>,
        key: &[u8],
        value: &[u8],
        (condition, expiry): (SetCondition, SetExpiry),
        turn: Turn,
    ) -> Done {
        let old_ms = place.ok().and_then(|at| self.slots[at].entry.expires_wall_ms);
        let expires_wall_ms = match expiry {
            SetExpiry::Keep => old_ms,
            SetExpiry::Never => None,
            SetExpiry::Px(ms) => match expiry_after(turn.wall_ms, Some(ms)) {
                Some(when) if ms > 0 => Some(when),
                _ => return (Reply::Error(ErrorReply::SetRange), Change::Nothing),
            },
        };
        let lost = match condition {
            SetCondition::Always => false,
            SetCondition::Missing => place.is_ok(),
            SetCondition::Present => place.is_err(),
        };
        if lost {
            return (Reply::Nil, Change::Nothing);
        }
        self.put(place, key, SmallBytes::new(value), expires_wall_ms, turn.writer);
        (Reply::Ok, Change::Set)
    }

    fn increment(&mut self, place: Result<usize, usize>, key: &[u8], turn: Turn) -> Done {
        let (old, expires_wall_ms) = match place {
            Ok(at) => {
                let entry = &self.slots[at].entry;
                (parse_integer(&entry.value), entry.expires_wall_ms)
            }
            Err(_) => (Some(0), None),
        };
        let Some(old) = old else {
            return (Reply::Error(ErrorReply::NotAnInteger), Change::Nothing);
        };
        let Some(new) = old.checked_add(1) else {
            return (Reply::Error(ErrorReply::Overflow), Change::Nothing);
        };
        self.put(place, key, SmallBytes::decimal(new), expires_wall_ms, turn.writer);
        (Reply::Integer(new), Change::Set)
    }

    fn put(
        &mut self,
        place: Result<usize, usize>,
        key: &[u8],
        value: SmallBytes,
        expires_wall_ms: Option<u64>,
        writer: Writer,
    ) {
        assert_ne!(writer, Writer::Nobody, "a key is made by somebody");
        let entry = Entry { value, expires_wall_ms, writer };
        match place {
            Ok(at) => self.slots[at].entry = entry,
            Err(at) => self.slots.insert(at, Slot { key: SmallBytes::new(key), entry }),
        }
    }

    /// Moves the expiry to `when`. One that is not in the future deletes the key, which counts as
    /// done.
    fn retime(
        &mut self,
        place: Result<usize, usize>,
        when: u64,
        condition: ExpireCondition,
        turn: Turn,
    ) -> Done {
        let Ok(at) = place else {
            return (Reply::Integer(0), Change::Nothing);
        };
        let old = self.slots[at].entry.expires_wall_ms;
        let holds = match condition {
            ExpireCondition::Always => true,
            ExpireCondition::Later => old.is_some_and(|old| when > old),
            ExpireCondition::Sooner => old.is_none_or(|old| when < old),
            ExpireCondition::Unset => old.is_none(),
            ExpireCondition::Set => old.is_some(),
            ExpireCondition::SetAndSooner => old.is_some_and(|old| when < old),
        };
        if !holds {
            return (Reply::Integer(0), Change::Nothing);
        }
        if when <= turn.wall_ms {
            return self.delete(place);
        }
        self.slots[at].entry.expires_wall_ms = Some(when);
        (Reply::Integer(1), Change::Retimed)
    }

    /// The extension script: what it finds at `place` is the asker's, and lives no shorter for it.
    fn extend(&mut self, place: Result<usize, usize>, ttl_ms: i64, turn: Turn) -> Done {
        if place.is_err() {
            return (Reply::Integer(0), Change::Nothing);
        }
        if self.time_to_live(place, turn) >= ttl_ms {
            return (Reply::Integer(1), Change::Nothing);
        }
        match expiry_after(turn.wall_ms, Some(ttl_ms)) {
            // Only PEXPIRE itself can fail.
            None => (Reply::Error(ErrorReply::PexpireRange), Change::Nothing),
            Some(when) => self.retime(place, when, ExpireCondition::Always, turn),
        }
    }

    fn time_to_live(&self, place: Result<usize, usize>, turn: Turn) -> i64 {
        const MISSING: i64 = -2;
        const NO_EXPIRY: i64 = -1;
        let Ok(at) = place else {
            return MISSING;
        };
        // Set within `i64` and not before now, or the key would count as absent.
        self.slots[at].entry.expires_wall_ms.map_or(NO_EXPIRY, |when| (when - turn.wall_ms) as i64)
    }
}

impl Slot {
    fn ended(self, cause: KeyEnd, by: Writer) -> Ended {
        let Entry { writer, expires_wall_ms, .. } = self.entry;
        Ended { key: self.key, writer, cause, by, expires_wall_ms }
    }
}

/// The instant `ms` after `wall_ms`, clamped to the clock's origin; `None` if Redis, which counts
/// in `i64`, cannot represent it.
fn expiry_after(wall_ms: u64, ms: Option<i64>) -> Option<u64> {
    let when = i64::try_from(wall_ms).ok()?.checked_add(ms?)?;
    Some(u64::try_from(when).unwrap_or(0))
}

/// An integer as Redis reads it: decimal, canonical, nothing around it.
pub(super) fn parse_integer(bytes: &[u8]) -> Option<i64> {
    let number = core::str::from_utf8(bytes).ok()?.parse().ok()?;
    (*SmallBytes::decimal(number) == *bytes).then_some(number)
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
