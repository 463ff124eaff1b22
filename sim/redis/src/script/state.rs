//! State shared by the functions of an interpreter, and access to the server of the running script.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::Table;
use scoped_tls_hkt::scoped_thread_local;

use super::errors::{Raised, Uncaught};
use super::{Caller, Style, json};
use crate::resp::Protocol;

/// Memory that an interpreter may use, in bytes. A script that needs more ends with an error.
pub const MEMORY_MAX: usize = 64 * 1_024 * 1_024;

scoped_thread_local!(pub(super) static mut CALLER: for<'a> &'a mut (dyn Caller + 'a));

/// Calls `act` with the server of the running script.
pub(super) fn with_caller<R>(act: impl FnOnce(&mut dyn Caller) -> R) -> R {
    CALLER.with(|caller| act(caller))
}

/// State shared by the functions of an interpreter.
#[derive(Debug)]
pub(super) struct State {
    pub(super) style: &'static Style,
    /// Protocol version in which the script receives replies.
    pub(super) protocol: Cell<Protocol>,
    /// State of the random number generator.
    pub(super) random: Cell<u64>,
    /// Settings of the JSON encoder and decoder.
    pub(super) json: Rc<Cell<json::Settings>>,
    /// The server's message, if it made the script stop.
    pub(super) stopped: RefCell<Option<String>>,
    /// The error that ended the script.
    pub(super) uncaught: RefCell<Option<Uncaught>>,
    /// Numbers of the objects whose address the script has seen.
    pub(super) addresses: RefCell<Option<Table>>,
}

impl State {
    /// Lets the server stop the script.
    ///
    /// # Errors
    ///
    /// If the script must stop.
    pub(super) fn interrupt(&self) -> mlua::Result<()> {
        let Some(text) = with_caller(|caller| caller.interrupt()) else { return Ok(()) };
        self.stopped.replace(Some(text.clone()));
        Err(Raised::Stop(text).into())
    }
}
