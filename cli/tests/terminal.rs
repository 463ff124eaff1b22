//! `run` on a terminal, which the `script` of util-linux provides.

use std::process::{Command, Stdio};

use crate::Test;
use crate::fleet::{Call, Fleet, REDLOCK};

pub(crate) const TESTS: &[Test] = if cfg!(target_os = "linux") { LINUX } else { &[] };

const LINUX: &[Test] =
    &[("a_group_of_another_pid_namespace_has_no_terminal", a_group_of_another_pid_namespace)];

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
