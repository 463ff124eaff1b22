//! `cjson`: tables to JSON and back.

mod decode;
mod encode;

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as Lv};

use self::decode::Decoder;
use self::encode::Encoder;
use super::arguments::{integer_argument, text_argument};
use super::errors;
use super::machine::State;

/// An array may have so many holes beside each element, once it is longer than [`SPARSE_SAFE`].
const SPARSE_RATIO: i64 = 2;
const SPARSE_SAFE: i64 = 10;

/// What a script may set, for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    encode_depth: i64,
    decode_depth: i64,
    digits: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { encode_depth: 1_000, decode_depth: 1_000, digits: 14 }
    }
}

/// The table `cjson`.
pub(super) fn cjson(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Lv::NULL)?;
    let state_of = Rc::clone(state);
    let encode = move |lua: &Lua, arguments: MultiValue| {
        let [value] = arguments.as_slices().0 else {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        };
        lua.create_string(Encoder::encode(lua, state_of.json.get(), value)?)
    };
    table.raw_set("encode", lua.create_function(encode)?)?;
    let state_of = Rc::clone(state);
    let decode = move |lua: &Lua, arguments: MultiValue| {
        if arguments.len() != 1 {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        }
        let text = text_argument(lua, &arguments, 1)?;
        Decoder::decode(lua, &text, state_of.json.get().decode_depth)
    };
    table.raw_set("decode", lua.create_function(decode)?)?;
    setting(lua, state, &table, "encode_max_depth", i64::from(i32::MAX), |it| {
        &mut it.encode_depth
    })?;
    setting(lua, state, &table, "decode_max_depth", i64::from(i32::MAX), |it| {
        &mut it.decode_depth
    })?;
    setting(lua, state, &table, "encode_number_precision", 14, |it| &mut it.digits)?;
    table.raw_set("encode_keep_buffer", lua.create_function(|_, ()| Ok(true))?)?;
    table.raw_set("encode_invalid_numbers", lua.create_function(|_, ()| Ok(false))?)?;
    table.raw_set("decode_invalid_numbers", lua.create_function(|_, ()| Ok(true))?)?;
    let sparse = |_: &Lua, ()| Ok((false, SPARSE_RATIO, SPARSE_SAFE));
    table.raw_set("encode_sparse_array", lua.create_function(sparse)?)?;
    Ok(table)
}

fn setting(
    lua: &Lua,
    state: &Rc<State>,
    table: &Table,
    name: &str,
    most: i64,
    field: fn(&mut Settings) -> &mut i64,
) -> mlua::Result<()> {
    let state = Rc::clone(state);
    let function = move |lua: &Lua, arguments: MultiValue| {
        let mut settings = state.json.get();
        if !arguments.is_empty() {
            let number = integer_argument(lua, &arguments, 1)?;
            if !(1..=most).contains(&number) {
                let what = format!("expected integer between 1 and {most}");
                return Err(errors::argument(lua, 1, &what));
            }
            *field(&mut settings) = number;
            state.json.set(settings);
        }
        Ok(*field(&mut settings))
    };
    table.raw_set(name, lua.create_function(function)?)
}
