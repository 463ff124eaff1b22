//! Tests of a server's reports on its commands, connections and users, and of random keys.

use std::collections::BTreeSet;

use super::*;

#[test]
fn commands_are_described_as_far_as_a_server_has_them() {
    let get = "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n\
        +@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\n\
        begin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\n\
        find_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\n\
        keystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0";
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[
        ("COMMAND INFO get", &format!("*1\r\n{get}")),
        ("COMMAND INFO waitaof get|x", "*2\r\n$-1\r\n$-1"),
        (
            "COMMAND DOCS get nosuch",
            "*2\r\n$3\r\nget\r\n*4\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nstring",
        ),
        ("COMMAND GETKEYS mset a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb"),
        ("COMMAND GETKEYS eval x 2 a", "*0"),
        ("COMMAND GETKEYS eval x 1e3 a", "*1\r\n$1\r\na"),
        ("COMMAND GETKEYS client id", "-ERR The command has no key arguments"),
        ("COMMAND GETKEYS get a b", "-ERR Invalid number of arguments specified for command"),
        ("COMMAND GETKEYS nosuch a", "-ERR Invalid command specified"),
        ("COMMAND LIST FILTERBY PATTERN CLIENT|I*", "*2\r\n$9\r\nclient|id\r\n$11\r\nclient|info"),
        ("COMMAND LIST FILTERBY", "-ERR syntax error"),
    ]);
    let count = bench.ask("COMMAND COUNT");
    assert!(bench.ask("COMMAND").starts_with(&count.replace(':', "*")), "{count}");
    assert!(bench.server.lack("get"));
    assert_ne!(bench.ask("COMMAND COUNT"), count);
}

#[test]
fn a_random_key_depends_on_the_seed() {
    let draws = |seed| {
        let mut bench = Bench::new(&REDIS_7_0);
        bench.server.set_seed(seed);
        bench.goes(&[("MSET a 1 b 2 c 3", "+OK"), ("SET gone x PX 1", "+OK")]);
        bench.wall_ms += 10;
        (0..60).map(|_| bench.ask("RANDOMKEY")).collect::<Vec<_>>()
    };
    let drawn = draws(1);
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(drawn, draws(1));
    assert_ne!(drawn, draws(2));
    Bench::new(&REDIS_7_0).goes(&[("RANDOMKEY", "$-1")]);
}

#[test]
fn connections_are_listed_with_their_last_command() {
    for (profile, lists_watches) in PROFILES.into_iter().zip([false, false, true, true]) {
        let mut bench = Bench::new(profile);
        bench.sessions[0] = Session::new(1).from("10.0.0.1:5").at("10.0.0.2:6379");
        bench.goes(&[("WATCH a b", "+OK")]);
        bench.ask_as(1, "NOSUCH");
        let list = bench.ask("CLIENT LIST");
        for part in ["addr=10.0.0.1:5 laddr=10.0.0.2:6379 ", "cmd=client|list ", "cmd=NULL "] {
            assert!(list.contains(part), "{list}");
        }
        assert_eq!(list.contains(" multi=-1 watch=2 qbuf="), lists_watches, "{list}");
        bench.ask_as(1, "GET a");
        assert!(bench.ask("CLIENT LIST ID 2").contains("cmd=get "));
        assert_eq!(bench.ask_as(1, "CLIENT KILL LADDR 10.0.0.2:6379"), ":1\r\n");
        assert_eq!(bench.server.clients_mut().take_killed(), BTreeSet::from([1]));
    }
}

#[test]
fn a_category_permits_and_forbids_its_commands() {
    let refused =
        |name: &str| format!("-NOPERM this user has no permissions to run the '{name}' command");
    Bench::new(&REDIS_7_0).goes(&[
        ("ACL SETUSER u on nopass ~* -@all +@READ +Config|Get -@fast +acl", "+OK"),
        ("ACL SETUSER u +@nosuch", "-ERR Error in ACL SETUSER modifier '+@nosuch': Unknown command or category name in ACL"),
        ("AUTH u x", "+OK"),
        ("KEYS *", "*0"),
        ("GET k", &refused("get")),
        ("SET k v", &refused("set")),
        ("CONFIG GET nosuch", "*0"),
        ("CONFIG SET timeout 1", &refused("config|set")),
        ("ACL SETUSER u +@all -@dangerous", "+OK"),
        ("SET k v", "+OK"),
        ("KEYS *", &refused("keys")),
        ("CONFIG GET nosuch", &refused("config|get")),
    ]);
}

#[test]
fn a_transaction_of_a_user_who_has_lost_a_permission_says_so() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("ACL SETUSER u on nopass ~* +@all", "+OK")]);
    for line in ["AUTH u x", "MULTI", "GET k", "PING"] {
        bench.ask_as(1, line);
    }
    bench.goes(&[("ACL SETUSER u -get", "+OK")]);
    let answer = bench.ask_as(1, "EXEC");
    assert!(answer.starts_with("*2\r\n-NOPERM ACLs rules changed between"), "{answer}");
    assert!(answer.ends_with("+PONG\r\n"), "{answer}");
}

#[test]
fn the_connections_of_a_user_who_is_removed_are_closed() {
    let mut bench = Bench::new(&REDIS_7_0);
    bench.goes(&[("ACL SETUSER u on nopass +@all", "+OK")]);
    bench.ask_as(1, "AUTH u x");
    bench.goes(&[("ACL DELUSER u nosuch", ":1"), ("ACL USERS", "*1\r\n$7\r\ndefault")]);
    assert_eq!(bench.server.clients_mut().take_killed(), BTreeSet::from([2]));
}
