//! Passes over several locks as the driver plays them, and the pauses between them.

use std::sync::Arc;

use redlock_protocol::{BootInstant, Limit, Passes as Rules};

use crate::acquire::Acquire;
use crate::driver::Driver;
use crate::error::{AcquireError, AcquireErrorKind};

/// Passes of one acquisition, and the client that plays them.
pub(super) struct Passes<'a> {
    driver: &'a Arc<Driver>,
    rules: Rules,
}

impl<'a> Passes<'a> {
    /// Begins the passes of `acquire`: its wait counts from now.
    pub(super) fn new<W>(acquire: &Acquire<'a, W>) -> Self {
        let (driver, settings) = (acquire.redlock().driver(), acquire.redlock().settings());
        let now = driver.environment().now();
        let limit = acquire.options().limit(settings, now);
        Self { driver, rules: Rules::new(limit, settings.retry, now) }
    }

    /// Returns the limit of a use of a lock that begins while nothing is held.
    pub(super) fn empty_handed(&self) -> Limit {
        self.rules.empty_handed()
    }

    /// Returns the end of the wait, if there is one.
    pub(super) fn wait_ends(&self) -> Option<BootInstant> {
        self.rules.wait_ends()
    }

    /// Returns true if an acquisition that waits lets others have the lock `name` first.
    pub(super) fn lets_others_go_first(&self, name: &[u8]) -> bool {
        self.wait_ends().is_some() && self.driver.is_others_turn(name, self.rules.retry())
    }

    pub(super) fn now(&self) -> BootInstant {
        self.driver.environment().now()
    }

    /// Waits for the next pass after one that failed with `error`, and has held locks since `began`.
    ///
    /// # Errors
    ///
    /// `error`, if no pass follows.
    pub(super) async fn next(
        &mut self,
        began: BootInstant,
        error: AcquireError,
    ) -> Result<(), AcquireError> {
        let now = self.now();
        let (took, contended) = (now.since(began), error.is_contention());
        let begins = self.rules.failed(took, contended, self.jitter()?, now);
        let error = error.after_passes(self.rules.failures());
        match begins.filter(|_| !error.is_final()) {
            Some(begins) => self.pause(begins).await,
            None => return Err(error),
        }
        Ok(())
    }

    /// Returns the error of a last pass, which has failed with `error`.
    pub(super) fn last(&self, error: AcquireError) -> AcquireError {
        error.after_passes(self.rules.failures() + 1)
    }

    /// Fills `bytes` with randomness.
    pub(super) fn draw(&self, bytes: &mut [u8]) -> Result<(), AcquireError> {
        let drawn = self.driver.environment().fill_random(bytes);
        drawn.map_err(|_| AcquireError::new(AcquireErrorKind::NoEntropy))
    }

    fn jitter(&self) -> Result<u64, AcquireError> {
        let mut bytes = [0; size_of::<u64>()];
        self.draw(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    async fn pause(&self, until: BootInstant) {
        self.driver.wait(|it, waiter, context| it.poll_pause(waiter, until, context)).await;
    }

    /// Waits until a lock can be acquired: enough nodes are connected, and may vote.
    ///
    /// # Errors
    ///
    /// If that is not so at the end of the wait.
    pub(super) async fn ready(&self, until: BootInstant) -> Result<(), AcquireError> {
        self.driver.wait(|it, waiter, context| it.poll_ready(waiter, until, context)).await
    }
}
