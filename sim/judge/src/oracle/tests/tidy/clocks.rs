//! Clocks of clients that run too slowly or too fast for a release.

use super::super::tale::{C1, Tale, host, node};
use crate::history::{ClockKind, EventKind};
use crate::oracle::Judgement;
use crate::scenario::Property::Tidy;

#[test]
fn a_slow_clock_of_a_client_prolongs_the_bound() {
    let judged = |ppm: i32, until_ms| {
        let mut tale = Tale::new();
        let clock = toml::from_str(&format!("rate-ppm = {ppm}")).expect("a clock");
        tale.scenario.cluster.clocks.insert(String::from("c1"), clock);
        tale.acquires(C1, "ABC").at(1_000).releases(C1).unlocks(C1, "AB").at(until_ms).finds(Tidy)
    };
    assert!(judged(0, 1_565).is_violated());
    assert_eq!(judged(-500_000, 2_128), Judgement::Vacuous);
    assert!(judged(-500_000, 2_129).is_violated());
}

#[test]
fn a_fast_clock_by_which_an_owed_release_expires_is_blamed() {
    let judged = |rate_ppb| {
        let mut tale = Tale::new();
        tale.runs_at(host(C1), ClockKind::Boot, rate_ppb).acquires(C1, "ABC");
        tale.at(100).tell(EventKind::NodeDown { node: node('C'), power: false });
        tale.at(101).releases(C1).unlocks(C1, "AB");
        tale.at(7_000).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(9_900).blame(Tidy)
    };
    assert_eq!(judged(0), ["none"]);
    assert_eq!(judged(500_000_000), ["clock(c1)"]);
}
