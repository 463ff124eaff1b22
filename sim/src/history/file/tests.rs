use proptest::prelude::*;

use super::*;
use crate::history::{
    Answer, AttemptId, ClientId, ClockKind, EventKind, FaultId, HostId, KeyEnd, NodeId, NodeIds,
    OpKind, Refusal, Rejection, Settlement, Writer,
};
use crate::scenario::Scenario;

const SCENARIO: &str = r#"
    schema = 1
    name = "a-name"
    title = "A title"
    client = [{ id = "c1", steps = [{ acquire = {} }] }, { id = "c2", steps = [] }]
    fault = [{ id = "jump", at = "1s", clock-jump = { host = "C", by = "-10s" } }]
    expect = { mutual-exclusion = "holds" }
"#;

pub(crate) fn header() -> Header {
    let scenario: Scenario = toml::from_str(SCENARIO).unwrap();
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    Header {
        schema: SCHEMA,
        engine: String::from("event"),
        build: String::from("0.1.0"),
        seed: u64::MAX,
        case,
    }
}

fn kinds() -> impl Strategy<Value = EventKind> {
    let attempt = (0..3u8, any::<u16>())
        .prop_map(|(client, number)| AttemptId { client: ClientId(client), number });
    let node = || (0..5u8).prop_map(NodeId);
    let writer = prop_oneof![
        Just(Writer::Nobody),
        Just(Writer::Operator),
        attempt.clone().prop_map(Writer::Attempt)
    ];
    let ns = prop_oneof![0..1u64 << 60, Just(u64::MAX)];
    prop_oneof![
        Just(EventKind::Ended),
        (0..9u8, any::<i32>(), 0..1u64 << 60).prop_map(|(host, rate, local_ns)| EventKind::Clock {
            host: HostId(host),
            clock: ClockKind::Wall,
            local_ns,
            rate_ppb: rate / 4,
        }),
        (attempt.clone(), ns.clone()).prop_map(|(attempt, ttl_ns)| EventKind::AttemptBegan {
            attempt,
            clock: ClockKind::Boot,
            t1_local_ns: 5,
            ttl_ns,
            drift_ns: 7,
            needed: 3,
        }),
        (0..1000u32, attempt.clone(), node(), writer.clone(), writer.clone()).prop_map(
            |(command, attempt, node, before, after)| EventKind::Executed {
                command,
                attempt,
                node,
                op: OpKind::Set,
                answer: Answer::Yes,
                changed: true,
                before,
                after,
                expires_wall_ms: u64::MAX,
            }
        ),
        (attempt.clone(), (0..32u16).prop_map(NodeIds::from_bits), ns).prop_map(
            |(attempt, counted, deadline_local_ns)| {
                EventKind::GrantDecided { attempt, counted, t2_local_ns: 9, deadline_local_ns }
            }
        ),
        (writer.clone(), writer, node()).prop_map(|(writer, by, node)| EventKind::KeyEnded {
            node,
            writer,
            cause: KeyEnd::Expired,
            by,
            expires_wall_ms: 10_000,
        }),
        attempt.clone().prop_map(|attempt| EventKind::AttemptSettled {
            attempt,
            outcome: Settlement::TooFewNodes
        }),
        attempt.prop_map(|attempt| EventKind::WriteRejected {
            attempt,
            write: 3,
            why: Rejection::StaleToken
        }),
        Just(EventKind::FaultBegan { fault: FaultId(0) }),
        (node(), 0..9u8)
            .prop_map(|(node, host)| { EventKind::FailedOver { node, host: HostId(host) } }),
        extensions(),
    ]
}

fn extensions() -> impl Strategy<Value = EventKind> {
    let attempt = (0..3u8, 1..4u16)
        .prop_map(|(client, number)| AttemptId { client: ClientId(client), number });
    let deadline = prop_oneof![0..1u64 << 60, Just(u64::MAX)];
    prop_oneof![
        (attempt.clone(), any::<u16>(), 0..1u64 << 60).prop_map(|(attempt, round, ttl_ns)| {
            EventKind::ExtensionBegan { attempt, round, t1_local_ns: 5, ttl_ns }
        }),
        (attempt.clone(), any::<bool>(), (0..32u16).prop_map(NodeIds::from_bits), deadline.clone())
            .prop_map(|(attempt, extended, counted, deadline_local_ns)| {
                let round = 1;
                EventKind::ExtensionSettled { attempt, round, extended, counted, deadline_local_ns }
            }),
        (attempt.clone(), 0..1u64 << 60).prop_map(|(attempt, ttl_ns)| {
            let why = Refusal::WouldShorten;
            EventKind::ExtensionRefused { attempt, ttl_ns, why }
        }),
        (0..3u8).prop_map(|client| EventKind::GaveUp { client: ClientId(client) }),
        (attempt, deadline).prop_map(|(attempt, deadline_local_ns)| {
            let clock = ClockKind::Boot;
            EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns }
        }),
    ]
}

/// Generates histories that use the whole range of values that a stored history may hold.
pub(crate) fn histories() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec((0..1u64 << 40, kinds()), 0..20).prop_map(|steps| {
        let mut at_ns = 0;
        let mut events = Vec::new();
        for (step, kind) in steps {
            at_ns += step;
            events.push(Event { at_ns, kind });
            if kind == EventKind::Ended {
                break;
            }
        }
        events
    })
}

fn stored(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, &header(), events).unwrap();
    bytes
}

fn compressed(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_compressed(&mut bytes, &header(), events).unwrap();
    bytes
}

fn error(bytes: &[u8]) -> String {
    read(bytes, "h.jsonl").unwrap_err().to_string()
}

proptest! {
    #[test]
    fn what_is_written_is_read(events in histories()) {
        let back = read(stored(&events).as_slice(), "h.jsonl").unwrap();
        prop_assert_eq!(back.header, header());
        prop_assert_eq!(back.events, events);
    }

    #[test]
    fn a_compressed_history_is_read_and_shorter(events in histories()) {
        let bytes = compressed(&events);
        let back = read(bytes.as_slice(), "h.jsonl.gz").unwrap();
        prop_assert!(bytes.len() < stored(&events).len());
        prop_assert_eq!(back.events, events);
    }

    #[test]
    fn a_compressed_history_cut_anywhere_is_refused(
        events in histories(), place in any::<prop::sample::Index>(),
    ) {
        let whole = compressed(&events);
        prop_assert!(read(&whole[..place.index(whole.len())], "h.jsonl.gz").is_err());
    }

    #[test]
    fn no_changed_byte_of_a_compressed_history_alters_an_event(
        events in histories(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = compressed(&events);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(back) = read(bytes.as_slice(), "h.jsonl.gz") {
            prop_assert_eq!(back.events, events);
        }
    }

    #[test]
    fn a_history_cut_anywhere_is_refused(events in histories(), share in 0.0..1.0f64) {
        let whole = stored(&events);
        // A cut that removes only the final newline leaves a complete history.
        let cut = ((whole.len() - 1) as f64 * share) as usize;
        prop_assert!(read(&whole[..cut], "h.jsonl").is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(bytes.as_slice(), "h.jsonl").is_err());
    }

    #[test]
    fn no_changed_byte_makes_it_panic_or_alters_an_event(
        events in histories(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = stored(&events);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(back) = read(bytes.as_slice(), "h.jsonl") {
            prop_assert_eq!(back.events, events);
        }
    }

    #[test]
    fn no_line_of_json_makes_it_panic(
        name in "(node-up|clock|executed|fault-began|hash|ended)",
        field in "(node|host|at_ns|attempt|command)",
        value in "(-1|1e99|255|\"x\"|null|\\{\\}|\\[\\[|18446744073709551615)",
    ) {
        let mut bytes = stored(&[]);
        let last = bytes.len() - r#"{"hash":"0123456789abcdef"}n"#.len();
        let line = format!("{{\"event\":\"{name}\",\"{field}\":{value}}}\n");
        bytes.splice(last..last, line.into_bytes());
        prop_assert!(read(bytes.as_slice(), "h.jsonl").is_err());
    }
}

#[test]
fn each_fault_of_a_file_has_its_own_message() {
    let ended = [Event { at_ns: 1, kind: EventKind::Ended }];
    let whole = String::from_utf8(stored(&ended)).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let with = |middle: &str| format!("{}\n{middle}\n{}\n", lines[0], lines[2]);

    let cases = [
        ("empty", String::new()),
        ("foreign", String::from("{\"schema\":1,\"results\":[]}\n")),
        ("no JSON", String::from("hello\n")),
        ("another schema", whole.replacen("\"schema\":1", "\"schema\":7", 1)),
        ("no last line", format!("{}\n{}\n", lines[0], lines[1])),
        ("cut in an event", format!("{}\n{}", lines[0], &lines[1][..9])),
        ("cut in the last line", format!("{}\n{}\n{}", lines[0], lines[1], &lines[2][..12])),
        ("an event left out", format!("{}\n{}\n", lines[0], lines[2])),
        ("something after the end", format!("{whole}{}\n", lines[1])),
        ("no such node", with(r#"{"at_ns":1,"event":"node-stalled","node":5}"#)),
        ("no such host", with(r#"{"at_ns":1,"event":"continued","host":9}"#)),
        (
            "an extension counts what is not there",
            with(
                r#"{"at_ns":1,"event":"extension-settled","attempt":{"client":0,"number":1},"round":1,"extended":true,"counted":32,"deadline_local_ns":1}"#,
            ),
        ),
        (
            "an extension for ever",
            with(
                r#"{"at_ns":1,"event":"extension-began","attempt":{"client":0,"number":1},"round":1,"t1_local_ns":1,"ttl_ns":18446744073709551615}"#,
            ),
        ),
        ("a failover to nowhere", with(r#"{"at_ns":1,"event":"failed-over","node":0,"host":9}"#)),
        ("no such event", with(r#"{"at_ns":1,"event":"node-stole","node":5}"#)),
        ("too late", with(r#"{"at_ns":18446744073709551615,"event":"ended"}"#)),
        ("no nodes", whole.replacen(r#"["A","B","C","D","E"]"#, "[]", 1)),
        ("a line too long", format!("{}\n{}", lines[0], "x".repeat(LINE_BYTES_MAX + 1))),
    ];
    let told: Vec<String> =
        cases.iter().map(|(what, text)| format!("{what}: {}", error(text.as_bytes()))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_compressed_history_that_was_cut_or_continued_says_so() {
    let whole = compressed(&[Event { at_ns: 1, kind: EventKind::Ended }]);
    let cut = error(&whole[..whole.len() - 4]);
    assert!(cut.ends_with("the file is truncated"), "{cut}");
    let twice = error(&[whole.clone(), whole.clone()].concat());
    assert_eq!(twice, "h.jsonl:4: expected the end of the file after the line with the hash");
    let foreign = error(&[whole.as_slice(), b"{\"at_ns\":1,\"event\":\"ended\"}\n"].concat());
    assert!(foreign.starts_with("h.jsonl:4: cannot be read: "), "{foreign}");
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let told = read_path(Path::new("no/such/file.jsonl")).unwrap_err().to_string();
    assert!(told.starts_with("no/such/file.jsonl:1: cannot be read"), "{told}");
}
