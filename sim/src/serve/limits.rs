//! Limits on connections, requests and bytes.

use core::ops::RangeInclusive;

/// Maximum number of connections to one port.
pub(super) const CONNECTIONS_MAX: usize = 10_000;

/// Maximum number of requests of one connection that have arrived and are not executed; more stay
/// in the kernel.
pub(super) const ARRIVALS_MAX: usize = 16_384;

/// Maximum number of requests that a connection executes before it lets others use the node.
pub(super) const BATCH_MAX: usize = 1_024;

/// Buffer space reserved for each read from a connection, in bytes: the least, which is all that an
/// idle connection holds, and the most, for a connection whose reads fill their buffer.
pub(super) const READ_BYTES: RangeInclusive<usize> = 4 * 1_024..=64 * 1_024;

/// Maximum number of unsent reply bytes of one connection; above it, no more of its requests are
/// executed.
pub(super) const REPLIES_BYTES_MAX: usize = 1 << 20;

/// Maximum number of unsent reply bytes of one connection; above it, a push closes the connection
/// (`client-output-buffer-limit`).
pub(super) const PUSHED_BYTES_MAX: usize = 1 << 26;

/// Maximum number of bytes in requests of one connection that have arrived and are not executed;
/// more stay in the kernel.
pub(super) const ARRIVALS_BYTES_MAX: usize = 1 << 26;

/// Maximum number of unprocessed bytes from all connections of the process; above it, a connection
/// that sends more is closed (`client-query-buffer-limit`).
pub(super) const HELD_BYTES_MAX: usize = 1 << 30;

/// Unprocessed bytes that each connection may have even above [`HELD_BYTES_MAX`].
pub(super) const HELD_BYTES_FREE: usize = 1 << 16;

/// Maximum number of connections to the observer.
pub(super) const OBSERVERS_MAX: usize = 1_000;
