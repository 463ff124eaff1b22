use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn eligibility(guard: RestartGuard) -> Eligibility {
    Eligibility::new(guard, TTL, Drift::default())
}

fn introduction(run: u8, uptime_s: u64, is_master: bool) -> Introduction {
    let (run_id, uptime) = (RunId([run; 20]), Duration::from_secs(uptime_s));
    Introduction { run_id, uptime, is_master, succession: None, canary: None }
}

fn replica(run: u8) -> Introduction {
    introduction(run, 1_000, false)
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

#[test]
fn the_uptime_of_a_successor_proves_nothing() {
    let successor = |history: &str| {
        let succession = Some(Digest::of(history.as_bytes()));
        Introduction { succession, ..introduction(1, 1_000, true) }
    };
    let mut node = eligibility(RestartGuard::Quarantine);
    node.introduced(successor("one"), at_s(200));
    assert_eq!(node.from(), Some(quarantined()));
    node.introduced(successor("one"), at_s(300));
    assert_eq!(node.from(), Some(quarantined()), "it took over before");
    for before in [introduction(1, 1_000, true), successor("one")] {
        for guard in GUARDS {
            assert_eq!(from_after(guard, before, successor("two")), quarantined(), "{guard:?}");
        }
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
    for guard in GUARDS {
        let from = from_after(guard, replica(1), with_canary(1, "m", "h", 1_000));
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
        // It is made a replica of a server that it does not reach, and restarts as a master.
        node.introduced(replica(1), at_s(204));
        assert_eq!(node.from(), None, "{guard:?}");
        node.introduced(with_canary(2, "other", "i", 0), at_s(205));
        assert!(node.from() >= Some(quarantined()), "{guard:?}");
    }
}

#[test]
fn a_former_replica_is_quarantined_also_after_a_restart() {
    let then = with_canary(2, "m", "i", 0);
    assert_eq!(from_after(RestartGuard::Durable, replica(1), then), quarantined());
    assert_eq!(from_after(RestartGuard::Quarantine, replica(1), then), quarantined());
    // The restart was waited out.
    assert_eq!(from_after(RestartGuard::DelayedRestart, replica(1), then), BootInstant::ZERO);
}

#[test]
fn a_known_canary_quarantines_a_refusal_despite_a_promise() {
    for guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
        let refused = |before: Introduction| {
            let mut node = eligibility(guard);
            node.introduced(before, at_s(100));
            node.refused(at_s(200));
            let from = node.from();
            node.introduced(before, at_s(201));
            (from, node.from())
        };
        let counts = Some(BootInstant::ZERO);
        assert_eq!(refused(with_canary(1, "m", "h", 1_000)), (Some(quarantined()), counts));
        assert_eq!(refused(introduction(1, 1_000, true)), (counts, counts), "{guard:?}");
    }
}

#[test]
fn a_former_replica_that_refuses_is_quarantined() {
    for guard in GUARDS {
        let mut node = eligibility(guard);
        node.introduced(with_canary(1, "m", "h", 1_000), at_s(100));
        node.introduced(replica(1), at_s(150));
        node.refused(at_s(200));
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

// ---- in any order

/// A server at the node's place, as an omniscient observer sees it.
#[derive(Clone, Copy)]
struct Server {
    run: u8,
    memory: u8,
    history: u8,
    is_master: bool,
}

impl Server {
    fn introduction(self, reads_canary: bool) -> Introduction {
        let of = |number: u8| Digest::of(&[number]);
        let canary =
            Canary { memory: of(self.memory), history: of(self.history), age: Duration::ZERO };
        Introduction {
            canary: (self.is_master && reads_canary).then_some(canary),
            ..introduction(self.run, 0, self.is_master)
        }
    }
}

/// A model of the client's knowledge: the introductions that it has read, and when they last showed a
/// loss.
#[derive(Clone, Copy, Default)]
struct Seen {
    introduced: Option<Server>,
    memory: Option<u8>,
    lost_at: Option<BootInstant>,
}

impl Seen {
    /// Records an introduction. A loss is noticed if the canary is another one, if the history is
    /// another one in the same process, or if a replica has become a master. The promise of a
    /// delayed restart excuses a loss that came with a new process.
    fn introduced(&mut self, guard: RestartGuard, server: Server, reads: bool, now: BootInstant) {
        let reads = reads && server.is_master;
        if let Some(last) = self.introduced.filter(|_| server.is_master) {
            let is_other = reads && self.memory.is_some_and(|it| it != server.memory);
            let is_elsewhere = reads && self.memory.is_some() && last.history != server.history;
            let restarted = last.run != server.run;
            let lost = is_other || !last.is_master || !restarted && is_elsewhere;
            if lost && !(restarted && guard == RestartGuard::DelayedRestart) {
                self.lost_at = Some(now);
            }
        }
        // The history of the last canary that was read is compared.
        let history = match (reads, self.introduced) {
            (false, Some(last)) => last.history,
            _ => server.history,
        };
        self.introduced = Some(Server { history, ..server });
        self.memory = if reads { Some(server.memory) } else { self.memory };
    }
}

fn play(guard: RestartGuard, steps: &[(u8, u8, u8)]) {
    let mut node = eligibility(guard);
    let mut server = Server { run: 0, memory: 0, history: 0, is_master: true };
    let mut seen = Seen::default();
    for (second, &(change, moves, answer)) in (100..).zip(steps) {
        match change {
            0 => server.run += 1,
            1 => server.memory += 1,
            2 => server.is_master = !server.is_master,
            _ => {}
        }
        server.history += u8::from(moves == 0);
        let now = at_s(second);
        match answer {
            0 => node.refused(now),
            1 => node.stopped_serving(),
            _ => {
                let reads = answer != 2;
                seen.introduced(guard, server, reads, now);
                node.introduced(server.introduction(reads), now);
            }
        }
        let end = seen.lost_at.map(|at| at.after(quarantine(TTL, Drift::default())));
        let is_early = end.is_some_and(|end| node.from().is_some_and(|from| from < end));
        assert!(!is_early, "{guard:?}, {second} s: {node:?} before {end:?}");
    }
}

proptest! {
    #[test]
    fn no_vote_counts_within_the_quarantine_of_a_noticed_loss(
        guard in prop::sample::select(GUARDS.to_vec()),
        steps in prop::collection::vec((0..4_u8, 0..8_u8, 0..6_u8), 2..12),
    ) {
        play(guard, &steps);
    }
}
