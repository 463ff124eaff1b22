//! Connections that wait for an element of a list.

use super::*;
use crate::resp::Value;

impl Bench {
    /// Returns the messages to each connection, in the order in which they are sent.
    fn sent(&mut self) -> String {
        let pushes = self.server.take_pushes();
        let sent = pushes.into_iter().map(|(id, value)| {
            let mut out = Vec::new();
            value.encode(self.sessions[id as usize - 1].protocol(), &mut out);
            format!("{id}: {}", String::from_utf8(out).expect("text").replace("\r\n", " "))
        });
        sent.collect()
    }
}

#[test]
fn an_element_is_popped_at_once_from_the_first_list_with_one() {
    Bench::new(&REDIS_7_0).goes(&[
        ("RPUSH b 1 2 3", ":3"),
        ("BLPOP a b 0", "*2\r\n$1\r\nb\r\n$1\r\n1"),
        ("BRPOP b a 0", "*2\r\n$1\r\nb\r\n$1\r\n3"),
        ("SET s 1", "+OK"),
        ("BLPOP s b 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BLPOP a x", "-ERR timeout is not a float or out of range"),
        ("BLPOP a -1", "-ERR timeout is negative"),
        ("BLPOP b .5", "*2\r\n$1\r\nb\r\n$1\r\n2"),
        ("BLPOP b .5", "blocks 500"),
    ]);
}

#[test]
fn a_waiter_gets_the_element_after_the_reply_to_who_adds_it() {
    let mut bench = Bench::new(&REDIS_7_0);
    assert_eq!(bench.ask("BLPOP a b 0"), "blocks 0\r\n");
    assert!(bench.ask_as(1, "CLIENT LIST ID 1").contains(" flags=b "));
    assert_eq!(bench.ask_as(1, "RPUSH b 1 2"), ":2\r\n");
    assert_eq!(bench.sent(), "1: *2 $1 b $1 1 ");
    assert!(!bench.server.is_blocked(1));
    assert_eq!(bench.ask_as(1, "LRANGE b 0 -1"), "*1\r\n$1\r\n2\r\n");
}

#[test]
fn a_list_that_ends_in_a_transaction_or_script_serves_nobody() {
    let mut bench = Bench::new(&REDIS_7_0);
    assert_eq!(bench.ask("BLPOP a 0"), "blocks 0\r\n");
    bench.ask_as(1, "EVAL \"redis.call('rpush', 'a', '1') redis.call('del', 'a')\" 0");
    for line in ["MULTI", "RPUSH a 1", "LPOP a", "EXEC"] {
        bench.ask_as(1, line);
    }
    assert_eq!(bench.sent(), "");
    bench.ask_as(1, "EVAL \"redis.call('rpush', 'a', '1') redis.call('rpush', 'a', '2')\" 0");
    assert_eq!(bench.sent(), "1: *2 $1 a $1 1 ");
}

#[test]
fn connections_are_served_in_the_order_of_their_waits() {
    let mut bench = Bench::new(&REDIS_7_0);
    let mut third = Session::new(3);
    for (place, line) in [(1, "BLPOP a b 0"), (0, "BRPOP b a 0")] {
        assert_eq!(bench.ask_as(place, line), "blocks 0\r\n");
    }
    let words = ["RPUSH", "a", "1", "2", "3"].map(|word| Bytes::from_static(word.as_bytes()));
    let turn =
        Turn { wall_ns: 1_000_000_000_000, writer: Writer::Operator, touched: &mut Vec::new() };
    assert_eq!(third.execute(&mut bench.server, &words, turn), Answer::Reply(Value::Integer(3)));
    assert_eq!(bench.sent(), "2: *2 $1 a $1 1 1: *2 $1 a $1 3 ");
}

#[test]
fn any_way_in_which_a_list_appears_serves_those_who_wait_for_it() {
    for (before, line) in [
        ("RPUSH b 1", "RENAME b a"),
        ("RPUSH b 1", "COPY b a"),
        ("SET a x", "DEL a"),
        ("RPUSH b 1", "EVAL \"redis.call('set','a','x') redis.call('rename','b','a')\" 0"),
    ] {
        let mut bench = Bench::new(&REDIS_7_0);
        assert_eq!(bench.ask("BLPOP a 0"), "blocks 0\r\n");
        bench.ask_as(1, before);
        bench.ask_as(1, line);
        let is_list = before.starts_with("RPUSH");
        assert_eq!(bench.sent(), if is_list { "1: *2 $1 a $1 1 " } else { "" }, "{line}");
        assert_eq!(bench.server.is_blocked(1), !is_list);
    }
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("BLPOP a 0");
    for line in ["SELECT 1", "RPUSH a 1", "SWAPDB 0 1"] {
        bench.ask_as(1, line);
    }
    assert_eq!(bench.sent(), "1: *2 $1 a $1 1 ");
}

#[test]
fn nothing_waits_within_a_transaction_or_a_script() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("MULTI", "+OK"), ("BLPOP a 0", "+QUEUED"), ("EXEC", "*1\r\n*-1")]);
    let script = "EVAL \"return redis.call('blpop', 'a', 0)\" 0";
    assert!(bench.ask(script).starts_with("-ERR This Redis command is not allowed from script"));
    let mut bench = Bench::new(&REDIS_7_2);
    bench.goes(&[(script, "$-1"), ("RPUSH a 1", ":1"), (script, "*2\r\n$1\r\na\r\n$1\r\n1")]);
}

#[test]
fn a_wait_ends_by_timeout_by_an_operator_or_with_the_connection() {
    let mut bench = Bench::new(&REDIS_7_0);
    assert_eq!(bench.sessions[0].time_out(&mut bench.server), None);
    bench.ask("BLPOP a 1");
    assert_eq!(bench.sessions[0].time_out(&mut bench.server), Some(Value::NullArray));
    for (how, sent) in [
        ("", "1: *-1 "),
        (" TIMEOUT", "1: *-1 "),
        (" ERROR", "1: -UNBLOCKED client unblocked via CLIENT UNBLOCK "),
    ] {
        bench.ask("BLPOP a 1");
        assert_eq!(bench.ask_as(1, &format!("CLIENT UNBLOCK 1{how}")), ":1\r\n");
        assert_eq!(bench.sent(), sent);
        assert_eq!(bench.ask_as(1, &format!("CLIENT UNBLOCK 1{how}")), ":0\r\n");
    }
    let reason = "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n";
    assert_eq!(bench.ask_as(1, "CLIENT UNBLOCK 1 x"), reason);
    bench.ask("BLPOP a 1");
    core::mem::take(&mut bench.sessions[0]).close(&mut bench.server);
    assert_eq!(bench.ask_as(1, "RPUSH a 1"), ":1\r\n");
    assert_eq!(bench.sent(), "");
    assert_eq!(bench.ask_as(1, "LLEN a"), ":1\r\n", "nobody took it");
}

#[test]
fn a_server_that_becomes_a_replica_ends_all_waits() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("BLPOP a 0");
    bench.server.set_replica(true);
    assert!(bench.sent().starts_with("1: -UNBLOCKED force unblock from blocking operation"));
    assert_eq!(bench.server.clients_mut().take_killed().into_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_connection_without_replies_takes_its_element_in_silence() {
    for mode in ["SKIP", "OFF"] {
        let mut bench = Bench::new(&REDIS_7_0);
        bench.ask(&format!("CLIENT REPLY {mode}"));
        assert_eq!(bench.ask("BLPOP a 0"), "blocks 0\r\n");
        bench.ask_as(1, "RPUSH a 1");
        assert_eq!(bench.sent(), "1: ", "{mode}");
        assert_eq!(bench.ask_as(1, "EXISTS a"), ":0\r\n");
    }
}

/// Recorded from Redis 7.0.15; newer servers execute the command that waited.
#[test]
fn the_last_element_taken_is_a_change_for_newer_servers() {
    for (profile, served, later) in [(&REDIS_7_0, 0, 1), (&REDIS_7_2, 1, 0)] {
        let mut bench = Bench::new(profile);
        for line in ["HELLO 3", "CLIENT TRACKING ON"] {
            bench.ask_as(1, line);
        }
        bench.ask("BLPOP a 0");
        for line in ["MULTI", "RPUSH a 1 2", "LLEN a", "EXEC"] {
            bench.ask_as(1, line);
        }
        let sent = bench.sent();
        assert_eq!(sent.matches("invalidate").count(), served, "{sent}");
        bench.ask_as(1, "DEL a");
        assert_eq!(bench.sent().matches("invalidate").count(), later, "{}", profile.name);
    }
}

#[test]
fn an_element_that_is_taken_at_last_is_an_event() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask_as(1, "CONFIG SET notify-keyspace-events EA");
    bench.ask("BRPOP a 0");
    bench.ask_as(1, "SUBSCRIBE __keyevent@0__:rpop __keyevent@0__:del");
    let words = ["RPUSH", "a", "1"].map(|word| Bytes::from_static(word.as_bytes()));
    let turn = Turn { wall_ns: 1, writer: Writer::Operator, touched: &mut Vec::new() };
    Session::new(3).execute(&mut bench.server, &words, turn);
    let event =
        |name: &str, length| format!("2: *3 $7 message ${length} __keyevent@0__:{name} $1 a ");
    assert_eq!(
        bench.sent(),
        "1: *2 $1 a $1 1 ".to_owned() + &event("rpop", 19) + &event("del", 18)
    );
}
