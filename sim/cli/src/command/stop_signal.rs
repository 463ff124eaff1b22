//! The stop flag of long commands: Ctrl-C sets it once, and ends the process the second time.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use super::exit::{Exit, Stop};

/// Set by the first Ctrl-C, and by [`request`].
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Set by the first Ctrl-C alone.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to handle Ctrl-C and SIGTERM. Returns the flag, which long work looks at.
pub(super) fn install() -> Result<&'static AtomicBool, Stop> {
    ctrlc::set_handler(interrupted).map_err(Stop::internal)?;
    Ok(&REQUESTED)
}

/// Sets the flag.
pub(super) fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Returns true if somebody asked for the end before the work was done.
pub(super) fn was_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

fn interrupted() {
    request();
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        std::process::exit(i32::from(Exit::Inconclusive.code()));
    }
}

/// Sets the flag after `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "how much is played may depend on real time; what each run does may not"
)]
pub(super) fn after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        request();
    });
}
