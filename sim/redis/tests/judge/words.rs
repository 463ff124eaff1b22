//! Random arguments: few keys, so that they collide, and every kind of invalid number.

use bytes::Bytes;

use crate::dice::Dice;
use crate::round::Word;

/// The keys of a round.
pub(crate) const KEYS: [&[u8]; 8] = [
    b"lock:a",
    b"lock:b",
    b"c",
    b"",
    b"\x00\xff\r\n$3",
    b"{tag}a key longer than twenty-two bytes",
    b"h:x",
    b"l:x",
];

const VALUES: [&[u8]; 12] = [
    b"token-a",
    b"token-b",
    b"",
    b"0",
    b"10",
    b"-7",
    b"9223372036854775807",
    b"9223372036854775800",
    b" 1",
    b"3.0",
    b"\x00\x01\xfe\xff\r\n\x00 20 bytes",
    b"a value that is longer than what fits into forty-four bytes of an object",
];

/// Texts that parse as an integer, and texts that nearly do.
const INTEGERS: [&str; 26] = [
    "0",
    "1",
    "-1",
    "2",
    "10",
    "100",
    "1000",
    "-1000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "9223372036854775",
    "9223372036854776",
    "92233720368547758070",
    "+1",
    " 1",
    "1 ",
    "01",
    "-0",
    "1.5",
    "1e3",
    "abc",
    "",
    "0x10",
    "18446744073709551615",
];

pub(crate) fn is(bytes: &[u8]) -> Word {
    Word::Is(Bytes::copy_from_slice(bytes))
}

/// Returns `name` in capitals, in small letters or in a mixture.
pub(crate) fn in_some_case(dice: &mut Dice, name: &str) -> Word {
    match dice.below(4) {
        0 | 1 => Word::text(name),
        2 => Word::text(&name.to_ascii_lowercase()),
        _ => {
            let change = |letter: char| {
                if dice.once_in(2) { letter.to_ascii_lowercase() } else { letter }
            };
            Word::text(&name.chars().map(change).collect::<String>())
        }
    }
}

pub(crate) fn key(dice: &mut Dice) -> Word {
    let number = dice.weighted(&[(6, 0), (4, 1), (2, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7)]);
    is(KEYS[number])
}

pub(crate) fn value(dice: &mut Dice) -> Word {
    if dice.once_in(40) {
        return is(&vec![b'x'; 1 << dice.below(15)]);
    }
    is(dice.pick(&VALUES))
}

/// Draws any number.
pub(crate) fn integer(dice: &mut Dice) -> Word {
    match dice.below(4) {
        0 => Word::text(&dice.between(-20, 20).to_string()),
        1 => Word::text(&dice.between(-100_000, 100_000).to_string()),
        _ => Word::text(dice.pick(&INTEGERS)),
    }
}

/// Draws a time to live in milliseconds; some end within the round.
pub(crate) fn milliseconds(dice: &mut Dice) -> Word {
    match dice.below(10) {
        0..=3 => Word::text(&dice.between(1, 12).to_string()),
        4..=6 => Word::text(&dice.between(100, 100_000).to_string()),
        7 => Word::text("30000"),
        _ => integer(dice),
    }
}

pub(crate) fn seconds(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0..=3 => Word::text(&dice.between(1, 100).to_string()),
        _ => integer(dice),
    }
}

/// Draws an instant, in Unix milliseconds.
pub(crate) fn at_milliseconds(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0 => Word::AtMs(dice.between(-50, 0)),
        1..=3 => Word::AtMs(dice.between(1, 30)),
        4..=6 => Word::AtMs(dice.between(1_000, 60_000)),
        _ => integer(dice),
    }
}

/// Draws an instant, in Unix seconds.
pub(crate) fn at_seconds(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0..=1 => Word::AtS(dice.between(-3, 0)),
        2..=6 => Word::AtS(dice.between(2, 60)),
        _ => integer(dice),
    }
}

/// Draws any word.
pub(crate) fn anything(dice: &mut Dice) -> Word {
    match dice.below(6) {
        0 => key(dice),
        1 => value(dice),
        2 => integer(dice),
        3 => milliseconds(dice),
        4 => {
            let option = dice.pick(&["NX", "XX", "GT", "LT", "PX", "EX", "GET", "KEEPTTL", "IFEQ"]);
            in_some_case(dice, option)
        }
        _ => Word::text(dice.pick(&["foo", "*", "it's", "with \"quotes\"", "\t"])),
    }
}
