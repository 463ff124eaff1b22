//! `who`, `break` and `inspect`.

use std::io::pipe;

use crate::Test;
use crate::fleet::{Call, Fleet, REDLOCK, finish};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_finds_itself", a_command_finds_itself),
    ("a_free_lock_has_no_holder", a_free_lock_has_no_holder),
    ("a_broken_lock_is_free", a_broken_lock_is_free),
    ("a_key_that_cannot_be_compared_is_not_broken", a_key_that_cannot_be_compared_is_not_broken),
    ("a_lock_is_not_broken_unasked", a_lock_is_not_broken_unasked),
    ("a_broken_lock_ends_its_command", a_broken_lock_ends_its_command),
    ("a_reader_that_has_gone_is_no_error", a_reader_that_has_gone_is_no_error),
    ("nodes_in_order_pass_the_inspection", nodes_in_order_pass_the_inspection),
];

fn a_command_finds_itself() {
    let fleet = Fleet::of(1);
    let script = format!("echo $REDLOCK_OWNER; {} who $REDLOCK_KEY", REDLOCK);
    let done = finish(fleet.run("", &script));
    let (owner, rest) = done.out.split_once('\n').unwrap();
    assert!(rest.starts_with(&format!("res: held by {owner} on 1 of 1 nodes, for ")), "{rest}");
    assert_eq!(done.code, Some(0), "{}", done.err);
}

fn a_free_lock_has_no_holder() {
    let mut fleet = Fleet::of(3);
    let done = finish(fleet.redlock("who res"));
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.out.starts_with("res: free\n"), "{}", done.out);
    fleet[0].kill();
    fleet[1].kill();
    let done = finish(fleet.redlock("who res"));
    assert_eq!(done.code, Some(122), "{}", done.err);
}

fn a_broken_lock_is_free() {
    let fleet = Fleet::of(3);
    fleet.take();
    let done = finish(fleet.redlock("break --yes res"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.starts_with("res: held by \"somebody\" on 3 of 3 nodes"), "{}", done.out);
    assert!(done.out.contains("\nres: free\n"), "{}", done.out);
    assert!(fleet.iter().all(|server| server.keys() == 0));
    assert_eq!(finish(fleet.redlock("break --yes res")).code, Some(1));
}

fn a_key_that_cannot_be_compared_is_not_broken() {
    let fleet = Fleet::of(1);
    fleet[0].ask::<()>(&format!("SET res {}", "x".repeat(65_537)));
    let done = finish(fleet.redlock("break --yes res"));
    assert_eq!(done.code, Some(122), "{}", done.err);
    let reason = ": its value of more than 64 KiB cannot be compared: delete it by DEL\n";
    assert!(done.out.ends_with(reason), "{}", done.out);
    assert_eq!(fleet[0].keys(), 1);
}

fn a_lock_is_not_broken_unasked() {
    let fleet = Fleet::of(1);
    fleet.take();
    let done = finish(fleet.redlock("break res"));
    assert_eq!(done.code, Some(125), "{}", done.err);
    assert!(done.err.contains("--yes"), "{}", done.err);
    assert_eq!(fleet[0].keys(), 1);
    let canary = finish(fleet.redlock("break --yes redlock-client:canary"));
    assert_eq!(canary.code, Some(122), "{}", canary.err);
    assert!(canary.out.contains("the canary, not a lock"), "{}", canary.out);
}

fn a_broken_lock_ends_its_command() {
    let fleet = Fleet::of(3);
    let mut call = Call::start(fleet.run("", "echo ready; exec sleep 1000"));
    assert_eq!(call.line(), "ready");
    let done = finish(fleet.redlock("break --yes res"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(call.end(), (Some(123), String::new()));
}

fn a_reader_that_has_gone_is_no_error() {
    let fleet = Fleet::of(1);
    for (words, code) in [("inspect", 0), ("who res", 1), ("break --yes res", 1)] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = fleet.redlock(words);
        let output = command.stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
    }
}

fn nodes_in_order_pass_the_inspection() {
    let fleet = Fleet::of(3);
    let done = finish(fleet.redlock("inspect"));
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("membership "), "{}", done.out);
}
