//! Cases and campaigns used by the tests of this folder.

use core::ops::Range;
use core::sync::atomic::AtomicBool;

use lock_judge::scenario::{Case, File};

use super::{Campaign, CaseResult, Engine};
use crate::part::Part;

/// Returns the cases of a scenario with `settings` applied: its base case is a violation, some
/// others are harmless.
pub(super) fn clock_jump(settings: &[&str]) -> Vec<Case> {
    let overrides: Vec<_> = settings.iter().map(|it| it.parse().unwrap()).collect();
    let text = include_str!("../../judge/src/scenario/testdata/clock-jump.toml");
    File::parse("clock-jump.toml", text).unwrap().cases(&overrides).unwrap()
}

/// Runs `case` on the engine `event`, on as many threads.
pub(super) fn play(case: &Case, seeds: Range<u64>, threads: usize) -> CaseResult {
    let stop = AtomicBool::new(false);
    let campaign = Campaign {
        case,
        engine: Engine::Event,
        seeds,
        part: Part::WHOLE,
        is_checked: false,
        stop: &stop,
        progress: &|_| {},
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| campaign.play()).unwrap()
}
