//! The runtime of a call.

use tokio::runtime::{Builder, Runtime};

use crate::exit::Stop;

/// Returns a runtime of one thread.
pub(crate) fn runtime() -> Result<Runtime, Stop> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Stop::failed(format!("no runtime can be started: {error}")))
}
