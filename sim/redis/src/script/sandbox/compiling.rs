//! The functions that compile code.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Value as Lv};

use super::super::MEMORY_MAX;
use super::super::arguments::{text_argument, text_of};
use super::super::errors::{caught, type_error};
use super::{Kit, as_text, plain};

/// Adds the functions that compile code.
pub(super) fn compiling(kit: &Kit<'_>) -> mlua::Result<()> {
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
            if chunk.len() > MEMORY_MAX {
                return Err(mlua::Error::MemoryError(String::from("not enough memory")));
            }
        }
        compile(lua, &chunk, &name)
    })
}
