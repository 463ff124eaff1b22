//! What scripts find: the globals, which they cannot change, and the functions of Lua that would
//! let them, or that would show an address.
//!
//! A table that a script must not change is hidden behind an empty one, which answers for it and
//! refuses to be written to. The functions that look past that are replaced.

use std::borrow::Cow;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as Lv};

use super::errors::{self, Raised, caught, type_error};
use super::machine::State;
use super::number::{general, truncate};
use super::{bit, json, library};

/// How much memory `collectgarbage` claims is in use, in KiB: no two runs shall differ by it.
const MEMORY_SEEN_KIB: u32 = 3_072;

/// The functions of Lua that scripts get as they are.
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

/// A chunk that the compiler does not take for a binary one, which could break the interpreter.
pub(super) fn as_text(chunk: &[u8]) -> Cow<'_, [u8]> {
    match chunk.first() {
        Some(0x1b) => Cow::Owned([b" ", chunk].concat()),
        _ => Cow::Borrowed(chunk),
    }
}

/// The number that C functions take a value for.
pub(super) fn number_of(value: &Lv) -> Option<f64> {
    match value {
        Lv::Integer(number) => Some(*number as f64),
        Lv::Number(number) => Some(*number),
        Lv::String(digits) => digits.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// The bytes that C functions take a value for.
fn text_of(value: &Lv) -> Option<Vec<u8>> {
    match value {
        Lv::String(text) => Some(text.as_bytes().to_vec()),
        other => number_of(other).map(|digits| general(digits, 14).into_bytes()),
    }
}

/// A string among the arguments; they are numbered from 1.
pub(super) fn text_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<Vec<u8>> {
    let value = arguments.get(number - 1);
    value.and_then(text_of).ok_or_else(|| type_error(lua, number, "string", value))
}

/// An integer among the arguments; they are numbered from 1.
pub(super) fn integer_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<i64> {
    let value = arguments.get(number - 1);
    let integer = value.and_then(number_of).map(truncate);
    integer.ok_or_else(|| type_error(lua, number, "number", value))
}

fn table_argument<'a>(lua: &Lua, arguments: &'a MultiValue) -> mlua::Result<&'a Table> {
    match arguments.front() {
        Some(Lv::Table(table)) => Ok(table),
        other => Err(type_error(lua, 1, "table", other)),
    }
}

fn any_argument<'a>(lua: &Lua, arguments: &'a MultiValue, number: usize) -> mlua::Result<&'a Lv> {
    let missing = || errors::argument(lua, number, "value expected");
    arguments.get(number - 1).ok_or_else(missing)
}

/// What `tostring` says of a value without asking its metatable.
pub(super) fn written(lua: &Lua, state: &State, value: &Lv) -> Vec<u8> {
    let text = match value {
        Lv::String(text) => return text.as_bytes().to_vec(),
        Lv::Nil => String::from("nil"),
        Lv::Boolean(value) => value.to_string(),
        Lv::Integer(number) => general(*number as f64, 14),
        Lv::Number(number) => general(*number, 14),
        Lv::LightUserData(_) => String::from("userdata: (nil)"),
        other => {
            // An address would differ between two runs: objects are numbered as they are seen.
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

/// The tables that scripts cannot change, by the empty ones that stand for them.
#[derive(Debug, Default)]
struct Protected {
    tables: Vec<(Table, Table)>,
    /// What `getmetatable` shows of the globals.
    of_globals: Option<Table>,
    /// And of strings.
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

/// Furnishes a fresh interpreter and returns the globals behind those that scripts see.
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
    let (bit, cjson) = (bit::bit(lua)?, json::cjson(lua, state)?);
    let tables = [("coroutine", &coroutine), ("string", &string), ("table", &table)];
    for (name, table) in tables.into_iter().chain([
        ("math", &math),
        ("redis", &redis),
        ("bit", &bit),
        ("cjson", &cjson),
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
    changing(&kit, &table)?;
    compiling(&kit)?;
    telling(&kit, state)?;
    lua.set_globals(shown)?;
    Ok(globals)
}

/// `__index` of the globals.
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

/// The error without what the binding adds to it.
fn plain(error: mlua::Error) -> mlua::Error {
    match &error {
        mlua::Error::RuntimeError(text) => {
            let text = text.split("\nstack traceback:").next().unwrap_or(text);
            Raised::Text(text.to_owned().into()).into()
        }
        _ => error,
    }
}

/// What catches errors.
fn catching(kit: &Kit<'_>, state: &Rc<State>, coroutine: &Table) -> mlua::Result<()> {
    /// The results of a call: whether it went well comes first.
    ///
    /// A script that must stop cannot make anything of the error, not even in a handler that fails.
    fn settled(lua: &Lua, state: &State, mut results: MultiValue) -> mlua::Result<MultiValue> {
        if let Some(text) = state.stopped.borrow().as_ref() {
            return Err(Raised::Stop(text.clone()).into());
        }
        if results.front() == Some(&Lv::Boolean(false))
            && let Some(error) = results.get_mut(1)
        {
            *error = caught(lua, error.clone())?;
        }
        Ok(results)
    }

    let (of_pcall, of_xpcall, of_resume) = (Rc::clone(state), Rc::clone(state), Rc::clone(state));
    let pcall: Function = kit.native.raw_get("pcall")?;
    kit.set("pcall", move |lua, arguments| {
        if arguments.is_empty() {
            let text = lua.create_string("attempt to call a boolean value")?;
            return Ok(MultiValue::from_vec(vec![Lv::Boolean(false), Lv::String(text)]));
        }
        let mut results = settled(lua, &of_pcall, pcall.call(arguments)?)?;
        // Servers give a script the text of the error instead of the table that carries it.
        if results.front() == Some(&Lv::Boolean(false))
            && let Some(Lv::Table(error)) = results.get(1)
        {
            let text: Lv = error.raw_get("err")?;
            if !text.is_nil() {
                results[1] = text;
            }
        }
        Ok(results)
    })?;
    let xpcall: Function = kit.native.raw_get("xpcall")?;
    kit.set("xpcall", move |lua, arguments| {
        let handler = any_argument(lua, &arguments, 2)?.clone();
        let handler = match handler {
            Lv::Function(handler) => Lv::Function(lua.create_function(move |lua, error: Lv| {
                handler.call::<Lv>(caught(lua, error)?).map_err(plain)
            })?),
            other => other,
        };
        let function = arguments.front().cloned();
        settled(lua, &of_xpcall, xpcall.call((function, handler))?)
    })?;
    let resume: Function = coroutine.raw_get("resume")?;
    let resume = kit.function(move |lua, arguments| {
        if !matches!(arguments.front(), Some(Lv::Thread(_))) {
            return Err(errors::argument(lua, 1, "coroutine expected"));
        }
        settled(lua, &of_resume, resume.call(arguments).map_err(plain)?)
    })?;
    coroutine.raw_set("resume", resume)
}

/// What looks into tables.
fn looking(kit: &Kit<'_>) -> mlua::Result<()> {
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

/// What changes tables.
fn changing(kit: &Kit<'_>, table: &Table) -> mlua::Result<()> {
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
    let protected = Rc::clone(kit.protected);
    let insert = kit.function(move |lua, arguments| {
        let table = table_argument(lua, &arguments)?;
        let end = table.raw_len() as i64 + 1;
        let at = match arguments.len() {
            2 => end,
            3 => integer_argument(lua, &arguments, 2)?,
            _ => return Err(errors::text(lua, "wrong number of arguments to 'insert'")),
        };
        protected.refuse(table)?;
        for index in (at..end).rev() {
            table.raw_set(index + 1, table.raw_get::<Lv>(index)?)?;
        }
        table.raw_set(at, arguments.back())
    })?;
    table.raw_set("insert", insert)
}

/// What compiles.
fn compiling(kit: &Kit<'_>) -> mlua::Result<()> {
    let loadstring: Function = kit.native.raw_get("loadstring")?;
    let compile = move |lua: &Lua, chunk: &[u8], name: &[u8]| {
        let chunk = lua.create_string(as_text(chunk))?;
        loadstring.call::<MultiValue>((chunk, lua.create_string(name)?)).map_err(plain)
    };
    let compile = Rc::new(compile);
    kit.set("loadstring", {
        let compile = Rc::clone(&compile);
        move |lua, arguments| {
            let chunk = text_argument(lua, &arguments, 1)?;
            let name = match arguments.get(1) {
                None | Some(Lv::Nil) => chunk.clone(),
                _ => text_argument(lua, &arguments, 2)?,
            };
            compile(lua, &chunk, &name)
        }
    })?;
    let pcall: Function = kit.native.raw_get("pcall")?;
    kit.set("load", move |lua, arguments| {
        let Some(Lv::Function(reader)) = arguments.front() else {
            return Err(type_error(lua, 1, "function", arguments.front()));
        };
        let name = match arguments.get(1) {
            None | Some(Lv::Nil) => b"=(load)".to_vec(),
            _ => text_argument(lua, &arguments, 2)?,
        };
        let refused = |error: Lv| Ok(MultiValue::from_vec(vec![Lv::Nil, error]));
        let mut chunk = Vec::new();
        loop {
            let piece = match pcall.call::<(bool, Lv)>(reader)? {
                (true, piece) => piece,
                (false, error) => return refused(caught(lua, error)?),
            };
            match &piece {
                Lv::Nil => break,
                Lv::String(text) if text.as_bytes().is_empty() => break,
                Lv::String(_) | Lv::Integer(_) | Lv::Number(_) => {
                    chunk.extend(text_of(&piece).unwrap_or_default());
                }
                _ => {
                    let text = lua.create_string("reader function must return a string")?;
                    return refused(Lv::String(text));
                }
            }
            if chunk.len() > super::MEMORY_MAX {
                return Err(mlua::Error::MemoryError(String::from("not enough memory")));
            }
        }
        compile(lua, &chunk, &name)
    })
}

/// What tells of the interpreter.
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
