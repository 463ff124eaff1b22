//! The Lua interpreters, one for each thread and style.

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value as Lv, VmState};

use super::convert::{Returned, one_line};
use super::errors::Uncaught;
use super::state::{CALLER, MEMORY_MAX, State};
use super::{Caller, CarriedState, Sha, Style, sandbox, shebang};
use crate::resp::{Protocol, Value};

/// Number of instructions between two interrupt checks.
const INSTRUCTIONS: u32 = 10_000;

/// Greatest number of compiled scripts that an interpreter keeps.
const FUNCTIONS_MAX: usize = 1_024;
/// Greatest total size of the texts of these scripts, in bytes.
const TEXTS_BYTES_MAX: usize = 1_024 * 1_024;

thread_local! {
    static MACHINES: RefCell<Vec<Machine>> = const { RefCell::new(Vec::new()) };
}

/// Runs the script `text` with the hash `sha` and returns its reply.
#[must_use]
pub fn run(
    text: &Bytes,
    sha: &Sha,
    keys: &[&[u8]],
    arguments: &[&[u8]],
    style: &'static Style,
    caller: &mut dyn Caller,
) -> Value {
    with_machine(style, |machine| {
        let function = match machine.function(text, sha) {
            Ok(function) => function,
            Err(error) => return error,
        };
        if let Err(error) = machine.make_room() {
            return error;
        }
        let left = caller.left();
        machine.state.random.set(left.random);
        machine.state.json.set(left.json);
        let reply = CALLER.set(&mut *caller, || machine.run(&function, sha, keys, arguments));
        let State { random, json, .. } = &*machine.state;
        caller.leave(CarriedState { random: random.get(), json: json.get() });
        reply
    })
}

/// Checks that `text` compiles.
///
/// # Errors
///
/// The reply that describes the problem.
pub fn compile(text: &Bytes, sha: &Sha, style: &'static Style) -> Result<(), Value> {
    with_machine(style, |machine| machine.function(text, sha).map(drop))
}

/// Takes the interpreter out of the list while it is in use, so that a script within a script would
/// get an interpreter of its own.
fn with_machine<R>(style: &'static Style, act: impl FnOnce(&mut Machine) -> R) -> R {
    let kept = MACHINES.with_borrow_mut(|machines| {
        let at = machines.iter().position(|machine| machine.state.style == style)?;
        Some(machines.swap_remove(at))
    });
    let mut machine = kept.unwrap_or_else(|| Machine::new(style));
    let result = act(&mut machine);
    if !machine.is_broken {
        MACHINES.with_borrow_mut(|machines| machines.push(machine));
    }
    result
}

struct Machine {
    lua: Lua,
    state: Rc<State>,
    /// The globals behind the read-only table that scripts see.
    globals: Table,
    xpcall: Function,
    handler: Function,
    /// Compiled functions. The interpreter holds them, because the binding can hold only a few
    /// values.
    functions: Table,
    /// Position of each function in `functions`.
    places: BTreeMap<Sha, usize>,
    /// Total size of the scripts' texts, in bytes.
    texts_bytes: usize,
    /// True if the interpreter's state is unknown, so that it must not be used again.
    is_broken: bool,
}

impl Machine {
    fn new(style: &'static Style) -> Self {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new()).expect("these libraries are safe");
        let state = Rc::new(State {
            style,
            protocol: Cell::default(),
            random: Cell::new(0),
            json: Rc::default(),
            stopped: RefCell::default(),
            uncaught: RefCell::default(),
            addresses: RefCell::default(),
        });
        Self::furnish(lua, state).expect("an empty machine has memory enough")
    }

    fn furnish(lua: Lua, state: Rc<State>) -> mlua::Result<Self> {
        let xpcall = lua.globals().get("xpcall")?;
        let handler = lua.create_function({
            let state = Rc::clone(&state);
            move |lua, error: Lv| {
                let tostring = |value: &Lv| sandbox::written(lua, &state, value);
                let uncaught = Uncaught::new(lua, &error, tostring);
                state.uncaught.replace(Some(uncaught));
                Ok(())
            }
        })?;
        let globals = sandbox::furnish(&lua, &state)?;
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        let asked = Rc::clone(&state);
        lua.set_global_hook(triggers, move |_, _| asked.interrupt().map(|()| VmState::Continue))?;
        let functions = lua.create_table()?;
        let (places, texts_bytes, is_broken) = (BTreeMap::new(), 0, false);
        Ok(Self { lua, state, globals, xpcall, handler, functions, places, texts_bytes, is_broken })
    }

    fn function(&mut self, text: &Bytes, sha: &Sha) -> Result<Function, Value> {
        if let Some(&place) = self.places.get(sha) {
            return self.functions.raw_get(place).map_err(broken);
        }
        let body = shebang::body(text, self.state.style).map_err(Value::error)?;
        self.make_room()?;
        let mut compiled = self.compile(body);
        if matches!(compiled, Err(mlua::Error::MemoryError(_))) {
            self.forget_functions().map_err(broken)?;
            self.make_room()?;
            compiled = self.compile(body);
        }
        let function = compiled.map_err(|error| {
            let text = match &error {
                mlua::Error::SyntaxError { message, .. } => message.clone(),
                other => other.to_string(),
            };
            let text = format!("ERR Error compiling script (new function): {text}");
            Value::Error(one_line(text.as_bytes()))
        })?;
        let bytes = self.texts_bytes + text.len();
        if self.places.len() == FUNCTIONS_MAX || bytes > TEXTS_BYTES_MAX {
            self.forget_functions().map_err(broken)?;
        }
        if text.len() <= TEXTS_BYTES_MAX {
            self.texts_bytes += text.len();
            let place = self.places.len() + 1;
            self.functions.raw_set(place, &function).map_err(broken)?;
            self.places.insert(*sha, place);
        }
        Ok(function)
    }

    fn compile(&self, body: &[u8]) -> mlua::Result<Function> {
        let chunk = sandbox::as_text(body);
        let chunk = self.lua.load(chunk.as_ref()).set_name("@user_script");
        chunk.set_mode(ChunkMode::Text).into_function()
    }

    fn forget_functions(&mut self) -> mlua::Result<()> {
        self.places.clear();
        self.texts_bytes = 0;
        self.functions.clear()
    }

    /// Grants the script its full memory, whatever earlier scripts left. Lua does not collect
    /// garbage when an allocation is refused, so garbage is collected here.
    fn make_room(&self) -> Result<(), Value> {
        if self.lua.used_memory() > MEMORY_MAX / 2 {
            self.lua.gc_collect().map_err(broken)?;
        }
        let limit = self.lua.used_memory() + MEMORY_MAX;
        self.lua.set_memory_limit(limit).map(drop).map_err(broken)
    }

    fn run(
        &mut self,
        function: &Function,
        sha: &Sha,
        keys: &[&[u8]],
        arguments: &[&[u8]],
    ) -> Value {
        self.state.protocol.set(Protocol::Resp2);
        self.state.stopped.replace(None);
        self.state.uncaught.replace(None);
        self.state.addresses.replace(None);
        let returned = self.set("KEYS", keys).and_then(|()| self.set("ARGV", arguments));
        let returned = returned.and_then(|()| self.xpcall.call((function, &self.handler)));
        match returned {
            Ok((true, value)) => {
                Returned::new(self.state.style, self.state.protocol.get()).reply(&value)
            }
            Ok((false, value)) => self.failed(&value, sha),
            Err(error) => {
                self.is_broken = true;
                self.error(Some(format!("ERR {error}").as_bytes()), None, sha)
            }
        }
    }

    fn set(&self, name: &str, values: &[&[u8]]) -> mlua::Result<()> {
        let table = self.lua.create_table_with_capacity(values.len(), 0)?;
        for value in values {
            table.raw_push(self.lua.create_string(value)?)?;
        }
        self.globals.raw_set(name, table)
    }

    /// Returns the reply for an error that ended the script; `value` is the error if the error
    /// handler could not run.
    fn failed(&mut self, value: &Lv, sha: &Sha) -> Value {
        let Some(uncaught) = self.state.uncaught.take() else {
            self.is_broken = true;
            let written = sandbox::written(&self.lua, &self.state, value);
            let text = [b"ERR ", &written[..]].concat();
            return self.error(Some(&text), None, sha);
        };
        self.is_broken |= uncaught.is_stop;
        self.error(uncaught.text.as_deref(), uncaught.place.as_ref(), sha)
    }

    fn error(&self, text: Option<&[u8]>, place: Option<&(String, i64)>, sha: &Sha) -> Value {
        let mut text = one_line(text.unwrap_or(b"ERR unknown error")).to_vec();
        text.extend(b" script:");
        let has_sha = self.state.style.names_script;
        if has_sha {
            text.push(b' ');
            text.extend(sha);
        }
        if let Some((source, line)) = place {
            let comma = if has_sha { "," } else { "" };
            text.extend(format!("{comma} on {source}:{line}.").into_bytes());
        }
        Value::error(text)
    }
}

/// Returns the reply for a failure of the interpreter that no script caused.
fn broken(error: mlua::Error) -> Value {
    Value::error(format!("ERR {error}"))
}
