//! Fits a page into its size limit. The text of every case is always shown. Pictures are added
//! while there is room: first for cases whose verdicts no earlier case has, then for the others.

use lock_judge::scenario::Property;
use maud::{Markup, PreEscaped};
use redlock_sim::search::Observed;

use super::run::{self, Run};
use super::{case, setting};
use crate::report::Played;

/// Approximate maximum size of the cases of a page, in bytes.
const BYTES: usize = 140_000;

/// Amount of detail shown for the runs of one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// True if the ownership chart is shown.
    pub(super) ownership: bool,
    /// Maximum number of messages; 0 leaves out the diagram.
    pub(super) messages: usize,
    /// Maximum number of events; 0 leaves out the table.
    pub(super) events: usize,
}

impl Detail {
    const WORDS: Self = Self { ownership: false, messages: 0, events: 0 };
    const SMALL: Self = Self { ownership: true, messages: 0, events: 0 };
    const FULL: Self = Self { ownership: true, messages: 80, events: 300 };

    /// Levels of detail with pictures, the most detailed first.
    const BETTER: [Self; 3] =
        [Self::FULL, Self { ownership: true, messages: 40, events: 60 }, Self::SMALL];
}

/// Draws the cases of a page, in order.
pub(super) fn cases(played: &[&Played]) -> Vec<Markup> {
    let usual = played.first().map(|one| setting(&one.result)).unwrap_or_default();
    let runs: Vec<Vec<Run<'_>>> = played.iter().map(|one| run::read(one)).collect();
    let draw = |place: usize, detail: Detail| {
        case(played[place], &runs[place], detail, &usual).into_string()
    };
    let mut drawn: Vec<String> = (0..played.len()).map(|it| draw(it, Detail::WORDS)).collect();
    let mut total: usize = drawn.iter().map(String::len).sum();
    for place in order(played) {
        for detail in Detail::BETTER {
            let better = draw(place, detail);
            if total - drawn[place].len() + better.len() <= BYTES {
                total = total - drawn[place].len() + better.len();
                drawn[place] = better;
                break;
            }
        }
    }
    drawn.into_iter().map(PreEscaped).collect()
}

/// Returns the indices of the cases, those first whose verdicts no earlier case has.
fn order(played: &[&Played]) -> Vec<usize> {
    let signature = |one: &Played| -> Vec<(Property, Observed)> {
        one.result.properties.iter().map(|it| (it.property, it.observed)).collect()
    };
    let mut seen: Vec<Vec<(Property, Observed)>> = Vec::new();
    let (mut new, mut known) = (Vec::new(), Vec::new());
    for (place, one) in played.iter().enumerate() {
        let signature = signature(one);
        if seen.contains(&signature) {
            known.push(place);
        } else {
            seen.push(signature);
            new.push(place);
        }
    }
    new.append(&mut known);
    new
}
