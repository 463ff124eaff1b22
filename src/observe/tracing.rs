//! What every client writes to `tracing`: attempts, leases and nodes for whoever looks for a fault
//! (`debug`), and what an operator should know (`warn`). Never a token, a user or a password.

use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};

use ::tracing::level_filters::LevelFilter;
use ::tracing::{debug, trace, warn};

use super::{Event, NodeIndex, NodeMask, Observer};
use crate::environment::Endpoint;
use crate::health::Standing;

/// Writes events to the subscriber that is installed, if one is.
pub(crate) struct TracingObserver {
    /// The nodes' addresses, without credentials.
    nodes: Vec<String>,
    /// The nodes that have been complained of since they were connected last: a node that is away
    /// for an hour is worth one line.
    unreachable: AtomicU16,
}

impl TracingObserver {
    pub(super) fn new(endpoints: &[Endpoint]) -> Self {
        let nodes = endpoints.iter().map(ToString::to_string).collect();
        Self { nodes, unreachable: AtomicU16::new(NodeMask::EMPTY.bits()) }
    }

    /// Whether any subscriber wants anything. One load.
    pub(super) fn is_heard() -> bool {
        LevelFilter::current() != LevelFilter::OFF
    }

    fn address(&self, node: NodeIndex) -> &str {
        &self.nodes[node.get()]
    }

    /// Whether `node` has not been complained of yet. Called under the client's lock.
    fn complain(&self, node: NodeIndex) -> bool {
        let mut complained = NodeMask::from_bits(self.unreachable.load(Ordering::Relaxed));
        let first = !complained.contains(node);
        complained.insert(node);
        self.unreachable.store(complained.bits(), Ordering::Relaxed);
        first
    }

    fn forgive(&self, node: NodeIndex) {
        let mut complained = NodeMask::from_bits(self.unreachable.load(Ordering::Relaxed));
        complained.remove(node);
        self.unreachable.store(complained.bits(), Ordering::Relaxed);
    }

    fn node_event(&self, event: &Event<'_>) {
        match *event {
            Event::Connected { node } => {
                self.forgive(node);
                debug!(node = self.address(node), "connected");
            }
            Event::ConnectFailed { node, error } => {
                if self.complain(node) {
                    warn!(node = self.address(node), error, "a node cannot be reached");
                } else {
                    debug!(node = self.address(node), error, "a node still cannot be reached");
                }
            }
            Event::Disconnected { node, error: None } => {
                debug!(node = self.address(node), "disconnected");
            }
            Event::Disconnected { node, error: Some(error) } => {
                self.complain(node);
                warn!(node = self.address(node), error, "the connection to a node is gone");
            }
            Event::Eligible { node, standing, .. } => {
                let node = self.address(node);
                match standing {
                    Standing::Counts => debug!(node, "the node's votes count"),
                    Standing::Quarantined(left) => {
                        let left_ms = left.as_millis() as u64;
                        warn!(node, left_ms, "a node may have forgotten leases: in quarantine");
                    }
                    Standing::NotKnown => {
                        warn!(node, "a node is a replica: its votes do not count");
                    }
                }
            }
            Event::QuarantineEnded { node } => {
                debug!(node = self.address(node), "the quarantine is over: the votes count");
            }
            Event::Written { node, operation, at, .. } => {
                let (node, at_ns) = (self.address(node), at.as_nanos());
                trace!(node, ?operation, at_ns, "written");
            }
            Event::Answered { node, operation, answer, at, .. } => {
                let (node, at_ns) = (self.address(node), at.as_nanos());
                trace!(node, ?operation, ?answer, at_ns, "answered");
            }
            _ => {}
        }
    }
}

impl Observer for TracingObserver {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::AttemptBegan { resource, ttl, .. } => {
                let (resource, ttl_ms) = (Name(resource), ttl.as_millis() as u64);
                debug!(%resource, ttl_ms, "an attempt began");
            }
            Event::AttemptFailed { resource, reason, .. } => {
                debug!(resource = %Name(resource), ?reason, "an attempt failed");
            }
            Event::Decided { counted, .. } => debug!(?counted, "an attempt was granted"),
            Event::Delivered { resource, attempts, waited, .. } => {
                debug!(resource = %Name(resource), failures = attempts, ?waited, "acquired");
            }
            Event::AcquireFailed { resource, kind, attempts, waited } => {
                debug!(resource = %Name(resource), ?kind, attempts, ?waited, "not acquired");
            }
            Event::AcquireCancelled { resource, attempts, waited } => {
                let resource = Name(resource);
                debug!(%resource, attempts, ?waited, "the acquisition was dropped");
            }
            Event::Extended { resource, counted, .. } => {
                debug!(resource = %Name(resource), ?counted, "extended");
            }
            Event::ExtensionFailed { resource, reason, .. } => {
                debug!(resource = %Name(resource), ?reason, "not extended");
            }
            Event::Lost { resource, reason, held, .. } => {
                warn!(resource = %Name(resource), %reason, ?held, "a lease was lost");
            }
            Event::LeftToExpire { resource, held, .. } => {
                debug!(resource = %Name(resource), ?held, "left to expire");
            }
            Event::ReleaseCalled { resource, held, .. } => {
                debug!(resource = %Name(resource), ?held, "the release was asked for");
            }
            Event::Released { resource, outcome, .. } => {
                let (resource, unconfirmed) = (Name(resource), outcome.unconfirmed);
                debug!(%resource, ?unconfirmed, "released");
            }
            _ => self.node_event(event),
        }
    }
}

/// A resource's name in printable characters.
struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.escape_ascii())
    }
}
