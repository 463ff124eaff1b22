//! Cases used by the tests of this folder.

use lock_judge::scenario::{Case, File};

/// Returns the cases of a scenario with `settings` applied: its base case is a violation, some
/// others are harmless.
pub(super) fn clock_jump(settings: &[&str]) -> Vec<Case> {
    let overrides: Vec<_> = settings.iter().map(|it| it.parse().unwrap()).collect();
    let text = include_str!("../../judge/src/scenario/testdata/clock-jump.toml");
    File::parse("clock-jump.toml", text).unwrap().cases(&overrides).unwrap()
}
