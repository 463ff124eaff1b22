//! The functions that read and change tables.

use std::rc::Rc;

use mlua::{Function, MultiValue, Table, Value as Lv};

use super::super::arguments::{any_argument, integer_argument, table_argument};
use super::super::errors::{self, Raised};
use super::super::state::State;
use super::{Kit, plain};

/// Number of elements moved between two interrupt checks.
const INTERRUPT_MOVES: usize = 10_000;

/// Adds the functions that read tables.
pub(super) fn looking(kit: &Kit<'_>) -> mlua::Result<()> {
    let native_next: Function = kit.native.raw_get("next")?;
    let protected = Rc::clone(kit.protected);
    let next = {
        let native_next = native_next.clone();
        kit.function(move |lua, arguments| {
            let table = table_argument(lua, &arguments)?;
            let table = protected.behind(table).unwrap_or(table);
            native_next.call::<MultiValue>((table, arguments.get(1))).map_err(plain)
        })?
    };
    kit.globals.raw_set("next", &next)?;
    let protected = Rc::clone(kit.protected);
    kit.set("pairs", move |lua, arguments| {
        let table = table_argument(lua, &arguments)?.clone();
        let next = if protected.behind(&table).is_some() { &next } else { &native_next };
        Ok((next.clone(), table, Lv::Nil))
    })?;
    let protected = Rc::clone(kit.protected);
    kit.set("rawget", move |lua, arguments| {
        let table = table_argument(lua, &arguments)?;
        let key = any_argument(lua, &arguments, 2)?;
        protected.behind(table).unwrap_or(table).raw_get::<Lv>(key)
    })?;
    let protected = Rc::clone(kit.protected);
    kit.set("getmetatable", move |lua, arguments| {
        let meta = match any_argument(lua, &arguments, 1)? {
            Lv::String(_) => protected.of_strings.clone(),
            Lv::Table(table) => match protected.behind(table) {
                Some(behind) if behind.metatable().is_some() => protected.of_globals.clone(),
                Some(_) => None,
                None => table.metatable(),
            },
            _ => None,
        };
        let Some(meta) = meta else { return Ok(Lv::Nil) };
        let instead: Lv = meta.raw_get("__metatable")?;
        Ok(if instead.is_nil() { Lv::Table(meta) } else { instead })
    })
}

/// Adds the functions that change tables.
pub(super) fn changing(kit: &Kit<'_>, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    let protected = Rc::clone(kit.protected);
    kit.set("rawset", move |lua, arguments| {
        let table = table_argument(lua, &arguments)?;
        let (key, value) = (any_argument(lua, &arguments, 2)?, any_argument(lua, &arguments, 3)?);
        protected.refuse(table)?;
        match key {
            Lv::Nil => return Err(Raised::Text("table index is nil".into()).into()),
            Lv::Number(number) if number.is_nan() => {
                return Err(Raised::Text("table index is NaN".into()).into());
            }
            key => table.raw_set(key, value)?,
        }
        Ok(table.clone())
    })?;
    let protected = Rc::clone(kit.protected);
    kit.set("setmetatable", move |lua, arguments| {
        let table = table_argument(lua, &arguments)?;
        let meta = match arguments.get(1) {
            Some(Lv::Nil) => None,
            Some(Lv::Table(meta)) => Some(meta.clone()),
            _ => return Err(errors::argument(lua, 2, "nil or table expected")),
        };
        if let Some(old) = table.metatable()
            && protected.behind(table).is_none()
            && !old.raw_get::<Lv>("__metatable")?.is_nil()
        {
            return Err(errors::text(lua, "cannot change a protected metatable"));
        }
        protected.refuse(table)?;
        table.set_metatable(meta)?;
        Ok(table.clone())
    })?;
    let (protected, state) = (Rc::clone(kit.protected), Rc::clone(state));
    let insert = kit.function(move |lua, arguments| {
        let table = table_argument(lua, &arguments)?;
        let end = table.raw_len() as i64 + 1;
        let at = match arguments.len() {
            2 => end,
            // C takes the low 32 bits of a position.
            3 => i64::from(integer_argument(lua, &arguments, 2)? as i32),
            _ => return Err(errors::text(lua, "wrong number of arguments to 'insert'")),
        };
        protected.refuse(table)?;
        for (moved, index) in (at..end).rev().enumerate() {
            if moved % INTERRUPT_MOVES == INTERRUPT_MOVES - 1 {
                state.interrupt()?;
            }
            table.raw_set(index + 1, table.raw_get::<Lv>(index)?)?;
        }
        table.raw_set(at, arguments.back())
    })?;
    table.raw_set("insert", insert)
}
