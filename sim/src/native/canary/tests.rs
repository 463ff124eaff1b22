//! Compares the native canary with that of the production client's script.

use bytes::Bytes;
use proptest::prelude::*;
use redis_sim::Storage;
use redis_sim::profile::REDIS_7_0;
use redis_sim::resp::Value;
use redis_sim::server::{Answer, Server, Session, Turn};
use redlock_client::scripts::INTRODUCE;

use super::*;

const RUN: [u8; 20] = [0xa1; 20];
const NOW_US: u64 = 1_700_000_000_123_456;

/// Returns a server in one of the possible states, with `stored` as its canary.
fn server(stored: Option<&[u8]>, was_replica: bool, is_replica: bool) -> Server {
    let mut server = Server::new(Master::new(Storage::default(), RUN, 0), &REDIS_7_0);
    if let Some(value) = stored {
        let expiry = SetExpiry::Never;
        let set = KeyCommand::Set { value, condition: SetCondition::Always, expiry, get: false };
        on_canary(&mut server, set, NOW_US);
    }
    server.set_replica(was_replica);
    server.set_replica(is_replica);
    server
}

/// Returns the line that the script appends to `INFO`: none, the canary, or the refusal to write
/// it.
fn by_script(server: &mut Server) -> Option<String> {
    let (mut session, mut touched) = (Session::new(1), Vec::new());
    let turn = Turn { wall_ns: NOW_US * 1_000, writer: Writer::Operator, touched: &mut touched };
    let request = [b"EVAL", INTRODUCE, b"1", CANARY_KEY].map(Bytes::from_static);
    let Answer::Reply(Value::Bulk(said)) = session.execute(server, &request, turn) else {
        panic!("a script answers with a string")
    };
    let said = String::from_utf8(said.to_vec()).expect("text");
    assert!(said.contains(&format!("run_id:{}\r\n", hex(&RUN))), "{said}");
    said.lines().last().filter(|line| line.starts_with("canary")).map(str::to_owned)
}

fn introduced(server: &mut Master, wall_us: u64) -> Option<Canary> {
    introduce(server, None, wall_us).expect("a server with free memory").1
}

/// Parses the canary from a line of the script's answer.
fn read(line: &str) -> Option<Canary> {
    let mut words = line.strip_prefix("canary:")?.split(' ');
    let mut digest = || Digest::of(words.next().expect("a word").as_bytes());
    let (history, memory) = (digest(), digest());
    let age = words.next().expect("an age").parse().expect("µs");
    Some(Canary { history, memory, age: Duration::from_micros(age) })
}

/// Generates a canary written by this process or another one, in one history or another, long ago
/// or in the future; or malformed bytes.
fn stored() -> impl Strategy<Value = Option<Vec<u8>>> {
    let run = prop_oneof![Just(hex(&RUN)), Just(hex(&[2; 20])), Just(String::from("xyz"))];
    let at = prop_oneof![
        (0..3_u64).prop_map(|late| (NOW_US - 1 + late).to_string()),
        Just(String::from("1")),
        Just(String::from("99999999999999999999999")),
        Just(String::from("-1")),
    ];
    let written = (run.clone(), run, at).prop_map(|(run, history, at)| {
        Some(format!("{run} {history} some-name {at}").into_bytes())
    });
    let nonsense = prop_oneof![
        Just(None),
        Just(Some(b"".to_vec())),
        Just(Some(b"a b c 4 5".to_vec())),
        Just(Some(b"a  b 4".to_vec())),
        Just(Some(b"a b\tc d 4".to_vec())),
        Just(Some(b"\xff b c 4".to_vec())),
    ];
    prop_oneof![3 => written, 1 => nonsense]
}

proptest! {
    #[test]
    fn the_native_canary_is_that_of_the_script(
        stored in stored(),
        was_replica: bool,
        is_replica: bool,
    ) {
        let mut native = server(stored.as_deref(), was_replica, is_replica);
        let mut scripted = native.clone();
        let said = by_script(&mut scripted);
        prop_assert_eq!(introduced(&mut native, NOW_US), said.as_deref().and_then(read));
        let key = |it: &Server| it.keyspace().stored(CANARY_KEY).map(|it| it.value.clone());
        prop_assert_eq!(key(&native), key(&scripted));
    }
}

#[test]
fn a_canary_is_written_once_and_keeps_its_name() {
    let mut server = server(None, false, false);
    let first = introduced(&mut server, NOW_US).expect("a canary");
    assert_eq!(first.age, Duration::ZERO);
    let later = introduced(&mut server, NOW_US + 5).expect("a canary");
    assert_eq!((later.memory, later.age), (first.memory, Duration::from_micros(5)));
}

#[test]
fn a_promoted_server_keeps_the_name_and_begins_anew() {
    let mut server = server(None, false, false);
    let first = introduced(&mut server, NOW_US).expect("a canary");
    server.set_replica(true);
    assert_eq!(introduced(&mut server, NOW_US + 5), None);
    server.set_replica(false);
    let promoted = introduced(&mut server, NOW_US + 9).expect("a canary");
    assert_eq!((promoted.memory, promoted.age), (first.memory, Duration::ZERO));
    assert_ne!(promoted.history, first.history);
}

#[test]
fn a_seeded_canary_is_recognised_while_it_fits() {
    let canaries = [(RUN, 5_999), (RUN, NOW_US), ([2; 20], 5_999)];
    for (run_id, started_wall_ms) in canaries {
        let seeded = SeededCanary::new(run_id, started_wall_ms);
        for was_replica in [false, true] {
            let mut server = server(None, false, false);
            seeded.seed(&mut server);
            server.set_replica(was_replica);
            server.set_replica(false);
            let said = server.introduction(NOW_US / 1_000);
            let fits = (run_id, started_wall_ms) == (RUN, 5_999) && !was_replica;
            assert!(!fits || seeded.untouched(&server, &said, NOW_US).is_some());
            let mut parsed = server.clone();
            for _ in 0..2 {
                let expected = introduce(&mut parsed, None, NOW_US);
                assert_eq!(introduce(&mut server, Some(&seeded), NOW_US), expected);
            }
        }
    }
}

fn master() -> Master {
    Master::new(Storage::default(), RUN, 5_999)
}

#[test]
fn the_canary_outlives_the_history_of_the_first_replica() {
    let mut master = master();
    introduced(&mut master, 20_000_000);
    let before = introduced(&mut master, 21_000_000);
    let (first, _) = master.history();
    master.copy_to_stream();
    assert_ne!(master.history().0, first);
    let after = introduced(&mut master, 21_000_000);
    assert_eq!(before, after);
}

#[test]
fn filled_by_its_replica_it_has_its_canary_in_a_new_history() {
    let mut master = master();
    master.begin_stream();
    let before = introduced(&mut master, 20_000_000);
    let mut replica = Master::new(Storage::default(), [3; 20], 5_999);
    replica.set_role(true);
    let from = master.copy_to_stream();
    replica.follow(&master, from, master.stream().len());
    let command = KeyCommand::Setnx { value: b"v" };
    master.execute(Command::Key { key: b"k", command }, 21_000, Writer::Operator);
    replica.set_role(false);
    master.set_role(true);
    master.resynchronise(Some(&replica));
    assert!(master.keyspace().stored(b"k").is_none());
    master.set_role(false);
    let after = introduced(&mut master, 22_000_000);
    let (before, after) = (before.unwrap(), after.unwrap());
    assert_eq!(before.memory, after.memory);
    assert_ne!(before.history, after.history);
}

#[test]
fn without_room_a_server_needs_a_canary_that_fits() {
    let mut empty = server(None, false, false);
    empty.set_full(true);
    let mut scripted = empty.clone();
    assert_eq!(introduce(&mut empty, None, NOW_US).err(), Some(Unwritable));
    let said = by_script(&mut scripted).expect("a refusal");
    assert!(said.starts_with("canary_refused:OOM"), "{said}");
    let mut known = server(None, false, false);
    let canary = introduced(&mut known, NOW_US).expect("a canary");
    known.set_full(true);
    assert_eq!(introduced(&mut known, NOW_US).expect("a canary").memory, canary.memory);
}
