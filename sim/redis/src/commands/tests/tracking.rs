//! Client-side caching as connections see it: registrations and the pushes that follow.

use super::*;
use crate::resp::Protocol;

const PUSH: &str = ">2\r\n$10\r\ninvalidate\r\n";

impl Bench {
    /// Returns a bench with two connections that speak version 3; the first tracks keys with
    /// `options`.
    fn tracking(profile: &'static Profile, options: &str) -> Self {
        let mut bench = Self::new(profile);
        for place in 0..2 {
            assert!(bench.ask_as(place, "HELLO 3").starts_with('%'));
        }
        bench.goes(&[(&format!("CLIENT TRACKING ON {options}"), "+OK")]);
        bench
    }

    /// Returns the pushes since the last call: connection and key, with `*` for all keys.
    fn pushes(&mut self) -> Vec<(u64, String)> {
        let pushes = self.server.take_pushes().into_iter().map(|(id, value)| {
            let mut out = Vec::new();
            value.encode(Protocol::Resp3, &mut out);
            let out = String::from_utf8(out).expect("text");
            let keys = out.strip_prefix(PUSH).expect("an invalidation");
            let key = keys.strip_prefix("*1\r\n$1\r\n").map(str::trim_end);
            if key.is_none() {
                assert_eq!(keys, "_\r\n");
            }
            (id, key.unwrap_or("*").to_owned())
        });
        pushes.collect()
    }

    /// Executes `lines` on the second connection, and returns the keys pushed to the first.
    fn changed_by_other(&mut self, lines: &[&str]) -> String {
        for line in lines {
            self.ask_as(1, line);
        }
        let pushes = self.pushes();
        assert!(pushes.iter().all(|(id, _)| *id == 1), "{pushes:?}");
        pushes.into_iter().map(|(_, key)| key).collect::<Vec<_>>().join(" ")
    }

    /// Executes `lines` on the first connection.
    fn does(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| drop(self.ask(line)));
    }
}

#[test]
fn each_read_registers_its_keys_once() {
    for read in ["GET k", "MGET j k", "EXISTS k", "PTTL k", "TYPE k", "OBJECT ENCODING k"] {
        let mut bench = Bench::tracking(&REDIS_7_0, "");
        bench.does(&[read]);
        assert_eq!(bench.changed_by_other(&["SET k 1"]), "k", "{read}: a missing key counts");
        assert_eq!(bench.changed_by_other(&["DEL k"]), "", "{read}: one push for each read");
    }
    for other in ["SET k 1 GET", "GETEX k", "WATCH k", "GET", "DBSIZE"] {
        let mut bench = Bench::tracking(&REDIS_7_0, "");
        bench.does(&[other]);
        assert_eq!(bench.changed_by_other(&["SET k 2"]), "", "{other}");
    }
}

#[test]
fn every_change_is_pushed() {
    for change in [
        "SET k 2",
        "DEL k",
        "PEXPIRE k 100",
        "PERSIST k",
        "PEXPIRE k -1",
        "RENAME k x",
        "COPY j k REPLACE",
        "GETDEL k",
        "GETEX k PX 10",
        "EVAL \"return redis.call('DEL', KEYS[1])\" 1 k",
    ] {
        let mut bench = Bench::tracking(&REDIS_7_0, "");
        bench.does(&["MSET k 1 j 1", "PEXPIRE k 1000", "GET k"]);
        assert_eq!(bench.changed_by_other(&[change]), "k", "{change}");
    }
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["SET k 1 PX 10", "GET k"]);
    assert_eq!(bench.changed_by_other(&["SET k 2 NX", "PEXPIRE k 5 NX", "SET j 1"]), "");
    bench.wall_ms += 11;
    assert_eq!(bench.changed_by_other(&["EXISTS k"]), "k", "an expired key that somebody finds");
    bench.does(&["SET k 1 PX 10", "GET k"]);
    bench.server.expire_active(bench.wall_ms + 10, drop);
    assert_eq!(bench.changed_by_other(&[]), "k", "the active expiry cycle");
    bench.does(&["SET k 1", "GET k"]);
    bench.server.evict(b"k");
    assert_eq!(bench.changed_by_other(&[]), "k", "eviction");
    bench.does(&["SET k 1", "GET k"]);
    assert_eq!(bench.changed_by_other(&["SELECT 1", "SET k 2"]), "k", "in another database");
}

#[test]
fn a_rename_pushes_its_expired_destination_first() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["SET k 1", "SET x 1 PX 10", "GET k", "GET x"]);
    assert_eq!(bench.changed_by_other(&["RENAME k x"]), "k x");
    bench.does(&["SET k 1", "SET x 1 PX 10", "GET k", "GET x"]);
    bench.wall_ms += 11;
    assert_eq!(bench.changed_by_other(&["RENAME k x"]), "x k");
}

#[test]
fn own_changes_are_pushed_unless_noloop() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k", "SET k 1"]);
    assert_eq!(bench.pushes(), [(1, "k".to_owned())]);
    bench.does(&["CLIENT REPLY OFF", "GET k"]);
    assert_eq!(bench.changed_by_other(&["SET k 2"]), "k", "although answers are off");
    let mut bench = Bench::tracking(&REDIS_7_0, "NOLOOP");
    bench.does(&["GET k", "SET k 1"]);
    assert_eq!(bench.changed_by_other(&["DEL k"]), "", "and the registration is gone");
    bench.does(&["FLUSHALL"]);
    assert_eq!(bench.pushes(), [(1, "*".to_owned())], "a null is pushed all the same");
}

#[test]
fn an_emptied_data_set_is_pushed_to_every_tracking_connection() {
    for flush in ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC"] {
        let mut bench = Bench::tracking(&REDIS_7_0, "OPTIN");
        bench.does(&["SET k 1"]);
        assert_eq!(bench.changed_by_other(&["SELECT 1", flush]), "*", "{flush}");
    }
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k"]);
    assert_eq!(bench.changed_by_other(&["FLUSHALL now", "SWAPDB 0 1"]), "");
    bench.server.flush(drop);
    assert_eq!(bench.changed_by_other(&["SET k 1"]), "*", "the table is empty");
}

#[test]
fn a_replica_that_loads_a_copy_pushes_a_null() {
    let mut master = Master::new(Persistence::None.into(), [2; 20], 0);
    master.begin_stream();
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k", "GET j"]);
    let from = master.copy_to_stream();
    bench.server.follow(&master, from, master.stream().len());
    assert_eq!(bench.changed_by_other(&[]), "*");
    bench.does(&["GET k"]);
    let from = master.stream().len();
    let command = crate::KeyCommand::Setnx { value: b"v" };
    master.execute_in(0, b"k", command, 0, Writer::Operator);
    bench.server.follow(&master, from, master.stream().len());
    assert_eq!(bench.changed_by_other(&[]), "k");
}

#[test]
fn caching_holds_for_one_command_or_one_transaction() {
    let mut bench = Bench::tracking(&REDIS_7_0, "OPTIN");
    bench.does(&["GET k"]);
    assert_eq!(bench.changed_by_other(&["SET k 1"]), "");
    bench.does(&["CLIENT CACHING YES", "CLIENT GETNAME", "GET k", "GET j"]);
    assert_eq!(bench.changed_by_other(&["MSET k 1 j 1"]), "k");
    for between in ["PING", "NOSUCH", "GET", "CLIENT", "CLIENT NOSUCH"] {
        bench.does(&["CLIENT CACHING YES", between, "GET k"]);
        assert_eq!(bench.changed_by_other(&["SET k 1"]), "", "{between}");
    }
    bench.does(&["CLIENT CACHING YES", "MULTI", "GET k", "GET j", "EXEC", "GET i"]);
    assert_eq!(bench.changed_by_other(&["MSET k 1 j 1 i 1"]), "k j");
    bench.does(&["MULTI", "GET k", "CLIENT CACHING YES", "GET j", "EXEC"]);
    assert_eq!(bench.changed_by_other(&["MSET k 1 j 1"]), "j");
    let mut bench = Bench::tracking(&REDIS_7_0, "OPTOUT");
    bench.does(&["CLIENT CACHING NO", "GET k", "GET j"]);
    assert_eq!(bench.changed_by_other(&["MSET k 1 j 1"]), "j");
}

/// Observed on 7.0.15; from 7.2 on, the keys that are actually read are registered.
#[test]
fn a_script_that_reads_registers_declared_keys_or_those_read() {
    let script = "EVAL \"return redis.call('GET', 'u')\" 2 k j";
    let writes = "EVAL \"return redis.call('SET', KEYS[1], 1)\" 2 k j";
    for (profile, pushed) in [(&REDIS_7_0, "u k j"), (&REDIS_7_2, "u"), (&VALKEY_9, "u")] {
        let mut bench = Bench::tracking(profile, "");
        bench.does(&[script]);
        let pushed = pushed.strip_prefix("u ").unwrap_or(pushed);
        assert_eq!(bench.changed_by_other(&["MSET u 1 k 1 j 1"]), pushed, "{}", profile.name);
        bench.does(&[writes]);
        assert_eq!(bench.changed_by_other(&["MSET k 1 j 1"]), "", "{}", profile.name);
    }
}

#[test]
fn resp2_gets_no_pushes_and_keeps_tracking() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k", "HELLO 2"]);
    assert_eq!(bench.changed_by_other(&["SET k 1", "FLUSHALL"]), "");
    bench.does(&["HELLO 3", "GET k"]);
    assert_eq!(bench.changed_by_other(&["SET k 1"]), "k");
}

#[test]
fn reset_and_the_end_of_a_connection_end_tracking() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k", "RESET", "HELLO 3"]);
    assert_eq!(bench.changed_by_other(&["SET k 1", "FLUSHALL"]), "");
    bench.does(&["CLIENT TRACKING ON", "GET k", "QUIT"]);
    assert_eq!(bench.changed_by_other(&["SET k 1", "FLUSHALL"]), "");
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k"]);
    core::mem::replace(&mut bench.sessions[0], Session::new(3)).close(&mut bench.server);
    assert_eq!(bench.changed_by_other(&["SET k 1", "FLUSHALL"]), "");
    assert!(bench.ask_as(1, "INFO clients").contains("tracking_clients:0\r\n"));
}

#[test]
fn a_new_process_remembers_nothing() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.does(&["GET k"]);
    bench.server.kill();
    bench.server.forget();
    bench.server.restart([3; 20], 0, drop, |_, _, _| {});
    assert_eq!(bench.changed_by_other(&["SET k 1", "FLUSHALL"]), "");
}

#[test]
fn tracking_is_shown_by_info_and_client_list() {
    let mut bench = Bench::tracking(&REDIS_7_0, "OPTOUT NOLOOP");
    bench.does(&["MGET k j"]);
    let flags = "%3\r\n$5\r\nflags\r\n~3\r\n$2\r\non\r\n$6\r\noptout\r\n$6\r\nnoloop\r\n";
    let rest = "$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0";
    bench.goes(&[
        ("CLIENT TRACKINGINFO", &format!("{flags}{rest}")),
        ("CLIENT GETREDIR", ":0"),
        ("CLIENT TRACKING OFF", "+OK"),
        ("CLIENT GETREDIR", ":-1"),
        ("CLIENT TRACKING ON", "+OK"),
    ]);
    let info = bench.ask("INFO");
    assert!(info.contains("tracking_clients:1\r\n"), "{info}");
    assert!(info.contains("tracking_total_keys:2\r\ntracking_total_items:2\r\n"), "{info}");
    let line = bench.ask("CLIENT INFO");
    assert!(line.contains(" flags=t ") && line.contains(" redir=0 "), "{line}");
}

#[test]
fn options_that_contradict_are_refused_in_the_order_of_servers() {
    let no_mode = "-ERR CLIENT CACHING can be called only when the client is in tracking mode with \
        OPTIN or OPTOUT mode enabled";
    let overlap = "-ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a \
        single client must not overlap.";
    let switched = |mode: &str| {
        format!(
            "-ERR You can't switch {mode} before disabling tracking for this client, and then \
             re-enabling it with a different mode."
        )
    };
    let unknown = "-ERR The client ID you want redirect to does not exist";
    let without_bcast = "-ERR PREFIX option requires BCAST mode to be enabled";
    let refused = "-ERR BCAST of CLIENT TRACKING is not simulated";
    Bench::new(&REDIS_7_0).goes(&[
        ("CLIENT CACHING x", no_mode),
        ("CLIENT TRACKING x NOLOOP", "-ERR syntax error"),
        ("CLIENT TRACKING ON x", "-ERR syntax error"),
        ("CLIENT TRACKING OFF REDIRECT", "-ERR syntax error"),
        ("CLIENT TRACKING OFF REDIRECT x", "-ERR value is not an integer or out of range"),
        ("CLIENT TRACKING OFF REDIRECT 99", unknown),
        ("CLIENT TRACKING OFF BCAST OPTIN OPTOUT PREFIX a", "+OK"),
        ("CLIENT TRACKING ON PREFIX a OPTIN OPTOUT", without_bcast),
        (
            "CLIENT TRACKING ON OPTIN OPTOUT BCAST",
            "-ERR OPTIN and OPTOUT are not compatible with BCAST",
        ),
        (
            "CLIENT TRACKING ON OPTIN OPTOUT",
            "-ERR You can't specify both OPTIN mode and OPTOUT mode",
        ),
        ("CLIENT TRACKING ON BCAST PREFIX a PREFIX ab", overlap),
        ("CLIENT TRACKING ON BCAST PREFIX a", refused),
        ("CLIENT TRACKING ON OPTIN", "+OK"),
        ("CLIENT TRACKING ON BCAST OPTIN", &switched("BCAST mode on/off")),
        ("CLIENT TRACKING ON OPTOUT", &switched("OPTIN/OPTOUT mode")),
        (
            "CLIENT CACHING NO",
            "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        ("CLIENT CACHING x", "-ERR syntax error"),
        ("CLIENT TRACKING ON", "+OK"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        ),
    ]);
}

/// Recorded from Redis 7.0.15.
#[test]
fn invalidations_go_to_another_connection() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask_as(1, "PING");
    bench.goes(&[
        ("CLIENT TRACKING ON REDIRECT 2", "+OK"),
        ("CLIENT GETREDIR", ":2"),
        ("GET k", "$-1"),
        ("SET k 1", "+OK"),
    ]);
    assert_eq!(bench.heard(), "", "version 2 and no subscription");
    bench.ask_as(1, "SUBSCRIBE anything");
    bench.does(&["GET k", "SET k 2"]);
    let channel = "*3 $7 message $20 __redis__:invalidate";
    assert_eq!(bench.heard(), format!("2: {channel} *1 $1 k "));
    bench.does(&["FLUSHALL"]);
    assert_eq!(bench.heard(), format!("2: {channel} $-1 "));
    bench.ask_as(1, "RESET");
    bench.ask_as(1, "HELLO 3");
    bench.does(&["GET k", "SET k 2", "FLUSHALL"]);
    let pushes = "2: >2 $10 invalidate *1 $1 k 2: >2 $10 invalidate $-1 ";
    assert_eq!(bench.heard(), pushes, "the null is in the version of the tracking connection");
    let other = core::mem::replace(&mut bench.sessions[1], Session::new(3));
    other.close(&mut bench.server);
    bench.does(&["HELLO 3", "GET k", "SET k 3"]);
    assert_eq!(bench.heard(), "1: >2 $21 tracking-redir-broken :2 ");
    assert!(bench.ask("CLIENT TRACKINGINFO").contains("$15\r\nbroken_redirect\r\n"));
    assert!(bench.ask("CLIENT INFO").contains(" flags=tR "));
    bench.goes(&[("CLIENT TRACKING ON", "+OK"), ("CLIENT GETREDIR", ":0")]);
}

/// Recorded from Redis 7.0.15.
#[test]
fn an_invalidation_goes_where_it_would_go_when_the_key_changes() {
    let begun = |rest: &[&str]| {
        let mut bench = Bench::new(&REDIS_7_0);
        bench.sessions.push(Session::new(3));
        bench.ask_as(1, "HELLO 3");
        bench.ask_as(2, "HELLO 3");
        bench.does(&["HELLO 3", "CLIENT TRACKING ON REDIRECT 2", "GET k"]);
        for line in ["MULTI", "SET k 1"].iter().chain(rest).chain(&["EXEC"]) {
            bench.ask_as(2, line);
        }
        bench
    };
    let sent = "2: >2 $10 invalidate *1 $1 k ";
    assert_eq!(begun(&["CLIENT KILL ID 1"]).heard(), sent, "its reader ends later");
    let mut bench = begun(&["CLIENT KILL ID 2"]);
    assert_eq!(bench.heard(), "", "its target ends later and gets nothing more");
    assert!(!bench.ask("CLIENT TRACKINGINFO").contains("broken_redirect"));
}

/// Recorded from Redis 7.0.15.
#[test]
fn own_invalidations_are_redirected_if_tracking_ends_with_them() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask_as(1, "HELLO 3");
    bench.does(&["CLIENT TRACKING ON REDIRECT 2", "GET k"]);
    bench.does(&["MULTI", "SET k 1", "CLIENT TRACKING OFF", "EXEC"]);
    assert_eq!(bench.heard(), "2: >2 $10 invalidate *1 $1 k ");
    bench.does(&["SET k 2", "CLIENT TRACKING ON"]);
    assert_eq!(bench.heard(), "");
    bench.goes(&[("CLIENT GETREDIR", ":0")]);
}

/// A message of the command's own connection comes first, as on Redis 7.0.15.
#[test]
fn own_invalidations_come_last() {
    let mut bench = Bench::tracking(&REDIS_7_0, "");
    bench.ask_as(1, "SUBSCRIBE a");
    bench.does(&["CLIENT TRACKING ON REDIRECT 2", "GET k"]);
    bench.does(&["EVAL \"redis.call('set','k','1') redis.call('publish','a','m')\" 0"]);
    assert_eq!(bench.heard(), "2: >3 $7 message $1 a $1 m 2: >2 $10 invalidate *1 $1 k ");
}

#[test]
fn a_new_protocol_version_holds_for_a_transactions_rest() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.ask("PING");
    for line in ["CLIENT TRACKING ON REDIRECT 1", "GET k"] {
        bench.ask_as(1, line);
    }
    bench.does(&["MULTI", "HELLO 3", "SET k 1"]);
    let reply = bench.ask("EXEC");
    assert!(reply.ends_with("\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"), "{reply}");
}
