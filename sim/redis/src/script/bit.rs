//! `bit`: 32-bit operations.

use mlua::{Lua, MultiValue, Table};

use super::arguments::number_of;
use super::errors::type_error;

/// Adding this constant to a number leaves the rounded number in the low bits of the sum.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// Returns the table `bit`.
pub(super) fn bit(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let one: [(&str, Unary); 3] =
        [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];
    for (name, act) in one {
        let function = move |lua: &Lua, arguments: MultiValue| {
            argument(lua, &arguments, 1).map(|bits| act(bits) as i32)
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let many: [(&str, Binary); 3] =
        [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
    for (name, act) in many {
        let function = move |lua: &Lua, arguments: MultiValue| {
            let first = argument(lua, &arguments, 1)?;
            let fold = |bits, number| Ok(act(bits, argument(lua, &arguments, number)?));
            (2..=arguments.len()).try_fold(first, fold).map(|bits: u32| bits as i32)
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let shifts: [(&str, Binary); 5] = [
        ("lshift", |bits, by| bits << by),
        ("rshift", |bits, by| bits >> by),
        ("arshift", |bits, by| (bits as i32 >> by) as u32),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, act) in shifts {
        let function = move |lua: &Lua, arguments: MultiValue| {
            let (bits, by) = (argument(lua, &arguments, 1)?, argument(lua, &arguments, 2)?);
            Ok(act(bits, by & 31) as i32)
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    table.raw_set("tohex", lua.create_function(tohex)?)?;
    Ok(table)
}

fn argument(lua: &Lua, arguments: &MultiValue, number: usize) -> mlua::Result<u32> {
    let value = arguments.get(number - 1);
    let value_of = value.and_then(number_of);
    let number = value_of.ok_or_else(|| type_error(lua, number, "number", value))?;
    Ok((number + ROUNDING).to_bits() as u32)
}

fn tohex(lua: &Lua, arguments: MultiValue) -> mlua::Result<String> {
    let bits = argument(lua, &arguments, 1)?;
    let wanted = if arguments.len() < 2 { 8 } else { argument(lua, &arguments, 2)? as i32 };
    let digits = if wanted < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
    Ok(digits[8 - wanted.unsigned_abs().min(8) as usize..].to_owned())
}
