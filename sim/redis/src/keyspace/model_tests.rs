//! Compares the keyspace with a naive model over random commands and times.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{ONE, TWO, pexpire, set, set_nx};
use super::*;
use crate::{ExpireCondition, Reply, SetCondition, SetExpiry};

/// A naive model of the rules: a map, and arithmetic that cannot overflow.
#[derive(Default)]
struct Model(BTreeMap<u8, (Vec<u8>, Option<i128>, Writer)>);

#[derive(Clone, Debug)]
enum Asked {
    Active,
    CompareAndDelete(u8),
    Del,
    Exists,
    Get,
    Incr,
    Pexpire(i64, ExpireCondition),
    Pttl,
    SetNxPx(u8, i64),
    SetXxKeepTtl(u8),
}

impl Model {
    /// Returns the reply to the command as text.
    fn execute(&mut self, key: u8, asked: &Asked, now: i128, writer: Writer) -> String {
        if let Asked::Active = asked {
            self.0.retain(|_, it| it.1.is_none_or(|when| now < when));
            return String::new();
        }
        if self.0.get(&key).is_some_and(|it| it.1.is_some_and(|when| now > when)) {
            self.0.remove(&key);
        }
        let found = self.0.get(&key).cloned();
        match (asked, found) {
            (Asked::SetNxPx(..), Some(_)) | (Asked::Get | Asked::SetXxKeepTtl(_), None) => {
                "nil".into()
            }
            (Asked::SetNxPx(value, ms), None) => {
                self.0.insert(key, (vec![*value], Some(now + i128::from(*ms)), writer));
                "ok".into()
            }
            (Asked::SetXxKeepTtl(value), Some((_, when, _))) => {
                self.0.insert(key, (vec![*value], when, writer));
                "ok".into()
            }
            (Asked::Get, Some((value, ..))) => value.escape_ascii().to_string(),
            (Asked::Incr, None) => {
                self.0.insert(key, (b"1".to_vec(), None, writer));
                "1".into()
            }
            (Asked::Incr, Some((value, when, _))) => {
                let number = String::from_utf8_lossy(&value).parse::<i64>();
                let Ok(number) = number else { return "error".into() };
                self.0.insert(key, ((number + 1).to_string().into(), when, writer));
                (number + 1).to_string()
            }
            (Asked::Pttl, None) => "-2".into(),
            (Asked::Pttl, Some((_, when, _))) => when.map_or(-1, |when| when - now).to_string(),
            (Asked::Exists, found) => u8::from(found.is_some()).to_string(),
            (Asked::CompareAndDelete(value), Some(it)) if it.0 != [*value] => "0".into(),
            (Asked::Del | Asked::CompareAndDelete(_), Some(_)) => {
                self.0.remove(&key);
                "1".into()
            }
            (Asked::Pexpire(ms, condition), Some(it)) => self.retime(key, it, now, *ms, *condition),
            (_, None) => "0".into(),
            (Asked::Active, _) => unreachable!("handled above"),
        }
    }

    fn retime(
        &mut self,
        key: u8,
        (value, old, writer): (Vec<u8>, Option<i128>, Writer),
        now: i128,
        ms: i64,
        condition: ExpireCondition,
    ) -> String {
        let when = now + i128::from(ms);
        let infinite = old.unwrap_or(i128::MAX);
        let holds = match condition {
            ExpireCondition::Always => true,
            ExpireCondition::Later => when > infinite,
            ExpireCondition::Sooner => when < infinite,
            ExpireCondition::Unset => old.is_none(),
            ExpireCondition::Set => old.is_some(),
            ExpireCondition::SetAndSooner => old.is_some() && when < infinite,
        };
        if holds && when <= now {
            self.0.remove(&key);
        } else if holds {
            self.0.insert(key, (value, Some(when), writer));
        }
        u8::from(holds).to_string()
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    use ExpireCondition::{Always, Later, Set, SetAndSooner, Sooner, Unset};
    // Digits are among the values so that some of them are integers.
    let value = || prop_oneof![Just(b'1'), Just(b'2'), Just(b'x')];
    let condition = prop::sample::select(vec![Always, Later, Sooner, Unset, Set, SetAndSooner]);
    prop_oneof![
        1 => Just(Asked::Active),
        2 => value().prop_map(Asked::CompareAndDelete),
        1 => Just(Asked::Del),
        1 => Just(Asked::Exists),
        2 => Just(Asked::Get),
        2 => Just(Asked::Incr),
        3 => (-2..8_i64, condition).prop_map(|(ms, condition)| Asked::Pexpire(ms, condition)),
        2 => Just(Asked::Pttl),
        5 => (value(), 1..8_i64).prop_map(|(value, ms)| Asked::SetNxPx(value, ms)),
        2 => value().prop_map(Asked::SetXxKeepTtl),
    ]
}

fn ask(keys: &mut Keyspace, key: u8, asked: &Asked, wall_ms: u64, writer: Writer) -> String {
    let (one, two);
    let command = match *asked {
        Asked::Active => {
            keys.expire_active(wall_ms, drop);
            return String::new();
        }
        Asked::CompareAndDelete(value) => {
            one = [value];
            KeyCommand::CompareAndDelete { value: &one }
        }
        Asked::Del => KeyCommand::Del,
        Asked::Exists => KeyCommand::Exists,
        Asked::Get => KeyCommand::Get,
        Asked::Incr => KeyCommand::Incr,
        Asked::Pexpire(ms, condition) => KeyCommand::Pexpire { ms, condition },
        Asked::Pttl => KeyCommand::Pttl,
        Asked::SetNxPx(value, ms) => {
            one = [value];
            set_nx(&one, ms)
        }
        Asked::SetXxKeepTtl(value) => {
            two = [value];
            let (condition, expiry) = (SetCondition::Present, SetExpiry::Keep);
            KeyCommand::Set { value: &two, condition, expiry, get: false }
        }
    };
    match keys.execute(&[key], command, wall_ms, writer).reply {
        Reply::Bulk(value) => value.escape_ascii().to_string(),
        Reply::Error(_) => "error".into(),
        Reply::Integer(number) => number.to_string(),
        Reply::Introduction(_) => unreachable!("nobody asked"),
        Reply::Nil => "nil".into(),
        Reply::Ok => "ok".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_keyspace_answers_as_a_naive_model_does(
        steps in prop::collection::vec((0..2_u8, asked(), -1..4_i64, prop::bool::ANY), 1..60),
    ) {
        let (mut keys, mut model, mut wall_ms) = (Keyspace::default(), Model::default(), 1_000_u64);
        for (key, asked, step_ms, by_one) in steps {
            // The wall clock mostly moves forward a little, and sometimes back.
            wall_ms = wall_ms.saturating_add_signed(step_ms);
            let writer = if by_one { ONE } else { TWO };
            let expected = model.execute(key, &asked, wall_ms.into(), writer);
            prop_assert_eq!(ask(&mut keys, key, &asked, wall_ms, writer), expected, "{:?}", asked);
            let stored: Vec<_> = keys
                .iter()
                .map(|(key, it)| {
                    let value = it.value.as_string().expect("a string").to_vec();
                    (key[0], (value, it.expires_wall_ms, it.writer))
                })
                .collect();
            let expected: Vec<_> = model
                .0
                .iter()
                .map(|(&key, it)| (key, (it.0.clone(), it.1.map(|when| when as u64), it.2)))
                .collect();
            prop_assert_eq!(stored, expected);
        }
    }

    /// Every key's end is reported exactly once, and the reported effects agree with the contents
    /// of the keyspace.
    #[test]
    fn reported_changes_account_for_every_key(
        steps in prop::collection::vec((0..2_u8, 0..6_u8, 0..4_u64, prop::bool::ANY), 1..60),
    ) {
        let (mut keys, mut wall_ms) = (Keyspace::default(), 1_000);
        let mut alive: BTreeMap<u8, Writer> = BTreeMap::new();
        for (key, what, step_ms, by_one) in steps {
            wall_ms += step_ms;
            let writer = if by_one { ONE } else { TWO };
            let command = match what {
                0 => set_nx(b"1", 3),
                1 => set(b"2"),
                2 => KeyCommand::Del,
                3 => KeyCommand::Incr,
                4 => pexpire(step_ms as i64 - 1, ExpireCondition::Always),
                _ => KeyCommand::Get,
            };
            let executed = keys.execute(&[key], command, wall_ms, writer);
            if let Some(expired) = executed.expired {
                prop_assert_eq!(alive.remove(&key), Some(expired.writer));
            }
            prop_assert_eq!(
                alive.get(&key).copied().unwrap_or_default(),
                executed.effect.before
            );
            if let Some(ended) = executed.ended {
                prop_assert_eq!(alive.remove(&key), Some(ended.writer));
                prop_assert_eq!(ended.by, writer);
            }
            if executed.effect.after != Writer::Nobody {
                alive.insert(key, executed.effect.after);
            }
            let stored = keys.stored(&[key]);
            prop_assert_eq!(stored.map(|it| it.writer), alive.get(&key).copied());
            prop_assert_eq!(
                stored.and_then(|it| it.expires_wall_ms),
                executed.effect.expires_wall_ms
            );
        }
    }
}
