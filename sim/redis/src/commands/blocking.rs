//! List commands that wait for an element.

use super::lists::pop_one;
use super::{Call, Ending, Keys, NO_SCRIPT_WAITS, Outcome, REPLIES_FIRST, Refusal, Spec, WRITE};
use crate::blocked::Waiter;
use crate::profile::Feature;
use crate::pushes::{Message, Release};
use crate::resp::Value;
use crate::{Content, KeyCommand, ListCommand, ListEnd, Reply, SmallBytes};

const FLAGS: u16 = WRITE | NO_SCRIPT_WAITS | REPLIES_FIRST;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("blpop", -3, FLAGS, Keys::AllButLast, |call| pop(call, ListEnd::Head)),
    Spec::new("brpop", -3, FLAGS, Keys::AllButLast, |call| pop(call, ListEnd::Tail)),
];

/// Pops from the first of the lists that has an element. Without one the connection waits, except
/// within a transaction or a script.
fn pop(call: &mut Call<'_>, end: ListEnd) -> Outcome {
    let [keys @ .., timeout] = call.arguments() else { return Err(call.arity()) };
    let is_checked = call.server.profile().has(Feature::WaitEnds);
    let timeout_ms = timeout_ms(timeout, call.wall_ms(), is_checked)?;
    for key in keys {
        if let Some(value) = pop_one(call, key, end)? {
            return Ok(Value::Array(vec![Value::bulk(key), Value::Bulk(value.share())]));
        }
    }
    if !call.is_inner {
        let (id, writer) = (call.session.id(), call.turn.writer);
        let keys = keys.iter().map(|key| SmallBytes::new(key)).collect();
        let (database, is_silent) = (call.session.database(), false);
        call.server.blocked.begin(id, Waiter { database, keys, end, writer, is_silent });
        call.ending = Some(Ending::Block { timeout_ms });
    }
    Ok(Value::NullArray)
}

/// Parses a timeout in seconds and returns it in milliseconds, rounded up. A number beyond the range
/// of C's integers becomes a negative one there, unless the range `is_checked`.
fn timeout_ms(word: &[u8], now_ms: u64, is_checked: bool) -> Result<u64, Refusal> {
    let ms = (number(word).ok_or(Refusal::new("ERR timeout is not a float or out of range"))?
        * 1_000.0)
        .ceil();
    let latest = i64::MAX as f64 - if is_checked { now_ms as f64 } else { 0.0 };
    if ms >= latest && is_checked {
        return Err(Refusal::new("ERR timeout is out of range"));
    }
    if ms < 0.0 || ms >= latest {
        return Err(Refusal::new("ERR timeout is negative"));
    }
    Ok(ms as u64)
}

/// Parses a number as `strtold` does, without leading spaces: hexadecimal integers are numbers, too.
fn number(word: &[u8]) -> Option<f64> {
    let text = core::str::from_utf8(word).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let number = match hexadecimal.filter(|digits| !digits.starts_with('+')) {
        Some(digits) => {
            let number = u64::from_str_radix(digits, 16).ok()? as f64;
            if text.starts_with('-') { -number } else { number }
        }
        None => text.parse::<f64>().ok()?,
    };
    (!number.is_nan()).then_some(number)
}

impl Call<'_> {
    /// Gives the elements that lists have got to the connections that wait for them. Each key serves
    /// its connections in the order in which they began to wait.
    pub(super) fn serve_waiters(&mut self) {
        loop {
            let ready = self.server.blocked.take_ready();
            if ready.is_empty() {
                return;
            }
            for (database, key) in ready {
                while self.serve_first(database, &key) {}
            }
        }
    }

    /// Gives an element of the list to the connection that has waited for it longest. Returns false
    /// if there is no such element or connection.
    fn serve_first(&mut self, database: u8, key: &SmallBytes) -> bool {
        let Some((id, waiter)) = self.server.blocked.first(database, key) else { return false };
        let (end, writer, is_silent) = (waiter.end, waiter.writer, waiter.is_silent);
        if self.on_in(database, key, KeyCommand::Exists) != Reply::Integer(1) {
            return false;
        }
        let stored = self.server.databases().get(database).and_then(|keys| keys.stored(key));
        let element = stored.and_then(|entry| match &entry.value {
            Content::List(list) => end.element(list).cloned(),
            _ => None,
        });
        let Some(element) = element else { return false };
        self.server.blocked.end(id);
        let release = Release::Popped(key.clone(), element);
        self.server.pushes.add(id, Message::Released { release, is_silent });
        self.server.begin_request(id);
        self.turn.writer = writer;
        let is_command = self.server.profile().has(Feature::ServesByCommand);
        // Without it the readers of the list learn nothing and stay registered.
        let unseen = (!is_command).then(|| core::mem::take(&mut self.server.tracked));
        self.on_in(database, key, KeyCommand::List(ListCommand::Pop { end, count: 1 }));
        if let Some(tracked) = unseen {
            self.server.tracked = tracked;
        }
        self.server.end_request(id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_of_seconds_rounded_up_to_milliseconds() {
        let of = |word: &str| timeout_ms(word.as_bytes(), 1_000, false).ok();
        for (word, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000)),
            (".5", Some(500)),
            ("0.0001", Some(1)),
            ("-0.0001", Some(0)),
            ("1e3", Some(1_000_000)),
            ("0x10", Some(16_000)),
            ("-0x10", None),
            ("0x", None),
            ("0x+1", None),
            ("-1", None),
            ("inf", None),
            ("nan", None),
            ("1e30", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
        ] {
            assert_eq!(of(word), expected, "{word}");
        }
        let far = timeout_ms(b"1e30", 1_000, true).expect_err("too far");
        assert_eq!(far, Refusal::new("ERR timeout is out of range"));
    }
}
