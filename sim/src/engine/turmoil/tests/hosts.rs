//! Hosts that are killed or stalled, and their clocks.

use super::*;

#[test]
fn a_killed_client_says_nothing_more() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"500ms\"\nkill = { host = \"c1\" }";
    let history = history_of("{ acquire = {} }, { hold = \"2s\" }, { release = {} }", faults);
    let own = |kind: &EventKind| match *kind {
        EventKind::Written { attempt, .. } | EventKind::ReleaseCalled { attempt } => {
            attempt.client == ClientId(0)
        }
        _ => false,
    };
    assert!(times_ms(&history, own).iter().all(|&at_ms| at_ms < 500));
    let expired = |kind: &EventKind| matches!(kind, EventKind::KeyEnded { .. });
    let first = times_ms(&history, expired)[0];
    assert!((10_001..=10_003).contains(&first), "nobody released them: {first}");
}

#[test]
fn a_dead_process_says_goodbye_and_a_dead_host_does_not() {
    // A client that knows that three nodes are gone fails at once; otherwise it waits for the
    // timeout.
    for (kind, settled_ms) in [("kill", 100..110), ("power", 150..160)] {
        let fault = |node: &str| {
            format!("[[fault]]\nid = \"{node}\"\nat = \"50ms\"\n{kind} = {{ host = \"{node}\" }}\n")
        };
        let faults: String = ["A", "B", "C"].map(fault).concat();
        let history = history_of("{ at = \"100ms\", acquire = {} }", &faults);
        let failed = |kind: &EventKind| {
            matches!(kind, EventKind::AttemptSettled { outcome: Settlement::TooFewNodes, attempt }
                if attempt.client == ClientId(0))
        };
        let failed = times_ms(&history, failed);
        assert!(failed.len() == 1 && settled_ms.contains(&failed[0]), "{kind}: {failed:?}");
    }
}

#[test]
fn a_stalled_node_executes_afterwards() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"200ms\"\nstall = { host = \"A\" }";
    let history = history_of("{ acquire = {} }, { sleep = \"1s\" }", faults);
    assert_eq!(times_ms(&history, |kind| is_executed_set(kind, 0)), [200]);
}

#[test]
fn a_fast_clock_makes_short_work_of_a_sleep() {
    let faults = "[[fault]]\nid = \"f\"\nat = \"0s\"\nuntil = \"2s\"\n\
        clock-rate = { host = \"c1\", ppm = 250000 }";
    let history = history_of("{ acquire = {} }, { hold = \"1s\" }, { release = {} }", faults);
    let entered = times_ms(&history, |kind| matches!(kind, EventKind::SectionEntered { .. }));
    let left = times_ms(&history, |kind| matches!(kind, EventKind::SectionLeft { .. }));
    assert_eq!(left[0] - entered[0], 800);
}

#[test]
fn sleep_ends_in_the_millisecond_its_own_clock_reaches() {
    let slept_ms = |faults: &str| {
        let history = history_of("{ acquire = {} }, { hold = \"1s\" }, { release = {} }", faults);
        let entered = times_ms(&history, |kind| matches!(kind, EventKind::SectionEntered { .. }));
        let left = times_ms(&history, |kind| matches!(kind, EventKind::SectionLeft { .. }));
        assert_eq!(entered, [2], "there and back");
        left[0] - entered[0]
    };
    let faster = |at: &str, ppm| {
        format!(
            "[[fault]]\nid = \"f\"\nat = \"{at}\"\nuntil = \"2s\"\n\
             clock-rate = {{ host = \"c1\", ppm = {ppm} }}"
        )
    };
    assert_eq!(slept_ms(""), 1000);
    // 400 ms have passed; the remaining 600 ms take 480 ms.
    assert_eq!(slept_ms(&faster("402ms", 250_000)), 880);
    // After 544 ms, 598.4 ms of the remaining 600 ms have passed; all 600 ms have passed after
    // 545.45 ms.
    assert_eq!(slept_ms(&faster("402ms", 100_000)), 946);
}
