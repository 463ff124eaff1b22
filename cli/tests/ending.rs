//! `run`: the ends of commands.

use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::Test;
use crate::fleet::{Call, Fleet, REDLOCK, SOON, finish, is_running};
use crate::wait::until;

pub(crate) const TESTS: &[Test] = &[
    ("a_lost_lease_ends_the_command", a_lost_lease_ends_the_command),
    ("a_loss_is_reported_before_the_release", a_loss_is_reported_before_the_release),
    ("a_command_that_ignores_sigterm_is_killed", a_command_that_ignores_sigterm_is_killed),
    ("a_limit_ends_the_command", a_limit_ends_the_command),
    ("a_lease_without_extensions_names_the_nodes", a_lease_without_extensions_names_the_nodes),
    ("a_lease_without_extensions_names_a_missing_right", a_missing_right_is_named),
    ("signals_are_passed_on", signals_are_passed_on),
    ("an_ignored_signal_stays_ignored", an_ignored_signal_stays_ignored),
    ("blocked_signals_are_handled", blocked_signals_are_handled),
    (
        "processes_that_a_command_leaves_behind_are_ended",
        processes_that_a_command_leaves_behind_are_ended,
    ),
    ("a_reader_that_stalls_does_not_stop_the_supervisor", a_reader_that_stalls),
    (
        "an_ended_process_whose_parent_has_left_is_not_waited_for",
        an_ended_process_whose_parent_has_left_is_not_waited_for,
    ),
    ("a_stopped_command_is_ended", a_stopped_command_is_ended),
    ("a_stopped_command_takes_a_signal_to_end", a_stopped_command_takes_a_signal_to_end),
    ("a_stop_from_the_terminal_stops_the_command", a_stop_from_the_terminal_stops_the_command),
];

/// Deletes the lock's key on a majority of the servers.
fn lose(fleet: &Fleet) {
    for server in &fleet[..2] {
        // A lease begins when a majority has the key: the others may get it later.
        until("the key was there", SOON, || server.ask::<u32>("DEL res") == 1);
    }
}

fn a_lost_lease_ends_the_command() {
    let fleet = Fleet::of(3);
    let script = "trap 'echo told; exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut call = Call::start(fleet.run("", script));
    assert_eq!(call.line(), "ready");
    lose(&fleet);
    assert_eq!(call.end(), (Some(123), String::from("told\n")));
    fleet.empties();
}

fn a_loss_is_reported_before_the_release() {
    let fleet = Fleet::of(1);
    let mut command = fleet.run("-v --grace 100ms", "$0 break --yes res; sleep 1000");
    command.arg(REDLOCK);
    let done = finish(command);
    assert_eq!(done.code, Some(123), "{}", done.err);
    let place = |text: &str| done.err.find(text).unwrap_or_else(|| panic!("{text}: {}", done.err));
    assert!(place("the lease was lost") < place("the remaining keys of res are deleted"));
    assert!(!done.err.contains("released"), "{}", done.err);
}

fn a_command_that_ignores_sigterm_is_killed() {
    let fleet = Fleet::of(3);
    let script = "trap '' TERM; sleep 1000 & echo $!; wait";
    let mut call = Call::start(fleet.run("--grace 100ms", script));
    let child = call.line();
    assert!(is_running(&child));
    lose(&fleet);
    assert_eq!(call.end(), (Some(123), String::new()));
    assert!(!is_running(&child), "the whole group is ended");
}

fn a_limit_ends_the_command() {
    let fleet = Fleet::of(1);
    let options = "--ttl 2s --node-timeout 400ms --limit 2500ms --grace 100ms";
    let done = finish(fleet.run(options, "trap 'echo told; exit 0' TERM; sleep 1000 & wait"));
    assert_eq!((done.code, &*done.out), (Some(124), "told\n"), "{}", done.err);
    assert!(done.err.contains("ended before its limit (`--limit 2.5s`)"), "{}", done.err);
    fleet.empties();
}

fn a_lease_without_extensions_names_the_nodes() {
    let mut fleet = Fleet::of(3);
    let mut command = fleet.run("--ttl 2s --node-timeout 400ms", "echo ready; exec sleep 1000");
    let mut call = Call::start({
        command.stderr(Stdio::piped());
        command
    });
    assert_eq!(call.line(), "ready");
    let urls = [fleet[0].url(), fleet[1].url()];
    fleet[0].kill();
    fleet[1].kill();
    assert_eq!(call.end(), (Some(123), String::new()));
    let err = call.errors();
    assert!(err.contains("too few nodes confirmed the extensions of its lease; "), "{err}");
    assert!(urls.iter().all(|url| err.contains(url)) && err.contains("away, last error"), "{err}");
}

fn a_missing_right_is_named() {
    let fleet = Fleet::of(1);
    fleet[0].ask::<()>("ACL SETUSER default -pexpire");
    let mut command = fleet.run("--ttl 2s --node-timeout 400ms", "exec sleep 1000");
    command.stderr(Stdio::piped());
    let mut call = Call::start(command);
    assert_eq!(call.end(), (Some(123), String::new()));
    let err = call.errors();
    assert!(err.contains("too few nodes confirmed the extensions of its lease; "), "{err}");
    assert!(err.contains(&fleet[0].url()) && err.contains("last error"), "{err}");
}

fn signals_are_passed_on() {
    let fleet = Fleet::of(1);
    for (signal, code) in
        [("TERM", 143), ("INT", 130), ("HUP", 129), ("ALRM", 142), ("XCPU", 152), ("USR1", 138)]
    {
        let script = "trap 'exit 9' USR1; echo ready; sleep 1000 & wait";
        let mut command = fleet.run("", script);
        command.stderr(Stdio::piped());
        let mut call = Call::start(command);
        assert_eq!(call.line(), "ready");
        call.signal(&format!("-{signal}"));
        let code = if signal == "USR1" { 9 } else { code };
        assert_eq!(call.end(), (Some(code), String::new()), "{signal}");
        let may_end_it = signal != "USR1";
        assert!(!may_end_it || call.errors().is_empty(), "the command has left nothing behind");
        fleet.empties();
    }
}

fn an_ignored_signal_stays_ignored() {
    let fleet = Fleet::of(1);
    let mut command = fleet.command("sh");
    let script = "trap '' HUP; exec \"$0\" run res -- sh -c 'echo ready; read line; echo $line'";
    command.args(["-c", script, REDLOCK]).stdin(Stdio::piped());
    let mut call = Call::start(command);
    assert_eq!(call.line(), "ready");
    call.signal("-HUP");
    call.say("done");
    assert_eq!(call.end(), (Some(0), String::from("done\n")));
}

fn blocked_signals_are_handled() {
    let fleet = Fleet::of(1);
    let blocked = || {
        let mut command = fleet.command("env");
        command.args(["--block-signal=CHLD,TERM", REDLOCK, "run", "res", "--", "sh", "-c"]);
        command
    };
    let mut command = blocked();
    command.arg("sleep 0.1; exit 7");
    assert_eq!(Call::start(command).end().0, Some(7));
    let mut command = blocked();
    command.arg("echo ready; exec sleep 60");
    let mut call = Call::start(command);
    assert_eq!(call.line(), "ready");
    call.signal("-TERM");
    assert_eq!(call.end().0, Some(143));
}

fn processes_that_a_command_leaves_behind_are_ended() {
    let fleet = Fleet::of(1);
    let mut call = Call::start(fleet.run("", "sleep 1000 > /dev/null & echo $!"));
    let child = call.line();
    assert_eq!(call.end(), (Some(0), String::new()));
    assert!(!is_running(&child));
    fleet.empties();
}

/// Standard error has no room when the lock is acquired, and when a process is left behind.
fn a_reader_that_stalls() {
    let fleet = Fleet::of(1);
    for options in ["", "-v"] {
        let (_reader, writer) = stalled();
        let mut command = fleet.run(options, "sleep 1000 > /dev/null 2>&1 & echo $!; exit 7");
        command.stderr(OwnedFd::from(writer));
        let (code, child) = Call::start(command).end();
        assert_eq!(code, Some(7), "`{options}`");
        assert!(!is_running(child.trim()));
        fleet.empties();
    }
}

/// A reader, and the writing end of its connection, which has no room.
fn stalled() -> (UnixStream, UnixStream) {
    let (reader, mut writer) = UnixStream::pair().expect("a connection");
    writer.set_nonblocking(true).expect("a socket of ours");
    let full = loop {
        if let Err(error) = writer.write(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    writer.set_nonblocking(false).expect("a socket of ours");
    (reader, writer)
}

fn an_ended_process_whose_parent_has_left_is_not_waited_for() {
    let fleet = Fleet::of(1);
    let leaves = "sleep 0.1 & exec setsid sleep 60 > /dev/null 2>&1";
    let mut call = Call::start(fleet.run("", &format!("sh -c '{leaves}' & sleep 0.5")));
    assert_eq!(call.end(), (Some(0), String::new()));
    fleet.empties();
}

fn a_stopped_command_is_ended() {
    let fleet = Fleet::of(3);
    let script = "trap 'echo told; exit 0' TERM; echo $$; kill -STOP $$; exit 0";
    let mut call = Call::start(fleet.run("", script));
    let command = call.line();
    until("the command is stopped", SOON, || is_stopped(&command));
    lose(&fleet);
    assert_eq!(call.end(), (Some(123), String::from("told\n")));
}

fn a_stopped_command_takes_a_signal_to_end() {
    let fleet = Fleet::of(1);
    let mut call = Call::start(fleet.run("", "echo $$; kill -STOP $$; exit 0"));
    let command = call.line();
    until("the command is stopped", SOON, || is_stopped(&command));
    call.signal("-TERM");
    assert_eq!(call.end(), (Some(143), String::new()));
}

/// Also where standard input is no terminal, so that the command has not been lent one.
fn a_stop_from_the_terminal_stops_the_command() {
    let fleet = Fleet::of(1);
    let mut command = fleet.run("", "echo $$; exec sleep 60"); // a shell in vfork shows no stop
    command.stdin(Stdio::null()).process_group(0); // as a shell starts a job
    let mut call = Call::start(command);
    let sleeper = call.line();
    call.signal("-TSTP");
    for process in [&sleeper, &call.id()] {
        until("the job is stopped", SOON, || is_stopped(process));
    }
    call.signal("-CONT");
    for process in [&sleeper, &call.id()] {
        until("the job goes on", SOON, || !is_stopped(process));
    }
    call.signal("-TERM");
    assert_eq!(call.end(), (Some(143), String::new()));
}

/// Returns true if the process is stopped, by the kernel's letter for its state.
fn is_stopped(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
