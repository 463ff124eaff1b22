//! The client.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::driver::Driver;
use crate::error::{AcquireError, Closed};
use crate::health::Health;
use crate::settings::Settings;

/// A Redlock client of a fixed list of nodes. Clones share connections.
///
/// When the last clone and the last lease are dropped, the client sends the owed releases and
/// stops.
#[derive(Clone)]
pub struct Redlock {
    handle: Arc<Handle>,
}

/// Shared by all clones and leases. Once it is dropped, the client's tasks may end.
struct Handle {
    driver: Arc<Driver>,
    settings: Settings,
}

impl Redlock {
    pub(crate) fn new(driver: Driver, settings: Settings) -> Self {
        Self { handle: Arc::new(Handle { driver: Arc::new(driver), settings }) }
    }

    /// Opens all connections, and waits until a lock can be acquired: until a majority of the nodes
    /// is connected and their votes count. Call it when a service starts. The first acquisition
    /// also opens the connections and waits for a majority of them, but no longer than the connect
    /// timeout.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// redlock.ready(Duration::from_secs(40)).await?; // longer than a quarantine: fleet_max_ttl is 30 s
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If no lock can be acquired `within` that time: [`AcquireErrorKind::Quarantined`] with the
    /// remaining time if enough nodes are connected, else [`AcquireErrorKind::TooFewNodes`] with
    /// the nodes that are not connected, and the reasons. [`AcquireErrorKind::Closed`] and
    /// [`AcquireErrorKind::NoRuntime`] are returned at once.
    ///
    /// [`AcquireErrorKind::Closed`]: crate::AcquireErrorKind::Closed
    /// [`AcquireErrorKind::NoRuntime`]: crate::AcquireErrorKind::NoRuntime
    /// [`AcquireErrorKind::Quarantined`]: crate::AcquireErrorKind::Quarantined
    /// [`AcquireErrorKind::TooFewNodes`]: crate::AcquireErrorKind::TooFewNodes
    pub async fn ready(&self, within: Duration) -> Result<(), AcquireError> {
        let driver = self.driver();
        driver.connect()?;
        let until = driver.environment().now().after(within);
        driver.wait(|it, waiter, context| it.poll_ready(waiter, until, context)).await
    }

    /// Returns the known state of the nodes. Sends nothing and never waits.
    #[must_use]
    pub fn health(&self) -> Health {
        self.driver().health()
    }

    /// Ends every lease and acquisition of this client and all its clones, and waits until every
    /// node has confirmed, but no longer than `within`.
    ///
    /// Leases are over at once, with [`LostReason::Closed`](crate::LostReason::Closed); later
    /// acquisitions fail. If the future is dropped, the releases continue in the background.
    ///
    /// ```no_run
    /// # use core::time::Duration;
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// // On SIGTERM, after the work is done or dropped.
    /// let closed = redlock.close(Duration::from_secs(2)).await;
    /// closed.left().iter().for_each(|node| println!("not confirmed by {node}"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self, within: Duration) -> Closed {
        let driver = self.driver();
        driver.shut();
        let until = driver.environment().now().after(within);
        driver.wait(|it, waiter, context| it.poll_shut(waiter, until, context)).await;
        Closed { left: driver.unsettled() }
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
