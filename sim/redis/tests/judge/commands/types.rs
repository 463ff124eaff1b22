//! Commands on hashes, lists and sorted sets.

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
        (3, "LINSERT"),
        (3, "LMOVE"),
        (2, "RPOPLPUSH"),
    ]);
    let mut command = words(dice, name, &[list]);
    match name {
        "LPOP" | "RPOP" if dice.once_in(3) => command.push(place(dice)),
        "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" => {
            command.extend((0..1 + dice.below(3)).map(|_| value(dice)));
        }
        "LRANGE" | "LTRIM" => command.extend([place(dice), place(dice)]),
        "LINDEX" => command.push(place(dice)),
        "LINSERT" => {
            let side = dice.pick(&["BEFORE", "AFTER", "AFTER", "LEFT"]);
            command.extend([in_some_case(dice, side), value(dice), value(dice)]);
        }
        "LMOVE" => {
            let ends = [0; 2].map(|_| dice.pick(&["LEFT", "RIGHT", "LEFT", "RIGHT", "HEAD"]));
            command.push(list(dice));
            command.extend(ends.map(|end| in_some_case(dice, end)));
        }
        "RPOPLPUSH" => command.push(list(dice)),
        "LREM" | "LSET" => command.extend([place(dice), value(dice)]),
        _ => {}
    }
    command
}

pub(super) fn sorted_set(dice: &mut Dice) -> Words {
    let set = |dice: &mut Dice| if dice.once_in(3) { key(dice) } else { Word::text("z:x") };
    let name = dice.weighted(&[
        (12, "ZADD"),
        (5, "ZINCRBY"),
        (6, "ZREM"),
        (4, "ZSCORE"),
        (4, "ZCARD"),
        (3, "ZCOUNT"),
        (6, "ZRANGE"),
        (6, "ZRANGEBYSCORE"),
        (3, "ZRANK"),
        (2, "ZREVRANK"),
        (3, "ZREMRANGEBYSCORE"),
        (2, "ZREMRANGEBYRANK"),
    ]);
    let mut command = words(dice, name, &[set]);
    let count = 1 + dice.below(3);
    match name {
        "ZADD" => {
            command.extend(options(dice, &["NX", "XX", "GT", "LT", "CH", "INCR"]));
            (0..count).for_each(|_| command.extend([score(dice), member(dice)]));
        }
        "ZINCRBY" => command.extend([score(dice), member(dice)]),
        "ZREM" => command.extend((0..count).map(|_| member(dice))),
        "ZSCORE" | "ZRANK" | "ZREVRANK" => command.push(member(dice)),
        "ZRANGE" if dice.once_in(2) => {
            command.extend([place(dice), place(dice)]);
            command.extend(options(dice, &["WITHSCORES", "REV"]));
        }
        "ZRANGE" => {
            command.extend([bound(dice), bound(dice), in_some_case(dice, "BYSCORE")]);
            command.extend(options(dice, &["WITHSCORES", "REV"]));
            command.extend(limit(dice));
        }
        "ZRANGEBYSCORE" => {
            command.extend([bound(dice), bound(dice)]);
            command.extend(options(dice, &["WITHSCORES"]));
            command.extend(limit(dice));
        }
        "ZCOUNT" | "ZREMRANGEBYSCORE" => command.extend([bound(dice), bound(dice)]),
        "ZREMRANGEBYRANK" => command.extend([place(dice), place(dice)]),
        _ => {}
    }
    command
}

/// Draws none of the options most of the time, else one or two of them.
fn options(dice: &mut Dice, names: &[&str]) -> Words {
    let count = dice.weighted(&[(5, 0), (4, 1), (1, 2)]);
    let mut drawn = Vec::new();
    for _ in 0..count {
        let name = dice.pick(names);
        drawn.push(in_some_case(dice, name));
    }
    drawn
}

fn limit(dice: &mut Dice) -> Words {
    match dice.below(4) {
        0 => vec![in_some_case(dice, "LIMIT"), place(dice), place(dice)],
        _ => Vec::new(),
    }
}

fn score(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0 => integer(dice),
        1 => Word::text(dice.pick(&["inf", "-INF", "+Infinity", "-0", "1e400", "1e-400", "nan"])),
        2 => Word::text(dice.pick(&["0.1", "-1.5", ".5", "3.", "1e17", "1e-7", "0x10", " 1", ""])),
        _ => Word::text(&dice.between(-3, 4).to_string()),
    }
}

fn bound(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0 => Word::text(dice.pick(&["-inf", "+inf", "(inf", "(-inf"])),
        1 => Word::text(dice.pick(&["(", "(nan", "x", "( 1", " 1", "1 ", "((1", "(1.5"])),
        2 => score(dice),
        3 => Word::text(&format!("({}", dice.between(-3, 4))),
        _ => Word::text(&dice.between(-3, 4).to_string()),
    }
}

fn member(dice: &mut Dice) -> Word {
    match dice.below(8) {
        0 => value(dice),
        _ => Word::text(dice.pick(&["a", "b", "", "B", "8743c9c0-0795-4907-87fd-6c719a6b4586:1"])),
    }
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
