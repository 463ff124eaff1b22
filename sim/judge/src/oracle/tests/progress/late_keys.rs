//! Waiting for keys that nobody releases.

use super::super::tale::{C1, C2, Tale};
use super::keeps_failing;
use crate::history::{Answer, AttemptId, EventKind, OpKind, Settlement, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::DeadlockFree;

/// C2's SETs are executed at 9 s, behind the `releases` at these times. C1 keeps failing.
fn set_behind(releases: &[u64], until_ms: u64) -> Judgement {
    let (mut tale, nobody, its) = (Tale::new(), Writer::Nobody, Writer::Attempt(C2));
    tale.begins(C2);
    let sets = ['A', 'B', 'C'].map(|at| (tale.writes(C2, at, OpKind::Set), at));
    tale.at(50).settles(C2, Settlement::TooFewNodes);
    tale.tell(EventKind::GaveUp { client: C2.client });
    for (&at_ms, (_, at)) in releases.iter().flat_map(|it| sets.map(|set| (it, set))) {
        let release = tale.at(at_ms).writes(C2, at, OpKind::Release);
        tale.executes((release, C2, at, OpKind::Release), Answer::No, (nobody, nobody));
    }
    keeps_failing(&mut tale, C1, (1_000, 9_000));
    for (set, at) in sets {
        tale.executes((set, C2, at, OpKind::Set), Answer::Yes, (nobody, its));
    }
    keeps_failing(&mut tale, AttemptId { number: 100, ..C1 }, (9_000, 19_000));
    tale.expires(C2, "ABC");
    keeps_failing(&mut tale, AttemptId { number: 300, ..C1 }, (19_000, until_ms));
    tale.finds(DeadlockFree)
}

#[test]
fn a_key_set_behind_its_releases_excuses_waiting() {
    assert!(set_behind(&[100], 19_100).is_violated(), "it could have been released again");
    assert_eq!(set_behind(&[100, 300], 29_400), Judgement::Vacuous);
    assert!(set_behind(&[100, 300], 29_700).is_violated(), "the bound since the end is over");
}
