//! What the tests of this folder play.

use crate::scenario::{Case, File};

/// A scenario whose verdict is a violation, with some harmless cases; with `settings`.
pub(super) fn clock_jump(settings: &[&str]) -> Vec<Case> {
    let overrides: Vec<_> = settings.iter().map(|it| it.parse().unwrap()).collect();
    let text = include_str!("../scenario/testdata/clock-jump.toml");
    File::parse("clock-jump.toml", text).unwrap().cases(&overrides).unwrap()
}
