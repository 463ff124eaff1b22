use proptest::prelude::*;

use super::*;
use crate::{ExpireCondition, Persistence, SetCondition, SetExpiry};

const ONE: Writer = Writer::Tagged(1);
const TWO: Writer = Writer::Tagged(2);

fn master(persistence: Persistence) -> Master {
    Master::new(persistence.into(), [1; 20], 5_999)
}

fn set(value: &[u8]) -> KeyCommand<'_> {
    let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(100));
    KeyCommand::Set { value, condition, expiry, get: false }
}

fn ask(master: &mut Master, command: KeyCommand<'_>, wall_ms: u64, writer: Writer) -> Reply {
    master.execute(Command::Key { key: b"k", command }, wall_ms, writer).reply
}

fn restart(master: &mut Master, wall_ms: u64) -> Vec<Ended> {
    let mut ended = Vec::new();
    master.restart([2; 20], wall_ms, |key| ended.push(key), |_, _, _| {});
    ended
}

#[test]
fn info_reports_whole_seconds_of_the_wall_clock() {
    let mut master = master(Persistence::None);
    let mut uptime = |wall_ms| match master.execute(Command::Info, wall_ms, ONE).reply {
        Reply::Introduction(introduction) => introduction.uptime_s,
        other => panic!("{other:?}"),
    };
    // Started at 5 999: one millisecond later is a new second, and a clock that was set back gives
    // a negative uptime.
    assert_eq!([uptime(5_999), uptime(6_000), uptime(16_000), uptime(1_000)], [0, 1, 11, -4]);
}

#[test]
fn a_restart_is_another_run_that_began_just_now() {
    let mut master = master(Persistence::None);
    master.kill();
    restart(&mut master, 20_000);
    let introduction = master.introduction(23_000);
    assert_eq!((introduction.run_id, introduction.uptime_s), ([2; 20], 3));
    assert_eq!(master.incarnation(), 1);
}

#[test]
fn restart_without_persistence_is_empty_and_reports_the_loss() {
    let mut master = master(Persistence::None);
    ask(&mut master, set(b"v"), 7_000, ONE);
    master.kill();
    let ended = restart(&mut master, 7_100);
    assert!(master.keyspace().is_empty());
    assert_eq!((ended[0].writer, ended[0].cause), (ONE, KeyEnd::Restarted));
    assert_eq!(ended[0].expires_wall_ms, Some(7_100));
}

#[test]
fn a_key_that_had_expired_by_the_restart_was_not_lost_by_it() {
    let mut master = master(Persistence::None);
    ask(&mut master, set(b"v"), 7_000, ONE);
    master.kill();
    assert_eq!(restart(&mut master, 7_101)[0].cause, KeyEnd::Expired);
}

#[test]
fn a_key_that_had_expired_by_the_restart_is_not_loaded() {
    for (restart_ms, loaded) in [(7_100, true), (7_101, false)] {
        let mut master = master(Persistence::Always);
        ask(&mut master, set(b"v"), 7_000, ONE);
        master.kill();
        let ended = restart(&mut master, restart_ms);
        assert_eq!(master.keyspace().is_empty(), !loaded, "{restart_ms}");
        let causes: Vec<KeyEnd> = ended.iter().map(|key| key.cause).collect();
        assert_eq!(causes, if loaded { vec![] } else { vec![KeyEnd::Expired] }, "{restart_ms}");
    }
}

#[test]
fn always_keeps_keys_writers_and_expiry_through_both_deaths() {
    for death in [Master::kill, Master::power] {
        let mut master = master(Persistence::Always);
        ask(&mut master, set(b"v"), 7_000, ONE);
        death(&mut master);
        assert_eq!(restart(&mut master, 7_060), []);
        let entry = master.keyspace().stored(b"k").expect("kept");
        assert_eq!((entry.writer, entry.expires_wall_ms), (ONE, Some(7_100)));
        assert_eq!(ask(&mut master, KeyCommand::Pttl, 7_060, TWO), Reply::Integer(40));
    }
}

#[test]
fn always_does_not_restore_ended_keys() {
    let ways: [fn(&mut Master); 5] = [
        |master| drop(ask(master, KeyCommand::CompareAndDelete { value: b"v" }, 7_010, ONE)),
        |master| drop(ask(master, KeyCommand::Get, 7_101, ONE)),
        |master| master.expire_active(7_100, drop),
        |master| drop(master.evict(b"k")),
        |master| master.flush(drop),
    ];
    for (place, way) in ways.into_iter().enumerate() {
        let mut master = master(Persistence::Always);
        ask(&mut master, set(b"v"), 7_000, ONE);
        way(&mut master);
        master.power();
        restart(&mut master, 7_010);
        assert!(master.keyspace().is_empty(), "{place}");
    }
}

#[test]
fn eviction_and_flush_say_what_ended() {
    let mut master = master(Persistence::None);
    ask(&mut master, set(b"v"), 7_000, ONE);
    let evicted = master.evict(b"k").expect("there was a key");
    assert_eq!((evicted.writer, evicted.cause, evicted.by), (ONE, KeyEnd::Evicted, Writer::Nobody));
    assert_eq!(master.evict(b"k"), None);
    ask(&mut master, set(b"v"), 7_000, TWO);
    let mut flushed = Vec::new();
    master.flush(|key| flushed.push(key));
    assert_eq!((flushed[0].writer, flushed[0].cause), (TWO, KeyEnd::Flushed));
    assert_eq!(flushed[0].by, Writer::Operator);
}

#[test]
fn an_operator_deletes_a_key_whosever_it_is() {
    let mut master = master(Persistence::Always);
    ask(&mut master, set(b"v"), 7_000, ONE);
    let ended = master.delete(b"k").expect("there was a key");
    assert_eq!((ended.writer, ended.cause, ended.by), (ONE, KeyEnd::Command, Writer::Operator));
    master.kill();
    restart(&mut master, 7_010);
    assert!(master.keyspace().is_empty());
}

#[test]
fn a_full_master_refuses_to_set_and_nothing_else() {
    let mut master = master(Persistence::None);
    ask(&mut master, set(b"v"), 7_000, ONE);
    master.set_full(true);
    let refused = Reply::Error(ErrorReply::OutOfMemory);
    assert_eq!(ask(&mut master, set(b"w"), 7_010, TWO), refused);
    assert_eq!(ask(&mut master, KeyCommand::Setnx { value: b"w" }, 7_010, TWO), refused);
    let retime = KeyCommand::Pexpire { ms: 500, condition: ExpireCondition::Always };
    assert_eq!(ask(&mut master, retime, 7_010, ONE), Reply::Integer(1));
    let release = KeyCommand::CompareAndDelete { value: b"v" };
    assert_eq!(ask(&mut master, release, 7_020, ONE), Reply::Integer(1));
    assert_eq!(ask(&mut master, set(b"w"), 7_030, TWO), refused, "however much is free now");
    master.set_full(false);
    assert_eq!(ask(&mut master, set(b"w"), 7_030, TWO), Reply::Ok);
}

#[test]
fn a_clean_stop_keeps_what_the_mode_keeps_at_all() {
    for (mode, kept) in [
        (Persistence::None, false),
        (Persistence::Rdb, true),
        (Persistence::Everysec, true),
        (Persistence::No, true),
        (Persistence::Always, true),
    ] {
        let mut master = master(mode);
        ask(&mut master, set(b"v"), 7_000, ONE);
        master.shut_down();
        master.power();
        assert_eq!(restart(&mut master, 7_010).is_empty(), kept, "{mode:?}");
    }
}

#[test]
#[should_panic(expected = "a dead process executes nothing")]
fn a_dead_process_executes_nothing() {
    let mut master = master(Persistence::None);
    master.kill();
    ask(&mut master, KeyCommand::Get, 7_000, ONE);
}

#[test]
fn a_reset_master_is_as_good_as_new() {
    let mut master = master(Persistence::Always);
    ask(&mut master, set(b"v"), 7_000, ONE);
    master.kill();
    restart(&mut master, 7_000);
    master.reset_to(Persistence::None.into(), [3; 20], 9);
    assert_eq!(master, Master::new(Persistence::None.into(), [3; 20], 9));
}

proptest! {
    /// Under `always`, a death at any point loses no executed command.
    #[test]
    fn always_restores_the_very_keyspace(
        steps in prop::collection::vec((0..6_u8, 0..60_u64, 0..12_u8), 1..50),
    ) {
        let (mut master, mut wall_ms) = (master(Persistence::Always), 7_000);
        for (what, step_ms, death) in steps {
            wall_ms += step_ms;
            let command = match what {
                0 | 1 => set(b"1"),
                2 => KeyCommand::CompareAndDelete { value: b"1" },
                3 => KeyCommand::Incr,
                4 => KeyCommand::CompareAndRetime { value: b"1", ttl_ms: 30 },
                _ => KeyCommand::Get,
            };
            ask(&mut master, command, wall_ms, ONE);
            if death < 2 {
                let before = master.keyspace().clone();
                if death == 0 { master.kill() } else { master.power() }
                prop_assert_eq!(restart(&mut master, wall_ms), []);
                prop_assert_eq!(master.keyspace(), &before);
            }
        }
    }
}

#[test]
fn each_promotion_begins_another_history() {
    let mut master = master(Persistence::None);
    let mut histories = vec![master.history()];
    for _ in 0..2 {
        master.set_role(true);
        assert_eq!(master.history(), *histories.last().unwrap(), "a replica keeps it");
        master.set_role(false);
        histories.push(master.history());
    }
    assert_eq!(histories.iter().map(|it| it.1).collect::<Vec<_>>(), [false, true, true]);
    assert!(histories[0].0 != histories[1].0 && histories[1].0 != histories[2].0);
}

#[test]
fn first_replica_begins_a_history_and_the_next_one_joins_it() {
    let mut master = master(Persistence::None);
    let (first, _) = master.history();
    master.copy_to_stream();
    let (joined, is_promoted) = master.history();
    assert!(joined != first && !is_promoted);
    master.copy_to_stream();
    assert_eq!(master.history().0, joined);
}

#[test]
fn a_replica_introduces_itself_as_one() {
    let mut master = master(Persistence::None);
    assert!(master.introduction(7_000).is_master);
    master.set_role(true);
    assert!(!master.introduction(7_000).is_master);
}

#[test]
fn a_preloaded_key_survives_both_deaths() {
    let mut master = master(Persistence::Everysec);
    let entry = Entry { value: SmallBytes::new(b"v").into(), expires_wall_ms: None, writer: ONE };
    master.preload(0, b"k", &entry);
    master.power();
    assert_eq!(restart(&mut master, 7_010), []);
    assert_eq!(master.keyspace().stored(b"k"), Some(&entry));
}
