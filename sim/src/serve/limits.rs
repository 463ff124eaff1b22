//! How much of everything there may be.

/// Connections to one port.
pub(super) const CONNECTIONS_MAX: usize = 10_000;

/// Requests of one connection that have arrived and are not executed; more stay in the kernel.
pub(super) const ARRIVALS_MAX: usize = 16_384;

/// Requests that are executed without letting others have the node.
pub(super) const BATCH_MAX: usize = 1_024;

/// Bytes that a connection is read in one go.
pub(super) const READ_BYTES: usize = 64 * 1_024;

/// Bytes of answers that wait on one connection: with more, no more requests of it are executed.
pub(super) const REPLIES_BYTES_MAX: usize = 1 << 20;

/// Bytes of answers that wait on one connection: with more, a push closes it
/// (`client-output-buffer-limit`).
pub(super) const PUSHED_BYTES_MAX: usize = 1 << 26;

/// Bytes of requests of one connection that have arrived and are not executed; more stay in the
/// kernel.
pub(super) const ARRIVALS_BYTES_MAX: usize = 1 << 26;

/// Bytes that all connections of a process together may have sent that are not done with, before
/// those that send more are closed (`client-query-buffer-limit`).
pub(super) const HELD_BYTES_MAX: usize = 1 << 30;

/// So many bytes each of them may have sent all the same.
pub(super) const HELD_BYTES_FREE: usize = 1 << 16;

/// Connections to the observer.
pub(super) const OBSERVERS_MAX: usize = 1_000;
