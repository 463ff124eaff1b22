//! What the examples take from their arguments and their environment.

use redlock_client::RestartGuard;

/// The nodes: the arguments, or else `REDLOCK_NODES`, separated by commas.
pub(crate) fn nodes() -> Vec<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return arguments;
    }
    let list = std::env::var("REDLOCK_NODES").unwrap_or_default();
    list.split(',').filter(|url| !url.is_empty()).map(String::from).collect()
}

/// What is promised of the nodes' memory: nothing, as in production.
///
/// A node that has just been started does not vote then: it may have forgotten leases. Servers that
/// were made for a demonstration have nothing to forget; `REDLOCK_RESTART_GUARD=delayed-restart`
/// promises just that.
pub(crate) fn restart_guard() -> RestartGuard {
    match std::env::var("REDLOCK_RESTART_GUARD").as_deref() {
        Ok("delayed-restart") => RestartGuard::DelayedRestart,
        _ => RestartGuard::Quarantine,
    }
}
