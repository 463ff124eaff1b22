//! Random commands on client-side caching.

use crate::commands::words;
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{anything, in_some_case};

/// Returns the commands that turn tracking on, mostly on a connection that speaks RESP3.
pub(crate) fn begin(dice: &mut Dice) -> Vec<Vec<Word>> {
    let version = if dice.once_in(8) { "2" } else { "3" };
    vec![vec![Word::text("HELLO"), Word::text(version)], turn_on(dice)]
}

/// Draws `CLIENT TRACKING` or a related command, valid or invalid.
pub(crate) fn command(dice: &mut Dice) -> Vec<Word> {
    match dice.below(16) {
        0..=3 => turn_on(dice),
        4 => of_client(dice, &["TRACKING", "OFF"]),
        5..=9 => of_client(dice, &["CACHING", "YES"]),
        10 => of_client(dice, &["CACHING", "NO"]),
        11 => of_client(dice, &["TRACKINGINFO"]),
        12 => of_client(dice, &["GETREDIR"]),
        13 => contradiction(dice),
        14 => {
            let mut command = of_client(dice, &["CACHING"]);
            command.extend((0..dice.below(3)).map(|_| anything(dice)));
            command
        }
        _ => {
            let mut command = of_client(dice, &["TRACKING"]);
            command.extend((0..dice.below(3)).map(|_| anything(dice)));
            command
        }
    }
}

fn of_client(dice: &mut Dice, rest: &[&str]) -> Vec<Word> {
    let mut command = words(dice, "CLIENT", &[]);
    command.extend(rest.iter().map(|word| in_some_case(dice, word)));
    command
}

fn turn_on(dice: &mut Dice) -> Vec<Word> {
    let mut command = of_client(dice, &["TRACKING", "ON"]);
    let options: &[&str] = dice.weighted(&[
        (6, &[] as &[&str]),
        (4, &["NOLOOP"]),
        (5, &["OPTIN"]),
        (3, &["OPTIN", "NOLOOP"]),
        (2, &["OPTOUT"]),
        (1, &["NOLOOP", "OPTOUT", "NOLOOP"]),
        (1, &["OPTIN", "OPTOUT"]),
    ]);
    command.extend(options.iter().map(|option| in_some_case(dice, option)));
    command
}

/// Draws options that servers refuse, or that `OFF` ignores. Valid broadcasts are left out, because
/// the simulated server does not support them; `channels` has redirections.
fn contradiction(dice: &mut Dice) -> Vec<Word> {
    let rest: &[&str] = dice.weighted(&[
        (1, &["ON", "PREFIX", "lock:"] as &[&str]),
        (1, &["ON", "PREFIX"]),
        (1, &["ON", "BCAST", "OPTIN"]),
        (1, &["ON", "OPTOUT", "BCAST", "PREFIX", "lock:"]),
        (1, &["ON", "BCAST", "PREFIX", "lock:", "PREFIX", "lock:a", "NOLOOP"]),
        (1, &["ON", "REDIRECT", "0"]),
        (1, &["ON", "REDIRECT", "-1"]),
        (1, &["OFF", "REDIRECT", "9223372036854775807"]),
        (1, &["ON", "REDIRECT", "x"]),
        (1, &["OFF", "REDIRECT"]),
        (1, &["OFF", "BCAST", "OPTIN", "OPTOUT", "PREFIX", "a"]),
        (1, &["NEITHER", "BCAST", "OPTIN"]),
    ]);
    let mut command = of_client(dice, &["TRACKING"]);
    command.extend(rest.iter().map(|word| in_some_case(dice, word)));
    command
}
