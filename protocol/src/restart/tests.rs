use super::*;

const TTL: Duration = Duration::from_secs(10);

fn eligibility(guard: RestartGuard) -> Eligibility {
    Eligibility::new(guard, TTL, Drift::default())
}

fn introduction(run: u8, uptime_s: u64, is_master: bool) -> Introduction {
    let (run_id, uptime) = (RunId([run; 20]), Duration::from_secs(uptime_s));
    Introduction { run_id, uptime, is_master, canary: None }
}

fn at_s(seconds: u64) -> BootInstant {
    BootInstant::from_nanos(seconds * 1_000_000_000)
}

#[test]
fn an_old_master_is_believed_at_first_contact() {
    let mut node = eligibility(RestartGuard::Quarantine);
    assert_eq!(node.from(), None);
    node.introduced(introduction(1, 12, true), at_s(100));
    assert_eq!(node.from(), Some(BootInstant::ZERO));
}

#[test]
fn a_young_master_waits_out_the_longest_lease_and_its_drift() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 2, true), at_s(100));
    assert_eq!(node.from(), Some(at_s(110).after(Duration::from_millis(102))));
}

#[test]
fn an_uptime_is_credited_at_first_contact() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 11, true), at_s(100));
    assert_eq!(node.from(), Some(at_s(101).after(Duration::from_millis(102))), "9 s of 11");
}

#[test]
fn a_changed_run_id_is_quarantined_whatever_its_uptime() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1_000, true), at_s(100));
    node.introduced(introduction(2, 1_000, true), at_s(200));
    assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
}

#[test]
fn a_reconnection_to_the_same_process_changes_nothing() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1, true), at_s(100));
    let from = node.from();
    node.introduced(introduction(1, 5, true), at_s(105));
    assert_eq!(node.from(), from);
}

#[test]
fn a_refusal_is_quarantined() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1_000, true), at_s(100));
    node.refused(at_s(200));
    assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
}

#[test]
fn an_introduction_after_a_refusal_restores_the_vote() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1, true), at_s(100));
    let from = node.from();
    node.refused(at_s(105));
    node.introduced(introduction(1, 7, true), at_s(106));
    assert_eq!(node.from(), from);
}

#[test]
fn a_refusal_does_not_make_the_next_contact_the_first() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1_000, true), at_s(100));
    node.refused(at_s(200));
    node.introduced(introduction(2, 1_000, true), at_s(300));
    assert_eq!(node.from(), Some(at_s(310).after(Duration::from_millis(102))));
}

#[test]
fn a_replica_never_votes_even_when_durable() {
    for guard in [RestartGuard::Durable, RestartGuard::Quarantine] {
        let mut node = eligibility(guard);
        node.introduced(introduction(1, 1_000, false), at_s(100));
        assert_eq!(node.from(), None, "{guard:?}");
    }
}

#[test]
fn a_replica_that_becomes_master_is_quarantined() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(introduction(1, 1_000, false), at_s(100));
    node.introduced(introduction(1, 1_000, true), at_s(200));
    assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
}

#[test]
fn promises_are_taken_at_their_word() {
    for guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
        let mut node = eligibility(guard);
        node.introduced(introduction(1, 0, true), at_s(100));
        node.introduced(introduction(2, 0, true), at_s(200));
        assert_eq!(node.from(), Some(BootInstant::ZERO), "{guard:?}");
    }
}

// ---- with a canary

/// A master whose canary has the name `memory`, belongs to `history` and is `age_s` old.
fn with_canary(run: u8, memory: &str, history: &str, age_s: u64) -> Introduction {
    let (memory, history) = (Digest::of(memory.as_bytes()), Digest::of(history.as_bytes()));
    let canary = Canary { memory, history, age: Duration::from_secs(age_s) };
    Introduction { canary: Some(canary), ..introduction(run, 1_000, true) }
}

const GUARDS: [RestartGuard; 3] =
    [RestartGuard::Durable, RestartGuard::DelayedRestart, RestartGuard::Quarantine];

/// Returns the eligibility of a node that gives the introduction `first` at 100 s and `then` at
/// 200 s.
fn from_after(guard: RestartGuard, first: Introduction, then: Introduction) -> BootInstant {
    let mut node = eligibility(guard);
    node.introduced(first, at_s(100));
    node.introduced(then, at_s(200));
    node.from().expect("a master")
}

/// End of a quarantine that begins at 200 s.
fn quarantined() -> BootInstant {
    at_s(210).after(Duration::from_millis(102))
}

#[test]
fn first_contact_is_judged_by_the_canarys_age_not_the_uptime() {
    for (age_s, from) in [
        (0, at_s(110).after(Duration::from_millis(102))),
        (4, at_s(106).after(Duration::from_millis(102))),
        (10, at_s(100).after(Duration::from_millis(102))),
        (11, BootInstant::ZERO),
    ] {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(with_canary(1, "m", "h", age_s), at_s(100));
        assert_eq!(node.from(), Some(from), "{age_s} s");
    }
}

#[test]
fn promise_is_believed_at_first_contact_at_any_canary_age() {
    for guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
        let mut node = eligibility(guard);
        node.introduced(with_canary(1, "m", "h", 0), at_s(100));
        assert_eq!(node.from(), Some(BootInstant::ZERO), "{guard:?}");
    }
}

#[test]
fn a_new_data_set_in_one_process_overrides_promises() {
    let (first, then) = (with_canary(1, "m", "h", 1_000), with_canary(1, "other", "h", 1_000));
    for guard in GUARDS {
        assert_eq!(from_after(guard, first, then), quarantined(), "{guard:?}");
    }
}

#[test]
fn a_new_data_set_counts_only_after_a_delayed_restart() {
    let (first, then) = (with_canary(1, "m", "h", 1_000), with_canary(2, "other", "i", 0));
    assert_eq!(from_after(RestartGuard::DelayedRestart, first, then), BootInstant::ZERO);
    assert_eq!(from_after(RestartGuard::Durable, first, then), quarantined());
    assert_eq!(from_after(RestartGuard::Quarantine, first, then), quarantined());
}

#[test]
fn a_restart_that_kept_its_keys_is_judged_by_the_guard() {
    let (first, then) = (with_canary(1, "m", "h", 1_000), with_canary(2, "m", "i", 0));
    assert_eq!(from_after(RestartGuard::Durable, first, then), BootInstant::ZERO);
    assert_eq!(from_after(RestartGuard::DelayedRestart, first, then), BootInstant::ZERO);
    assert_eq!(from_after(RestartGuard::Quarantine, first, then), quarantined());
}

#[test]
fn an_old_data_set_in_another_history_overrides_promises() {
    let (first, then) = (with_canary(1, "m", "h", 1_000), with_canary(1, "m", "i", 0));
    for guard in GUARDS {
        assert_eq!(from_after(guard, first, then), quarantined(), "{guard:?}");
    }
}

#[test]
fn a_former_replica_is_quarantined_despite_any_promise() {
    let first = Introduction { is_master: false, canary: None, ..introduction(1, 1_000, true) };
    for guard in GUARDS {
        let from = from_after(guard, first, with_canary(1, "m", "h", 1_000));
        assert_eq!(from, quarantined(), "{guard:?}");
    }
}

#[test]
fn a_loss_that_was_noticed_is_waited_out_by_our_own_clock() {
    for guard in GUARDS {
        let mut node = eligibility(guard);
        node.introduced(with_canary(1, "m", "h", 1_000), at_s(100));
        node.introduced(with_canary(1, "other", "h", 0), at_s(200));
        // The node's clock was set forward.
        node.introduced(with_canary(1, "other", "h", 5_000), at_s(201));
        assert_eq!(node.from(), Some(quarantined()), "{guard:?}");
        node.refused(at_s(202));
        assert!(node.from() >= Some(quarantined()), "{guard:?}");
        node.introduced(with_canary(1, "other", "h", 5_001), at_s(203));
        assert_eq!(node.from(), Some(quarantined()), "{guard:?}");
    }
}

#[test]
fn last_canary_is_kept_while_the_canary_is_unreadable() {
    let mut node = eligibility(RestartGuard::Durable);
    node.introduced(with_canary(1, "m", "h", 1_000), at_s(100));
    node.introduced(introduction(1, 1_000, true), at_s(150));
    assert_eq!(node.from(), Some(BootInstant::ZERO));
    node.introduced(with_canary(1, "other", "h", 0), at_s(200));
    assert_eq!(node.from(), Some(quarantined()));
}

#[test]
fn node_that_serves_again_unchanged_counts_as_before() {
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(with_canary(1, "m", "h", 1_000), at_s(100));
    node.stopped_serving();
    assert_eq!(node.from(), None);
    node.introduced(with_canary(1, "m", "h", 1_100), at_s(200));
    assert_eq!(node.from(), Some(BootInstant::ZERO));
}
