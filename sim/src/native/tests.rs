//! Compares the native commands for a key's owner with the scripts that owners send.

use bytes::Bytes;
use proptest::prelude::*;
use redis_sim::resp::{Protocol, Value};
use redis_sim::script::{Caller, REDIS_7_0, run, sha_of};
use redis_sim::{ErrorReply, Keyspace, SetCondition, SetExpiry, Writer};
use redlock_client::scripts::{EXTEND, RELEASE};

use super::*;

/// A keyspace at one instant.
struct Stopped<'a> {
    keys: &'a mut Keyspace,
    wall_ms: u64,
    writer: Writer,
}

impl Caller for Stopped<'_> {
    fn call(&mut self, arguments: &[&[u8]], _: Protocol) -> Value {
        let command = match (arguments[0], &arguments[2..]) {
            (b"get", []) => KeyCommand::Get,
            (b"del", []) => KeyCommand::Del,
            (b"pttl", []) => KeyCommand::Pttl,
            (b"pexpire", [ms]) => {
                let ms = std::str::from_utf8(ms).expect("text").parse().expect("an integer");
                KeyCommand::Pexpire { ms, condition: ExpireCondition::Always }
            }
            other => panic!("no script asks for {other:?}"),
        };
        let executed = self.keys.execute(arguments[1], command, self.wall_ms, self.writer);
        value_of(&executed.reply)
    }

    fn interrupt(&mut self) -> Option<String> {
        None
    }
}

fn value_of(reply: &Reply) -> Value {
    match reply {
        Reply::Bulk(bytes) => Value::bulk(bytes),
        Reply::Error(error) => Value::error(error.text()),
        Reply::Integer(number) => Value::Integer(*number),
        Reply::Introduction(_) | Reply::Nil => Value::Null,
        Reply::Ok => Value::ok(),
    }
}

/// Generates a value. Values, keys and times are few, so that they coincide often.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"".to_vec()),
        Just(b"a".to_vec()),
        Just(vec![0, 255, 13, 10]),
        Just(b"7".to_vec())
    ]
}

fn keyspace() -> impl Strategy<Value = Keyspace> {
    let slot = (0..3_u8, value(), prop::option::of(1..60_i64));
    prop::collection::vec(slot, 0..4).prop_map(|slots| {
        let mut keys = Keyspace::default();
        for (key, value, ttl_ms) in slots {
            let expiry = ttl_ms.map_or(SetExpiry::Never, SetExpiry::Px);
            let condition = SetCondition::Always;
            let command = KeyCommand::Set { value: &value, condition, expiry, get: false };
            keys.execute(&[key], command, 1_000, Writer::Operator);
        }
        keys
    })
}

fn slots(keys: &Keyspace) -> Vec<String> {
    keys.iter().map(|slot| format!("{slot:?}")).collect()
}

proptest! {
    #[test]
    fn the_native_operations_of_owners_do_what_their_scripts_do(
        keys in keyspace(),
        key in 0..3_u8,
        value in value(),
        wall_ms in 1_000..1_070_u64,
        ttl_ms in prop::option::of(1..60_i64),
    ) {
        let writer = Writer::Tagged(1);
        let digits = ttl_ms.map(|ttl_ms| ttl_ms.to_string());
        let text = if ttl_ms.is_none() { RELEASE } else { EXTEND };
        let mut native = keys.clone();
        let executed = native.run(&[key], wall_ms, writer, |key| match ttl_ms {
            None => key.execute(KeyCommand::CompareAndDelete { value: &value }),
            Some(ttl_ms) => extend(key, &value, ttl_ms),
        });
        let expected = value_of(&executed.reply);

        let mut scripted = keys;
        let mut arguments = vec![&value[..]];
        arguments.extend(digits.as_ref().map(String::as_bytes));
        let mut stopped = Stopped { keys: &mut scripted, wall_ms, writer };
        let text = Bytes::from_static(text);
        let reply = run(&text, &sha_of(&text), &[&[key]], &arguments, &REDIS_7_0, &mut stopped);

        prop_assert_eq!(reply, expected);
        prop_assert_eq!(slots(&scripted), slots(&native));
    }

    #[test]
    fn a_set_that_shows_the_holder_sets_what_a_bare_one_sets(
        keys in keyspace(),
        key in 0..3_u8,
        value in value(),
        wall_ms in 1_000..1_070_u64,
    ) {
        let writer = Writer::Tagged(1);
        let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(50));
        let set = |get| KeyCommand::Set { value: &value, condition, expiry, get };
        let (mut showing, mut bare) = (keys.clone(), keys);
        let shown = showing.execute(&[key], set(true), wall_ms, writer).reply;
        let answered = bare.execute(&[key], set(false), wall_ms, writer).reply;
        let holder = bare.execute(&[key], KeyCommand::Get, wall_ms, writer).reply;

        prop_assert_eq!(slots(&showing), slots(&bare));
        match answered {
            // The key was set; a script that asks for the holder gets a null.
            Reply::Ok => prop_assert_eq!(shown, Reply::Nil),
            refused => {
                prop_assert_eq!(refused, Reply::Nil);
                prop_assert_eq!(shown, holder);
            }
        }
    }
}

#[test]
fn an_extension_fails_only_where_its_pexpire_is_reached() {
    let mut keys = Keyspace::default();
    keys.execute(b"k", KeyCommand::Setnx { value: b"v" }, 1_000, Writer::Tagged(1));
    let mut reply = |value: &[u8]| {
        keys.run(b"k", 1_050, Writer::Tagged(2), |key| extend(key, value, i64::MAX)).reply
    };
    assert_eq!(reply(b"w"), Reply::Integer(0));
    assert_eq!(reply(b"v"), Reply::Error(ErrorReply::PexpireRange));
}
