//! Requests and the exact bytes of their replies.

mod blocking;
mod channels;
mod events;
mod introspection;
mod nonsense;
mod profiles;
mod states;
mod tracking;
mod types;

use bytes::Bytes;

use crate::KeyUse;
use crate::Master;
use crate::Persistence;
use crate::Writer;
use crate::profile::{PROFILES, Profile, REDIS_7_0, REDIS_7_2, REDIS_8_4, VALKEY_9};
use crate::resp::Requests;
use crate::server::{Answer, Server, Session, Turn};

/// A server, some of its connections, and the node's clock.
struct Bench {
    server: Server,
    sessions: Vec<Session>,
    wall_ms: u64,
}

impl Bench {
    fn new(profile: &'static Profile) -> Self {
        let master = Master::new(Persistence::None.into(), [1; 20], 0);
        let sessions = vec![Session::new(1), Session::new(2)];
        Self { server: Server::new(master, profile), sessions, wall_ms: 1_000_000 }
    }

    /// Returns the reply to an inline request on the first connection.
    fn ask(&mut self, line: &str) -> String {
        self.ask_as(0, line)
    }

    fn ask_as(&mut self, place: usize, line: &str) -> String {
        let mut requests = Requests::default();
        requests.push(format!("{line}\r\n").as_bytes());
        let request: Vec<Bytes> = requests.next_request().expect("well-formed").expect("whole");
        String::from_utf8(self.bytes(place, &request)).expect("text")
    }

    fn bytes(&mut self, place: usize, request: &[Bytes]) -> Vec<u8> {
        let (session, mut touched) = (&mut self.sessions[place], Vec::new());
        let wall_ns = self.wall_ms * 1_000_000;
        let turn = Turn { wall_ns, writer: Writer::Operator, touched: &mut touched };
        let mut out = Vec::new();
        match session.execute(&mut self.server, request, turn) {
            Answer::Reply(value) | Answer::LastReply(value) => {
                value.encode(session.protocol(), &mut out);
            }
            Answer::Silence => {}
            Answer::Block { timeout_ms } => {
                out.extend_from_slice(format!("blocks {timeout_ms}\r\n").as_bytes());
            }
            Answer::Wait { .. } => out.extend_from_slice(b"waits\r\n"),
        }
        out
    }

    fn goes(&mut self, table: &[(&str, &str)]) {
        for (line, expected) in table {
            assert_eq!(self.ask(line), format!("{expected}\r\n"), "{line}");
        }
    }
}

#[test]
fn set_checks_syntax_then_time_then_condition() {
    let invalid = "-ERR invalid expire time in 'set' command";
    Bench::new(&REDIS_7_0).goes(&[
        ("SET k v NX PX 100", "+OK"),
        ("set k w nx px 100", "$-1"),
        ("SET k w NX PX 0", invalid),
        ("SET k w NX PX 9223372036854775807", invalid),
        ("SET k w PX 1.5", "-ERR value is not an integer or out of range"),
        ("SET k w PX", "-ERR syntax error"),
        ("SET k w NX XX", "-ERR syntax error"),
        ("SET k w PX 1 EX 1", "-ERR syntax error"),
        ("SET k w KEEPTTL PX 1", "-ERR syntax error"),
        ("SET k w NX NX", "$-1"),
        ("SET k w NX GET", "$1\r\nv"),
        ("SET k", "-ERR wrong number of arguments for 'set' command"),
        ("SET k w PXAT 5", "+OK"),
        ("EXISTS k", ":0"),
    ]);
}

#[test]
fn a_part_of_a_value_is_cut_at_its_ends() {
    let invalid = "-ERR value is not an integer or out of range";
    Bench::new(&REDIS_7_0).goes(&[
        ("GETRANGE k 0 -1", "$0\r\n"),
        ("SET k abcd", "+OK"),
        ("GETRANGE k 1 2", "$2\r\nbc"),
        ("GETRANGE k -3 -2", "$2\r\nbc"),
        ("GETRANGE k -9 9", "$4\r\nabcd"),
        ("GETRANGE k 3 1", "$0\r\n"),
        ("GETRANGE k 4 9", "$0\r\n"),
        ("GETRANGE k -1 -2", "$0\r\n"),
        ("GETRANGE k 0 -100", "$1\r\na"),
        ("GETRANGE k -200 -100", "$1\r\na"),
        ("GETRANGE k -9223372036854775808 9223372036854775807", "$4\r\nabcd"),
        ("GETRANGE k 0 x", invalid),
        ("GETRANGE k 0", "-ERR wrong number of arguments for 'getrange' command"),
    ]);
}

#[test]
fn expiry_has_conditions_and_deletes_what_is_over() {
    Bench::new(&REDIS_7_0).goes(&[
        ("SET k v", "+OK"),
        ("PEXPIRE k 100 GT", ":0"),
        ("PEXPIRE k 100 LT", ":1"),
        ("PTTL k", ":100"),
        (
            "PEXPIRE k 50 NX GT",
            "-ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        ("PEXPIRE k 50 GT LT", "-ERR GT and LT options at the same time are not compatible"),
        ("PEXPIRE k 50 FOO", "-ERR Unsupported option FOO"),
        ("PEXPIRE k 9223372036854775807", "-ERR invalid expire time in 'pexpire' command"),
        ("PERSIST k", ":1"),
        ("TTL k", ":-1"),
        ("EXPIREAT k 1", ":1"),
        ("PTTL k", ":-2"),
    ]);
}

#[test]
fn unknown_commands_are_named() {
    Bench::new(&REDIS_7_0).goes(&[
        ("NOSUCH a b", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' "),
        ("CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP."),
        ("CLIENT SETINFO lib-name x", "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."),
        ("CONFIG", "-ERR wrong number of arguments for 'config' command"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
    ]);
}

#[test]
fn profiles_differ_in_what_they_know() {
    let unknown = |line: &str| line.contains("unknown") || line.contains("syntax error");
    let table = [
        ("CLIENT SETINFO lib-name x", [false, true, true, true]),
        ("WAITAOF 0 0 0", [false, true, true, true]),
        ("SET k v IFEQ v", [false, false, true, true]),
        ("SET k v IFNE v", [false, false, true, false]),
        ("DELEX k", [false, false, true, false]),
        ("DELIFEQ k v", [false, false, false, true]),
    ];
    for (line, known) in table {
        for (profile, known) in PROFILES.into_iter().zip(known) {
            let answer = Bench::new(profile).ask(line);
            assert_eq!(!unknown(&answer), known, "{} {line}: {answer}", profile.name);
        }
    }
}

#[test]
fn comparing_needs_no_script() {
    Bench::new(&REDIS_8_4).goes(&[
        ("SET k v IFEQ v", "$-1"),
        ("SET k v PX 100", "+OK"),
        ("SET k v IFEQ w PX 500", "$-1"),
        ("SET k v IFEQ v PX 500", "+OK"),
        ("PTTL k", ":500"),
        ("DELEX k IFEQ w", ":0"),
        ("DELEX k IFEQ v", ":1"),
        ("SET k 'Hello world'", "+OK"),
        ("DIGEST k", "$16\r\nb6acb9d84a38ff74"),
        ("DELEX k IFDEQ b6acb9d84a38ff74", ":1"),
    ]);
}

#[test]
fn a_transaction_is_one_turn_and_a_refused_command_ends_it() {
    Bench::new(&REDIS_7_0).goes(&[
        ("MULTI", "+OK"),
        ("MULTI", "-ERR MULTI calls can not be nested"),
        ("SET a 1", "+QUEUED"),
        ("INCR a", "+QUEUED"),
        ("EXEC", "*2\r\n+OK\r\n:2"),
        ("EXEC", "-ERR EXEC without MULTI"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("MULTI", "+OK"),
        ("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
    ]);
}

#[test]
fn a_watched_key_is_noticed_whoever_changes_it() {
    let ways: [fn(&mut Bench); 6] = [
        |bench| drop(bench.ask_as(1, "SET k w")),
        |bench| drop(bench.ask_as(1, "FLUSHALL")),
        |bench| bench.wall_ms += 101,
        |bench| bench.server.expire_active(1_000_100, drop),
        |bench| drop(bench.server.evict(b"k")),
        |bench| drop(bench.server.delete(b"k")),
    ];
    for (place, way) in ways.into_iter().enumerate() {
        let mut bench = Bench::new(&REDIS_7_0);
        bench.goes(&[("SET k v PX 100", "+OK"), ("WATCH k", "+OK"), ("MULTI", "+OK")]);
        way(&mut bench);
        assert_eq!(bench.ask("EXEC"), "*-1\r\n", "{place}");
        bench.goes(&[("WATCH k", "+OK"), ("MULTI", "+OK"), ("EXEC", "*0")]);
    }
}

#[test]
fn scan_deletes_expired_keys_and_keys_does_not() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("SET k v PX 100", "+OK"), ("SET l v PX 100", "+OK")]);
    bench.wall_ms += 101;
    bench.goes(&[
        ("KEYS *", "*0"),
        ("DBSIZE", ":2"),
        ("SCAN 0 MATCH k", "*2\r\n$1\r\n0\r\n*0"),
        ("DBSIZE", ":1"),
    ]);
}

#[test]
fn that_a_key_is_gone_whose_time_was_over_is_no_change() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("SET k v PX 100", "+OK")]);
    bench.wall_ms += 101;
    bench.goes(&[("WATCH k", "+OK"), ("GET k", "$-1"), ("MULTI", "+OK"), ("EXEC", "*0")]);
}

#[test]
fn watched_expired_key_that_returned_and_ended_is_a_change() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("SET k v PX 100", "+OK")]);
    bench.wall_ms += 101;
    bench.goes(&[("WATCH k", "+OK"), ("MULTI", "+OK")]);
    bench.ask_as(1, "APPEND k w");
    bench.ask_as(1, "DEL k");
    assert_eq!(bench.ask("EXEC"), "*-1\r\n");
}

#[test]
fn the_last_instants_are_rounded_without_an_overflow() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("SET k v PXAT 9223372036854775807", "+OK")]);
    bench.goes(&[("EXPIRETIME k", ":9223372036854776")]);
}

#[test]
fn scripts_run_commands_with_errors_of_their_own() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[
        ("EVAL 'return redis.call(\"set\",KEYS[1],ARGV[1],\"PX\",100)' 1 k v", "+OK"),
        ("EVAL 'return redis.call(\"pttl\",KEYS[1])' 1 k", ":100"),
        (
            "EVALSHA 0000000000000000000000000000000000000000 0",
            "-NOSCRIPT No matching script. Please use EVAL.",
        ),
        ("EVALSHA x y", "-NOSCRIPT No matching script. Please use EVAL."),
        ("EVAL 'return 1' 2 a", "-ERR Number of keys can't be greater than number of args"),
        ("EVAL 'return 1' -1", "-ERR Number of keys can't be negative"),
        ("SCRIPT LOAD 'return 1'", "$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
        ("EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0", ":1"),
        ("SCRIPT FLUSH", "+OK"),
        ("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "*1\r\n:0"),
        ("EVAL 'redis.call(\"select\",1) redis.call(\"set\",\"z\",1) return 1' 0", ":1"),
        ("EXISTS z", ":0"),
        ("SELECT 1", "+OK"),
        ("EXISTS z", ":1"),
    ]);
    let refused = bench.ask("EVAL 'return redis.call(\"multi\")' 0");
    assert!(refused.starts_with("-ERR This Redis command is not allowed from script script: "));
    let unknown = bench.ask("EVAL 'return redis.call(\"nosuch\")' 0");
    assert!(unknown.starts_with("-ERR Unknown Redis command called from script script: "));
}

#[test]
fn a_script_without_end_is_ended() {
    let answer = Bench::new(&REDIS_7_0).ask("EVAL 'while true do end' 0");
    assert!(
        answer.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "),
        "{answer}"
    );
    let answer = Bench::new(&VALKEY_9).ask("EVAL 'while true do end' 0");
    assert_eq!(
        answer,
        "-ERR Script killed by user with SCRIPT KILL. script: on @user_script:1.\r\n"
    );
}

#[test]
fn a_server_without_memory_or_disk_refuses_as_redis_does() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("SET k v", "+OK"), ("CONFIG SET maxmemory 1", "+OK")]);
    let refused = "-OOM command not allowed when used memory > 'maxmemory'.";
    bench.goes(&[("SET k w", refused), ("PEXPIRE k 100", ":1"), ("DEL k", ":1")]);
    bench.goes(&[
        ("EVAL 'return redis.call(\"del\",\"k\")' 0", ":0"),
        ("CONFIG SET maxmemory 0", "+OK"),
    ]);
    bench.goes(&[("CONFIG SET save '3600 1'", "+OK")]);
    bench.server.set_unable_to_save(true);
    for line in ["SET k v", "DEL k", "PING"] {
        assert!(bench.ask(line).starts_with("-MISCONF Redis is configured to save"), "{line}");
    }
    bench.goes(&[
        ("GET k", "$-1"),
        ("CONFIG SET stop-writes-on-bgsave-error no", "+OK"),
        ("PING", "+PONG"),
    ]);
}

#[test]
fn a_password_and_a_users_rights_are_asked_for() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[
        ("CONFIG SET requirepass secret", "+OK"),
        ("ACL SETUSER u on >p ~lock:* +get", "+OK"),
    ]);
    let mut as_other = |line: &str| bench.ask_as(1, line);
    assert_eq!(as_other("GET lock:x"), "-NOAUTH Authentication required.\r\n");
    assert!(as_other("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(as_other("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(as_other("AUTH u p"), "+OK\r\n");
    assert_eq!(as_other("GET lock:x"), "$-1\r\n");
    assert!(as_other("GET x").starts_with("-NOPERM"));
    assert_eq!(
        as_other("SET lock:x v"),
        "-NOPERM this user has no permissions to run the 'set' command\r\n"
    );
    assert_eq!(as_other("AUTH secret"), "+OK\r\n");
    assert_eq!(as_other("SET x v"), "+OK\r\n");
}

#[test]
fn hello_switches_the_protocol_and_nulls_change() {
    let mut bench = Bench::new(&VALKEY_9);
    assert!(bench.ask("HELLO 3").starts_with("%7\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n"));
    bench.goes(&[("GET k", "_"), ("RESET", "+RESET"), ("GET k", "$-1")]);
}

#[test]
fn a_connection_is_listed_until_it_is_closed() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask_as(1, "CLIENT SETNAME other");
    assert!(bench.ask("CLIENT LIST").contains(" name=other "));
    bench.goes(&[("CLIENT KILL TYPE normal SKIPME yes", ":1")]);
    assert_eq!(bench.server.clients_mut().take_killed(), [2].into());
    assert!(!bench.ask("CLIENT LIST").contains(" name=other "));
    assert!(bench.ask("INFO commandstats").contains("cmdstat_client|list:calls=2,"));
}

#[test]
fn databases_are_apart_and_survive() {
    let master = Master::new(Persistence::Always.into(), [1; 20], 0);
    let mut bench = Bench::new(&REDIS_7_0);
    bench.server = Server::new(master, &REDIS_7_0);
    bench.goes(&[("SELECT 3", "+OK"), ("SET k v", "+OK"), ("SELECT 0", "+OK"), ("GET k", "$-1")]);
    assert!(bench.ask("INFO keyspace").contains("db3:keys=1,expires=0"));
    bench.server.kill();
    bench.server.restart([2; 20], 1_000_000, drop, |_, _, _| {});
    bench.goes(&[
        ("SELECT 3", "+OK"),
        ("GET k", "$1\r\nv"),
        ("SELECT 99", "-ERR DB index is out of range"),
    ]);
}

#[test]
fn the_keys_of_a_request_are_known_without_a_server() {
    let keys_of = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let (used, keys) = super::keys_of(&words)?;
        let keys = keys.into_iter().map(|key| String::from_utf8_lossy(key).into_owned());
        Some((used, keys.collect::<Vec<_>>()))
    };
    let some = |used, keys: &[&str]| Some((used, keys.iter().map(|&key| key.to_owned()).collect()));
    assert_eq!(keys_of("get a b"), some(KeyUse::Reads, &["a"]));
    assert_eq!(keys_of("DEL a b"), some(KeyUse::Writes, &["a", "b"]));
    assert_eq!(keys_of("OBJECT ENCODING a"), some(KeyUse::Reads, &["a"]));
    assert_eq!(keys_of("OBJECT"), None);
    assert_eq!(keys_of("ECHO a"), None);
    assert_eq!(keys_of("NONSENSE a"), None);
}
