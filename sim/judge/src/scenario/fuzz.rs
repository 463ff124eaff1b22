//! Fuzz tests: no text makes the parser panic, and a written scenario parses to the same value.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const FILES: [(&str, &str); 2] = [
    ("clock-jump.toml", include_str!("testdata/clock-jump.toml")),
    ("pause-sweep.toml", include_str!("testdata/pause-sweep.toml")),
];

/// Values at the limits of what is allowed, and some of the wrong type.
const VALUES: [&str; 29] = [
    "\"0s\"",
    "\"1ns\"",
    "\"1ms\"",
    "\"60m\"",
    "\"525601m\"",
    "\"18446744073709551615ns\"",
    "\"-9223372036854775808ns\"",
    "\"-5s\"",
    "\"5s..1s\"",
    "\"0..18446744073709551615\"",
    "\"1..4294967295\"",
    "\"12.5%\"",
    "{ times = 4294967295, steps = [{ extend = { times = 4294967295 } }] }",
    "0",
    "-1",
    "9223372036854775807",
    "-2147483648",
    "99999999999999999999",
    "nan",
    "true",
    "\"\"",
    "\"*\"",
    "\"c1\"",
    "\"store\"",
    "\"\u{202e}ä\u{0}\"",
    "[]",
    "[[], [\"A\"]]",
    "{}",
    "{ client = \"c1\", before = \"*\" }",
];

/// Paths that exist, nearly exist, or lead through something that is not a table.
const PATHS: [&str; 34] = [
    "lock.ttl",
    "lock.drift.share-ppm",
    "lock",
    "cluster.nodes",
    "cluster.node.A.persistence",
    "cluster.rights",
    "cluster.clocks.C.offset",
    "cluster.clocks.C.rate-ppm",
    "cluster.links",
    "cluster.uptime",
    "client",
    "client.c1.id",
    "client.c1.steps.0.acquire.attempts",
    "client.c1.steps.1.hold",
    "client.7.steps",
    "client.c1.nodes",
    "client.c1.steps.1.repeat",
    "client.c1.steps.1.sleep",
    "fault",
    "fault.0",
    "fault.0.at",
    "fault.0.at.before",
    "fault.0.lasts",
    "fault.0.every",
    "fault.0.times",
    "fault.0.chance",
    "zip",
    "fault.jump.clock-jump.by",
    "run.seeds",
    "expect.tidy",
    "expect.mutual-exclusion.blame",
    "expect.mutual-exclusion.blame.any-of",
    "expect.section-overlap",
    "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t",
];

fn read(path: &str, text: &str, overrides: &[Override]) -> Option<Vec<Case>> {
    match File::parse(path, text).and_then(|file| file.cases(overrides)) {
        Ok(cases) => Some(cases),
        Err(problems) => {
            assert!(!problems.0.is_empty(), "an error says what is wrong");
            let places = problems.0.iter().all(|it| it.line > 0 && it.column > 0);
            assert!(places && !problems.to_string().is_empty());
            None
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        read("x.toml", &text, &[]);
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(
        file in select(&FILES[..]),
        damage in vec((any::<Index>(), 0_usize..12, "\\PC{0,6}|[\\[\\]{}=\".,#\n]{1,4}"), 1..4),
    ) {
        let mut text = file.1.to_owned();
        for (place, length, instead) in damage {
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            let Some(&start) = places.get(place.index(places.len().max(1))) else { break };
            let end = text[start..].char_indices().nth(length).map_or(text.len(), |it| start + it.0);
            text.replace_range(start..end, &instead);
        }
        read(file.0, &text, &[]);
    }

    #[test]
    fn any_setting_is_refused_or_applied_and_survives_a_round_trip(
        file in select(&FILES[..]),
        settings in vec((select(&PATHS[..]), select(&VALUES[..])), 1..4),
    ) {
        let setting = |(path, value): (&str, &str)| Override {
            path: path.to_owned(),
            value: value.to_owned(),
        };
        let overrides: Vec<Override> = settings.into_iter().map(setting).collect();
        for case in read(file.0, file.1, &overrides).unwrap_or_default() {
            let written = toml::to_string(&case.scenario).expect("a scenario can be written");
            let again = read(file.0, &written, &[]).expect("it was valid");
            prop_assert_eq!(&again[0].scenario, &case.scenario);
            let json = serde_json::to_string(&case).expect("a case can be written");
            prop_assert_eq!(serde_json::from_str::<Case>(&json).expect("it was valid"), case);
        }
    }

    #[test]
    fn any_bare_value_of_a_setting_is_refused_or_applied(text in "\\PC{0,20}=\\PC{0,40}") {
        if let Ok(setting) = text.parse::<Override>() {
            read(FILES[0].0, FILES[0].1, &[setting]);
        }
    }
}

/// Parsers overflow their stack on deep nesting.
#[test]
fn deep_nesting_is_refused() {
    let dots = "a.".repeat(32);
    for text in [
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("story = {}", "[".repeat(100_000)),
        format!("story = {}", "{a=".repeat(50_000)),
        format!("x = {}1{}", format!("{{ {dots}a = \n").repeat(79), "}".repeat(79)),
        format!("x = {}1{}", format!("{{ {dots}a = \n").repeat(1_000), "}".repeat(1_000)),
    ] {
        assert!(read("x.toml", &text, &[]).is_none());
    }
}
