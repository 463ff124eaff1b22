//! Refusals that depend on the server's state, and the effect of a script's flags on them.

use super::*;

const NO_REPLICAS: &str = "-NOREPLICAS Not enough good replicas to write.";
const FULL: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
const READ_ONLY: &str = "-READONLY You can't write against a read only replica.";
const DOWN: &str =
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

/// Returns the reply to `script`, run by `command` with `flags` in its first line.
fn said(bench: &mut Bench, command: &str, flags: &str, script: &str) -> String {
    let text = format!("#!lua{flags}\n{script}");
    let words = [command, &text, "0"].map(|word| Bytes::copy_from_slice(word.as_bytes()));
    String::from_utf8(bench.bytes(0, &words)).expect("text").trim_end().to_owned()
}

#[test]
fn writes_want_as_many_replicas_as_are_set() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[
        ("CONFIG SET min-replicas-to-write 1", "+OK"),
        ("SET k v", NO_REPLICAS),
        ("DEL k", NO_REPLICAS),
        ("GET k", "$-1"),
        ("EVAL \"return redis.call('get', 'k')\" 0", "$-1"),
        ("EVAL \"return redis.pcall('set', 'k', 'v')\" 0", NO_REPLICAS),
        ("MULTI", "+OK"),
        ("SET k v", NO_REPLICAS),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
    ]);
    assert_eq!(said(&mut bench, "EVAL", "", "return 1"), NO_REPLICAS);
    assert_eq!(said(&mut bench, "EVAL", " flags=no-writes", "return 1"), ":1");
    bench.goes(&[("CONFIG SET min-replicas-max-lag 0", "+OK"), ("SET k v", "+OK")]);
    bench.goes(&[("CONFIG SET min-replicas-max-lag 10", "+OK"), ("SET k v", NO_REPLICAS)]);
    bench.server.set_replica_count(1);
    bench.goes(&[("SET k v", "+OK")]);
}

#[test]
fn a_script_is_what_its_first_line_says() {
    let mut bench = Bench::new(&REDIS_7_0);
    let write = "return redis.pcall('set', 'k', 'v')";
    let read_only = "-ERR Write commands are not allowed from read-only scripts.";
    assert_eq!(said(&mut bench, "EVAL", " flags=no-writes", write), read_only);
    assert_eq!(said(&mut bench, "EVAL", "\t'flags=allow-oom,no-writes'", write), read_only);
    let refused = "-ERR Can not execute a script with write flag using *_ro command.";
    assert_eq!(said(&mut bench, "EVAL_RO", "", "return 1"), refused);
    assert_eq!(said(&mut bench, "EVAL_RO", " flags=no-writes", "return 1"), ":1");
    bench.goes(&[("CONFIG SET maxmemory 1", "+OK")]);
    assert_eq!(said(&mut bench, "EVAL", "", "return 1"), FULL);
    assert_eq!(said(&mut bench, "EVAL", " flags=no-writes", "return 1"), ":1");
    assert_eq!(said(&mut bench, "EVAL", " flags=allow-oom", write), "+OK");
    let wrong = "-ERR Unexpected flag in script shebang: ";
    assert_eq!(said(&mut bench, "EVAL", " flags=no-writes,", write), wrong.trim_end());
}

#[test]
fn a_transaction_that_is_refused_wants_no_memory() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("MULTI", "+OK"), ("INCR k", "+QUEUED"), ("CONFIG SET maxmemory 1", "+QUEUED")]);
    bench.ask_as(1, "CONFIG SET maxmemory 1");
    let full = "OOM command not allowed when used memory > 'maxmemory'.";
    let aborted = format!("-EXECABORT Transaction discarded because of: {full}");
    bench.goes(&[("EXEC", &aborted)]);
    bench.ask_as(1, "CONFIG SET maxmemory 0");
    bench.goes(&[("MULTI", "+OK")]);
    bench.ask("NOSUCH");
    bench.goes(&[("INCR k", "+QUEUED")]);
    bench.ask_as(1, "CONFIG SET maxmemory 1");
    bench.goes(&[("EXEC", "-EXECABORT Transaction discarded because of previous errors.")]);
    bench.ask_as(1, "CONFIG SET maxmemory 0");
    bench.goes(&[("WATCH k", "+OK"), ("MULTI", "+OK")]);
    bench.ask_as(1, "SET k v");
    bench.goes(&[("INCR k", "+QUEUED")]);
    bench.ask_as(1, "CONFIG SET maxmemory 1");
    bench.goes(&[("EXEC", "*-1")]);
}

#[test]
fn valkey_reports_the_last_reason_of_an_aborted_transaction() {
    let full = "OOM command not allowed when used memory > 'maxmemory'.";
    let of_memory = format!("-EXECABORT Transaction discarded because of: {full}");
    let of_refusal = "-EXECABORT Transaction discarded because of previous errors.";
    for (profile, aborted) in [(&REDIS_7_0, &*of_memory), (&VALKEY_9, of_refusal)] {
        let mut bench = Bench::new(profile);
        bench.goes(&[("MULTI", "+OK"), ("SETNX k v", "+QUEUED")]);
        bench.ask_as(1, "CONFIG SET maxmemory 1");
        bench.goes(&[("GETSET other v", &format!("-{full}")), ("EXEC", aborted)]);
    }
}

#[test]
fn cursors_are_read_as_the_server_reads_them() {
    let wrong = "-ERR invalid cursor";
    for (cursor, redis, valkey) in [
        ("-2", true, false),
        ("'  1'", false, true),
        ("''", true, false),
        ("-0", true, true),
        ("+1", true, true),
        ("1x", false, false),
        ("18446744073709551615", true, true),
        ("-18446744073709551615", true, true),
        ("18446744073709551616", false, false),
    ] {
        for (profile, is_one) in [(&REDIS_7_0, redis), (&VALKEY_9, valkey)] {
            let said = Bench::new(profile).ask(&format!("SCAN {cursor}"));
            assert_eq!(!said.starts_with(wrong), is_one, "{}: {cursor}: {said}", profile.name);
        }
    }
}

#[test]
fn a_cursor_beyond_every_table_is_at_its_beginning() {
    let mut bench = Bench::new(&REDIS_7_0);
    let found = "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk";
    let none = "*2\r\n$1\r\n0\r\n*0";
    bench.goes(&[("SET k v", "+OK"), ("SCAN 0", found), ("SCAN 9223372036854775808", found)]);
    bench.goes(&[("SCAN 9223372036854775807", none)]);
}

#[test]
fn a_replica_says_why_it_does_not_serve() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("REPLICAOF 127.0.0.1 1", "+OK"), ("SET k v", READ_ONLY), ("GET k", "$-1")]);
    assert!(bench.ask("WAIT 0 0").starts_with("-ERR WAIT cannot be used with replica instances."));
    assert_eq!(said(&mut bench, "EVAL", "", "return 1"), READ_ONLY);
    bench.goes(&[
        ("CONFIG SET replica-serve-stale-data no", "+OK"),
        ("GET k", DOWN),
        ("SET k v", READ_ONLY),
        ("ECHO x", "$1\r\nx"),
        ("MULTI", "+OK"),
        ("GET k", DOWN),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("EVAL 'return 1' 0", DOWN),
    ]);
    let ask = |bench: &mut Bench, flags| said(bench, "EVAL", flags, "return redis.pcall('ping')");
    assert_eq!(ask(&mut bench, " flags=no-writes"), DOWN);
    let stale = "-ERR Can not execute the command on a stale replica";
    assert_eq!(ask(&mut bench, " flags=no-writes,allow-stale"), stale);
    bench.goes(&[
        ("CONFIG SET replica-serve-stale-data yes", "+OK"),
        ("CONFIG SET replica-read-only no", "+OK"),
        ("SET k v", "+OK"),
    ]);
}

#[test]
fn a_server_says_its_own_name_when_it_refuses() {
    for (profile, name) in [(&REDIS_7_0, "Redis"), (&VALKEY_9, "Valkey")] {
        let mut bench = Bench::new(profile);
        bench.server.set_loading(true);
        let loading = format!("-LOADING {name} is loading the dataset in memory");
        bench.goes(&[("GET k", &loading)]);
        bench.server.set_loading(false);
        bench.server.set_unable_to_save(true);
        bench.goes(&[("CONFIG SET save '1 1'", "+OK")]);
        let refused = bench.ask("SET k v");
        assert!(refused.starts_with(&format!("-MISCONF {name} is configured")), "{refused}");
        assert!(refused.contains(&format!("check the {name} logs")), "{refused}");
    }
}

#[test]
fn client_reply_off_suppresses_replies() {
    let mut bench = Bench::new(&REDIS_7_0);
    for line in ["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "PING", "PING"] {
        assert_eq!(bench.ask(line), "", "{line}");
    }
    bench.goes(&[("CLIENT REPLY ON", "+OK"), ("PING", "+PONG")]);
    for line in ["CLIENT REPLY SKIP", "CLIENT REPLY x"] {
        assert_eq!(bench.ask(line), "", "{line}");
    }
    bench.goes(&[("PING", "+PONG")]);
    assert_eq!(bench.ask("CLIENT REPLY SKIP"), "");
    bench.goes(&[("CLIENT REPLY ON", "+OK"), ("PING", "+PONG")]);
    for line in ["CLIENT REPLY SKIP", "QUIT", "PING", "CLIENT REPLY ON"] {
        assert_eq!(bench.ask(line), "", "{line}");
    }
}

#[test]
fn the_queue_of_a_transaction_is_limited() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("CONFIG SET client-query-buffer-limit 100kb", "+OK"), ("MULTI", "+OK")]);
    let value = "v".repeat(40_000);
    let set = format!("SET k {value}");
    bench.goes(&[(&set, "+QUEUED"), (&set, "+QUEUED")]);
    assert_eq!(bench.ask("GET k"), "+QUEUED\r\n");
    assert!(bench.ask(&set).starts_with("-ERR the transaction is over client-query-buffer-limit"));
    bench.goes(&[("EXEC", "-ERR EXEC without MULTI"), ("GET k", "$-1")]);
}

#[test]
fn settings_of_json_stay_until_the_scripts_are_forgotten() {
    let mut bench = Bench::new(&REDIS_7_0);
    let ask = "EVAL 'return cjson.encode(1.2345)' 0";
    bench.goes(&[
        ("EVAL 'return cjson.encode_number_precision(2)' 0", ":2"),
        (ask, "$3\r\n1.2"),
        ("SCRIPT FLUSH", "+OK"),
        (ask, "$6\r\n1.2345"),
    ]);
}

#[test]
fn a_new_process_has_the_settings_and_users_of_its_start() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.server.config_mut().insist("hz", "7");
    bench.goes(&[
        ("CONFIG SET maxmemory 1 notify-keyspace-events KEA hz 8", "+OK"),
        ("ACL SETUSER a on nopass +@all", "+OK"),
        ("CONFIG SET requirepass x", "+OK"),
        ("SET k 1", FULL),
    ]);
    bench.server.kill();
    bench.server.forget();
    bench.server.restart([2; 20], 1_000_000, |_| {}, |_, _, _| {});
    bench.sessions = vec![Session::new(3), Session::new(4)];
    bench.goes(&[
        ("SET k 1", "+OK"),
        ("CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0"),
        ("CONFIG GET hz", "*2\r\n$2\r\nhz\r\n$1\r\n7"),
        ("ACL USERS", "*1\r\n$7\r\ndefault"),
    ]);
    assert!(bench.server.events.is_off());
}
