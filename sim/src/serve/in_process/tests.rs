mod sound;

use std::time::Duration;

use lock_judge::scenario::{Case, File};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::{Connection, Host, TICK, Worker, pass, play};
use crate::engine::Unsupported;
use crate::search::{Failure, Observed, Played};
use crate::serve::Refusal;

const MS: Duration = TICK;

/// Sends inline requests to one master, and returns the first line of each reply.
struct Talk(BufReader<Connection>);

impl Talk {
    async fn to(host: &Host, place: usize) -> Self {
        let connection = host.connect(host.nodes()[place]).await.expect("it listens");
        Self(BufReader::new(connection))
    }

    async fn say(&mut self, request: &str) {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).await.expect("it is open");
    }

    async fn ask(&mut self, request: &str) -> String {
        self.say(request).await;
        self.hear().await
    }

    async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.expect("it is text");
        line.trim_end().to_owned()
    }
}

/// Sets the key at all masters one after the other, and returns true if a majority took it.
async fn lock(host: &Host, token: &str) -> bool {
    let mut votes = 0;
    let (resource, ttl_ms) = (host.resource(), host.ttl().as_millis());
    for place in 0..host.nodes().len() {
        let mut master = Talk::to(host, place).await;
        let set = format!("SET {resource} {token} NX PX {ttl_ms}");
        votes += usize::from(master.ask(&set).await == "+OK");
    }
    votes * 2 > host.nodes().len()
}

async fn unlock(host: &Host) {
    for place in 0..host.nodes().len() {
        Talk::to(host, place).await.ask(&format!("DEL {}", host.resource())).await;
    }
}

/// Locks until it has the lock, stays for `stays`, and deletes its keys.
async fn lock_for(host: &Host, stays: Duration) {
    let mut token = format!("{}-{}", host.name(), host.random());
    while !lock(host, &token).await {
        pass(host.ttl() / 4).await;
        token = format!("{}-{}", host.name(), host.random());
    }
    let section = host.enter(&token);
    pass(stays).await;
    drop(section);
    unlock(host).await;
}

fn case(rest: &str) -> Case {
    let text = format!(
        "schema = 1\nname = \"test\"\ntitle = \"A test\"\n[lock]\nttl = \"2s\"\n\
         [[client]]\nid = \"c1\"\nsubject = \"worker\"\n\
         [[client]]\nid = \"c2\"\nsubject = \"worker\"\n{rest}"
    );
    let file = File::parse("test.toml", &text).expect("a valid file");
    file.cases(&[]).expect("valid cases").remove(0)
}

fn played(rest: &str, worker: &dyn Worker) -> Played {
    play(&case(rest), 7, worker).expect("it can be played")
}

fn violated(played: &Played) -> Vec<(&'static str, Vec<String>)> {
    let properties = played.result.properties.iter();
    let violated = properties.filter(|it| it.observed == Observed::Violated);
    violated.map(|it| (it.property.name(), it.blames.clone())).collect()
}

fn incomplete(played: &Played) -> Vec<&str> {
    let failures = played.result.failures.iter();
    let why = failures.filter_map(|it| match it {
        Failure::Incomplete { why } => Some(why.as_str()),
        _ => None,
    });
    why.collect()
}

#[test]
fn two_workers_take_turns_and_the_same_seed_is_the_same_run() {
    let worker = |host: Host| async move { lock_for(&host, 300 * MS).await };
    let first = played("", &worker);
    assert_eq!((violated(&first), incomplete(&first)), (vec![], vec![]));
    assert!(first.result.is_met() && first.result.counters.granted >= 2);
    let again = played("", &worker);
    assert_eq!(again.kept, first.kept);
    let other = play(&case(""), 8, &worker).expect("it can be played");
    assert_ne!(other.kept, first.kept, "another seed has other delays");
}

#[test]
fn a_pause_stops_everything_that_a_worker_has_spawned() {
    let rest =
        "[[fault]]\nid = \"gc\"\nat = \"500ms\"\nlasts = \"4s\"\npause = { host = \"c1\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c2" {
            return;
        }
        assert!(lock(&host, "one").await);
        let section = host.enter("one");
        #[expect(clippy::disallowed_methods, reason = "a worker does what it likes")]
        let ticks = tokio::spawn(async {
            let (mut longest, mut last) = (Duration::ZERO, tokio::time::Instant::now());
            for _ in 0..600 {
                pass(MS).await;
                longest = longest.max(last.elapsed());
                last = tokio::time::Instant::now();
            }
            longest
        });
        let longest = ticks.await.expect("it returns");
        assert!((4_000 * MS..4_003 * MS).contains(&longest), "{longest:?}");
        drop(section);
    };
    let played = played(rest, &worker);
    assert_eq!(incomplete(&played), Vec::<&str>::new());
    assert_eq!(violated(&played), [("section-within-lease", vec![String::from("pause")])]);
}

/// Starts a task when it is dropped, as leases do.
struct Spawns;

impl Drop for Spawns {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "a worker does what it likes")]
        drop(tokio::spawn(async { unreachable!("a dead process runs a task") }));
    }
}

#[test]
fn a_killed_worker_is_out_of_its_section() {
    let rest = "[[fault]]\nid = \"oom\"\nat = \"60m\"\nkill = { host = \"c1\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c1" {
            assert!(lock(&host, "one").await);
            let _section = (host.enter("one"), Spawns);
            host.begin_fault("oom").await.expect("it waits");
            unreachable!("a dead process goes on");
        }
        pass(50 * MS).await;
        lock_for(&host, 100 * MS).await;
    };
    let played = played(rest, &worker);
    assert_eq!((violated(&played), incomplete(&played)), (vec![], vec![]));
    assert_eq!(played.result.counters.granted, 2);
}

#[test]
fn a_release_without_comparing_is_blamed_on_the_worker() {
    let rest =
        "[[fault]]\nid = \"gc\"\nat = \"500ms\"\nlasts = \"2200ms\"\npause = { host = \"c1\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c2" {
            pass(800 * MS).await;
        }
        lock_for(&host, 1_000 * MS).await;
        pass(2_000 * MS).await;
    };
    let played = played(rest, &worker);
    let owner = violated(&played).into_iter().find(|(property, _)| *property == "owner-only");
    assert_eq!(owner, Some(("owner-only", vec![String::from("none")])));
}

#[test]
fn panics_hangs_and_idleness_make_a_run_incomplete() {
    let panics = played("", &|host: Host| async move {
        lock(&host, host.name()).await;
        assert!(host.name() != "c1", "c1 is broken");
    });
    assert_eq!(incomplete(&panics)[0], "worker c1 panicked: c1 is broken");
    let idle = played("", &|_: Host| async {});
    assert_eq!(incomplete(&idle), ["no worker asked for the lock: see `Host::resource`"]);
    let hangs = played("", &|host: Host| async move {
        lock(&host, "one").await;
        std::future::pending::<()>().await;
    });
    assert_eq!(incomplete(&hangs)[0], "worker c1 hangs: it still ran after 600 s");
}

#[test]
fn a_master_that_dies_refuses_until_it_is_back() {
    let rest = "[[fault]]\nid = \"down\"\nat = \"100ms\"\nkill = { host = \"A\", restart-after = \"1s\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c1" {
            assert!(lock(&host, "one").await);
            drop(host.enter("one"));
            pass(200 * MS).await;
            let refused = host.connect(host.nodes()[0]).await.map_err(|it| it.kind());
            assert_eq!(refused.err(), Some(std::io::ErrorKind::ConnectionRefused));
            pass(1_500 * MS).await;
            assert_eq!(Talk::to(&host, 0).await.ask("PING").await, "+PONG");
        }
    };
    let played = played(rest, &worker);
    assert_eq!(incomplete(&played), Vec::<&str>::new());
}

#[test]
fn a_scenario_that_drive_cannot_play_is_refused() {
    for rest in [
        "[[fault]]\nid = \"f\"\nat = \"1s\"\nclock-jump = { host = \"c1\", by = \"1s\" }\n",
        "[[client]]\nid = \"c3\"\ndeaf = true\nsteps = [{ at = \"0s\", acquire = {} }]\n",
    ] {
        let refused = play(&case(rest), 0, &|_: Host| async {});
        let refused =
            refused.map(drop).map_err(|it| matches!(it, Refusal::Unsupported(Unsupported { .. })));
        assert_eq!(refused, Err(true), "{rest}");
    }
}

#[test]
fn a_full_memory_stays_full_until_the_last_of_two_faults_ends() {
    let rest = "[[fault]]\nid = \"long\"\nat = \"100ms\"\nuntil = \"2s\"\n\
                memory-full = { host = \"A\" }\n\
                [[fault]]\nid = \"short\"\nat = \"200ms\"\nuntil = \"1s\"\n\
                memory-full = { host = \"A\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c1" {
            assert!(lock(&host, "one").await);
            drop(host.enter("one"));
            let mut master = Talk::to(&host, 0).await;
            pass(1_500 * MS).await;
            assert!(master.ask("SET other 1").await.starts_with("-OOM"));
            pass(1_000 * MS).await;
            assert_eq!(master.ask("SET other 1").await, "+OK");
        }
    };
    let played = played(rest, &worker);
    assert_eq!(incomplete(&played), Vec::<&str>::new());
}

/// Takes the lock once without looking at a clock, and stays for a second.
async fn trusting(host: Host) {
    if host.name() == "c2" {
        pass(3_000 * MS).await;
    }
    lock_for(&host, 1_000 * MS).await;
}

#[test]
fn a_pause_before_the_last_vote_delays_its_arrival() {
    let fault = |at: &str| {
        format!("[[fault]]\nid = \"gc\"\nat = {at}\nlasts = \"4s\"\npause = {{ host = \"c1\" }}\n")
    };
    let t2 = fault("{ client = \"c1\", before = \"t2\" }");
    let paused = played(&t2, &trusting);
    assert_eq!(incomplete(&paused), Vec::<&str>::new());
    // It enters with a lease that was over before it heard of it.
    let unsound = violated(&paused).into_iter().find(|(property, _)| *property == "sound-grant");
    assert_eq!(unsound, Some(("sound-grant", vec![String::from("none")])));
    // Only a majority of the votes has been delivered when the process goes on.
    let third = fault("{ client = \"c1\", before = \"reply\", node = \"C\" }");
    assert_eq!(played(&third, &trusting).kept[0].1.len(), paused.kept[0].1.len());
    let second = fault("{ client = \"c1\", before = \"reply\", node = \"B\", attempt = 2 }");
    let never = "the fault `gc` never began: ";
    let no_attempt = "no such attempt reached its step; `attempt = \"any\"` takes any";
    assert_eq!(incomplete(&played(&second, &trusting)), [format!("{never}{no_attempt}")]);
    let late = fault("\"60m\"");
    let too_late = "let the workers run longer, or let it begin earlier";
    assert_eq!(incomplete(&played(&late, &trusting)), [format!("{never}{too_late}")]);
}

#[test]
fn a_master_dies_before_it_executes_a_set() {
    let rest = "[[fault]]\nid = \"down\"\nat = { client = \"c1\", before = \"execute\", node = \"B\" }\n\
                kill = { host = \"B\", restart-after = \"1s\" }\n";
    let worker = |host: Host| async move {
        if host.name() == "c1" {
            assert_eq!(Talk::to(&host, 0).await.ask("SET res one NX PX 2000").await, "+OK");
            assert_eq!(Talk::to(&host, 1).await.ask("SET res one NX PX 2000").await, "");
            pass(1_500 * MS).await;
            assert_eq!(Talk::to(&host, 1).await.ask("GET res").await, "$-1");
        }
    };
    let played = played(rest, &worker);
    assert!(!incomplete(&played).iter().any(|why| why.contains("panicked")), "{played:?}");
}

#[test]
fn a_step_that_masters_do_not_see_is_refused() {
    for (step, told) in [
        (
            "t1",
            "a step that masters do not see: `before` can be `t2`, `enter`, `execute` or `reply`, \
             also of `extend-…` and `release-…`",
        ),
        ("enter", "`enter` of an attempt with a number: write `attempt = \"granted\"`"),
    ] {
        let rest = format!(
            "[[fault]]\nid = \"gc\"\nat = {{ client = \"c1\", before = \"{step}\" }}\n\
             lasts = \"4s\"\npause = {{ host = \"c1\" }}\n"
        );
        let refused = play(&case(&rest), 0, &trusting).map(drop).map_err(|it| it.to_string());
        let whole = format!("the engine `serve` does not support {told} (the fault `gc`)");
        assert_eq!(refused, Err(whole));
    }
}
