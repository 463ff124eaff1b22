//! The environment of scripts: globals that scripts cannot change, and replacements for the Lua
//! functions that would let them change these or would reveal an address.
//!
//! A table that scripts must not change is hidden behind an empty table, which answers reads for it
//! and refuses writes. The functions that bypass this protection are replaced.

mod catching;
mod compiling;
mod tables;

use std::borrow::Cow;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as Lv};

use self::catching::catching;
use self::compiling::compiling;
use self::tables::{changing, looking};
use super::arguments::{any_argument, number_of};
use super::errors::{self, Raised, type_error};
use super::number::general;
use super::state::State;
use super::{bit, json, library, msgpack, structure};

/// Memory that `collectgarbage` reports as in use, in KiB. It is constant so that no two runs
/// differ by it.
const MEMORY_SEEN_KIB: u32 = 3_072;

/// Lua functions that scripts get unchanged.
const PLAIN: [&str; 10] = [
    "assert",
    "error",
    "ipairs",
    "rawequal",
    "select",
    "tonumber",
    "type",
    "unpack",
    "_VERSION",
    "coroutine",
];

const READ_ONLY: &str = "Attempt to modify a readonly table";

/// Returns a chunk that the compiler cannot take for a binary one, which could break the
/// interpreter.
pub(super) fn as_text(chunk: &[u8]) -> Cow<'_, [u8]> {
    match chunk.first() {
        Some(0x1b) => Cow::Owned([b" ", chunk].concat()),
        _ => Cow::Borrowed(chunk),
    }
}

/// Returns the text of a value like `tostring`, without consulting its metatable.
pub(super) fn written(lua: &Lua, state: &State, value: &Lv) -> Vec<u8> {
    let text = match value {
        Lv::String(text) => return text.as_bytes().to_vec(),
        Lv::Nil => String::from("nil"),
        Lv::Boolean(value) => value.to_string(),
        Lv::Integer(number) => general(*number as f64, 14),
        Lv::Number(number) => general(*number, 14),
        Lv::LightUserData(_) => String::from("userdata: (nil)"),
        other => {
            // An address would differ between two runs, so objects are numbered in the order in
            // which they are seen.
            let address = address(lua, state, other).unwrap_or(0);
            format!("{}: 0x7f{:010x}", other.type_name(), address)
        }
    };
    text.into_bytes()
}

fn address(lua: &Lua, state: &State, value: &Lv) -> mlua::Result<u64> {
    let mut seen = state.addresses.borrow_mut();
    let seen = match &mut *seen {
        Some(seen) => seen,
        none => none.insert(lua.create_table()?),
    };
    if let Some(address) = seen.raw_get::<Option<u64>>(value)? {
        return Ok(address);
    }
    let address = seen.raw_len() as u64 + 1;
    seen.raw_push(value)?;
    seen.raw_set(value, address * 0x40)?;
    Ok(address * 0x40)
}

/// Tables that scripts cannot change, each with the empty table that hides it.
#[derive(Debug, Default)]
struct Protected {
    tables: Vec<(Table, Table)>,
    /// Table that `getmetatable` returns for the globals.
    of_globals: Option<Table>,
    /// Table that `getmetatable` returns for strings.
    of_strings: Option<Table>,
}

impl Protected {
    fn behind(&self, table: &Table) -> Option<&Table> {
        let pointer = table.to_pointer();
        self.tables.iter().find(|(shown, _)| shown.to_pointer() == pointer).map(|(_, it)| it)
    }

    fn refuse(&self, table: &Table) -> mlua::Result<()> {
        match self.behind(table) {
            None => Ok(()),
            Some(_) => Err(Raised::Text(READ_ONLY.into()).into()),
        }
    }

    fn protect(&mut self, lua: &Lua, table: &Table) -> mlua::Result<Table> {
        let shown = lua.create_table()?;
        let meta = lua.create_table()?;
        meta.raw_set("__index", table)?;
        let refuse =
            |lua: &Lua, _: MultiValue| -> mlua::Result<()> { Err(errors::text(lua, READ_ONLY)) };
        meta.raw_set("__newindex", lua.create_function(refuse)?)?;
        shown.set_metatable(Some(meta))?;
        self.tables.push((shown.clone(), table.clone()));
        Ok(shown)
    }
}

/// Sets up a new interpreter; returns the globals behind the table that scripts see.
pub(super) fn furnish(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let native = lua.globals();
    let globals = lua.create_table()?;
    for name in PLAIN {
        globals.raw_set(name, native.raw_get::<Lv>(name)?)?;
    }
    let coroutine: Table = native.raw_get("coroutine")?;
    let (string, table): (Table, Table) = (native.raw_get("string")?, native.raw_get("table")?);
    let math: Table = native.raw_get("math")?;
    library::randomness(lua, state, &math)?;
    let redis = library::redis(lua, state)?;

    let mut protected = Protected::default();
    let (bit, cjson) = (bit::bit(lua)?, json::cjson(lua, &state.json, &native.raw_get("next")?)?);
    let (cmsgpack, structure) = (msgpack::cmsgpack(lua)?, structure::structure(lua)?);
    let tables = [("coroutine", &coroutine), ("string", &string), ("table", &table)];
    for (name, table) in tables.into_iter().chain([
        ("math", &math),
        ("redis", &redis),
        ("bit", &bit),
        ("cjson", &cjson),
        ("cmsgpack", &cmsgpack),
        ("struct", &structure),
    ]) {
        globals.raw_set(name, protected.protect(lua, table)?)?;
    }
    if state.style.is_valkey {
        globals.raw_set("os", protected.protect(lua, &lua.create_table()?)?)?;
        globals.raw_set("server", globals.raw_get::<Table>("redis")?)?;
    }
    let shown = protected.protect(lua, &globals)?;
    globals.raw_set("_G", &shown)?;
    let nobody = lua.create_table()?;
    nobody.raw_set("__index", lua.create_function(nonexistent)?)?;
    globals.set_metatable(Some(nobody.clone()))?;
    protected.of_globals = Some(protected.protect(lua, &nobody)?);
    let of_strings = lua.create_table()?;
    of_strings.raw_set("__index", globals.raw_get::<Table>("string")?)?;
    protected.of_strings = Some(protected.protect(lua, &of_strings)?);

    let protected = Rc::new(protected);
    let kit = Kit { lua, globals: &globals, native: &native, protected: &protected };
    catching(&kit, state, &coroutine)?;
    looking(&kit)?;
    changing(&kit, state, &table)?;
    compiling(&kit)?;
    telling(&kit, state)?;
    lua.set_globals(shown)?;
    Ok(globals)
}

/// `__index` of the globals: reading an undefined global is an error.
fn nonexistent(lua: &Lua, (_, name): (Lv, Lv)) -> mlua::Result<()> {
    let name = match &name {
        Lv::String(name) => name.to_string_lossy(),
        other => number_of(other).map_or_else(|| String::from("(null)"), |it| general(it, 14)),
    };
    let text = format!("Script attempted to access nonexistent global variable '{name}'");
    Err(errors::text(lua, text))
}

struct Kit<'a> {
    lua: &'a Lua,
    globals: &'a Table,
    native: &'a Table,
    protected: &'a Rc<Protected>,
}

impl Kit<'_> {
    fn function<R: mlua::IntoLuaMulti>(
        &self,
        act: impl Fn(&Lua, MultiValue) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<Function> {
        self.lua.create_function(act)
    }

    fn set<R: mlua::IntoLuaMulti>(
        &self,
        name: &str,
        act: impl Fn(&Lua, MultiValue) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<()> {
        self.globals.raw_set(name, self.function(act)?)
    }
}

/// Returns the error without the traceback that the binding adds.
fn plain(error: mlua::Error) -> mlua::Error {
    match &error {
        mlua::Error::RuntimeError(text) => {
            let text = text.split("\nstack traceback:").next().unwrap_or(text);
            Raised::Text(text.to_owned().into()).into()
        }
        _ => error,
    }
}

/// Adds the functions that report on values and the interpreter.
fn telling(kit: &Kit<'_>, state: &Rc<State>) -> mlua::Result<()> {
    kit.set("tostring", {
        let state = Rc::clone(state);
        move |lua, arguments| {
            let value = any_argument(lua, &arguments, 1)?;
            if let Lv::Table(table) = value
                && let Some(meta) = table.metatable()
                && let Lv::Function(own) = meta.raw_get("__tostring")?
            {
                return own.call(value);
            }
            match value {
                Lv::String(_) => Ok(value.clone()),
                other => lua.create_string(written(lua, &state, other)).map(Lv::String),
            }
        }
    })?;
    kit.set("gcinfo", |_, _| Ok(MEMORY_SEEN_KIB))?;
    kit.set("collectgarbage", |lua, arguments| {
        let option = match arguments.front() {
            None | Some(Lv::Nil) => String::from("collect"),
            Some(Lv::String(option)) => option.to_string_lossy(),
            other => return Err(type_error(lua, 1, "string", other)),
        };
        match option.as_str() {
            "collect" => lua.gc_collect().map(|()| Lv::Integer(0)),
            "count" => Ok(Lv::Integer(i64::from(MEMORY_SEEN_KIB))),
            "step" => lua.gc_collect().map(|()| Lv::Boolean(false)),
            "stop" | "restart" => Ok(Lv::Integer(0)),
            "setpause" | "setstepmul" => Ok(Lv::Integer(200)),
            _ => Err(errors::argument(lua, 1, &format!("invalid option '{option}'"))),
        }
    })
}
