//! How much of each case a page shows, so that it stays small: the words always; the pictures of
//! cases that turn out as none before them first, then those of the others, while there is room.

use maud::{Markup, PreEscaped};

use super::case;
use crate::report::Played;
use crate::scenario::Property;
use crate::search::Observed;

/// About the most bytes that the cases of a page take.
const BYTES: usize = 178_000;

/// How much is shown of the runs of one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    /// Who held what.
    pub(super) ownership: bool,
    /// At most so many messages; none at all for 0.
    pub(super) messages: usize,
    /// At most so many events; none at all for 0.
    pub(super) events: usize,
}

impl Detail {
    const WORDS: Self = Self { ownership: false, messages: 0, events: 0 };
    const SMALL: Self = Self { ownership: true, messages: 0, events: 0 };
    const FULL: Self = Self { ownership: true, messages: 80, events: 300 };

    /// From much to little.
    const BETTER: [Self; 3] =
        [Self::FULL, Self { ownership: true, messages: 40, events: 60 }, Self::SMALL];
}

/// The cases of a page, one after the other.
pub(super) fn cases(played: &[&Played]) -> Vec<Markup> {
    let draw = |place: usize, detail: Detail| case(played[place], detail).into_string();
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

/// The places of the cases, those first that turn out as none before them.
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
