//! `cjson`: encodes tables as JSON and decodes them.

mod decode;
mod encode;

use core::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as Lv};

use self::decode::Decoder;
use self::encode::Encoder;
use super::arguments::{integer_argument, text_argument};
use super::errors;

/// Settings that scripts can change. Servers keep them from one script to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    encode_depth: i64,
    decode_depth: i64,
    /// Number of significant digits of a number.
    digits: i64,
    encode_invalid: Invalid,
    /// Accept numbers that JSON does not have.
    decodes_invalid: bool,
    /// Encode an array with too many holes as an object.
    sparse_converts: bool,
    /// Greatest ratio of an array's length to its number of elements; 0 means no limit.
    sparse_ratio: i64,
    /// Length up to which an array may exceed the ratio.
    sparse_safe: i64,
    /// Keep the buffer of the encoder; has no visible effect.
    keeps_buffer: bool,
}

/// Treatment of a number that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    /// Written as C writes it.
    Taken,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encode_depth: 1_000,
            decode_depth: 1_000,
            digits: 14,
            encode_invalid: Invalid::Refused,
            decodes_invalid: true,
            sparse_converts: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            keeps_buffer: true,
        }
    }
}

/// The setting behind one argument and one result of a configuration function.
#[derive(Clone, Copy)]
enum Choice {
    Number { least: i64, most: i64, field: fn(&mut Settings) -> &mut i64 },
    Switch(fn(&mut Settings) -> &mut bool),
    Invalid,
}

const fn number(least: i64, most: i64, field: fn(&mut Settings) -> &mut i64) -> Choice {
    Choice::Number { least, most, field }
}

const INT_MAX: i64 = i32::MAX as i64;

/// The configuration functions.
const SETTINGS: [(&str, &[Choice]); 7] = [
    ("decode_invalid_numbers", &[Choice::Switch(|it| &mut it.decodes_invalid)]),
    ("decode_max_depth", &[number(1, INT_MAX, |it| &mut it.decode_depth)]),
    ("encode_invalid_numbers", &[Choice::Invalid]),
    ("encode_keep_buffer", &[Choice::Switch(|it| &mut it.keeps_buffer)]),
    ("encode_max_depth", &[number(1, INT_MAX, |it| &mut it.encode_depth)]),
    ("encode_number_precision", &[number(1, 14, |it| &mut it.digits)]),
    (
        "encode_sparse_array",
        &[
            Choice::Switch(|it| &mut it.sparse_converts),
            number(0, INT_MAX, |it| &mut it.sparse_ratio),
            number(0, INT_MAX, |it| &mut it.sparse_safe),
        ],
    ),
];

/// Returns the table `cjson`, whose functions share `settings`; `next` is Lua's `next`.
pub(super) fn cjson(
    lua: &Lua,
    settings: &Rc<Cell<Settings>>,
    next: &Function,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Lv::NULL)?;
    let (own, own_next) = (Rc::clone(settings), next.clone());
    let encode = move |lua: &Lua, arguments: MultiValue| {
        let [value] = arguments.as_slices().0 else {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        };
        lua.create_string(Encoder::encode(lua, &own_next, own.get(), value)?)
    };
    table.raw_set("encode", lua.create_function(encode)?)?;
    let own = Rc::clone(settings);
    let decode = move |lua: &Lua, arguments: MultiValue| {
        if arguments.len() != 1 {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        }
        let text = text_argument(lua, &arguments, 1)?;
        Decoder::decode(lua, &text, own.get())
    };
    table.raw_set("decode", lua.create_function(decode)?)?;
    for (name, choices) in SETTINGS {
        let own = Rc::clone(settings);
        let function = move |lua: &Lua, arguments| choose(lua, &own, choices, &arguments);
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let next = next.clone();
    let another = move |lua: &Lua, _: MultiValue| cjson(lua, &Rc::default(), &next);
    table.raw_set("new", lua.create_function(another)?)?;
    Ok(table)
}

/// Applies the arguments to the settings and returns the settings. A nil or missing argument
/// changes nothing.
fn choose(
    lua: &Lua,
    settings: &Cell<Settings>,
    choices: &[Choice],
    arguments: &MultiValue,
) -> mlua::Result<MultiValue> {
    if arguments.len() > choices.len() {
        return Err(errors::argument(lua, choices.len() + 1, "found too many arguments"));
    }
    let mut results = MultiValue::new();
    for (index, choice) in choices.iter().enumerate() {
        let mut chosen = settings.get();
        if let Some(value) = arguments.get(index).filter(|value| !value.is_nil()) {
            choice.set(lua, &mut chosen, (arguments, index + 1), value)?;
            settings.set(chosen);
        }
        results.push_back(choice.get(lua, &mut chosen)?);
    }
    Ok(results)
}

impl Choice {
    fn set(
        self,
        lua: &Lua,
        settings: &mut Settings,
        (arguments, place): (&MultiValue, usize),
        value: &Lv,
    ) -> mlua::Result<()> {
        let option = |known: &[&str]| match value {
            Lv::Boolean(value) => Ok(usize::from(*value)),
            _ => {
                let word = text_argument(lua, arguments, place)?;
                let unknown = || format!("invalid option '{}'", String::from_utf8_lossy(&word));
                let found = known.iter().position(|it| it.as_bytes() == word);
                found.ok_or_else(|| errors::argument(lua, place, &unknown()))
            }
        };
        match self {
            Self::Number { least, most, field } => {
                let number = i64::from(integer_argument(lua, arguments, place)? as i32);
                if !(least..=most).contains(&number) {
                    let what = format!("expected integer between {least} and {most}");
                    return Err(errors::argument(lua, 1, &what));
                }
                *field(settings) = number;
            }
            Self::Switch(field) => *field(settings) = option(&["off", "on"])? == 1,
            Self::Invalid => {
                let known = [Invalid::Refused, Invalid::Taken, Invalid::Null];
                settings.encode_invalid = known[option(&["off", "on", "null"])?];
            }
        }
        Ok(())
    }

    fn get(self, lua: &Lua, settings: &mut Settings) -> mlua::Result<Lv> {
        Ok(match self {
            Self::Number { field, .. } => Lv::Integer(*field(settings)),
            Self::Switch(field) => Lv::Boolean(*field(settings)),
            Self::Invalid => match settings.encode_invalid {
                Invalid::Refused => Lv::Boolean(false),
                Invalid::Taken => Lv::Boolean(true),
                Invalid::Null => Lv::String(lua.create_string("null")?),
            },
        })
    }
}
