//! `run` on a terminal, which the `script` of util-linux provides.

use std::process::{Command, Stdio};

use crate::Test;
use crate::fleet::{Call, Fleet, REDLOCK};

pub(crate) const TESTS: &[Test] = if cfg!(target_os = "linux") { LINUX } else { &[] };

const LINUX: &[Test] = &[
    ("a_group_of_another_pid_namespace_has_no_terminal", a_group_of_another_pid_namespace),
    ("redirected_input_does_not_hide_the_terminal", redirected_input),
    ("a_terminal_that_the_command_does_not_use_is_left_to_others", a_terminal_for_others),
];

/// `script` with a terminal for `line`, which a shell executes with `redlock` as `$R`.
fn on_terminal(fleet: &Fleet, line: &str) -> Call {
    let mut command = fleet.command("script");
    command.args(["-qec", line, "/dev/null"]).env("R", REDLOCK).stdin(Stdio::piped());
    Call::start(command)
}

/// The leader of the group of `redlock` is outside of its namespace, so the group's id is 0 there.
fn a_group_of_another_pid_namespace() {
    const NAMESPACE: &str = "unshare --map-root-user --pid --fork";
    let is_allowed = Command::new("sh").args(["-c", &format!("{NAMESPACE} true")]).status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        return;
    }
    let fleet = Fleet::of(1);
    let mut call = on_terminal(&fleet, &format!("{NAMESPACE} $R run res -- sh -c 'exit 7'"));
    let (code, out) = call.end();
    assert_eq!(code, Some(7), "{out}");
}

fn redirected_input() {
    let fleet = Fleet::of(1);
    let asks = "stty -echo < /dev/tty; read line < /dev/tty; echo got $line";
    let mut call = on_terminal(&fleet, &format!("$R run res -- sh -c '{asks}' < /dev/null"));
    call.say("this");
    let (code, out) = call.end();
    assert!(code == Some(0) && out.contains("got this"), "{code:?}: {out}");
}

fn a_terminal_for_others() {
    let fleet = Fleet::of(1);
    // The first may have begun before the command.
    let reads = "{ read line; echo $line; read line; echo $line; }";
    let mut call =
        on_terminal(&fleet, &format!("{reads} | $R run res -- sh -c 'echo ready >&2; cat'"));
    assert_eq!(call.line(), "ready");
    call.say("this");
    call.say("that");
    let (code, out) = call.end();
    assert_eq!((code, out.matches("that").count()), (Some(0), 2), "the echo and the line: {out}");
}
