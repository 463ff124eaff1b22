//! The command line of `serve`.

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use redlock_sim::serve::Fleet;
use snapbox::cmd::Command;
use snapbox::str;

use crate::talk::{Talk, until};
use crate::{case, setup};

/// `redlock-sim serve` as a process.
struct Serving {
    process: Child,
    /// Directory of the reports.
    out: String,
    /// Output before it served: among others, a line with the address of each master and, after
    /// these, of the observer.
    told: Vec<String>,
    lines: Lines<BufReader<ChildStdout>>,
    masters: usize,
}

impl Serving {
    /// Serves `masters` masters, with further `options`; its reports go to a directory `name`.
    fn start(name: &str, masters: usize, options: &[&str]) -> Self {
        let out = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
        let _ = std::fs::remove_dir_all(&out);
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_redlock-sim"))
            .args(["serve", "--nodes", &masters.to_string(), "--base-port", "0", "--out", &out])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let told = lines.by_ref().take(masters + 4).map(Result::unwrap).collect();
        Self { process, out, told, lines, masters }
    }

    fn talk(&self, line: usize) -> Talk {
        let address = self.told[line].rsplit(' ').next().unwrap();
        Talk::to(address.parse::<SocketAddr>().unwrap())
    }

    fn master(&self, place: usize) -> Talk {
        self.talk(1 + place)
    }

    fn observer(&self) -> Talk {
        self.talk(1 + self.masters)
    }

    /// Returns the next lines that it says, up to its end.
    fn rest(&mut self) -> impl Iterator<Item = String> {
        self.lines.by_ref().map(Result::unwrap)
    }

    /// Waits for its end, and returns its exit code.
    fn code(&mut self) -> Option<i32> {
        self.rest().for_each(drop);
        self.process.wait().unwrap().code()
    }
}

#[test]
fn the_command_says_where_it_serves_and_what_it_found() {
    let mut serving = Serving::start("serve", 3, &[]);
    let mut observer = serving.observer();
    for place in 0..3 {
        assert_eq!(serving.master(place).ask("SET res token NX PX 10000"), "+OK");
    }
    assert_eq!(observer.ask("ENTER res alice token"), "+OK");
    assert_eq!(observer.ask("LEAVE res alice"), "+OK");
    let verdict = observer.ask("END");
    assert!(verdict.contains("mutual-exclusion     holds"), "{verdict}");
    let rest: Vec<String> = serving.rest().collect();
    snapbox::assert_data_eq!(
        [&serving.told[..], &rest].concat().join("\n").replace(&serving.out, "OUT"),
        str![[r#"
serving   serve
master    A  127.0.0.1:[..]
master    B  127.0.0.1:[..]
master    C  127.0.0.1:[..]
observer  127.0.0.1:[..]
resource  res
time 0    with the first command that could change the resource’s key, or START
  mutual-exclusion     holds                            expected to hold
  exclusive-section    holds                            expected to hold
  section-within-lease holds                            expected to hold
  sound-grant          holds                            expected to hold
  owner-only           holds                            expected to hold
  fenced-order         vacuous                          expected to hold
  not judged from outside: continuity, no-lost-update, tidy, deadlock-free, fault-tolerant, sound-refusal, sound-loss, sound-votes
reports: OUT/index.html
"#]]
    );
    assert_eq!(serving.code(), Some(0));
    let history = format!("{}/serve/base.serve.0.jsonl.gz", serving.out);
    let check = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).args(["check", &history]);
    check.assert().code(0);
}

#[test]
fn a_termination_ends_with_verdict_and_files() {
    for signal in ["-TERM", "-INT"] {
        let mut serving = Serving::start(&format!("serve{signal}"), 1, &[]);
        assert_eq!(serving.master(0).ask("SET res token NX PX 10000"), "+OK");
        let pid = serving.process.id().to_string();
        let kill = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(kill.success());
        assert!(serving.rest().any(|line| line.contains("mutual-exclusion")), "{signal}");
        let inconclusive = "  inconclusive: no worker sent ENTER";
        assert!(serving.rest().any(|line| line.starts_with(inconclusive)), "{signal}");
        assert_eq!(serving.code(), Some(3), "{signal}");
        for file in ["index.html", "serve.html", "serve/base.serve.0.jsonl.gz"] {
            assert!(Path::new(&serving.out).join(file).is_file(), "{signal}: {file}");
        }
    }
}

#[test]
fn entering_without_keys_prints_advice() {
    let mut serving = Serving::start("gone", 1, &[]);
    let (mut master, mut observer) = (serving.master(0), serving.observer());
    assert_eq!(master.ask("SET res token NX PX 100"), "+OK");
    assert_eq!(master.ask("PEXPIRE res 200"), ":1");
    until("the key is gone", || master.ask("GET res") == "$-1");
    assert_eq!(observer.ask("ENTER res alice token"), "+OK");
    assert_eq!(observer.ask("LEAVE res alice"), "+OK");
    let verdict = observer.ask("END");
    assert_eq!(serving.code(), Some(1));
    let (_, story) = verdict.split_once("VIOLATION sound-grant").unwrap();
    snapbox::assert_data_eq!(
        story.replace(&serving.out, "OUT"),
        str![[r#"
  serve  seed 0
  alice’s grant of “res” at [..] s was unsound

  Let   L1 = alice’s lease; entered at [..] s, without a lease; TTL [..] ms
  Then  - alice entered at [..] s, but its keys had been gone since [..] s: check the elapsed
          time after the replies
        - until [..] s, the last command of L1 to each node: extend to A by [..] s

  blame   none: a worker’s lock client is wrong, or a worker was stopped before it entered
  replay  redlock-sim check OUT/serve/base.serve.0.jsonl.gz
"#]]
    );
}

/// Fencing tokens are expected to grow, and no worker has one.
#[test]
fn a_run_that_tests_nothing_expected_is_inconclusive() {
    let expected = "expect.fenced-order=holds";
    let mut serving = Serving::start("untested", 1, &["--set", expected]);
    let (mut master, mut observer) = (serving.master(0), serving.observer());
    assert_eq!(master.ask("SET res token NX PX 10000"), "+OK");
    assert_eq!(observer.ask("ENTER res alice token"), "+OK");
    assert_eq!(observer.ask("LEAVE res alice"), "+OK");
    let verdict = observer.ask("END");
    assert!(verdict.ends_with("inconclusive: nothing put fenced-order to the test"), "{verdict}");
    assert_eq!(serving.code(), Some(3));
    let history = format!("{}/serve/base.serve.0.jsonl.gz", serving.out);
    let check = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).args(["check", &history]);
    check.assert().code(3);
}

#[test]
fn a_master_names_the_address_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).args(["master", "--port", &port]);
    let said = run.assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.starts_with(&format!("error: cannot listen at 127.0.0.1:{port}: ")), "{said}");
}

#[test]
fn a_command_line_that_makes_no_sense_serves_nothing() {
    let run = |arguments: &[&str]| {
        let folder = env!("CARGO_TARGET_TMPDIR");
        Command::new(env!("CARGO_BIN_EXE_redlock-sim")).current_dir(folder).args(arguments).assert()
    };
    run(&["serve", "--profile", "redis-7.1", "--base-port", "0"]).code(2).stderr_eq(str![[r#"
error: invalid value 'redis-7.1' for '--profile <NAME>'
  [possible values: redis-7.0, redis-7.2, redis-8.4, valkey-9]

  tip: a similar value exists: 'redis-7.2'

For more information, try '--help'.

"#]]);
    run(&["serve", "--nodes", "10"]).code(2);
    run(&["serve", "suspend-defeats-step-3", "--base-port", "0"]).code(3).stderr_eq(str![[r#"
error: `suspend-defeats-step-3` cannot be served: the engine `serve` does not support `suspend` of a client (the fault `sleep`)
  = help: `redlock-sim run suspend-defeats-step-3` plays it in simulated time

"#]]);
}

/// The command that a violation names can be run as printed.
#[test]
fn the_command_that_judges_again_is_one() {
    let mut serving = Serving::start("again", 1, &[]);
    let (mut master, mut observer) = (serving.master(0), serving.observer());
    assert_eq!(master.ask("SET res token NX PX 10000"), "+OK");
    assert_eq!(observer.ask("ENTER res alice"), "+OK");
    assert_eq!(observer.ask("ENTER res bob"), "+OK");
    let verdict = observer.ask("END");
    assert_eq!(serving.code(), Some(1));
    let replay = verdict.lines().find_map(|line| line.trim().strip_prefix("replay")).unwrap();
    let words: Vec<&str> = replay.split_whitespace().skip(1).collect();
    let check = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).args(&words).assert().code(1);
    let text = String::from_utf8(check.get_output().stdout.clone()).unwrap();
    assert!(text.contains(replay.trim()), "{text}");
}

#[test]
fn the_documented_scenario_can_be_served() {
    let documented = include_str!("../../docs/serve.md");
    let (_, behind) = documented.split_once("```toml\n").unwrap();
    let (text, _) = behind.split_once("```").unwrap();
    let fleet = Fleet::start(&setup(case(text))).unwrap();
    assert_eq!(Talk::to(fleet.observer()).ask("FAULTS"), "jump waiting");
}
