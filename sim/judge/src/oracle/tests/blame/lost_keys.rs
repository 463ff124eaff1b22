//! Blame for keys that a node has lost.

use super::*;

#[test]
fn a_restart_that_lost_the_key_is_amnesia() {
    for cause in [KeyEnd::Restarted, KeyEnd::Flushed, KeyEnd::Evicted] {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", cause, Writer::Nobody);
        tale.at(1_100).acquires(C2, "CDE").at(20_000);
        assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"], "{cause:?}");
    }
}

#[test]
fn a_lost_key_that_would_have_expired_is_not_blamed() {
    let blame = |taken_at_ms| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").runs_at(host(C1), ClockKind::Boot, -500_000_000);
        tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
        tale.at(taken_at_ms).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(9_990), ["amnesia(C)"]);
    assert_eq!(blame(10_010), ["clock(c1)"]);
}

#[test]
fn no_lease_needs_a_lost_key_for_longer_than_its_ttl() {
    let blame = |taken_at_ms| {
        let mut tale = Tale::new();
        // By C's clock the key would live for twice its TTL.
        tale.runs_at(C, ClockKind::Wall, -500_000_000).acquires(C1, "ABC");
        tale.runs_at(host(C1), ClockKind::Boot, -500_000_000);
        tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
        tale.at(taken_at_ms).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(9_990), ["amnesia(C)"]);
    assert_eq!(blame(10_010), ["clock(c1)"]);
}

#[test]
fn a_lost_key_is_not_blamed_if_the_last_extension_is_over() {
    let blame = |taken_at_ms| {
        let mut tale = Tale::new();
        tale.with_extensions(3).acquires(C1, "ABC");
        tale.runs_at(host(C1), ClockKind::Boot, -500_000_000);
        tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
        tale.at(2_000).extends(C1, "AB").at(12_000).expires(C1, "AB");
        tale.at(taken_at_ms).acquires(C2, "ACE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(12_010), ["clock(c1)"]);
}

#[test]
fn a_fast_clock_that_ends_a_quarantine_is_blamed_for_a_loss() {
    let blame = |rate_ppb, taken_at_ms| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").runs_at(host(C2), ClockKind::Boot, rate_ppb);
        tale.at(1_000).ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
        let from_local_ns = tale.reads_ns(host(C2), ClockKind::Boot) + 5_000 * MS;
        let (client, node) = (C2.client, node('C'));
        tale.tell(EventKind::Eligible { client, node, from_local_ns });
        tale.at(taken_at_ms).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(500_000_000, 5_900), ["clock(c2)"]);
    assert_eq!(blame(500_000_000, 6_100), ["amnesia(C)"]);
}

#[test]
fn a_quarantine_that_begins_after_the_vote_did_not_end_early() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "C", KeyEnd::Flushed, Writer::Nobody);
    tale.at(1_001).acquires(C2, "CDE");
    let from_local_ns = tale.reads_ns(host(C2), ClockKind::Boot) + 5_000 * MS;
    let (client, node) = (C2.client, node('C'));
    tale.at(1_100).tell(EventKind::Eligible { client, node, from_local_ns });
    tale.at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"]);
}

#[test]
fn an_attempt_before_the_introduction_ends_no_quarantine() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).begins(C2);
    tale.ends_key(C1, "C", KeyEnd::Restarted, Writer::Nobody);
    let (client, node) = (C2.client, node('C'));
    tale.at(1_001).tell(EventKind::Eligible { client, node, from_local_ns: 0 });
    tale.at(1_002).sets(C2, "CDE").decides(C2, "CDE").delivers(C2).at(30_000);
    assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"]);
}

#[test]
fn a_key_that_forgets_its_last_extension_is_amnesia() {
    let blame = |expires_wall_ms| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(3_000).extends(C1, "ABC");
        tale.at(12_000).tell(EventKind::KeyEnded {
            node: node('C'),
            writer: Writer::Attempt(C1),
            cause: KeyEnd::Expired,
            by: Writer::Nobody,
            expires_wall_ms,
        });
        tale.at(12_100).acquires(C2, "CDE").at(30_000).blame(MutualExclusion)
    };
    assert_eq!(blame(1_000_000 + 10_001), ["amnesia(C)"]);
    assert_eq!(blame(1_000_000 + 13_001), ["none"]);
}

#[test]
fn so_is_one_that_is_lost_after_it_forgot_the_extension() {
    for expires_wall_ms in [1_000_000 + 10_001, 1_000_000 + 13_001] {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(3_000).extends(C1, "ABC");
        tale.at(3_100).tell(EventKind::KeyEnded {
            node: node('C'),
            writer: Writer::Attempt(C1),
            cause: KeyEnd::Restarted,
            by: Writer::Nobody,
            expires_wall_ms,
        });
        tale.at(12_100).acquires(C2, "CDE").at(30_000);
        assert_eq!(tale.blame(MutualExclusion), ["amnesia(C)"]);
    }
}
