//! `run`: exit codes, and the environment of the command.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::Test;
use crate::fleet::{Call, Done, Fleet, REDLOCK, SOON, finish};
use crate::wait::until;

pub(crate) const TESTS: &[Test] = &[
    ("the_exit_code_is_passed_on", the_exit_code_is_passed_on),
    ("a_signal_that_ended_the_command_is_passed_on", a_signal_that_ended_it_is_passed_on),
    ("a_taken_lock_has_an_exit_code", a_taken_lock_has_an_exit_code),
    ("a_taken_lock_without_a_failure_is_silent", a_taken_lock_without_a_failure_is_silent),
    ("too_few_nodes_have_an_exit_code", too_few_nodes_have_an_exit_code),
    ("a_command_that_cannot_be_started_leaves_no_lock", a_command_that_cannot_be_started),
    ("wrong_usage_has_an_exit_code", wrong_usage_has_an_exit_code),
    ("a_message_is_one_write", a_message_is_one_write),
    ("a_mistake_in_a_variable_names_it", a_mistake_in_a_variable_names_it),
    ("the_inspection_checks_the_ttl_of_a_run", the_inspection_checks_the_ttl_of_a_run),
    ("a_mistake_in_the_file_has_a_place", a_mistake_in_the_file_has_a_place),
    ("an_invalid_value_in_the_file_has_a_place", an_invalid_value_in_the_file_has_a_place),
    ("a_closed_standard_input_is_empty", a_closed_standard_input_is_empty),
    ("a_signal_ends_the_wait", a_signal_ends_the_wait),
    ("a_lock_that_is_left_keeps_others_out", a_lock_that_is_left_keeps_others_out),
];

fn the_exit_code_is_passed_on() {
    let fleet = Fleet::of(3);
    let done =
        finish(fleet.run("-v", "echo $REDLOCK_KEY $REDLOCK_TTL_MS $REDLOCK_LIMIT_MS; exit 7"));
    assert_eq!((done.code, &*done.out), (Some(7), "res 10000 3600000\n"), "{}", done.err);
    assert!(done.err.contains("res is released"), "{}", done.err);
    fleet.empties();
}

fn a_signal_that_ended_it_is_passed_on() {
    let done = finish(Fleet::of(1).run("", "kill -9 $$"));
    assert_eq!(done.code, Some(137), "{}", done.err);
}

fn a_taken_lock_has_an_exit_code() {
    let fleet = Fleet::of(3);
    fleet.take();
    let done = finish(fleet.run("--wait 0", "echo never"));
    assert_eq!((done.code, &*done.out), (Some(121), ""), "{}", done.err);
    assert!(done.err.contains("the lock is taken"), "{}", done.err);
}

fn a_taken_lock_without_a_failure_is_silent() {
    let fleet = Fleet::of(1);
    fleet.take();
    let done = finish(fleet.run("--wait 0 -E 0", "echo never"));
    assert_eq!((done.code, &*done.out, &*done.err), (Some(0), "", ""));
    let done = finish(fleet.run("--wait 0 -E 0 -v", "echo never"));
    assert_eq!((done.code, &*done.out), (Some(0), ""), "{}", done.err);
    assert!(done.err.contains("the lock is taken"), "{}", done.err);
}

fn too_few_nodes_have_an_exit_code() {
    let mut fleet = Fleet::of(3);
    fleet[0].kill();
    fleet[1].kill();
    let done = finish(fleet.run("--wait 0", "echo never"));
    assert_eq!((done.code, &*done.out), (Some(122), ""), "{}", done.err);
}

fn a_command_that_cannot_be_started() {
    let fleet = Fleet::of(3);
    let start = |program: &str| {
        let mut command = fleet.redlock("run res --");
        command.arg(program);
        finish(command)
    };
    assert_eq!(start("redlock-test-no-such-command").code, Some(127));
    fleet.empties();
    assert_eq!(start("/").code, Some(126));
    fleet.empties();
}

fn wrong_usage_has_an_exit_code() {
    let call = |words: &str| {
        let mut command = Command::new(REDLOCK);
        command.args(words.split(' ')).env_remove("REDLOCK_NODES").env_remove("REDLOCK_CONFIG");
        finish(command)
    };
    for (words, told) in [
        ("run res -- true", "no node is named"),
        ("run --nodes redis://a res -- true", "--fleet-max-ttl"),
        ("run --nodes redis://a --fleet-max-ttl 30s res", "COMMAND"),
        ("run --nodes redis://a --fleet-max-ttl 30 res -- true", "expected a number with a unit"),
        ("run --nodes redis://:hush@a:x --fleet-max-ttl 30s res -- true", "expected a port"),
        ("run --nodes redis://a --fleet-max-ttl 0 res -- true", "a fleet_max_ttl of 0ns"),
        (
            "run --nodes redis://a --fleet-max-ttl 30s --canary-key res res -- true",
            "choose another name for it, or for the canary (`--canary-key`)",
        ),
        (
            "run --nodes redis://a --fleet-max-ttl 30s --grace 15s res -- true",
            "`--grace 15s` must be less than half of `--ttl 30s`",
        ),
        (
            "run --nodes redis://a --fleet-max-ttl 30s --limit 30s res -- true",
            "`--limit 30s` must be longer than `--ttl 30s`",
        ),
        (
            "run --nodes redis://a --fleet-max-ttl 30s --leave --ttl 5s res -- true",
            "with `--leave`, `--wait 10s` must be less than `--ttl 5s`: who waits until the lock that \
             was left expires repeats the work",
        ),
    ] {
        let Done { code, err, .. } = call(words);
        assert_eq!(code, Some(125), "{words}: {err}");
        assert!(err.contains(told) && !err.contains("hush"), "{words}: {err}");
    }
    assert_eq!(call("--help").code, Some(0));
}

fn a_message_is_one_write() {
    let (theirs, ours) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(SOON)).unwrap();
    let mut command = Command::new(REDLOCK);
    command.args(["who", "res"]).env_remove("REDLOCK_NODES").env_remove("REDLOCK_CONFIG");
    let status = command.stderr(OwnedFd::from(theirs)).status().unwrap();
    assert_eq!(status.code(), Some(125));
    let mut message = [0; 1 << 10];
    let bytes = ours.recv(&mut message).unwrap();
    let text = String::from_utf8_lossy(&message[..bytes]);
    assert!(text.starts_with("redlock: no node is named") && text.ends_with('\n'), "{text}");
}

fn a_mistake_in_a_variable_names_it() {
    let call = |words: &str, variable: &str, value: &str| {
        let mut command = Command::new(REDLOCK);
        command.args(words.split(' ')).env_remove("REDLOCK_NODES").env_remove("REDLOCK_CONFIG");
        command.env(variable, value);
        finish(command)
    };
    let run = "run res -- true --ttl --fleet-max-ttl";
    for (variable, value) in [("REDLOCK_FLEET_MAX_TTL", "30"), ("REDLOCK_RESTART_GUARD", "never")] {
        let Done { code, err, .. } = call(run, variable, value);
        assert_eq!(code, Some(125), "{err}");
        assert!(err.contains(&format!("(from {variable})")), "{err}");
        let Done { err, .. } = call(run, variable, "");
        assert!(err.contains("no node is named"), "an empty variable is absent: {err}");
    }
    let Done { err, .. } = call("run --ttl=x res -- true", "REDLOCK_TTL", "10s");
    assert!(err.contains("'--ttl <DURATION>'"), "{err}");
}

fn the_inspection_checks_the_ttl_of_a_run() {
    for words in ["run res -- true", "inspect"] {
        let mut command = Command::new(REDLOCK);
        command.args(words.split(' ')).env_remove("REDLOCK_CONFIG");
        command.env("REDLOCK_NODES", "redis://a").env("REDLOCK_FLEET_MAX_TTL", "30s");
        command.env("REDLOCK_TTL", "60s");
        let Done { code, err, .. } = finish(command);
        assert_eq!(code, Some(125), "{words}: {err}");
        assert!(err.contains("(`--ttl` or REDLOCK_TTL)"), "{words}: {err}");
    }
}

fn a_mistake_in_the_file_has_a_place() {
    let path = std::env::temp_dir().join(format!("redlock-cli-{}.toml", std::process::id()));
    fs::write(&path, "fleet_max_ttl = \"30s\"\nnods = [\"redis://:hush@a\"]\n").unwrap();
    let mut command = Command::new(REDLOCK);
    command.arg("inspect").arg("--config").arg(&path).env_remove("REDLOCK_NODES");
    let Done { code, err, .. } = finish(command);
    fs::remove_file(&path).unwrap();
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains(&format!("{}:2:1: unknown key `nods`", path.display())), "{err}");
    assert!(!err.contains("hush"), "{err}");
}

fn an_invalid_value_in_the_file_has_a_place() {
    let path = std::env::temp_dir().join(format!("redlock-cli-value-{}.toml", std::process::id()));
    let inspect = |text: &str| {
        fs::write(&path, format!("fleet_max_ttl = \"30s\"\n{text}\n")).unwrap();
        let mut command = Command::new(REDLOCK);
        command.arg("inspect").arg("--config").arg(&path).env_remove("REDLOCK_NODES");
        let done = finish(command);
        fs::remove_file(&path).unwrap();
        done
    };
    for (text, told) in [
        ("nodes = \"redis://a:x\"", "2:9: the node `redis://a:…`: expected a port"),
        ("nodes = [\"redis://a\"]\nttl = \"1m\"", "3:7: a TTL of 60s: longer than fleet_max_ttl"),
        ("nodes = [\"redis://a\"]\nnode_timeout = \"10s\"", "3:16: a node timeout of 10s"),
        ("nodes = [\"redis://a\"]\ncanary_key = \"\"", "3:14: a canary key of 0 bytes"),
    ] {
        let Done { code, err, .. } = inspect(text);
        assert_eq!(code, Some(125), "{err}");
        assert!(err.contains(&format!("{}:{told}", path.display())), "{text}: {err}");
    }
}

fn a_closed_standard_input_is_empty() {
    let fleet = Fleet::of(1);
    let mut command = fleet.command("sh");
    command.args(["-c", "exec \"$0\" run res -- cat <&-", REDLOCK]);
    let done = finish(command);
    assert_eq!((done.code, &*done.out), (Some(0), ""), "{}", done.err);
}

fn a_signal_ends_the_wait() {
    let fleet = Fleet::of(1);
    fleet.take();
    let mut call = Call::start(fleet.run("--wait 1h", "echo never"));
    // The test's own SET is one.
    until("the lock is asked for", SOON, || fleet[0].calls("set") > 1);
    call.signal("-INT");
    assert_eq!(call.end(), (Some(130), String::new()));
}

fn a_lock_that_is_left_keeps_others_out() {
    let fleet = Fleet::of(1);
    assert_eq!(finish(fleet.run("--wait 1s --leave", "exit 1")).code, Some(1));
    fleet.empties();
    assert_eq!(finish(fleet.run("--wait 1s --leave", "exit 0")).code, Some(0));
    assert_eq!(finish(fleet.run("--wait 0", "exit 0")).code, Some(121));
}
