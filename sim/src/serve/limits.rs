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

/// Bytes that all connections of a process together may have sent without a whole request coming
/// of it, before those that send more are closed.
pub(super) const PARTIAL_BYTES_MAX: usize = 1 << 30;
