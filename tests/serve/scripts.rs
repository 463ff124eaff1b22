//! Scripts that do not end, and the replies to other connections meanwhile.

use std::net::SocketAddr;

use crate::serve;
use crate::talk::{Talk, await_fault, until};

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";

/// Returns a connection that runs a script without end, and another one that has received BUSY.
fn endless(address: SocketAddr, script: &str) -> (Talk, Talk) {
    let (mut talk, mut other) = (Talk::to(address), Talk::to(address));
    assert_eq!(talk.ask("CONFIG SET busy-reply-threshold 20"), "+OK");
    talk.say(&format!("EVAL \"{script}\" 0"));
    until("others are told that a script runs", || other.ask("GET key") == BUSY);
    (talk, other)
}

#[test]
fn an_endless_script_keeps_others_from_everything_but_ending_it() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut talk, mut other) = endless(address, "while true do end");
    assert_eq!(Talk::to(address).ask("SET key 1"), BUSY);
    assert_eq!(Talk::to(fleet.addresses()[1]).ask("SET key 1"), "+OK", "another master");
    assert_eq!(other.ask("SCRIPT KILL"), "+OK");
    let end = talk.hear();
    assert!(end.contains("Script killed by user with SCRIPT KILL"), "{end}");
    assert_eq!(talk.ask("GET key"), "$-1");
    assert_eq!(other.ask("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.");
}

#[test]
fn a_script_that_has_written_ends_with_its_process_only() {
    let fleet = serve(
        "[[fault]]\nid = \"crash\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"10ms\" }",
    );
    let address = fleet.addresses()[0];
    let script = "redis.call('SET', 'key', '1') while true do end";
    let (mut talk, mut other) = endless(address, script);
    assert!(other.ask("SCRIPT KILL").starts_with("-UNKILLABLE "));
    assert_eq!(other.ask("GET key"), BUSY);
    let mut observer = Talk::to(fleet.observer());
    assert_eq!(observer.ask("START"), "+OK");
    await_fault(&mut observer, "crash", "over");
    assert!(talk.is_closed() && other.is_closed());
    assert_eq!(Talk::to(address).ask("GET key"), "$-1");
}

#[test]
fn a_master_with_an_endless_script_can_be_left() {
    let fleet = serve("");
    drop(endless(fleet.addresses()[0], "while true do end"));
    drop(fleet);
    let fleet = serve("");
    drop(endless(fleet.addresses()[0], "while true do end"));
    assert!(fleet.finish().is_empty());
}

#[test]
fn scripts_that_want_too_much_get_an_error() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut talk, mut other) = (Talk::to(address), Talk::to(address));
    for (script, error) in [
        ("local function f() return 1 + f() end return f()", "stack overflow"),
        ("local t = {} while true do t[#t + 1] = string.rep('x', 1e6) .. #t end", "memory"),
        ("return string.rep('x', 2^30)", "memory"),
        ("error({err = 'mine'})", "mine"),
    ] {
        let answer = talk.ask(&format!("EVAL \"{script}\" 0"));
        assert!(answer.starts_with('-') && answer.contains(error), "{script}: {answer}");
        assert_eq!(other.ask("PING"), "+PONG");
    }
}

#[test]
fn a_transaction_that_hears_busy_is_not_executed() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut talks: Vec<Talk> = (0..3).map(|_| Talk::to(address)).collect();
    let [one, two, deaf] = &mut talks[..] else { unreachable!() };
    assert_eq!(two.ask("WATCH watched"), "+OK");
    for talk in [&mut *one, &mut *two] {
        assert_eq!(talk.ask("MULTI"), "+OK");
        assert_eq!(talk.ask("SET tx 1"), "+QUEUED");
    }
    deaf.say("CLIENT REPLY OFF");
    let (mut script, mut other) = endless(address, "while true do end");
    assert_eq!(one.ask("SET tx 2"), BUSY);
    let aborted = two.ask("EXEC");
    assert_eq!(aborted, format!("-EXECABORT Transaction discarded because of: {}", &BUSY[1..]));
    deaf.say("GET key");
    assert!(deaf.is_silent());
    assert_eq!(other.ask("SCRIPT KILL"), "+OK");
    assert!(script.hear().starts_with("-ERR"));
    assert_eq!(one.ask("SET tx 3"), "+QUEUED");
    assert_eq!(one.ask("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(two.ask("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(script.ask("SET watched 1"), "+OK");
    for (request, answer) in [("MULTI", "+OK"), ("SET tx 4", "+QUEUED"), ("EXEC", "+OK")] {
        assert_eq!(two.ask(request), answer, "nothing is watched any more");
    }
}

#[test]
fn without_a_threshold_no_client_gets_busy() {
    let fleet = serve(
        "[[fault]]\nid = \"crash\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"10ms\" }",
    );
    let address = fleet.addresses()[0];
    let (mut talk, mut other) = endless(address, "while true do end");
    assert_eq!(other.ask("SCRIPT KILL"), "+OK");
    assert!(talk.hear().starts_with("-ERR"));
    assert_eq!(talk.ask("CONFIG SET lua-time-limit 0"), "+OK");
    talk.say("EVAL \"while true do end\" 0");
    other.say("GET key");
    let mut observer = Talk::to(fleet.observer());
    observer.ask("START");
    await_fault(&mut observer, "crash", "over");
    let heard = other.rest();
    assert!(!heard.contains("BUSY"), "{heard}");
}
