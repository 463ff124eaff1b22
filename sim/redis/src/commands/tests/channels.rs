//! Publish/subscribe as connections see it.

use super::*;
use crate::resp::Protocol;

const ONLY: &str = "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
                    this context";

impl Bench {
    /// Returns the messages since the last call: connection and bytes, with spaces as line ends.
    pub(super) fn heard(&mut self) -> String {
        let mut heard = String::new();
        for (id, message) in self.server.take_pushes() {
            let session = self.sessions.iter().find(|session| session.id() == id);
            let protocol = session.map_or(Protocol::Resp2, Session::protocol);
            let mut out = Vec::new();
            message.encode(protocol, &mut out);
            heard += &format!("{id}: {}", String::from_utf8(out).expect("text"));
        }
        heard.replace("\r\n", " ")
    }

    /// Executes `line` on a connection; returns the reply with spaces as line ends.
    pub(super) fn said(&mut self, place: usize, line: &str) -> String {
        self.ask_as(place, line).replace("\r\n", " ")
    }

    fn converses(&mut self, table: &[(usize, &str, &str)]) {
        for (place, line, expected) in table {
            assert_eq!(self.said(*place, line).trim_end(), *expected, "{line}");
        }
    }
}

#[test]
fn subscriptions_are_confirmed_and_counted_one_by_one() {
    Bench::new(&REDIS_7_0).converses(&[
        (
            0,
            "SUBSCRIBE a b a",
            "*3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2 *3 $9 subscribe $1 a :2",
        ),
        (0, "PSUBSCRIBE x*", "*3 $10 psubscribe $2 x* :3"),
        (0, "SSUBSCRIBE a", "*3 $10 ssubscribe $1 a :1"),
        (0, "UNSUBSCRIBE q", "*3 $11 unsubscribe $1 q :3"),
        (0, "UNSUBSCRIBE", "*3 $11 unsubscribe $1 a :2 *3 $11 unsubscribe $1 b :1"),
        (0, "UNSUBSCRIBE", "*3 $11 unsubscribe $-1 :1"),
        (0, "PUNSUBSCRIBE", "*3 $12 punsubscribe $2 x* :0"),
        (0, "SUNSUBSCRIBE", "*3 $12 sunsubscribe $1 a :0"),
        (0, "GET k", "$-1"),
        (0, "HELLO 3 x", "-ERR Syntax error in HELLO option 'x'"),
    ]);
}

#[test]
fn messages_have_the_form_of_the_protocol() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("SUBSCRIBE a");
    bench.ask("PSUBSCRIBE a*");
    bench.ask("SSUBSCRIBE a");
    assert_eq!(bench.said(1, "PUBLISH a m"), ":2 ");
    assert_eq!(bench.heard(), "1: *3 $7 message $1 a $1 m 1: *4 $8 pmessage $2 a* $1 a $1 m ");
    assert_eq!(bench.said(1, "SPUBLISH a m"), ":1 ");
    assert_eq!(bench.heard(), "1: *3 $8 smessage $1 a $1 m ");
    assert_eq!(
        bench.said(1, "EVAL \"return redis.call('publish',KEYS[1],ARGV[1])\" 1 ab m"),
        ":1 "
    );
    assert_eq!(bench.heard(), "1: *4 $8 pmessage $2 a* $2 ab $1 m ");
    bench.ask("RESET");
    bench.ask("HELLO 3");
    assert_eq!(bench.said(0, "SUBSCRIBE a"), ">3 $9 subscribe $1 a :1 ");
    assert_eq!(bench.said(1, "PUBLISH a m"), ":1 ");
    assert_eq!(bench.heard(), "1: >3 $7 message $1 a $1 m ");
}

#[test]
fn a_subscriber_of_version_2_may_do_little() {
    let refusal = |name: &str| format!("-ERR Can't execute '{name}': {ONLY}");
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("SSUBSCRIBE a");
    for (line, name) in [("GET k", "get"), ("CLIENT LIST", "client|list"), ("MULTI", "multi")] {
        assert_eq!(bench.said(0, line).trim_end(), refusal(name));
    }
    bench.converses(&[
        (0, "GET", "-ERR wrong number of arguments for 'get' command"),
        (0, "PING", "*2 $4 pong $0"),
        (0, "PING x", "*2 $4 pong $1 x"),
        (0, "PING x y", "-ERR wrong number of arguments for 'ping' command"),
        (1, "GET k", "$-1"),
        (0, "RESET", "+RESET"),
        (0, "PING", "+PONG"),
        (1, "PUBSUB SHARDCHANNELS", "*0"),
    ]);
    bench.ask("HELLO 3");
    bench.ask("SUBSCRIBE a");
    assert_eq!(bench.said(0, "GET k"), "_ ");
    assert_eq!(bench.said(0, "PING"), "+PONG ");
    assert_eq!(bench.said(0, "EVAL \"return redis.call('ping')\" 0"), "+PONG ");
    assert!(bench.said(0, "HELLO 2").starts_with("*14"));
    assert_eq!(bench.said(0, "GET k").trim_end(), refusal("get"));
}

#[test]
fn a_message_to_oneself_comes_before_or_after_the_reply() {
    let message = ">3 $7 message $1 a $1 m ";
    for (profile, before, after) in [
        (&REDIS_7_0, message, String::new()),
        (&REDIS_7_2, "", format!("1: {message}")),
        (&REDIS_8_4, "", format!("1: {message}")),
        (&VALKEY_9, "", format!("1: {message}")),
    ] {
        let mut bench = Bench::new(profile);
        bench.ask("HELLO 3");
        bench.ask("SUBSCRIBE a");
        assert_eq!(bench.said(0, "PUBLISH a m"), format!("{before}:1 "));
        assert_eq!(bench.heard(), after);
        for line in ["MULTI", "GET k", "PUBLISH a m"] {
            bench.ask(line);
        }
        assert_eq!(bench.said(0, "EXEC"), format!("*2 _ {before}:1 "));
        assert_eq!(bench.heard(), after);
        bench.ask("CLIENT REPLY OFF");
        assert_eq!(bench.said(0, "PUBLISH a m"), "");
        assert_eq!(bench.heard(), format!("1: {message}"), "whatever the mode of replies");
    }
}

#[test]
fn own_invalidations_come_before_own_messages_on_newer_servers() {
    let mut bench = Bench::new(&VALKEY_9);
    for line in ["HELLO 3", "CLIENT TRACKING ON", "SUBSCRIBE a", "GET k"] {
        bench.ask(line);
    }
    bench.ask("EVAL \"redis.call('publish','a','m') redis.call('set','k','1')\" 0");
    let invalidation = "1: >2 $10 invalidate *1 $1 k ";
    assert_eq!(bench.heard(), format!("{invalidation}1: >3 $7 message $1 a $1 m "));
}

#[test]
fn subscriptions_are_for_transactions_and_not_for_scripts() {
    let mut bench = Bench::new(&REDIS_7_0);
    for line in ["MULTI", "SUBSCRIBE a b", "GET k", "PUBLISH a m", "UNSUBSCRIBE"] {
        bench.ask(line);
    }
    let expected = "*4 *3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2 $-1 \
                    *3 $7 message $1 a $1 m :1 \
                    *3 $11 unsubscribe $1 a :1 *3 $11 unsubscribe $1 b :0 ";
    assert_eq!(bench.said(0, "EXEC"), expected);
    for line in ["MULTI", "SSUBSCRIBE a"] {
        bench.ask(line);
    }
    let refusal = "*1 -ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client ";
    assert_eq!(bench.said(0, "EXEC"), refusal);
    let reply = bench.said(0, "EVAL \"return redis.call('subscribe','a')\" 0");
    assert!(reply.starts_with("-ERR This Redis command is not allowed from script"), "{reply}");
    let reply = bench.said(0, "EVAL_RO \"return redis.call('publish','a','m')\" 0");
    assert!(reply.starts_with("-ERR Write commands are not allowed from read-only"), "{reply}");
}

#[test]
fn confirmations_are_sent_without_replies() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("CLIENT REPLY OFF");
    bench.converses(&[
        (0, "SUBSCRIBE a", "*3 $9 subscribe $1 a :1"),
        (0, "PING", ""),
        (0, "GET k", ""),
        (0, "UNSUBSCRIBE", "*3 $11 unsubscribe $1 a :0"),
        (0, "CLIENT REPLY ON", "+OK"),
        (0, "CLIENT REPLY SKIP", ""),
        (0, "SUBSCRIBE a", "*3 $9 subscribe $1 a :1"),
    ]);
}

#[test]
fn the_end_of_a_connection_or_a_process_ends_its_subscriptions() {
    let mut bench = Bench::new(&REDIS_7_0);
    let subscribe = |bench: &mut Bench| {
        bench.said(0, "SUBSCRIBE a");
        bench.said(0, "PSUBSCRIBE *");
        assert_eq!(bench.said(1, "PUBLISH a m"), ":2 ");
        drop(bench.heard());
    };
    subscribe(&mut bench);
    bench.ask("QUIT");
    assert_eq!(bench.said(1, "PUBLISH a m"), ":0 ");
    bench.sessions[0] = Session::new(1);
    subscribe(&mut bench);
    assert_eq!(bench.said(1, "CLIENT KILL TYPE pubsub"), ":1 ");
    assert_eq!(bench.said(1, "PUBLISH a m"), ":0 ");
    bench.sessions[0] = Session::new(3);
    subscribe(&mut bench);
    let old = core::mem::replace(&mut bench.sessions[0], Session::new(1));
    bench.said(1, "PUBLISH a m");
    old.close(&mut bench.server);
    assert_eq!(bench.heard(), "", "nobody is there to hear");
    subscribe(&mut bench);
    bench.server.kill();
    bench.server.forget();
    bench.server.restart([2; 20], 1_000_000, |_| {}, |_, _, _| {});
    bench.sessions = vec![Session::new(4), Session::new(5)];
    assert_eq!(bench.said(1, "PUBLISH a m"), ":0 ");
}

#[test]
fn subscriptions_are_shown() {
    let mut bench = Bench::new(&REDIS_7_0);
    for line in ["SUBSCRIBE a b", "PSUBSCRIBE x*", "SSUBSCRIBE s"] {
        bench.ask(line);
    }
    bench.converses(&[
        (1, "PUBSUB CHANNELS", "*2 $1 a $1 b"),
        (1, "PUBSUB CHANNELS [b-c]", "*1 $1 b"),
        (1, "PUBSUB NUMSUB a z", "*4 $1 a :1 $1 z :0"),
        (1, "PUBSUB NUMSUB", "*0"),
        (1, "PUBSUB NUMPAT", ":1"),
        (1, "PUBSUB SHARDCHANNELS", "*1 $1 s"),
        (1, "PUBSUB SHARDNUMSUB s a", "*4 $1 s :1 $1 a :0"),
        (1, "PUBSUB NUMPAT x", "-ERR wrong number of arguments for 'pubsub|numpat' command"),
        (1, "PUBSUB FOO", "-ERR unknown subcommand 'FOO'. Try PUBSUB HELP."),
        (
            1,
            "PUBSUB CHANNELS a b",
            "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.",
        ),
        (1, "COMMAND GETKEYS SPUBLISH a m", "-ERR The command has no key arguments"),
    ]);
    let list = bench.said(1, "CLIENT LIST TYPE pubsub");
    assert!(list.contains("id=1 ") && !list.contains("id=2 "), "{list}");
    assert!(list.contains(" flags=P db=0 sub=2 psub=1 ssub=1 multi=-1 "), "{list}");
    assert!(bench.said(1, "CLIENT LIST TYPE normal").contains("id=2 "));
    let info = bench.said(1, "INFO stats");
    assert!(info.contains("pubsub_channels:2 pubsub_patterns:1 pubsubshard_channels:1 "), "{info}");
}

#[test]
fn channels_are_a_permission() {
    let refusal =
        "-NOPERM this user has no permissions to access one of the channels used as arguments";
    let mut bench = Bench::new(&REDIS_7_0);
    bench.converses(&[
        (1, "ACL SETUSER u on nopass +@all ~*", "+OK"),
        (0, "AUTH u x", "+OK"),
        (0, "SUBSCRIBE a", refusal),
        (0, "PUBLISH a m", refusal),
        (0, "UNSUBSCRIBE a", "*3 $11 unsubscribe $1 a :0"),
        (0, "SUNSUBSCRIBE a", "*3 $12 sunsubscribe $1 a :0"),
        (1, "ACL SETUSER u resetkeys &a*", "+OK"),
        (0, "PUBLISH ab m", ":0"),
        (0, "SPUBLISH ab m", ":0"),
        (0, "SPUBLISH q m", refusal),
        (0, "SSUBSCRIBE ab q", refusal),
        (0, "PSUBSCRIBE ab", refusal),
        (0, "PSUBSCRIBE a*", "*3 $10 psubscribe $2 a* :1"),
        (1, "ACL SETUSER u allchannels", "+OK"),
        (
            1,
            "ACL SETUSER u &x",
            "-ERR Error in ACL SETUSER modifier '&x': Adding a pattern after the * pattern (or the \
             'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to \
             start with an empty list of channels",
        ),
        (0, "PSUBSCRIBE q", "*3 $10 psubscribe $1 q :2"),
        (1, "PUBLISH q m", ":1"),
        (1, "ACL SETUSER u resetchannels &a*", "+OK"),
        (1, "PUBLISH q m", ":0"),
    ]);
    assert_eq!(bench.server.clients_mut().take_killed().into_iter().collect::<Vec<_>>(), [1]);
    for (profile, refusal) in [
        (&REDIS_7_0, "-ERR The user executing the script can't publish to the channel mentioned"),
        (&REDIS_7_2, "-ERR ACL failure in script: No permissions to access a channel"),
    ] {
        let mut bench = Bench::new(profile);
        bench.ask("ACL SETUSER u on nopass +@all ~*");
        bench.ask("AUTH u x");
        let reply = bench.said(0, "EVAL \"return redis.call('publish','a','m')\" 0");
        assert!(reply.starts_with(refusal), "{reply}");
    }
}
