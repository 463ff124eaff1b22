//! Workers whose locks are sound, in ways that a judge from outside can mistake; and some that are not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{Host, MS, Played, Talk, incomplete, pass, play, violated};
use lock_judge::history::{Answer, EventKind, OpKind};
use lock_judge::scenario::{Case, File};

const RELEASE: &str = "EVAL \"if redis.call('GET',KEYS[1])==ARGV[1] then return \
                       redis.call('DEL',KEYS[1]) end return 0\" 1";

/// Sets the key if it is free or its own, and answers nothing unless another has it.
const ACQUIRE: &str = "EVAL \"local v=redis.call('GET',KEYS[1]) if v==ARGV[1] then \
                       redis.call('PEXPIRE',KEYS[1],9000) return nil end if v then return 1 end \
                       redis.call('SET',KEYS[1],ARGV[1],'PX',9000) return nil\" 1";

/// The same, without a new TTL for its own key.
const TAKE: &str = "EVAL \"local v=redis.call('GET',KEYS[1]) if v==ARGV[1] then return nil end if v \
                    then return 1 end redis.call('SET',KEYS[1],ARGV[1],'PX',9000) return nil\" 1";

fn case(nodes: usize, rest: &str) -> Case {
    let names = &["A", "B", "C", "D", "E"][..nodes];
    let text = format!(
        "schema = 1\nname = \"test\"\ntitle = \"A test\"\n[cluster]\nnodes = {names:?}\n\
         [lock]\nttl = \"10s\"\n[[client]]\nid = \"c1\"\nsubject = \"worker\"\n\
         [[client]]\nid = \"c2\"\nsubject = \"worker\"\n{rest}"
    );
    let file = File::parse("test.toml", &text).expect("a valid file");
    file.cases(&[]).expect("valid cases").remove(0)
}

/// Plays the steps of both workers one after the other. `enter WORKER TOKEN` and `leave WORKER` are
/// reports. Any other step is a connection and its request: the letter is `a` for c1, `b` for c2, `u` for
/// a connection without a name; `a1/2` is a connection to the third master, `a1/*` are those to all
/// masters, and `a1!` loses the reply and then the connection.
async fn act(hosts: &[Host], steps: &[&str]) {
    let host = |name: &str| hosts.iter().find(|it| it.name() == name).expect("a worker").clone();
    let (mut talks, mut sections) = (BTreeMap::new(), BTreeMap::new());
    for step in steps {
        let step = step.replace("{RELEASE}", RELEASE).replace("{ACQUIRE}", ACQUIRE);
        let step = step.replace("{TAKE}", TAKE);
        let (who, what) = step.split_once(' ').expect("two words");
        if who == "enter" {
            let (worker, token) = what.split_once(' ').unwrap_or((what, ""));
            sections.insert(worker.to_owned(), host(worker).enter(token));
            continue;
        }
        if who == "leave" {
            drop(sections.remove(what).expect("it is inside"));
            continue;
        }
        let (connection, node) = who.split_once('/').unwrap_or((who, "0"));
        let nodes = match node {
            "*" => 0..hosts[0].nodes().len(),
            node => node.parse().map(|it: usize| it..it + 1).expect("a number"),
        };
        for node in nodes {
            let key = (connection.trim_end_matches('!').to_owned(), node);
            if !talks.contains_key(&key) {
                let host = host(if who.starts_with('b') { "c2" } else { "c1" });
                let mut talk = Talk::to(&host, node).await;
                if who.starts_with('u') {
                    talk.ask("CLIENT SETNAME \"\"").await;
                }
                talks.insert(key.clone(), talk);
            }
            let talk = talks.get_mut(&key).expect("it is open");
            if connection.ends_with('!') {
                talk.say(what).await;
                pass(500 * MS).await;
                talks.remove(&key);
            } else {
                let reply = talk.ask(what).await;
                assert!(!reply.starts_with('-'), "{what}: {reply}");
                if reply.starts_with('$') && reply != "$-1" {
                    talk.hear().await;
                }
            }
        }
    }
}

fn run(case: &Case, steps: &'static [&'static str]) -> Played {
    let hosts: Arc<Mutex<Vec<Host>>> = Arc::default();
    let worker = move |host: Host| {
        let hosts = Arc::clone(&hosts);
        async move {
            let is_first = host.name() == "c1";
            hosts.lock().expect("nobody panics with it").push(host);
            pass(MS).await;
            let hosts = hosts.lock().expect("nobody panics with it").clone();
            if is_first {
                act(&hosts, steps).await;
            } else {
                pass(5_000 * MS).await;
            }
        }
    };
    let played = play(case, 7, &worker).expect("it can be played");
    assert_eq!(incomplete(&played), Vec::<&str>::new(), "{steps:?}");
    played
}

fn assert_sound(nodes: usize, all: &[&'static [&'static str]]) {
    for steps in all {
        let played = run(&case(nodes, ""), steps);
        assert_eq!(violated(&played), [], "{steps:#?}");
        assert!(played.result.counters.granted > 0, "{steps:#?}");
    }
}

#[test]
fn the_value_that_a_master_stores_names_the_attempt() {
    assert_sound(
        1,
        &[
            &[
                "a1 EVAL \"return redis.call('SET',KEYS[1],ARGV[2],'NX','PX',9000)\" 1 res billing one",
                "enter c1 one",
                "leave c1",
                "a1 {RELEASE} res one",
            ],
            &[
                "a1 EVAL \"return redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2])\" 1 res 17 9000",
                "enter c1 17",
                "leave c1",
                "a1 {RELEASE} res 17",
            ],
            // Two workers without names give one label.
            &[
                "u1 EVAL \"return redis.call('SET',KEYS[1],ARGV[2],'NX','PX',9000)\" 1 res billing one",
                "enter c1 one",
                "u2 EVAL \"return redis.call('SET',KEYS[1],ARGV[2],'NX','PX',9000)\" 1 res billing two",
                "leave c1",
                "u1 {RELEASE} res one",
                "u2 EVAL \"return redis.call('SET',KEYS[1],ARGV[2],'NX','PX',9000)\" 1 res billing two",
                "enter c2 two",
                "leave c2",
                "u2 {RELEASE} res two",
            ],
            // The script makes the value.
            &[
                "a1 EVAL \"local t=redis.call('INCR',KEYS[2]) redis.call('SET',KEYS[1],t,'PX',9000) \
                 return t\" 2 res res:n 9000",
                "enter c1 1",
                "leave c1",
                "a1 {RELEASE} res 1",
            ],
            &[
                "a1 SET res owner:one/7 NX PX 9000",
                "enter c1 owner:one/7",
                "leave c1",
                "a1 EVAL \"local v=redis.call('GET',KEYS[1]) if v and string.find(v,ARGV[1],1,true) \
                 then return redis.call('DEL',KEYS[1]) end return 0\" 1 res one",
            ],
        ],
    );
}

#[test]
fn a_counter_is_not_the_lock() {
    assert_sound(
        1,
        &[
            &[
                "a1 SETNX fence:res 0",
                "b1 SETNX fence:res 0",
                "a1 SET lock:res one NX PX 9000",
                "a1 INCR fence:res",
                "enter c1 one",
                "leave c1",
                "a1 {RELEASE} lock:res one",
                "b1 SET lock:res two NX PX 9000",
                "b1 INCR fence:res",
                "enter c2 two",
                "leave c2",
                "b1 {RELEASE} lock:res two",
            ],
            &[
                "a1 INCR fence:res",
                "b1 INCR fence:res",
                "a1 SET lock:res one NX PX 9000",
                "enter c1 one",
                "leave c1",
                "a1 {RELEASE} lock:res one",
            ],
            &[
                "a1 EVAL \"if redis.call('SET',KEYS[2],ARGV[1],'NX','PX',9000) then \
                 return redis.call('INCR',KEYS[1]) end return 0\" 2 fence:res lock:res one",
                "enter c1 1",
                "leave c1",
                "a1 {RELEASE} lock:res one",
                "b1 EVAL \"if redis.call('SET',KEYS[2],ARGV[1],'NX','PX',9000) then \
                 return redis.call('INCR',KEYS[1]) end return 0\" 2 fence:res lock:res two",
                "enter c2 2",
                "leave c2",
                "b1 {RELEASE} lock:res two",
            ],
            // A lock without a TTL at first, whose value is a number.
            &[
                "a1 INCR fence:res",
                "b1 INCR fence:res",
                "a1 SETNX lock:res 1",
                "a1 PEXPIRE lock:res 9000",
                "enter c1",
                "leave c1",
                "a1 DEL lock:res",
            ],
        ],
    );
}

#[test]
fn a_free_attempt_with_a_majority_precedes_an_own_without() {
    assert_sound(
        3,
        &[&[
            "u1/* SET res one NX PX 9000",
            "enter c1",
            "leave c1",
            "u1/* {RELEASE} res one",
            "u1/0 SET res two NX PX 9000",
            "u1/0 {RELEASE} res two",
            "u1/1 SET res three NX PX 9000",
            "u1/2 SET res three NX PX 9000",
            "u1/0 SET res three NX PX 9000",
            "enter c1",
            "leave c1",
        ]],
    );
}

#[test]
fn a_request_without_a_value_is_of_the_key_read_before() {
    assert_sound(
        1,
        &[
            &[
                "a1 SET res one NX PX 9000",
                "enter c1 one",
                "leave c1",
                "a1 SET res two NX PX 9000",
                "a1 GET res",
                "a1 DEL res",
            ],
            &[
                "a1 SET res one NX PX 9000",
                "enter c1 one",
                "a2 SET res two NX PX 9000",
                "a1 GET res",
                "a1 PEXPIRE res 9500",
                "leave c1",
                "a1 {RELEASE} res one",
            ],
            &[
                "u2 SET res zero NX PX 9000",
                "enter c1 zero",
                "leave c1",
                "u2 GET res",
                "u2 DEL res",
                "u1 SET res one NX PX 9000",
                "enter c1 one",
                "leave c1",
                "u2 GET res",
                "u2 DEL res",
            ],
            &[
                "u2 SET res zero NX PX 9000",
                "enter c1 zero",
                "leave c1",
                "u2 {RELEASE} res zero",
                "u1 SET res one NX PX 9000",
                "enter c1 one",
                "leave c1",
                "u2 WATCH res",
                "u2 GET res",
                "u2 MULTI",
                "u2 DEL res",
                "u2 EXEC",
            ],
        ],
    );
}

#[test]
fn a_delete_that_compares_with_nothing_is_blamed_on_the_worker() {
    const ALL: [&[&str]; 3] = [
        &["a1 SET res one NX PX 9000", "enter c1 one", "b1 GET res", "b1 DEL res", "leave c1"],
        &[
            "a1 SET res one NX PX 9000",
            "enter c1 one",
            "leave c1",
            "a1 GET res",
            "a1 {RELEASE} res one",
            "b1 SET res two NX PX 9000",
            "enter c2 two",
            "a1 DEL res",
            "leave c2",
        ],
        &[
            "u1 SET res one NX PX 9000",
            "enter c1 one",
            "u2 SET res two NX PX 9000",
            "u2 DEL res",
            "leave c1",
        ],
    ];
    for steps in ALL {
        let violated = violated(&run(&case(1, ""), steps));
        let found = [("owner-only", vec![String::from("none")])];
        assert_eq!(violated, found, "{steps:#?}");
    }
}

#[test]
fn a_vote_whose_reply_is_lost_can_be_confirmed() {
    const ALL: [&[&str]; 4] = [
        &["a1! SET res one NX PX 9000", "a2 GET res"],
        &["a1! SET res one NX GET PX 9000", "a2 SET res one NX GET PX 9000"],
        &["a1! {ACQUIRE} res one", "a2 {ACQUIRE} res one"],
        &["a1! {TAKE} res one", "a2 {TAKE} res one"],
    ];
    const SECTION: [&str; 2] = ["enter c1 one", "leave c1"];
    let cut = "[[fault]]\nid = \"cut\"\nat = { client = \"c1\", before = \"reply\", node = \"A\" }\n\
               lasts = \"400ms\"\npartition = { between = [[\"c1\"], [\"A\"]], lost = \"silent\" }\n";
    let case = case(1, cut);
    for steps in ALL {
        let with = |steps: &[&'static str]| [steps, &SECTION].concat().leak() as &'static [_];
        assert_eq!(violated(&run(&case, with(steps))), [], "{steps:#?}");
        let unheard = violated(&run(&case, with(&steps[..1])));
        let found = unheard.iter().find(|(property, _)| *property == "sound-grant");
        assert_eq!(found, Some(&("sound-grant", vec![String::from("none")])), "{steps:#?}");
    }
    let refused: &[&str] = &["a1! SET res one NX PX 9000", "a2 SET res one NX PX 9000"];
    let refused = violated(&run(&case, [refused, &SECTION].concat().leak()));
    assert!(refused.iter().any(|(property, _)| *property == "sound-grant"), "{refused:?}");
}

#[test]
fn an_acquisition_that_finds_its_own_keys_extends_the_lease() {
    assert_sound(
        3,
        &[&[
            "a1/* {ACQUIRE} res owner",
            "enter c1 owner",
            "leave c1",
            "a1/0 {RELEASE} res owner",
            "a1/* {ACQUIRE} res owner",
            "enter c1 owner",
            "leave c1",
            "a1/* {RELEASE} res owner",
        ]],
    );
}

#[test]
fn two_sections_of_one_lease_may_give_one_fencing_token() {
    assert_sound(
        1,
        &[
            &["a1 SET res one NX PX 9000", "enter c1 7", "leave c1", "enter c1 7", "leave c1"],
            // A token is all digits.
            &[
                "a1 SET res one NX PX 9000",
                "enter c1 +5",
                "leave c1",
                "a1 {RELEASE} res one",
                "a1 SET res two NX PX 9000",
                "enter c1 5",
                "leave c1",
            ],
        ],
    );
}

#[test]
fn a_read_is_no_release() {
    let steps: &[&str] = &[
        "a1 SET res one NX PX 9000",
        "b1 GET res",
        "a2 GET res",
        "a2 TTL res",
        "enter c1 one",
        "leave c1",
    ];
    let played = run(&case(1, ""), steps);
    let ops = played.kept[0].1.iter().filter_map(|event| match event.kind {
        EventKind::Executed { attempt, op, answer, .. } => Some((attempt.client.0, op, answer)),
        _ => None,
    });
    let told: Vec<_> = ops.collect();
    assert_eq!(told, [(0, OpKind::Set, Answer::Yes), (0, OpKind::Get, Answer::Yes)]);
}
