//! Commands on hashes and lists.

use super::{Words, words};
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{in_some_case, integer, is, key, value};

/// Commands that store words in a hash.
const STORING: [&str; 4] = ["HSET", "HMSET", "HSETNX", "HINCRBY"];

/// Greatest length of a word in a hash whose order every server keeps.
const WORD_MAX: usize = 64;

pub(super) fn hash(dice: &mut Dice) -> Words {
    let hash = |dice: &mut Dice| if dice.once_in(3) { key(dice) } else { Word::text("h:x") };
    let name = dice.weighted(&[
        (10, "HSET"),
        (2, "HMSET"),
        (4, "HSETNX"),
        (6, "HINCRBY"),
        (6, "HGET"),
        (3, "HMGET"),
        (6, "HGETALL"),
        (8, "HDEL"),
        (5, "HEXISTS"),
        (3, "HLEN"),
        (2, "HKEYS"),
        (2, "HVALS"),
        (2, "HSTRLEN"),
    ]);
    let mut command = words(dice, name, &[hash]);
    let count = 1 + dice.below(3);
    match name {
        "HSET" | "HMSET" => (0..count).for_each(|_| command.extend([field(dice), stored(dice)])),
        "HSETNX" => command.extend([field(dice), stored(dice)]),
        "HINCRBY" => command.extend([field(dice), integer(dice)]),
        "HGET" | "HEXISTS" | "HSTRLEN" => command.push(field(dice)),
        "HMGET" | "HDEL" => command.extend((0..count).map(|_| field(dice))),
        _ => {}
    }
    command
}

pub(super) fn list(dice: &mut Dice) -> Words {
    let list = |dice: &mut Dice| if dice.once_in(3) { key(dice) } else { Word::text("l:x") };
    let name = dice.weighted(&[
        (8, "LPUSH"),
        (8, "RPUSH"),
        (2, "LPUSHX"),
        (2, "RPUSHX"),
        (6, "LPOP"),
        (6, "RPOP"),
        (3, "LLEN"),
        (6, "LRANGE"),
        (4, "LINDEX"),
        (4, "LREM"),
        (3, "LSET"),
        (2, "LTRIM"),
    ]);
    let mut command = words(dice, name, &[list]);
    match name {
        "LPOP" | "RPOP" if dice.once_in(3) => command.push(place(dice)),
        "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" => {
            command.extend((0..1 + dice.below(3)).map(|_| value(dice)));
        }
        "LRANGE" | "LTRIM" => command.extend([place(dice), place(dice)]),
        "LINDEX" => command.push(place(dice)),
        "LREM" | "LSET" => command.extend([place(dice), value(dice)]),
        _ => {}
    }
    command
}

/// Draws a place in a short list, or any number.
fn place(dice: &mut Dice) -> Word {
    match dice.below(6) {
        0 => integer(dice),
        _ => Word::text(&dice.between(-3, 4).to_string()),
    }
}

fn field(dice: &mut Dice) -> Word {
    let name = dice.pick(&["f", "g", "", "8743c9c0-0795-4907-87fd-6c719a6b4586:1"]);
    in_some_case(dice, name)
}

fn stored(dice: &mut Dice) -> Word {
    match dice.below(3) {
        0 => integer(dice),
        1 => Word::text(dice.pick(&["1", "2", "-1", "x"])),
        _ => value(dice),
    }
}

/// Returns true if the command stores words in a hash.
pub(crate) fn stores_in_hash(command: &[Word]) -> bool {
    let Word::Is(name) = &command[0] else { return false };
    STORING.iter().any(|it| name.eq_ignore_ascii_case(it.as_bytes()))
}

/// Cuts words that a hash would store and that would change its order.
pub(super) fn cut(command: &mut Words) {
    if stores_in_hash(command) {
        for word in &mut command[1..] {
            if let Word::Is(bytes) = word
                && bytes.len() > WORD_MAX
            {
                *word = is(&bytes[..WORD_MAX]);
            }
        }
    }
}
