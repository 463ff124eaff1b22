//! Commands on the connection: its database, its protocol and its name.

use super::{Words, words};
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{anything, in_some_case, integer, is};

pub(super) fn select(dice: &mut Dice) -> Words {
    let mut command = words(dice, "SELECT", &[]);
    command.push(match dice.below(8) {
        0..=4 => Word::text(&dice.below(2).to_string()),
        5 => Word::text(&dice.between(-1, 16).to_string()),
        _ => integer(dice),
    });
    command
}

pub(super) fn hello(dice: &mut Dice) -> Words {
    let mut command = words(dice, "HELLO", &[]);
    match dice.below(10) {
        0 => {}
        1..=3 => command.push(Word::text("3")),
        4..=5 => command.push(Word::text("2")),
        6 => command.push(integer(dice)),
        _ => {
            command.push(Word::text(dice.pick(&["2", "3", "4"])));
            for _ in 0..1 + dice.below(2) {
                match dice.below(3) {
                    0 => command.extend([in_some_case(dice, "SETNAME"), name(dice)]),
                    1 => command.extend(words(dice, "AUTH", &[anything, anything])),
                    _ => command.push(anything(dice)),
                }
            }
        }
    }
    command
}

fn name(dice: &mut Dice) -> Word {
    is(dice.pick(&[&b"worker"[..], b"", b"two words", b"new\nline", b"\xff", b"a:b-c_d"]))
}

pub(super) fn client(dice: &mut Dice) -> Words {
    let mut command = words(dice, "CLIENT", &[]);
    match dice.below(8) {
        0 | 1 => command.extend(words(dice, "SETNAME", &[name])),
        2 | 3 => command.extend(words(dice, "GETNAME", &[])),
        4 => command.extend(words(dice, "ID", &[])),
        5 => command.extend(words(
            dice,
            "SETINFO",
            &[
                |dice| {
                    let field = dice.pick(&["LIB-NAME", "LIB-VER", "NOSUCH"]);
                    in_some_case(dice, field)
                },
                name,
            ],
        )),
        6 => command.extend(words(dice, "MAINT_NOTIFICATIONS", &[|_| Word::text("ON")])),
        _ => command.push(anything(dice)),
    }
    command
}
