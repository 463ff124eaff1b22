use super::*;
use crate::command::{Change, ErrorReply, ExpireCondition, Reply, SetCondition, SetExpiry};

pub(super) const ONE: Writer = Writer::Tagged(1);
pub(super) const TWO: Writer = Writer::Tagged(2);

pub(super) fn set_nx(value: &[u8], ms: i64) -> KeyCommand<'_> {
    let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(ms));
    KeyCommand::Set { value, condition, expiry, get: false }
}

pub(super) fn set(value: &[u8]) -> KeyCommand<'_> {
    let (condition, expiry) = (SetCondition::Always, SetExpiry::Never);
    KeyCommand::Set { value, condition, expiry, get: false }
}

pub(super) fn pexpire(ms: i64, condition: ExpireCondition) -> KeyCommand<'static> {
    KeyCommand::Pexpire { ms, condition }
}

/// Returns a keyspace with `k` set to `v` by [`ONE`] at 1 000, expiring at 1 100.
fn locked() -> Keyspace {
    let mut keys = Keyspace::default();
    assert_eq!(keys.execute(b"k", set_nx(b"v", 100), 1_000, ONE).reply, Reply::Ok);
    keys
}

fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bulk(SmallBytes::new(bytes))
}

#[test]
fn key_is_alive_at_its_instant_and_gone_a_millisecond_later() {
    let mut keys = locked();
    assert_eq!(keys.execute(b"k", KeyCommand::Get, 1_100, TWO).reply, bulk(b"v"));
    assert_eq!(keys.execute(b"k", KeyCommand::Pttl, 1_100, TWO).reply, Reply::Integer(0));
    assert_eq!(keys.execute(b"k", KeyCommand::Get, 1_101, TWO).reply, Reply::Nil);
}

#[test]
fn the_active_cycle_deletes_at_exactly_the_instant() {
    let mut keys = locked();
    let mut ended = Vec::new();
    keys.expire_active(1_099, |key| ended.push(key));
    assert_eq!((ended.len(), keys.len()), (0, 1));
    keys.expire_active(1_100, |key| ended.push(key));
    assert_eq!(keys.len(), 0);
    assert_eq!(ended[0].cause, KeyEnd::Expired);
    assert_eq!((ended[0].writer, ended[0].by), (ONE, Writer::Nobody));
    assert_eq!(ended[0].expires_wall_ms, Some(1_100));
}

#[test]
fn key_found_expired_is_reported_before_the_commands_effect() {
    let executed = locked().execute(b"k", set_nx(b"w", 100), 1_101, TWO);
    assert_eq!(executed.reply, Reply::Ok);
    let expired = executed.expired.expect("the old key has ended");
    assert_eq!((expired.writer, expired.cause), (ONE, KeyEnd::Expired));
    assert_eq!(executed.effect.before, Writer::Nobody);
    assert_eq!(executed.effect.after, TWO);
    assert_eq!(executed.effect.expires_wall_ms, Some(1_201));
    assert_eq!(executed.ended, None);
}

#[test]
fn a_read_deletes_what_it_finds_expired() {
    let mut keys = locked();
    assert!(keys.execute(b"k", KeyCommand::Exists, 1_101, TWO).expired.is_some());
    assert!(keys.is_empty());
}

#[test]
fn set_nx_takes_a_free_key_and_leaves_a_taken_one_alone() {
    let mut keys = locked();
    let executed = keys.execute(b"k", set_nx(b"w", 500), 1_050, TWO);
    assert_eq!(executed.reply, Reply::Nil);
    let effect =
        Effect { change: Change::Nothing, before: ONE, after: ONE, expires_wall_ms: Some(1_100) };
    assert_eq!((executed.effect, executed.ended), (effect, None));
}

#[test]
fn set_xx_wants_a_key() {
    let mut keys = Keyspace::default();
    let (condition, expiry) = (SetCondition::Present, SetExpiry::Never);
    let command = KeyCommand::Set { value: b"w", condition, expiry, get: false };
    assert_eq!(keys.execute(b"k", command, 0, ONE).reply, Reply::Nil);
    assert_eq!(locked().execute(b"k", command, 1_000, ONE).reply, Reply::Ok);
}

#[test]
fn the_expiry_of_set_is_validated_before_its_condition() {
    for ms in [0, -1, i64::MIN, i64::MAX] {
        let executed = locked().execute(b"k", set_nx(b"w", ms), 1_050, TWO);
        assert_eq!(executed.reply, Reply::Error(ErrorReply::SetRange), "{ms}");
        assert_eq!(executed.effect.change, Change::Nothing);
    }
    assert_eq!(ErrorReply::SetRange.text(), "ERR invalid expire time in 'set' command");
}

#[test]
fn set_with_get_always_answers_with_the_old_value() {
    let expiry = SetExpiry::Px(50);
    for (condition, after) in [(SetCondition::Missing, ONE), (SetCondition::Always, TWO)] {
        let command = KeyCommand::Set { value: b"w", condition, expiry, get: true };
        let executed = locked().execute(b"k", command, 1_050, TWO);
        assert_eq!((executed.reply, executed.effect.after), (bulk(b"v"), after));
        let executed = Keyspace::default().execute(b"k", command, 1_050, TWO);
        assert_eq!((executed.reply, executed.effect.after), (Reply::Nil, TWO));
    }
}

#[test]
fn set_clears_the_expiry_without_keepttl() {
    for (expiry, left) in [(SetExpiry::Never, -1), (SetExpiry::Keep, 50)] {
        let mut keys = locked();
        let condition = SetCondition::Always;
        let command = KeyCommand::Set { value: b"w", condition, expiry, get: false };
        keys.execute(b"k", command, 1_020, ONE);
        assert_eq!(keys.execute(b"k", KeyCommand::Pttl, 1_050, ONE).reply, Reply::Integer(left));
    }
}

#[test]
fn setnx_answers_with_an_integer_and_sets_no_expiry() {
    let mut keys = Keyspace::default();
    let command = KeyCommand::Setnx { value: b"v" };
    assert_eq!(keys.execute(b"k", command, 5, ONE).reply, Reply::Integer(1));
    assert_eq!(keys.execute(b"k", command, 6, TWO).reply, Reply::Integer(0));
    assert_eq!(keys.execute(b"k", KeyCommand::Pttl, 7, ONE).reply, Reply::Integer(-1));
}

#[test]
fn overwriting_ends_another_writers_key_but_not_ones_own() {
    let executed = locked().execute(b"k", set(b"w"), 1_050, TWO);
    let ended = executed.ended.expect("the key has another writer now");
    assert_eq!((ended.writer, ended.by, ended.cause), (ONE, TWO, KeyEnd::Command));
    assert_eq!(ended.expires_wall_ms, Some(1_100));
    assert_eq!(locked().execute(b"k", set(b"w"), 1_050, ONE).ended, None);
}

#[test]
fn del_says_whether_there_was_a_key_and_whose() {
    let mut keys = locked();
    let executed = keys.execute(b"k", KeyCommand::Del, 1_050, TWO);
    assert_eq!((executed.reply, executed.effect.change), (Reply::Integer(1), Change::Deleted));
    let ended = executed.ended.expect("deleted");
    assert_eq!((ended.writer, ended.by), (ONE, TWO));
    assert_eq!(keys.execute(b"k", KeyCommand::Del, 1_050, TWO).reply, Reply::Integer(0));
}

#[test]
fn compare_and_delete_needs_the_value() {
    let mut keys = locked();
    let other = keys.execute(b"k", KeyCommand::CompareAndDelete { value: b"w" }, 1_050, TWO);
    assert_eq!((other.reply, other.effect.change), (Reply::Integer(0), Change::Nothing));
    let own = keys.execute(b"k", KeyCommand::CompareAndDelete { value: b"v" }, 1_050, ONE);
    assert_eq!((own.reply, own.effect.change), (Reply::Integer(1), Change::Deleted));
}

/// The native form of a script that re-times a key if it holds `value`.
fn retime(key: &mut NativeKey<'_>, value: &[u8], ms: i64) -> Reply {
    match key.value() {
        Some(held) if held == value => key.execute(pexpire(ms, ExpireCondition::Always)),
        _ => Reply::Integer(0),
    }
}

#[test]
fn a_native_script_changes_its_key_and_keeps_the_writer() {
    let mut keys = locked();
    let other = keys.run(b"k", 1_050, TWO, |key| retime(key, b"w", 900));
    assert_eq!((other.reply, other.effect.change), (Reply::Integer(0), Change::Nothing));
    // The writer is the one that set the key, even if another one re-times it.
    let executed = keys.run(b"k", 1_050, TWO, |key| retime(key, b"v", 900));
    let effect =
        Effect { change: Change::Retimed, before: ONE, after: ONE, expires_wall_ms: Some(1_950) };
    assert_eq!((executed.reply, executed.effect), (Reply::Integer(1), effect));
}

#[test]
fn a_native_script_finds_no_expired_key() {
    let mut keys = locked();
    let executed = keys.run(b"k", 1_101, TWO, |key| {
        assert_eq!(key.value(), None);
        key.execute(set(b"w"));
        key.execute(KeyCommand::Get);
        key.execute(KeyCommand::Del)
    });
    assert_eq!((executed.reply, executed.effect.change), (Reply::Integer(1), Change::Deleted));
    assert_eq!(executed.expired.map(|it| it.writer), Some(ONE));
    assert_eq!(executed.ended, None, "what the script itself set and deleted was nobody's");
}

#[test]
fn pexpire_conditions_are_those_of_the_table() {
    use ExpireCondition::{Always, Later, Set, SetAndSooner, Sooner, Unset};
    // (condition, with expiry at 1 100: sooner, same, later; without expiry: any)
    let table = [
        (Always, [1, 1, 1], 1),
        (Later, [0, 0, 1], 0),
        (Sooner, [1, 0, 0], 1),
        (Unset, [0, 0, 0], 1),
        (Set, [1, 1, 1], 0),
        (SetAndSooner, [1, 0, 0], 0),
    ];
    for (condition, with, without) in table {
        for (ms, expected) in [49, 50, 51].into_iter().zip(with) {
            let executed = locked().execute(b"k", pexpire(ms, condition), 1_050, ONE);
            assert_eq!(executed.reply, Reply::Integer(expected), "{condition:?} {ms}");
            let when = if expected == 1 { 1_050 + ms as u64 } else { 1_100 };
            assert_eq!(executed.effect.expires_wall_ms, Some(when), "{condition:?} {ms}");
        }
        let mut keys = Keyspace::default();
        keys.execute(b"k", set(b"v"), 0, ONE);
        let executed = keys.execute(b"k", pexpire(50, condition), 1_050, ONE);
        assert_eq!(executed.reply, Reply::Integer(without), "{condition:?} without expiry");
    }
}

#[test]
fn expiry_not_in_the_future_deletes_and_succeeds() {
    for ms in [0, -1, i64::MIN] {
        let executed = locked().execute(b"k", pexpire(ms, ExpireCondition::Always), 1_050, ONE);
        assert_eq!(executed.reply, Reply::Integer(1), "{ms}");
        assert_eq!(executed.effect.change, Change::Deleted, "{ms}");
        assert_eq!(executed.ended.expect("deleted").cause, KeyEnd::Command);
    }
}

#[test]
fn an_expiry_out_of_range_is_an_error_even_without_a_key() {
    let mut keys = Keyspace::default();
    let far = pexpire(i64::MAX, ExpireCondition::Always);
    let reply = keys.execute(b"k", far, 1, ONE).reply;
    assert_eq!(reply, Reply::Error(ErrorReply::PexpireRange));
    for seconds in [i64::MAX, i64::MAX / 1_000, i64::MIN] {
        let command = KeyCommand::Expire { seconds, condition: ExpireCondition::Always };
        let reply = keys.execute(b"k", command, 1_000, ONE).reply;
        assert_eq!(reply, Reply::Error(ErrorReply::ExpireRange), "{seconds}");
    }
    assert_eq!(ErrorReply::PexpireRange.text(), "ERR invalid expire time in 'pexpire' command");
    assert_eq!(ErrorReply::ExpireRange.text(), "ERR invalid expire time in 'expire' command");
}

#[test]
fn pttl_of_a_missing_key_differs_from_one_without_expiry() {
    let mut keys = locked();
    keys.execute(b"forever", set(b"v"), 1_000, ONE);
    let mut pttl = |key: &[u8]| keys.execute(key, KeyCommand::Pttl, 1_050, ONE).reply;
    assert_eq!(pttl(b"missing"), Reply::Integer(-2));
    assert_eq!(pttl(b"forever"), Reply::Integer(-1));
    assert_eq!(pttl(b"k"), Reply::Integer(50));
}

#[test]
fn incr_counts_from_nothing_and_keeps_the_expiry() {
    let mut keys = Keyspace::default();
    assert_eq!(keys.execute(b"n", KeyCommand::Incr, 1_000, ONE).reply, Reply::Integer(1));
    keys.execute(b"n", pexpire(100, ExpireCondition::Always), 1_000, ONE);
    let executed = keys.execute(b"n", KeyCommand::Incr, 1_050, ONE);
    assert_eq!(executed.reply, Reply::Integer(2));
    assert_eq!(executed.effect.expires_wall_ms, Some(1_100));
    assert_eq!(keys.execute(b"n", KeyCommand::Get, 1_050, ONE).reply, bulk(b"2"));
}

#[test]
fn incr_refuses_what_is_not_a_canonical_integer() {
    for value in ["", " 1", "+1", "01", "-0", "1.0", "9223372036854775808", "abc"] {
        let mut keys = Keyspace::default();
        keys.execute(b"n", set(value.as_bytes()), 0, ONE);
        let reply = keys.execute(b"n", KeyCommand::Incr, 0, ONE).reply;
        assert_eq!(reply, Reply::Error(ErrorReply::NotAnInteger), "{value:?}");
    }
    assert_eq!(ErrorReply::NotAnInteger.text(), "ERR value is not an integer or out of range");
}

#[test]
fn incr_does_not_wrap() {
    let mut keys = Keyspace::default();
    keys.execute(b"n", set(b"9223372036854775807"), 0, ONE);
    let reply = keys.execute(b"n", KeyCommand::Incr, 0, ONE).reply;
    assert_eq!(reply, Reply::Error(ErrorReply::Overflow));
    assert_eq!(ErrorReply::Overflow.text(), "ERR increment or decrement would overflow");
}

#[test]
fn a_wall_clock_set_back_prolongs_a_key() {
    let mut keys = locked();
    assert_eq!(keys.execute(b"k", KeyCommand::Pttl, 500, ONE).reply, Reply::Integer(600));
}

#[test]
fn the_next_expiry_is_the_earliest() {
    let mut keys = locked();
    keys.execute(b"a", set_nx(b"v", 50), 1_000, ONE);
    keys.execute(b"z", set(b"v"), 1_000, ONE);
    assert_eq!(keys.next_expiry(), Some(1_050));
}
