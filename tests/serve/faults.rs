//! Effects of faults on connections.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use lock_judge::history::{ClockKind, EventKind, HostId};
use redlock_sim::serve::{Fleet, Refusal};

use crate::talk::{Talk, await_fault, until};
use crate::{scenario, serve, setup};

/// Starts a fleet with these faults, and connects to its observer.
fn observed(faults: &str) -> (Fleet, Talk) {
    let fleet = serve(faults);
    let observer = Talk::to(fleet.observer());
    (fleet, observer)
}

#[test]
fn a_killed_master_is_refused_and_comes_back_empty() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"crash\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"300ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut talk = Talk::to(address);
    assert_eq!(talk.ask("SET other 1"), "+OK");
    observer.ask("START");
    assert!(talk.is_closed());
    until("the port is closed", || TcpStream::connect(address).is_err());
    await_fault(&mut observer, "crash", "over");
    assert_eq!(Talk::to(address).ask("GET other"), "$-1");
}

#[test]
fn requests_held_by_a_partition_are_executed_after_it() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"cut\"\nat = \"0s\"\nuntil = \"2s\"\n\
         partition = { between = [[\"c1\"], [\"A\"]] }",
    );
    let address = fleet.addresses()[0];
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
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"stall\"\nat = \"0s\"\nuntil = \"2s\"\nstall = { host = \"A\" }",
    );
    let mut talk = Talk::to(fleet.addresses()[0]);
    observer.ask("START");
    await_fault(&mut observer, "stall", "begun");
    assert!(observer.ask("NODES").lines().next().unwrap().ends_with(" stalled"));
    assert_eq!(talk.ask("SET key 1"), "+OK");
    assert!(observer.ask("FAULTS").contains("stall over"));
}

#[test]
fn a_host_without_power_is_silent_and_resets_afterwards() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"dark\"\nat = \"0s\"\npower = { host = \"A\", restart-after = \"2s\" }",
    );
    let address = fleet.addresses()[0];
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
fn unsupported_faults_are_refused_by_name() {
    for (faults, what) in [
        (
            "[[fault]]\nid = \"f\"\nat = \"1s\"\nuntil = \"2s\"\nsuspend = { host = \"c1\" }",
            "`suspend` of a client",
        ),
        (
            "[[fault]]\nid = \"f\"\nat = { client = \"c1\", before = \"t1\" }\n\
             clock-jump = { host = \"A\", by = \"1s\" }",
            "a step that masters do not see",
        ),
    ] {
        let refused = Fleet::start(&setup(scenario(faults))).err().unwrap();
        assert!(matches!(refused, Refusal::Unsupported(_)));
        let text = refused.to_string();
        assert!(text.contains(what) && text.contains("(the fault `f`)"), "{text}");
    }
}

#[test]
fn a_fault_begins_before_the_vote_that_decides_an_attempt() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"jump\"\nat = { client = \"c1\", before = \"t2\", attempt = 2 }\n\
         clock-jump = { host = \"A\", by = \"1s\" }",
    );
    let mut nodes: Vec<_> = fleet.addresses().iter().map(|it| Talk::of(*it, "c1")).collect();
    let ask = |node: &mut Talk, value: &str| node.ask(&format!("SET res {value} PX 2000"));
    nodes.iter_mut().for_each(|node| assert_eq!(ask(node, "first"), "+OK"));
    nodes.iter_mut().for_each(|node| assert_eq!(node.ask("DEL res"), ":1"));
    let decided = nodes.len() / 2;
    nodes[..decided].iter_mut().for_each(|node| assert_eq!(ask(node, "second"), "+OK"));
    assert!(observer.ask("FAULTS").contains("jump waiting"));
    assert_eq!(ask(&mut nodes[decided], "second"), "+OK");
    assert!(!observer.ask("FAULTS").contains("jump waiting"), "before the reply, not after it");
}

#[test]
fn connections_are_reset_by_a_partition_that_says_so() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"cut\"\nat = \"0s\"\nuntil = \"300ms\"\n\
         partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }",
    );
    let address = fleet.addresses()[0];
    let (mut one, mut other) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    observer.ask("START");
    assert!(one.is_closed());
    assert_eq!(other.ask("PING"), "+PONG");
    await_fault(&mut observer, "cut", "over");
    assert_eq!(Talk::of(address, "c1").ask("PING"), "+PONG");
}

#[test]
fn nothing_passes_any_more_after_a_silent_partition() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"cut\"\nat = \"0s\"\nuntil = \"2s\"\n\
         partition = { between = [[\"c1\"], [\"A\"]], lost = \"silent\" }",
    );
    let address = fleet.addresses()[0];
    let (mut one, mut other) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    observer.ask("START");
    await_fault(&mut observer, "cut", "begun");
    one.say("SET key 1");
    await_fault(&mut observer, "cut", "over");
    one.say("SET key 2");
    assert!(one.is_silent());
    assert_eq!(other.ask("GET key"), "$-1");
    assert_eq!(Talk::of(address, "c1").ask("SET key 3"), "+OK");
}

#[test]
fn a_delay_holds_requests_and_answers() {
    const BY: Duration = Duration::from_millis(200);
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"there\"\nat = \"0s\"\n\
         delay = { from = [\"c1\"], to = [\"A\"], by = \"200ms\" }\n\
         [[fault]]\nid = \"back\"\nat = \"0s\"\n\
         delay = { from = [\"A\"], to = [\"c1\"], by = \"200ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut one = Talk::of(address, "c1");
    observer.ask("START");
    for fault in ["there", "back"] {
        await_fault(&mut observer, fault, "begun");
    }
    let began = Instant::now();
    assert_eq!(one.ask("PING"), "+PONG");
    assert!(began.elapsed() >= 2 * BY, "both ways");
}

/// Reads the wall clock of a master, in µs.
fn wall_us(talk: &mut Talk) -> u64 {
    let time = talk.ask("TIME");
    let (seconds, micros) = time.split_once('\n').unwrap();
    seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()
}

#[test]
fn a_clock_may_run_faster_than_others_and_jump_back() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"fast\"\nat = \"0s\"\nuntil = \"200ms\"\n\
         clock-rate = { host = \"A\", ppm = 500000 }\n\
         [[fault]]\nid = \"back\"\nat = \"300ms\"\nclock-jump = { host = \"A\", by = \"-20s\" }",
    );
    let mut talks: Vec<Talk> = fleet.addresses()[..2].iter().map(|it| Talk::to(*it)).collect();
    let [fast, true_] = &mut talks[..] else { unreachable!() };
    let mut ahead_us = || {
        let before_us = wall_us(true_);
        wall_us(fast).saturating_sub(before_us)
    };
    observer.ask("START");
    until("A is ahead", || ahead_us() > 80_000);
    await_fault(&mut observer, "back", "over");
    assert_eq!(ahead_us(), 0);
}

#[test]
fn a_rate_comes_on_top_of_the_usual_drift_and_leaves_it() {
    let (fleet, mut observer) = observed(
        "[cluster.clocks.A]\nrate-ppm = -100\n\
         [[fault]]\nid = \"fast\"\nat = \"0s\"\nuntil = \"50ms\"\n\
         clock-rate = { host = \"A\", ppm = 300 }",
    );
    observer.ask("START");
    await_fault(&mut observer, "fast", "over");
    let (_, events) = fleet.finish().played.kept.swap_remove(0);
    let rates = events.iter().filter_map(|event| match event.kind {
        EventKind::Clock { host: HostId(0), clock: ClockKind::Wall, rate_ppb, .. } => {
            Some(rate_ppb)
        }
        _ => None,
    });
    // The first rate is the initial one of every clock.
    assert_eq!(rates.collect::<Vec<_>>(), [0, -100_000, 200_000, -100_000]);
}

#[test]
fn stored_keys_are_there_after_a_restart() {
    let (fleet, mut observer) = observed(
        "[cluster.node.A]\npersistence = \"always\"\n\
         [cluster.node.B]\npersistence = \"rdb\"\n\
         [cluster.node.C]\npersistence = \"everysec\"\n\
         [[fault]]\nid = \"save\"\nat = \"300ms\"\nsnapshot = { host = \"B\" }\n\
         [[fault]]\nid = \"crash\"\nat = \"2s\"\n\
         kill = { host = [\"A\", \"B\", \"C\", \"D\"], restart-after = \"10ms\" }",
    );
    let mut talks: Vec<Talk> = fleet.addresses()[..4].iter().map(|it| Talk::to(*it)).collect();
    let run_id = |talk: &mut Talk| {
        let info = talk.ask("INFO server");
        info.lines().find(|line| line.starts_with("run_id:")).unwrap().to_owned()
    };
    let before: Vec<String> = talks.iter_mut().map(run_id).collect();
    talks.iter_mut().for_each(|talk| assert_eq!(talk.ask("SET early 1"), "+OK"));
    observer.ask("START");
    await_fault(&mut observer, "save", "over");
    assert_eq!(talks[1].ask("SET late 1"), "+OK");
    await_fault(&mut observer, "crash", "over");
    let mut talks: Vec<Talk> = fleet.addresses()[..4].iter().map(|it| Talk::to(*it)).collect();
    let found: Vec<String> = talks.iter_mut().map(|talk| talk.ask("EXISTS early late")).collect();
    assert_eq!(found, [":1", ":1", ":1", ":0"], "B has forgotten what came after its snapshot");
    let after: Vec<String> = talks.iter_mut().map(run_id).collect();
    assert!(before.iter().zip(&after).all(|(one, other)| one != other));
}

#[test]
fn keys_go_as_the_scenario_says() {
    let mut setup = setup(scenario(
        "[[fault]]\nid = \"delete\"\nat = \"0s\"\ndelete = { host = \"A\" }\n\
         [[fault]]\nid = \"evict\"\nat = \"0s\"\nevict = { host = \"B\" }\n\
         [[fault]]\nid = \"flush\"\nat = \"0s\"\nflush = { host = \"C\" }\n",
    ));
    // Without this, setting the lock's key would start the run.
    setup.waits_for_start = true;
    let fleet = Fleet::start(&setup).unwrap();
    let mut observer = Talk::to(fleet.observer());
    let mut talks: Vec<Talk> = fleet.addresses()[..4].iter().map(|it| Talk::to(*it)).collect();
    talks.iter_mut().for_each(|talk| assert_eq!(talk.ask("MSET other 1 x:res 1"), "+OK"));
    observer.ask("START");
    for fault in ["delete", "evict", "flush"] {
        await_fault(&mut observer, fault, "over");
    }
    let left = talks.iter_mut().map(|talk| talk.ask("MGET other x:res"));
    assert_eq!(left.collect::<Vec<_>>(), ["1\n$-1", "1\n$-1", "$-1\n$-1", "1\n1"]);
}

#[test]
fn a_master_without_memory_sets_nothing_and_deletes() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"full\"\nat = \"0s\"\nuntil = \"2s\"\nmemory-full = { host = \"A\" }",
    );
    let mut talk = Talk::to(fleet.addresses()[0]);
    assert_eq!(talk.ask("SET key 1"), "+OK");
    observer.ask("START");
    await_fault(&mut observer, "full", "begun");
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(talk.ask("SET other 1"), oom);
    assert_eq!(talk.ask("DEL key"), ":1");
    await_fault(&mut observer, "full", "over");
    assert_eq!(talk.ask("SET other 1"), "+OK");
}

/// Counterexample N2: a request for the lock is late, and so is everything behind it.
#[test]
fn a_delay_may_concern_what_asks_for_the_lock_alone() {
    const BY: Duration = Duration::from_millis(200);
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"c1\"], to = [\"A\"], by = \"200ms\", only = \"set\" }",
    );
    let mut one = Talk::of(fleet.addresses()[0], "c1");
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    let began = Instant::now();
    assert_eq!(one.ask("SET res token NX PX 10000"), "+OK");
    assert!(began.elapsed() >= BY);
    one.say("SET res token NX PX 10000");
    assert_eq!(one.ask("DEL res"), "$-1");
    assert_eq!(one.hear(), ":1");
    assert!(began.elapsed() >= 2 * BY);
}

/// A script can keep A busy for any time: faults on A wait for it, and no other fault does.
#[test]
fn fault_that_waits_for_a_script_delays_no_other() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"del\"\nat = \"100ms\"\ndelete = { host = \"A\" }\n\
         [[fault]]\nid = \"other\"\nat = \"200ms\"\n\
         clock-jump = { host = \"B\", by = \"1s\" }",
    );
    let address = fleet.addresses()[0];
    let (mut talk, mut killer) = (Talk::to(address), Talk::to(address));
    assert_eq!(talk.ask("CONFIG SET busy-reply-threshold 20"), "+OK");
    assert_eq!(talk.ask("MSET other 1 x:lock 1"), "+OK");
    talk.say("EVAL \"while true do end\" 0");
    until("the script runs", || killer.ask("GET key").starts_with("-BUSY"));
    observer.ask("START");
    await_fault(&mut observer, "other", "over");
    assert!(observer.ask("FAULTS").contains("del waiting"));
    assert_eq!(killer.ask("SCRIPT KILL"), "+OK");
    await_fault(&mut observer, "del", "over");
}

/// The master's process dies whatever requests are queued.
#[test]
fn a_master_dies_however_many_scripts_wait_for_it() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"stuck\"\nat = \"50ms\"\ndelete = { host = \"A\" }\n\
         [[fault]]\nid = \"crash\"\nat = \"100ms\"\n\
         kill = { host = \"A\", restart-after = \"10ms\" }",
    );
    let address = fleet.addresses()[0];
    let (mut talk, mut other) = (Talk::to(address), Talk::to(address));
    assert_eq!(talk.ask("CONFIG SET busy-reply-threshold 20"), "+OK");
    talk.write("EVAL \"while true do end\" 0\r\n".repeat(3).as_bytes());
    until("the first one runs", || other.ask("GET key").starts_with("-BUSY"));
    observer.ask("START");
    await_fault(&mut observer, "crash", "over");
    assert_eq!(Talk::to(address).ask("EVAL \"return 'alive'\" 0"), "alive");
    await_fault(&mut observer, "stuck", "over");
}

/// The kernel delivers the replies that the process wrote before it died.
#[test]
fn answers_in_flight_at_a_death_arrive_before_the_close() {
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"A\"], to = [\"c1\"], by = \"1500ms\" }\n\
         [[fault]]\nid = \"crash\"\nat = \"500ms\"\n\
         kill = { host = \"A\", restart-after = \"100ms\" }",
    );
    let address = fleet.addresses()[0];
    let (mut one, mut other) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    one.say("SET key 1");
    until("it is executed", || other.ask("GET key") == "1");
    await_fault(&mut observer, "crash", "over");
    assert_eq!(one.hear(), "+OK");
    assert!(one.is_closed());
}

/// A script that is called by its hash is known by the text that was loaded on any master.
#[test]
fn a_delay_may_concern_releases_or_extensions_alone() {
    const BY: Duration = Duration::from_millis(200);
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"late\"\nat = \"0s\"\n\
         delay = { from = [\"c1\"], to = [\"A\"], by = \"200ms\", only = \"release\" }\n\
         [[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"c1\"], to = [\"B\"], by = \"200ms\", only = \"extend\" }",
    );
    let addresses = fleet.addresses();
    let [mut one, mut other] = [0, 1].map(|node| Talk::of(addresses[node], "c1"));
    observer.ask("START");
    await_fault(&mut observer, "late", "begun");
    await_fault(&mut observer, "slow", "begun");
    let load = "SCRIPT LOAD \"return redis.call('del', KEYS[1])\"";
    let [sha, _] = [&mut one, &mut other].map(|talk| talk.ask(load));
    for talk in [&mut one, &mut other] {
        assert_eq!(talk.ask("SET res token NX PX 10000"), "+OK");
    }
    let began = Instant::now();
    assert_eq!(one.ask(&format!("EVALSHA {sha} 1 res token")), ":1");
    assert!(began.elapsed() >= BY, "a release");
    let began = Instant::now();
    assert_eq!(other.ask("PEXPIRE res 20000"), ":1");
    assert!(began.elapsed() >= BY, "an extension");
}

/// The same with a script, as many libraries acquire the lock.
#[test]
fn a_delay_of_what_asks_for_the_lock_concerns_scripts_that_do() {
    const BY: Duration = Duration::from_millis(200);
    let (fleet, mut observer) = observed(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"c1\"], to = [\"A\", \"B\"], by = \"200ms\", only = \"set\" }",
    );
    let set = "EVAL \"return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\" 1 res token 10000";
    let delete = "EVAL \"return redis.call('DEL', KEYS[1])\" 1 res token";
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    for address in &fleet.addresses()[..2] {
        let mut one = Talk::of(*address, "c1");
        let began = Instant::now();
        for (script, answer) in [(set, "+OK"), (delete, ":1"), (set, "+OK")] {
            assert_eq!(one.ask(script), answer);
        }
        assert!(began.elapsed() >= 2 * BY, "both times that the lock was asked for");
        let began = Instant::now();
        assert_eq!(one.ask(delete), ":1");
        assert!(began.elapsed() < BY, "who releases does not ask");
    }
}
