//! The functions that catch errors: `pcall`, `xpcall` and `coroutine.resume`.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as Lv};

use super::super::arguments::any_argument;
use super::super::errors::{self, Raised, caught};
use super::super::state::State;
use super::{Kit, plain};

/// Adds the functions that catch errors.
pub(super) fn catching(kit: &Kit<'_>, state: &Rc<State>, coroutine: &Table) -> mlua::Result<()> {
    /// Converts the results of a call; the first one is true if the call succeeded.
    ///
    /// A script that must stop cannot catch the error, not even in an error handler that itself
    /// fails.
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
        // Real servers give a script the text of the error instead of the table that carries it.
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
