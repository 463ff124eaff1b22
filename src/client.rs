//! The client.

use core::fmt;
use std::sync::Arc;

use crate::acquire::{Acquire, Resource};
use crate::builder::{Builder, Settings};
use crate::driver::Driver;

/// A Redlock client of a fixed list of nodes. Clones share connections.
///
/// When the last clone and the last lease are gone, the client sends the releases that are owed and
/// ends.
#[derive(Clone)]
pub struct Redlock {
    handle: Arc<Handle>,
}

/// What keeps the client's tasks alive.
struct Handle {
    driver: Arc<Driver>,
    settings: Settings,
}

impl Redlock {
    /// Configures a client.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(driver: Driver, settings: Settings) -> Self {
        Self { handle: Arc::new(Handle { driver: Arc::new(driver), settings }) }
    }

    /// Acquires the lock on `resource`, trying again until the configured wait is over.
    pub fn acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        Acquire::new(self, resource.into())
    }

    /// Acquires the lock on `resource` in one attempt.
    pub fn try_acquire<'a>(&'a self, resource: impl Into<Resource<'a>>) -> Acquire<'a> {
        self.acquire(resource).attempts(1)
    }

    /// Asks every connection to open, so that the first acquisition need not wait for it. Does
    /// not wait either.
    pub async fn connect(&self) {
        self.driver().start_tasks();
        self.driver().connect();
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.handle.driver
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.handle.settings
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redlock").field("settings", self.settings()).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.driver.close();
    }
}
