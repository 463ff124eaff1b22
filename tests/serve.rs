//! Served masters, met as any client meets them: over sockets, in real time.

#![expect(clippy::disallowed_methods, reason = "real sockets are what is tested here")]
#![expect(clippy::disallowed_types, reason = "real sockets are what is tested here")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use redlock_sim::master::profile::REDIS_7_0;
use redlock_sim::scenario::{Case, Property, Scenario};
use redlock_sim::search::Observed;
use redlock_sim::serve::{Fleet, Refusal, Setup, Verdict};
use snapbox::cmd::Command;
use snapbox::str;

/// What does not come within this does not come.
const PATIENCE: Duration = Duration::from_secs(20);

fn scenario(faults: &str) -> Case {
    let text = format!(
        "schema = 1\nname = \"inline\"\ntitle = \"t\"\n\
         [cluster]\nnetwork = {{ delay = \"0ms\" }}\n\
         [[client]]\nid = \"c1\"\nsubject = \"worker\"\n\
         [[client]]\nid = \"c2\"\nsubject = \"worker\"\n{faults}"
    );
    let scenario: Scenario = toml::from_str(&text).unwrap();
    assert_eq!(redlock_sim::scenario::complaints(&scenario), []);
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
}

fn setup(case: Case) -> Setup {
    let describe = |verdict: &Verdict| {
        let found = verdict.played.result.properties.iter();
        found.map(|it| format!("{} {:?}", it.property.name(), it.observed)).collect()
    };
    Setup {
        case,
        seed: 0,
        base_port: 0,
        observer_port: 0,
        profile: &REDIS_7_0,
        waits_for_start: false,
        describe,
    }
}

fn serve(faults: &str) -> Fleet {
    Fleet::start(&setup(scenario(faults))).unwrap()
}

/// A connection that speaks RESP, and no more of it than tests need.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// A connection of `client`.
    fn of(address: SocketAddr, client: &str) -> Self {
        let mut talk = Self::to(address);
        assert_eq!(talk.ask(&format!("CLIENT SETNAME {client}")), "+OK");
        talk
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// The next line; of a bulk its text; of an array its lines, joined.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the connection was closed");
        let line = line.trim_end().to_owned();
        if let Some(count) = line.strip_prefix('*') {
            let parts = (0..count.parse().unwrap_or(0)).map(|_| self.hear());
            return parts.collect::<Vec<_>>().join("\n");
        }
        match line.strip_prefix('$') {
            Some("-1") | None => line,
            Some(length) => {
                let mut text = vec![0; length.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                String::from_utf8(text).unwrap()
            }
        }
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// Whether nothing is to be heard at the moment.
    fn is_silent(&mut self) -> bool {
        let stream = self.0.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let silent = self.0.fill_buf().is_err_and(|error| {
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        });
        self.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// Whether the other side has closed.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Waits until the fault is so far.
fn await_fault(observer: &mut Talk, fault: &str, stage: &str) {
    let line = format!("{fault} {stage}");
    until(&line, || observer.ask("FAULTS").lines().any(|it| it == line));
}

/// What was found of a property, and its blame.
fn found(verdict: &Verdict, property: Property) -> (Observed, String) {
    let mut all = verdict.played.result.properties.iter();
    let found = all.find(|it| it.property == property).unwrap();
    (found.observed, found.blames.join(";"))
}

fn violated(by: &str) -> (Observed, String) {
    (Observed::Violated, by.to_owned())
}

const C1_SEES_ABC: &str = "[[fault]]\nid = \"cut\"\nat = \"0s\"\n\
    partition = { between = [[\"c1\"], [\"D\", \"E\"]] }\n";

/// Both clients hold the lock, C having lost the key of the first between the two.
fn two_holders(fault: &str) -> Verdict {
    let fleet = serve(&format!("{C1_SEES_ABC}{fault}"));
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let mut first: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c1")).collect();
    observer.ask("START");
    await_fault(&mut observer, "cut", "begun");
    first.iter_mut().for_each(|talk| talk.say("SET res one NX PX 10000"));
    for talk in &mut first[..3] {
        assert_eq!(talk.hear(), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    await_fault(&mut observer, "lose", "over");
    let mut second: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c2")).collect();
    let votes = second.iter_mut().map(|talk| talk.ask("SET res two NX PX 10000"));
    assert_eq!(votes.collect::<Vec<_>>(), ["$-1", "$-1", "+OK", "+OK", "+OK"]);
    assert!(first[3].is_silent(), "D answers c1 through the partition");
    assert_eq!(observer.ask("ENTER res c2"), "+OK");
    assert_eq!(observer.ask("LEAVE res c2"), "+OK");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    fleet.finish()
}

#[test]
fn a_clock_that_jumps_is_blamed() {
    let verdict = two_holders(
        "[[fault]]\nid = \"lose\"\nat = \"700ms\"\nclock-jump = { host = \"C\", by = \"20s\" }",
    );
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("clock(C)"));
    assert_eq!(found(&verdict, Property::ExclusiveSection), violated("clock(C)"));
    assert_eq!(found(&verdict, Property::SoundGrant).0, Observed::Unjudged);
}

#[test]
fn a_restart_without_memory_is_blamed() {
    let verdict = two_holders(
        "[[fault]]\nid = \"lose\"\nat = \"700ms\"\nkill = { host = \"C\", restart-after = \"10ms\" }",
    );
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("amnesia(C)"));
}

#[test]
fn an_operator_is_blamed() {
    let verdict =
        two_holders("[[fault]]\nid = \"lose\"\nat = \"700ms\"\ndelete = { host = \"C\" }");
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("operator"));
}

/// Catalogue K5: the answers are true, and too late to be worth anything.
#[test]
fn who_enters_by_answers_that_came_too_late_is_wrong() {
    let fleet = serve(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"A\", \"B\", \"C\", \"D\", \"E\"], to = [\"c1\"], by = \"1s\", only = \"answer\" }",
    );
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let mut first: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c1")).collect();
    let mut second: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c2")).collect();
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    first.iter_mut().for_each(|talk| talk.say("SET res one NX PX 100"));
    until("all nodes have the first key", || {
        second.iter_mut().all(|talk| talk.ask("GET res") == "one")
    });
    until("the first key is gone", || second.iter_mut().all(|talk| talk.ask("GET res") == "$-1"));
    for talk in &mut second {
        assert_eq!(talk.ask("SET res two NX PX 10000"), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c2"), "+OK");
    for talk in &mut first {
        assert_eq!(talk.hear(), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert!(observer.ask("VERDICT").contains("mutual-exclusion Violated"));
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("none"));
}

#[test]
fn workers_that_take_turns_break_nothing() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    let mut talks: Vec<Talk> = fleet.addresses().into_iter().map(Talk::to).collect();
    for (turn, who) in ["c1", "stranger", "c1"].into_iter().enumerate() {
        for talk in &mut talks {
            assert_eq!(talk.ask(&format!("SET res {who}-{turn} NX PX 10000")), "+OK");
        }
        assert_eq!(observer.ask(&format!("ENTER res {who} {}", turn + 1)), "+OK");
        assert_eq!(observer.ask(&format!("LEAVE res {who}")), "+OK");
        talks.iter_mut().for_each(|talk| assert_eq!(talk.ask("DEL res"), ":1"));
    }
    let verdict = fleet.finish();
    for property in [Property::MutualExclusion, Property::ExclusiveSection, Property::FencedOrder] {
        assert_eq!(found(&verdict, property).0, Observed::Holds, "{property:?}");
    }
    let clients = &verdict.played.result.case.scenario.clients;
    assert_eq!(clients.iter().map(|it| &it.id[..]).collect::<Vec<_>>(), ["c1", "c2", "stranger"]);
    assert_eq!(verdict.played.result.counters.granted, 3);
}

#[test]
fn fencing_tokens_that_go_back_are_a_violation() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    let mut talks: Vec<Talk> = fleet.addresses().into_iter().map(Talk::to).collect();
    for token in [7, 5] {
        talks.iter_mut().for_each(|talk| drop(talk.ask(&format!("SET res v{token} NX PX 9000"))));
        assert_eq!(observer.ask(&format!("ENTER res c1 {token}")), "+OK");
        assert_eq!(observer.ask("LEAVE res c1"), "+OK");
        talks.iter_mut().for_each(|talk| drop(talk.ask("DEL res")));
    }
    assert_eq!(found(&fleet.finish(), Property::FencedOrder).0, Observed::Violated);
}

#[test]
fn who_says_nonsense_to_the_observer_is_told_so() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    for (line, error) in [
        ("ENTER other c1", "another resource"),
        ("ENTER res 1x", "a worker's name"),
        ("LEAVE res c1", "ENTER first"),
        ("ENTER res", "expected ENTER"),
    ] {
        let answer = observer.ask(line);
        assert!(answer.starts_with("-ERR") && answer.contains(error), "{line}: {answer}");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert!(observer.ask("ENTER res c1").contains("LEAVE first"));
}

#[test]
fn a_killed_master_is_refused_and_comes_back_empty() {
    let fleet = serve(
        "[[fault]]\nid = \"crash\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"300ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut observer = Talk::to(fleet.observer());
    let mut talk = Talk::to(address);
    assert_eq!(talk.ask("SET other 1"), "+OK");
    observer.ask("START");
    assert!(talk.is_closed());
    until("the port is closed", || TcpStream::connect(address).is_err());
    await_fault(&mut observer, "crash", "over");
    assert_eq!(Talk::to(address).ask("GET other"), "$-1");
}

#[test]
fn what_a_partition_holds_is_executed_after_it() {
    let fleet = serve(
        "[[fault]]\nid = \"cut\"\nat = \"0s\"\nuntil = \"300ms\"\n\
         partition = { between = [[\"c1\"], [\"A\"]] }",
    );
    let address = fleet.addresses()[0];
    let mut observer = Talk::to(fleet.observer());
    let (mut one, mut other) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    observer.ask("START");
    await_fault(&mut observer, "cut", "begun");
    one.say("SET key 1");
    assert_eq!(other.ask("GET key"), "$-1");
    assert_eq!(one.hear(), "+OK");
    assert!(observer.ask("FAULTS").contains("cut over"));
    assert_eq!(other.ask("GET key"), "1");
}

#[test]
fn a_stalled_master_executes_nothing_until_it_goes_on() {
    let fleet = serve(
        "[[fault]]\nid = \"stall\"\nat = \"0s\"\nuntil = \"300ms\"\nstall = { host = \"A\" }",
    );
    let mut observer = Talk::to(fleet.observer());
    let mut talk = Talk::to(fleet.addresses()[0]);
    observer.ask("START");
    await_fault(&mut observer, "stall", "begun");
    assert!(observer.ask("NODES").lines().next().unwrap().ends_with(" stalled"));
    assert_eq!(talk.ask("SET key 1"), "+OK");
    assert!(observer.ask("FAULTS").contains("stall over"));
}

#[test]
fn a_host_without_power_is_silent_and_resets_afterwards() {
    let fleet = serve(
        "[[fault]]\nid = \"dark\"\nat = \"0s\"\npower = { host = \"A\", restart-after = \"300ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut observer = Talk::to(fleet.observer());
    let mut talk = Talk::to(address);
    assert_eq!(talk.ask("PING"), "+PONG");
    observer.ask("START");
    await_fault(&mut observer, "dark", "begun");
    talk.say("PING");
    assert!(talk.is_silent());
    assert!(talk.is_closed());
    assert_eq!(Talk::to(address).ask("PING"), "+PONG");
}

#[test]
fn bad_input_ends_its_own_connection_only() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut good = Talk::to(address);
    for bad in ["*1\r\n$-5", "*99999999999", "*1\r\n:1", "*1\r\n$999999999999"] {
        let mut talk = Talk::to(address);
        let answer = talk.ask(bad);
        assert!(answer.starts_with("-ERR Protocol error"), "{bad:?}: {answer}");
        assert!(talk.is_closed());
        assert_eq!(good.ask("PING"), "+PONG");
    }
    // Half a request, and gone.
    drop(Talk::to(address).0.get_mut().write_all(b"*2\r\n$3\r\nGE"));
    assert_eq!(good.ask("PING"), "+PONG");
}

#[test]
fn who_does_not_read_is_not_served_on_and_keeps_nobody_else_waiting() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let value = "v".repeat(100_000);
    let mut other = Talk::to(address);
    let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{value}", value.len());
    assert_eq!(other.ask(&set), "+OK");
    let mut deaf = Talk::to(address);
    let many = "GET big\r\n".repeat(1_000);
    deaf.0.get_mut().write_all(many.as_bytes()).unwrap();
    assert_eq!(other.ask("PING"), "+PONG");
    // Everything comes once it reads.
    assert!((0..1_000).all(|_| deaf.hear().len() == 100_000));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (faults, what) in [
        (
            "[[fault]]\nid = \"f\"\nat = \"1s\"\nuntil = \"2s\"\npause = { host = \"c1\" }",
            "`pause`",
        ),
        (
            "[[fault]]\nid = \"f\"\nat = { client = \"c1\", before = \"t2\" }\n\
             clock-jump = { host = \"A\", by = \"1s\" }",
            "`at = { client, before }`",
        ),
    ] {
        let refused = Fleet::start(&setup(scenario(faults))).err().unwrap();
        assert!(matches!(refused, Refusal::Unsupported(_)));
        let text = refused.to_string();
        assert!(text.contains(what) && text.contains("(the fault `f`)"), "{text}");
    }
}

#[test]
fn the_command_says_where_it_serves_and_what_it_found() {
    let out = format!("{}/serve", env!("CARGO_TARGET_TMPDIR"));
    let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_redlock-sim"))
        .args(["serve", "--nodes", "3", "--base-port", "0", "--out", &out])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told: Vec<String> = lines.by_ref().take(7).collect();
    let words = |line: &String| line.rsplit(' ').next().unwrap().parse::<SocketAddr>();
    let masters: Vec<SocketAddr> = told[1..4].iter().map(|line| words(line).unwrap()).collect();
    let mut observer = Talk::to(words(&told[4]).unwrap());
    for master in &masters {
        assert_eq!(Talk::to(*master).ask("SET res token NX PX 10000"), "+OK");
    }
    assert_eq!(observer.ask("ENTER res alice token"), "+OK");
    assert_eq!(observer.ask("LEAVE res alice"), "+OK");
    let verdict = observer.ask("END");
    assert!(verdict.contains("mutual-exclusion   holds"), "{verdict}");
    let rest: Vec<String> = lines.collect();
    snapbox::assert_data_eq!(
        [told, rest].concat().join("\n").replace(&out, "OUT"),
        str![[r#"
serving   serve
master    A  127.0.0.1:[..]
master    B  127.0.0.1:[..]
master    C  127.0.0.1:[..]
observer  127.0.0.1:[..]
resource  res
time 0    with the first command about the resource, or START
  mutual-exclusion   holds                            expected to hold
  exclusive-section  holds                            expected to hold
  fenced-order       –                                expected to hold
  not judged from outside: sound-grant, owner-only, continuity, no-lost-update, tidy, deadlock-free, fault-tolerant
reports: OUT/index.html
"#]]
    );
    assert_eq!(process.wait().unwrap().code(), Some(0));
    let history = format!("{out}/serve/base.serve.0.jsonl");
    let check = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).args(["check", &history]);
    check.assert().code(0);
}

#[test]
fn a_command_line_that_makes_no_sense_serves_nothing() {
    let run = |arguments: &[&str]| {
        let folder = env!("CARGO_TARGET_TMPDIR");
        Command::new(env!("CARGO_BIN_EXE_redlock-sim")).current_dir(folder).args(arguments).assert()
    };
    run(&["serve", "--profile", "redis-7.1", "--base-port", "0"]).code(2).stderr_eq(str![[r#"
error: there is no profile `redis-7.1`
  = help: did you mean `redis-7.0`?

"#]]);
    run(&["serve", "--nodes", "10"]).code(2);
    run(&["serve", "pause-in-flight", "--base-port", "0"]).code(3).stderr_eq(str![[r#"
error: the engine `serve` cannot do `pause` and `suspend`: a worker stops its own client (the fault `gc`)

"#]]);
}

#[test]
fn a_run_in_which_nobody_asked_is_empty() {
    let verdict = serve("").finish();
    assert!(verdict.is_empty());
}
