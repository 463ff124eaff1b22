//! The acquisition rule, explored through every schedule within bounds.
//!
//! `docs/acquisition.md` contains the counterexamples found here; a test compares them.

use redlock_sim::engine::exhaustive::acquisition::{
    Acquisition, Both, Bounds, Client, Policy, Production, Step, Terms, Violation, Wording, story,
};
use redlock_sim::engine::exhaustive::{Counterexample, Explored, search};

/// More states than any search here visits.
const STATES_MAX: usize = 500_000_000;

const BOUNDS: Bounds = Bounds {
    terms: Terms { ttl: 2, drift: 1 },
    attempts: [1, 1],
    ticks: 1,
    losses: 0,
    restarts: 0,
};

/// Asserts that the rule as built, run by the client's own state machines and by the rule's wording
/// side by side, violates nothing; `golden` is the number of states, of transitions, and the depth.
fn assert_safe(bounds: Bounds, golden: [usize; 3]) {
    assert_model_safe(bounds, golden, |policy, client| {
        let attempts_max = bounds.attempts[usize::from(client)];
        Both::new(policy, Production::new(client, attempts_max, bounds.terms))
    });
}

/// Asserts the same of the rule's wording alone, whose states are fewer: for bounds that are wider
/// than those within which it was compared with the client's own state machines.
fn assert_short_form_safe(bounds: Bounds, golden: [usize; 3]) {
    assert_model_safe(bounds, golden, |policy, _| policy);
}

fn assert_model_safe<C: Client>(
    bounds: Bounds,
    golden: [usize; 3],
    client: impl Fn(Policy, u8) -> C,
) {
    let clients = [0, 1].map(|number| {
        let attempts_max = bounds.attempts[usize::from(number)];
        client(Policy::new(number, attempts_max, Wording::AS_BUILT, bounds.terms), number)
    });
    let model = Acquisition::new(bounds, clients, None);
    let explored = search(&model, STATES_MAX);
    if let Some(Counterexample { violation, steps, .. }) = explored.counterexample {
        panic!("{violation}:\n{}", story(&model, &steps));
    }
    let found = [explored.states, explored.transitions, explored.depth];
    assert_eq!(found, golden, "states, transitions, depth of {bounds:?}");
}

#[test]
fn a_second_attempt_after_a_timeout_is_safe() {
    assert_safe(Bounds { attempts: [2, 1], ..BOUNDS }, [252_705, 702_160, 19]);
}

#[test]
fn a_second_attempt_over_two_ticks_is_safe() {
    assert_short_form_safe(Bounds { attempts: [2, 1], ticks: 2, ..BOUNDS }, [246_733, 698_471, 21]);
}

#[test]
fn attempts_around_a_restart_are_safe() {
    let terms = Terms { ttl: 3, drift: 1 };
    assert_safe(Bounds { terms, ticks: 2, restarts: 1, ..BOUNDS }, [63_515, 131_535, 19]);
}

#[test]
fn attempts_around_a_lost_connection_are_safe() {
    assert_safe(Bounds { ticks: 2, losses: 1, ..BOUNDS }, [29_005, 56_081, 16]);
}

#[test]
fn two_attempts_of_one_client_leave_no_key_behind() {
    assert_safe(Bounds { attempts: [2, 0], ticks: 2, losses: 1, ..BOUNDS }, [74_896, 225_008, 21]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_attempts_around_two_lost_connections_are_safe() {
    assert_safe(Bounds { ticks: 2, losses: 2, ..BOUNDS }, [292_333, 585_734, 19]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_attempts_around_both_faults_are_safe() {
    assert_safe(Bounds { ticks: 2, losses: 1, restarts: 1, ..BOUNDS }, [1_535_635, 3_101_495, 22]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_attempts_around_a_restart_and_two_losses_are_safe() {
    assert_safe(Bounds { losses: 2, restarts: 1, ..BOUNDS }, [1_723_927, 3_909_847, 21]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_attempts_around_the_end_of_a_quarantine_are_safe() {
    assert_safe(Bounds { ticks: 4, restarts: 1, ..BOUNDS }, [327_630, 595_351, 22]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_both_clients_are_safe() {
    assert_safe(Bounds { attempts: [2, 2], ticks: 0, ..BOUNDS }, [193_621, 936_529, 24]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_both_clients_around_a_loss_are_safe() {
    assert_safe(
        Bounds { attempts: [2, 2], ticks: 0, losses: 1, ..BOUNDS },
        [2_564_846, 12_110_849, 25],
    );
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_both_clients_around_a_restart_are_safe() {
    assert_short_form_safe(
        Bounds { attempts: [2, 2], ticks: 0, restarts: 1, ..BOUNDS },
        [884_547, 5_391_235, 26],
    );
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_both_clients_over_a_tick_are_safe() {
    assert_short_form_safe(Bounds { attempts: [2, 2], ..BOUNDS }, [5_967_120, 26_764_729, 26]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_second_attempt_around_a_lost_connection_is_safe() {
    assert_short_form_safe(
        Bounds { attempts: [2, 1], losses: 1, ..BOUNDS },
        [1_853_927, 5_321_572, 21],
    );
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_second_attempt_around_a_restart_is_safe() {
    assert_short_form_safe(
        Bounds { attempts: [2, 1], restarts: 1, ..BOUNDS },
        [2_867_637, 9_372_749, 25],
    );
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_attempts_around_all_faults_over_two_ticks_are_safe() {
    assert_short_form_safe(
        Bounds { ticks: 2, losses: 2, restarts: 1, ..BOUNDS },
        [6_243_581, 15_035_024, 23],
    );
}

/// Returns the model of a weaker wording, within bounds that are wide enough to break it.
fn weaker((_, sought, bounds, wording): (&str, Violation, Bounds, Wording)) -> Acquisition<Policy> {
    let clients = [0, 1].map(|client| {
        let attempts_max = bounds.attempts[usize::from(client)];
        Policy::new(client, attempts_max, wording, bounds.terms)
    });
    Acquisition::new(bounds, clients, Some(sought))
}

/// Returns the page's sections about the weaker wordings.
fn sections() -> Vec<String> {
    Wording::WEAKER
        .into_iter()
        .map(|wording| {
            let (name, sought, bounds, _) = wording;
            let model = weaker(wording);
            let found: Explored<Step> = search(&model, STATES_MAX);
            let found = found.counterexample.unwrap_or_else(|| panic!("nothing breaks: {name}"));
            let sought = sought.words();
            assert_eq!(found.violation, sought);
            let (faults, steps) = (faults(bounds), story(&model, &found.steps));
            format!("### {name}\n\n{faults}: {sought}.\n\n```text\n{steps}```\n")
        })
        .collect()
}

/// Returns the faults that a counterexample needs, and the TTL.
fn faults(bounds: Bounds) -> String {
    let faults = match (bounds.losses, bounds.restarts) {
        (0, 0) => "Nothing is lost",
        (0, _) => "One node restarts",
        (_, 0) => "One connection is lost",
        _ => "One node restarts, one connection is lost",
    };
    format!("{faults}, the TTL is {} ticks", bounds.terms.ttl)
}

#[test]
fn every_weaker_wording_is_unsafe_and_the_page_says_how() {
    let page = include_str!("../docs/acquisition.md");
    for section in sections() {
        assert!(page.contains(&section), "docs/acquisition.md does not have:\n\n{section}");
    }
    let mut violated: Vec<Violation> = Wording::WEAKER.iter().map(|it| it.1).collect();
    violated.sort_unstable();
    violated.dedup();
    assert_eq!(violated, Violation::ALL, "some wording violates each property");
}

#[test]
#[ignore = "prints what docs/acquisition.md has to have"]
fn prints_the_counterexamples() {
    sections().iter().for_each(|section| println!("{section}"));
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_one_client_around_a_restart_are_safe() {
    let terms = Terms { ttl: 3, drift: 1 };
    let bounds = Bounds { terms, attempts: [2, 0], ticks: 2, restarts: 1, ..BOUNDS };
    assert_safe(bounds, [194_956, 653_463, 25]);
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_one_client_around_two_losses_are_safe() {
    assert_safe(
        Bounds { attempts: [2, 0], ticks: 2, losses: 2, ..BOUNDS },
        [1_378_185, 4_462_535, 25],
    );
}

#[test]
#[ignore = "takes long; `ci/full` runs it"]
fn wider_two_attempts_of_one_client_around_both_faults_are_safe() {
    let terms = Terms { ttl: 3, drift: 1 };
    let bounds = Bounds { terms, attempts: [2, 0], ticks: 2, restarts: 1, losses: 1 };
    assert_safe(bounds, [6_345_165, 22_413_556, 29]);
}
