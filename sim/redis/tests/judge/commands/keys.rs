//! Commands on keys, with their options.

use super::{Words, pick_words, words};
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{at_milliseconds, at_seconds, in_some_case, key, milliseconds, seconds, value};

pub(super) fn set(dice: &mut Dice) -> Words {
    let mut command = words(dice, "SET", &[key, value]);
    let mut options: Vec<Words> = Vec::new();
    // Half of the time, the options that lock clients send.
    if dice.once_in(2) {
        options.push(vec![in_some_case(dice, "NX")]);
        options.push(vec![in_some_case(dice, "PX"), milliseconds(dice)]);
    } else {
        for _ in 0..dice.below(4) {
            let option = expiry(dice);
            options.push(option);
        }
    }
    dice.shuffle(&mut options);
    command.extend(options.into_iter().flatten());
    command
}

fn expiry(dice: &mut Dice) -> Words {
    let name = dice.pick(&["NX", "XX", "GET", "KEEPTTL", "PX", "PX", "EX", "PXAT", "EXAT", "IFEQ"]);
    let mut option = vec![in_some_case(dice, name)];
    match name {
        "PX" => option.push(milliseconds(dice)),
        "EX" => option.push(seconds(dice)),
        "PXAT" => option.push(at_milliseconds(dice)),
        "EXAT" => option.push(at_seconds(dice)),
        "IFEQ" => option.push(value(dice)),
        _ => {}
    }
    option
}

pub(super) fn getex(dice: &mut Dice) -> Words {
    let mut command = words(dice, "GETEX", &[key]);
    match dice.below(3) {
        0 => {}
        1 => command.push(in_some_case(dice, "PERSIST")),
        _ => command.extend(expiry(dice)),
    }
    command
}

pub(super) fn several(dice: &mut Dice) -> Words {
    let name = dice.pick(&["DEL", "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "MSET", "MSETNX"]);
    let mut command = vec![in_some_case(dice, name)];
    for _ in 0..1 + dice.below(3) {
        command.push(key(dice));
        if name.starts_with("MSET") {
            command.push(value(dice));
        }
    }
    command
}

pub(super) fn expire(dice: &mut Dice) -> Words {
    let (name, when): (&str, fn(&mut Dice) -> Word) = dice.weighted(&[
        (8, ("PEXPIRE", milliseconds as fn(&mut Dice) -> Word)),
        (3, ("EXPIRE", seconds)),
        (3, ("PEXPIREAT", at_milliseconds)),
        (2, ("EXPIREAT", at_seconds)),
    ]);
    let mut command = words(dice, name, &[key, when]);
    for _ in 0..dice.weighted(&[(4, 0), (4, 1), (2, 2), (1, 3)]) {
        let option = dice.pick(&["NX", "XX", "GT", "LT"]);
        command.push(in_some_case(dice, option));
    }
    command
}

/// Draws a command that only some servers know.
pub(super) fn conditional(dice: &mut Dice) -> Words {
    match dice.below(4) {
        0 => words(dice, "DELIFEQ", &[key, value]),
        1 => words(dice, "DELEX", &[key, |dice| in_some_case(dice, "IFEQ"), value]),
        2 => words(dice, "DELEX", &[key]),
        _ => words(dice, "DIGEST", &[key]),
    }
}

pub(super) fn moved(dice: &mut Dice) -> Words {
    let mut command = match dice.below(6) {
        0 | 1 => pick_words(dice, &["RENAME", "RENAMENX"], &[key, key]),
        2 | 3 => words(dice, "COPY", &[key, key]),
        4 => words(dice, "MOVE", &[key, |dice| Word::text(dice.pick(&["0", "1", "99", "x"]))]),
        _ => words(dice, "SWAPDB", &[|_| Word::text("0"), |_| Word::text("1")]),
    };
    if command.len() == 3 && dice.once_in(4) {
        command.push(in_some_case(dice, "REPLACE"));
    }
    if command.len() > 2 && dice.once_in(6) {
        command.extend([in_some_case(dice, "DB"), Word::text(dice.pick(&["0", "1", "16"]))]);
    }
    command
}

/// Draws a command that lists keys, with a pattern that matches at most one: no server promises an
/// order.
pub(super) fn found(dice: &mut Dice) -> Words {
    let pattern = |dice: &mut Dice| {
        Word::text(dice.pick(&[
            "lock:a",
            "c",
            "lock:[b-z]",
            "loc?:b",
            "[^ab]ock:b",
            "nosuch*",
            "\\c",
        ]))
    };
    match dice.below(3) {
        0 => words(dice, "KEYS", &[pattern]),
        1 => {
            let mut command = words(dice, "SCAN", &[|_| Word::text("0")]);
            command.push(in_some_case(dice, "MATCH"));
            command.push(pattern(dice));
            command.extend(words(dice, "COUNT", &[|_| Word::text("100")]));
            command
        }
        _ => words(
            dice,
            "SCAN",
            &[|_| Word::text("abc"), |dice| in_some_case(dice, "MATCH"), pattern],
        ),
    }
}
