//! Keyspace events.

use super::*;
use crate::resp::Value;

/// Returns the events that the first connection hears by channel and message.
fn events(bench: &mut Bench, line: &str) -> String {
    bench.said(1, line);
    let messages = bench.server.take_pushes().into_iter().map(|(_, message)| match message {
        Value::Push(words) => {
            let words = words[2..].iter().map(|word| match word {
                Value::Bulk(word) => String::from_utf8_lossy(word).into_owned(),
                other => panic!("{other:?}"),
            });
            words.collect::<Vec<_>>().join("=").replace("__key", "").replace("@0__", "")
        }
        other => panic!("{other:?}"),
    });
    messages.collect::<Vec<_>>().join(" ")
}

/// Executes requests while the first connection hears all events, and compares these.
fn hears(profile: &'static Profile, table: &[(&str, &str)]) -> Bench {
    let mut bench = Bench::new(profile);
    bench.ask("CONFIG SET notify-keyspace-events KA");
    bench.ask("PSUBSCRIBE __key*__:*");
    for (line, expected) in table {
        assert_eq!(events(&mut bench, line), *expected, "{line}");
    }
    bench
}

#[test]
fn changes_of_keys_are_events() {
    let mut bench = hears(
        &REDIS_7_0,
        &[
            ("SET k 1", "space:k=set"),
            ("SET k 1 NX", ""),
            ("GET k", ""),
            ("SET k 1 PX 100", "space:k=set space:k=expire"),
            ("SETEX k 1 1", "space:k=set space:k=expire"),
            ("PERSIST k", "space:k=persist"),
            ("PERSIST k", ""),
            ("EXPIRE k 100", "space:k=expire"),
            ("INCR k", "space:k=incrby"),
            ("DECRBY k 2", "space:k=incrby"),
            ("APPEND k 1", "space:k=append"),
            ("GETSET k 1", "space:k=set"),
            ("MSET k 1 j 2", "space:k=set space:j=set"),
            ("RENAME k i", "space:k=rename_from space:i=rename_to"),
            ("COPY i k", "space:k=copy_to"),
            ("DEL k nosuch j", "space:k=del space:j=del"),
            ("GETEX i EX 1", "space:i=expire"),
            ("GETEX i PERSIST", "space:i=persist"),
            ("GETDEL i", "space:i=del"),
            ("SETNX k 1", "space:k=set"),
            ("MOVE k 1", "space:k=move_from space@1__:k=move_to"),
            ("FLUSHALL", ""),
            ("SET k 1 PXAT 5", "space:k=set space:k=expire"),
            ("SET k 1", "space:k=expired space:k=set"),
            ("PEXPIREAT k 5", "space:k=del"),
            (
                "EVAL \"redis.call('set','k','1') redis.call('del','k')\" 0",
                "space:k=set space:k=del",
            ),
        ],
    );
    bench.server.configure("notify-keyspace-events", "E$".to_owned());
    assert_eq!(events(&mut bench, "SET k 1 PX 100"), "event:set=k");
    assert_eq!(events(&mut bench, "DEL k"), "", "no letter for its class");
}

#[test]
fn changes_of_other_types_are_events() {
    hears(
        &REDIS_7_0,
        &[
            ("HSET h a 1 b 2", "space:h=hset"),
            ("HSETNX h a 1", ""),
            ("HSETNX h c 1", "space:h=hset"),
            ("HINCRBY h a 1", "space:h=hincrby"),
            ("HDEL h x", ""),
            ("HDEL h a b", "space:h=hdel"),
            ("HDEL h c", "space:h=hdel space:h=del"),
            ("RPUSH l a b", "space:l=rpush"),
            ("LPUSHX l c", "space:l=lpush"),
            ("LSET l 0 d", "space:l=lset"),
            ("LREM l 0 x", ""),
            ("LREM l 0 d", "space:l=lrem"),
            ("LTRIM l 0 9", "space:l=ltrim"),
            ("LINSERT l AFTER b e", "space:l=linsert"),
            ("RPOPLPUSH l m", "space:m=lpush space:l=rpop"),
            ("LMOVE m m LEFT RIGHT", "space:m=rpush space:m=lpop"),
            ("LMOVE m k LEFT RIGHT", "space:k=rpush space:m=lpop space:m=del"),
            ("RPOP l 0", ""),
            ("RPOP l", "space:l=rpop"),
            ("LPOP l 2", "space:l=lpop space:l=del"),
            ("HSET h a 1", "space:h=hset"),
            ("COPY h g", "space:g=copy_to"),
            ("RENAME g h", "space:g=rename_from space:h=rename_to"),
            ("SET h 1", "space:h=set"),
            ("ZADD z 1 a 2 b", "space:z=zadd"),
            ("ZADD z 1 a", ""),
            ("ZADD z INCR 1 a", "space:z=zincr"),
            ("ZREM z x", ""),
            ("ZREMRANGEBYRANK z 0 0", "space:z=zremrangebyrank"),
            ("ZREM z b", "space:z=zrem space:z=del"),
        ],
    );
}

#[test]
fn newer_conditional_commands_are_events() {
    hears(
        &VALKEY_9,
        &[
            ("SET k v PX 100", "space:k=set space:k=expire"),
            ("SET k v IFEQ v PX 200", "space:k=set space:k=expire"),
            ("DELIFEQ k w", ""),
            ("DELIFEQ k v", "space:k=del"),
        ],
    );
}

#[test]
fn ends_without_a_command_are_events() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("CONFIG SET notify-keyspace-events EA");
    for line in ["SET a 1 PX 100", "SET b 1", "SET c 1"] {
        bench.ask(line);
    }
    bench.ask("SUBSCRIBE __keyevent@0__:expired __keyevent@0__:evicted __keyevent@0__:del");
    bench.server.expire_active(1_000_101, drop);
    bench.server.evict(b"b");
    bench.server.delete(b"c");
    let form = |event: &str, key: &str| {
        let channel = format!("__keyevent@0__:{event}");
        format!("1: *3 $7 message ${} {channel} $1 {key} ", channel.len())
    };
    assert_eq!(bench.heard(), form("expired", "a") + &form("evicted", "b") + &form("del", "c"));
}

/// Returns a bench whose first connection tracks keys and hears all events.
fn reader() -> Bench {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("CONFIG SET notify-keyspace-events KA");
    for line in ["HELLO 3", "PSUBSCRIBE __keyspace@0__:*", "CLIENT TRACKING ON"] {
        bench.ask(line);
    }
    bench
}

/// Returns the invalidations and the names of the events that the first connection has got.
fn told(bench: &mut Bench) -> String {
    let heard = bench.heard();
    let words = "invalidate expired set del lpop rpop lpush rpush lset lrem ltrim rename_from \
        rename_to zadd zrem zremrangebyrank";
    let is_meant = |word: &&str| words.split(' ').any(|it| it == *word);
    heard.split(' ').filter(is_meant).collect::<Vec<_>>().join(" ")
}

#[test]
fn readers_of_a_key_learn_of_its_change_in_the_order_of_servers() {
    let mut bench = reader();
    let read = |bench: &mut Bench| {
        bench.said(1, "SET k 1 PX 100");
        bench.ask("MGET k j");
        drop(bench.heard());
    };
    for (line, expected) in [
        ("SET k 1", "invalidate set"),
        ("DEL k", "invalidate del"),
        ("RENAME k j", "invalidate invalidate rename_from rename_to"),
    ] {
        read(&mut bench);
        bench.said(1, line);
        assert_eq!(told(&mut bench), expected, "{line}");
    }
    read(&mut bench);
    bench.wall_ms += 101;
    bench.said(1, "SET k 1");
    assert_eq!(told(&mut bench), "expired invalidate set");
    read(&mut bench);
    bench.server.expire_active(bench.wall_ms + 101, drop);
    assert_eq!(told(&mut bench), "expired invalidate");
}

/// Recorded from Redis 7.0.15.
#[test]
fn a_removal_is_an_event_before_its_readers_learn_of_it() {
    let mut bench = reader();
    for (line, expected) in [
        ("RPUSH l 1", "invalidate rpush"),
        ("LSET l 0 2", "invalidate lset"),
        ("LREM l 0 2", "invalidate lrem"),
        ("LPOP l", "lpop invalidate"),
        ("RPOP l 99", "rpop del invalidate"),
        ("BLPOP l 0", "lpop invalidate"),
        ("LTRIM l 1 1", "ltrim invalidate"),
        ("LTRIM l 9 9", "ltrim del invalidate"),
        ("RPOPLPUSH l m", "lpush rpop invalidate"),
        ("ZADD l 3 c", ""),
        ("ZADD z 3 c", "invalidate zadd"),
        ("ZREM z a", "zrem invalidate"),
        ("ZREM z a b c", "zrem del invalidate"),
        ("ZREMRANGEBYRANK z 0 -1", "invalidate zremrangebyrank del"),
    ] {
        for line in ["RPUSH l 1 2 3", "ZADD z 1 a 2 b"] {
            bench.said(1, line);
        }
        for line in ["LLEN l", "ZCARD z"] {
            bench.ask(line);
        }
        drop(bench.heard());
        bench.said(1, line);
        assert_eq!(told(&mut bench), expected, "{line}");
    }
}
