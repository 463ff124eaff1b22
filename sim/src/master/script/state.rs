//! What the functions of a machine share, and the server that the running script reaches.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::Table;
use scoped_tls_hkt::scoped_thread_local;

use super::errors::{Raised, Uncaught};
use super::{Caller, Style, json};
use crate::master::resp::Protocol;

/// How much memory a machine may hold, in bytes. A script that wants more ends with an error.
pub const MEMORY_MAX: usize = 64 * 1_024 * 1_024;

scoped_thread_local!(pub(super) static mut CALLER: for<'a> &'a mut (dyn Caller + 'a));

/// Reaches the server for the script that runs.
pub(super) fn with_caller<R>(act: impl FnOnce(&mut dyn Caller) -> R) -> R {
    CALLER.with(|caller| act(caller))
}

/// What the functions of a machine share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) style: &'static Style,
    /// The version in which the script hears replies.
    pub(super) protocol: Cell<Protocol>,
    /// Where the generator of random numbers stands.
    pub(super) random: Cell<u64>,
    /// How JSON is written and read.
    pub(super) json: Rc<Cell<json::Settings>>,
    /// What the server said when it wanted the script to stop.
    pub(super) stopped: RefCell<Option<String>>,
    /// The error that ended the script.
    pub(super) uncaught: RefCell<Option<Uncaught>>,
    /// The numbers of the objects that the script has seen the address of.
    pub(super) addresses: RefCell<Option<Table>>,
}

impl State {
    /// Asks the server whether to go on.
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
