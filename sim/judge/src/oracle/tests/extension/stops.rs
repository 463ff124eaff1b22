//! Stops of a process between what it decides, and what it reports and writes.

use super::super::tale::C1;
use super::c1_holds;
use crate::history::OpKind;
use crate::oracle::Judgement;
use crate::scenario::Property::SoundGrant;

#[test]
fn an_extension_may_be_reported_but_not_decided_after_a_stop() {
    let reported = |runs_for_ms: u64| {
        let mut tale = c1_holds();
        tale.at(9_000).begins_extension(C1).retimes(C1, C1, "ABC");
        tale.at(9_000 + runs_for_ms).stops(C1).at(12_000).continues(C1);
        let until_ns = tale.extended_until_ns(C1);
        tale.succeeds(C1, "ABC", until_ns).finds(SoundGrant)
    };
    assert_eq!(reported(0), Judgement::Holds);
    assert!(reported(1).is_violated());
}

#[test]
fn a_process_may_stop_between_its_last_look_and_a_command() {
    for op in [OpKind::Set, OpKind::Extend] {
        let written = |late_ms: u64| {
            let mut tale = c1_holds();
            tale.at(5_000).stops(C1).at(11_000).continues(C1).at(11_000 + late_ms);
            tale.writes(C1, 'E', op);
            tale.finds(SoundGrant)
        };
        assert_eq!(written(0), Judgement::Holds, "{op:?}");
        assert!(written(1).is_violated(), "{op:?}");
    }
}
