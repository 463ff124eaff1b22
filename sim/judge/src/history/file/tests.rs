use proptest::prelude::*;

use super::*;
use crate::history::EventKind;
use crate::testing::{header, histories};

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
    fn a_written_history_is_read_back(events in histories()) {
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
    assert!(told.starts_with("no/such/file.jsonl: cannot be read"), "{told}");
}
