//! Shrinks a round to the shortest one that still shows a difference.

use std::io;

use crate::play::{Difference, Judge};
use crate::round::Round;

/// Maximum number of rounds that are played to shrink one.
const TRIES_MAX: usize = 300;

/// Removes items from `round` as long as the servers still differ on the rest.
pub(crate) fn shrink(
    judge: &mut Judge<'_>,
    mut round: Round,
    mut difference: Difference,
) -> io::Result<(Round, Difference)> {
    round.items.truncate(difference.at + 1);
    let mut size = round.items.len().div_ceil(2);
    let mut tries = 0;
    while size > 0 && tries < TRIES_MAX {
        let mut at = 0;
        while at < round.items.len() && tries < TRIES_MAX {
            let mut shorter = round.clone();
            let end = (at + size).min(shorter.items.len());
            shorter.items.drain(at..end);
            shorter.unjoin();
            tries += 1;
            match judge.play(&shorter)?.1 {
                Some(found) => {
                    shorter.items.truncate(found.at + 1);
                    (round, difference) = (shorter, found);
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    Ok((round, difference))
}
