//! Differences between server profiles.

use super::*;

#[test]
fn hello_heeds_its_options_one_by_one_or_all_at_once() {
    for (profile, name) in [(&REDIS_7_0, "$1\r\na"), (&REDIS_7_2, "$-1"), (&VALKEY_9, "$-1")] {
        let mut bench = Bench::new(profile);
        bench.goes(&[
            ("HELLO 3 SETNAME a BAD", "-ERR Syntax error in HELLO option 'BAD'"),
            ("CLIENT GETNAME", name),
        ]);
        let wrong = bench.ask("HELLO 2 AUTH nobody x BAD");
        let is_asked = wrong.starts_with("-WRONGPASS");
        assert_eq!(is_asked, profile == &REDIS_7_0, "{}: {wrong}", profile.name);
    }
}

#[test]
fn commands_that_no_transaction_allows_are_refused() {
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    Bench::new(&REDIS_7_0).goes(&[
        ("MULTI", "+OK"),
        ("WATCH k", "-ERR WATCH inside MULTI is not allowed"),
        ("EXEC", "*0"),
        ("MULTI", "+OK"),
        ("SAVE", "-ERR Command not allowed inside a transaction"),
        ("EXEC", aborted),
    ]);
    Bench::new(&VALKEY_9).goes(&[
        ("MULTI", "+OK"),
        ("MULTI", "-ERR Command 'multi' not allowed inside a transaction"),
        ("EXEC", aborted),
    ]);
}

#[test]
fn random_numbers_continue_across_scripts_not_processes() {
    let mut bench = Bench::new(&REDIS_7_0);
    let ask = "EVAL 'return math.random(1000)' 0";
    bench.goes(&[(ask, ":397"), (ask, ":841")]);
    bench.server.forget();
    bench.goes(&[(ask, ":397"), ("EVAL 'math.randomseed(5) return math.random(1000)' 0", ":525")]);
}

#[test]
fn values_of_version_3_keep_their_kind() {
    let mut bench = Bench::new(&REDIS_7_0);
    let large = "EVAL 'return {big_number=\"12345678901234567890\"}' 0";
    let text = "EVAL 'return {verbatim_string={format=\"mkd\", string=\"x\"}}' 0";
    bench.goes(&[(large, "$20\r\n12345678901234567890"), (text, "$1\r\nx")]);
    bench.ask("HELLO 3");
    bench.goes(&[(large, "(12345678901234567890"), (text, "=5\r\nmkd:x")]);
}

#[test]
fn valkey_says_more_to_scripts_and_clients() {
    Bench::new(&VALKEY_9).goes(&[
        ("WAIT 0 9223372036854775807", "-ERR timeout is out of range"),
        (
            "CLIENT SETINFO liB-Ver 'a b'",
            "-ERR liB-Ver cannot contain spaces, newlines or special characters.",
        ),
        (
            "EVAL 'return redis.call(\"config\", \"get\", \"x\")' 0",
            "-ERR This Valkey command is not allowed from script script: on @user_script:1.",
        ),
        (
            "EVAL 'return redis.call(\"script\", \"nosuch\")' 0",
            "-ERR unknown subcommand 'nosuch'. Try SCRIPT HELP. script: on @user_script:1.",
        ),
    ]);
    Bench::new(&REDIS_7_0).goes(&[("WAIT 0 9223372036854775807", ":0")]);
}

/// Behaviour that clients see of servers that are not available to this test (reference, section
/// 8).
#[test]
fn profiles_without_a_server_differ_as_their_documents_say() {
    for (profile, version) in [(&REDIS_7_2, "7.2.7"), (&REDIS_8_4, "8.4.0")] {
        let mut bench = Bench::new(profile);
        let introduction = bench.ask("HELLO 2");
        let expected = format!(
            "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n{version}\r\n$5\r\n\
             proto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\n\
             master\r\n$7\r\nmodules\r\n*0\r\n"
        );
        assert_eq!(introduction, expected);
        bench.goes(&[
            ("CLIENT SETINFO lib-name x", "+OK"),
            ("WAITAOF 0 0 0", "*2\r\n:0\r\n:0"),
            (
                "WAITAOF 1 0 0",
                "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
            ),
            ("EVALSHA x 0", "-NOSCRIPT No matching script. Please use EVAL."),
            ("MULTI", "+OK"),
            ("MULTI", "-ERR MULTI calls can not be nested"),
            ("DISCARD", "+OK"),
            (
                "CLIENT MAINT_NOTIFICATIONS ON",
                "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.",
            ),
            ("READONLY", "-ERR This instance has cluster support disabled"),
            ("DELIFEQ k v", "-ERR unknown command 'DELIFEQ', with args beginning with: 'k' 'v' "),
        ]);
        let error = bench.ask("EVAL 'return redis.call(\"nosuch\")' 0");
        let sha = 40;
        let head = "-ERR Unknown Redis command called from script script: ";
        assert!(error.starts_with(head), "{error}");
        assert_eq!(&error[head.len() + sha..], ", on @user_script:1.\r\n");
    }
    Bench::new(&REDIS_7_2).goes(&[
        ("SET k v IFEQ v", "-ERR syntax error"),
        ("DELEX k", "-ERR unknown command 'DELEX', with args beginning with: 'k' "),
        ("DIGEST k", "-ERR unknown command 'DIGEST', with args beginning with: 'k' "),
    ]);
}

#[test]
fn valkey_kills_connections_by_more_than_redis_does() {
    let kills = [
        ("CLIENT KILL MAXAGE 100000", ":0"),
        ("CLIENT KILL MAXAGE 0", "-ERR maxage should be greater than 0"),
        ("CLIENT KILL IDLE x", "-ERR idle is not an integer or out of range"),
        ("CLIENT KILL NAME nobody", ":0"),
        ("CLIENT KILL LIB-NAME x LIB-VER y", ":0"),
        ("CLIENT KILL DB 16", "-ERR DB number should be between 0 and 15"),
        ("CLIENT KILL IP 1.2.3.4", ":0"),
        ("CLIENT KILL ID 998 999", ":0"),
    ];
    Bench::new(&VALKEY_9).goes(&kills);
    let refused = kills.map(|(line, _)| (line, "-ERR syntax error"));
    Bench::new(&REDIS_7_0).goes(&refused);
    for (profile, text) in
        [(&REDIS_7_0, "-ERR client-id should be greater than 0"), (&VALKEY_9, "-ERR syntax error")]
    {
        Bench::new(profile).goes(&[
            ("CLIENT KILL ID x", text),
            ("CLIENT KILL USER nobody", "-ERR No such user 'nobody'"),
        ]);
    }
    let mut bench = Bench::new(&VALKEY_9);
    bench.ask_as(1, "CLIENT SETNAME other");
    bench.goes(&[("CLIENT KILL NAME other", ":1"), ("CLIENT KILL NAME other", ":0")]);
}

/// Observed on Valkey 9.1.2 through a WATCH.
#[test]
fn a_set_into_the_past_leaves_a_missing_key_alone_on_valkey() {
    for (profile, executed) in [(&REDIS_7_0, "*-1"), (&VALKEY_9, "*0")] {
        Bench::new(profile).goes(&[
            ("WATCH k", "+OK"),
            ("SET k v NX PXAT 5 GET", "$-1"),
            ("MULTI", "+OK"),
            ("EXEC", executed),
        ]);
    }
    Bench::new(&VALKEY_9).goes(&[
        ("SET k v", "+OK"),
        ("WATCH k", "+OK"),
        ("SET k w PXAT 5", "+OK"),
        ("MULTI", "+OK"),
        ("EXEC", "*-1"),
    ]);
}

/// Observed on Valkey 9.1.2.
#[test]
fn valkey_scripts_check_memory_before_permissions() {
    for (profile, told) in [(&REDIS_7_0, "-ERR The user executing"), (&VALKEY_9, "-OOM command")] {
        let mut bench = Bench::new(profile);
        bench.goes(&[("ACL SETUSER u on nopass ~* +@all -append", "+OK")]);
        bench.goes(&[("CONFIG SET maxmemory 1", "+OK"), ("AUTH u x", "+OK")]);
        let said = bench.ask("EVAL 'return redis.call(\"append\", KEYS[1], \"x\")' 1 k");
        assert!(said.starts_with(told), "{}: {said}", profile.name);
    }
}

/// Observed on Valkey 9.1.2.
#[test]
fn a_wait_is_blocking_on_servers_that_allow_it_in_scripts() {
    for (profile, is_refused) in [(&REDIS_7_0, false), (&VALKEY_9, true)] {
        let mut bench = Bench::new(profile);
        bench.goes(&[("ACL SETUSER u on nopass ~* +@all -@blocking", "+OK"), ("AUTH u x", "+OK")]);
        assert_eq!(bench.ask("WAIT 0 1").starts_with("-NOPERM"), is_refused, "{}", profile.name);
    }
}

/// Observed on Valkey 9.1.2.
#[test]
fn a_changed_key_empties_a_transaction_of_valkey() {
    let full = "-EXECABORT Transaction discarded because of: OOM command not allowed when used \
                memory > 'maxmemory'.";
    for (profile, executed) in [(&REDIS_7_0, full), (&VALKEY_9, "*-1")] {
        let mut bench = Bench::new(profile);
        bench.goes(&[("SET k v", "+OK"), ("WATCH k", "+OK"), ("MULTI", "+OK")]);
        bench.goes(&[("SET x 1", "+QUEUED")]);
        bench.ask_as(1, "DEL k");
        bench.ask_as(1, "CONFIG SET maxmemory 1");
        bench.goes(&[("EXEC", executed)]);
    }
}

/// Observed on Valkey 9.1.2 by a client that tracks the key: the deletion is pushed at once.
#[test]
fn a_conditional_set_into_the_past_deletes_on_valkey() {
    let mut bench = Bench::new(&VALKEY_9);
    for set in ["SET k v PXAT 5 IFEQ v", "SET k w PXAT 5 IFEQ v"] {
        bench.goes(&[("SET k v", "+OK"), (set, "+OK")]);
        let keys = bench.server.databases().get(0).expect("it is there");
        assert!(keys.stored(b"k").is_none(), "{set}");
    }
}

/// Observed on Valkey 9.1.2.
#[test]
fn newer_servers_read_names_up_to_a_zero() {
    let name = b"ab\0 \x01".as_slice();
    for (profile, told) in [(&REDIS_7_0, "-ERR Client names"), (&VALKEY_9, "+OK")] {
        let mut bench = Bench::new(profile);
        let words = [b"CLIENT".as_slice(), b"SETNAME", name].map(Bytes::copy_from_slice);
        assert!(bench.bytes(0, &words).starts_with(told.as_bytes()), "{}", profile.name);
    }
    let mut bench = Bench::new(&VALKEY_9);
    let words = [b"CLIENT".as_slice(), b"SETNAME", name].map(Bytes::copy_from_slice);
    bench.bytes(0, &words);
    assert_eq!(bench.ask("CLIENT GETNAME").as_bytes(), b"$5\r\nab\0 \x01\r\n");
    assert!(bench.ask("CLIENT INFO").contains(" name=ab age="));
}

#[test]
fn commands_that_no_profile_has_are_noted() {
    let mut bench = Bench::new(&REDIS_7_0);
    let script = "EVAL 'redis.pcall(\"sadd\", \"a\", \"b\") redis.pcall(\"sadd\", \"a\", \"b\")' 0";
    for request in ["Bzpopmin a 1", "DELEX a", "CLIENT FOO", script] {
        bench.ask(request);
    }
    let noted =
        bench.server.take_unknown().into_iter().map(|(it, calls)| (it.name, it.in_script, calls));
    let expected = [("BZPOPMIN", false, 1), ("SADD", true, 2)];
    let expected = expected.map(|(name, in_script, calls)| (name.to_owned(), in_script, calls));
    assert_eq!(noted.collect::<Vec<_>>(), expected);
    assert!(bench.server.take_unknown().is_empty());
}
