//! Log of a client's events to `tracing`: attempts, leases and nodes for troubleshooting (`debug`),
//! problems for the operator (`warn`), and the end of a reported problem (`info`). It never
//! contains a token, a user or a password.

use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};
use core::time::Duration;

use ::tracing::field::display;
use ::tracing::level_filters::LevelFilter;
use ::tracing::{debug, info, trace, warn};
use redlock_protocol::{NodeCount, Token as OwnerToken};

use super::{Event, Observer};
use crate::environment::Endpoint;
use crate::error::ExtendErrorKind;
use crate::health::Standing;

/// Target of all events.
const TARGET: &str = "redlock_client";

/// From this `fleet_max_ttl` on a quarantine outlasts most outages.
const LONG_TTL: Duration = Duration::from_secs(3_600);

/// Logs events to the installed subscriber, if there is one.
pub(crate) struct TracingObserver {
    /// The nodes' addresses, without credentials.
    nodes: Vec<String>,
    /// Nodes that were reported as unreachable. A node that is unreachable for an hour is reported
    /// once.
    unreachable: Complaints,
    /// Nodes whose votes were reported not to count.
    without_vote: Complaints,
    /// Nodes that were reported as the server of another node.
    twins: Complaints,
}

/// Nodes with a reported problem, as bits. Changed only under the client's lock.
#[derive(Default)]
struct Complaints(AtomicU16);

impl Complaints {
    /// Marks `node`; returns true if it was not marked yet.
    fn complain(&self, node: usize) -> bool {
        self.0.fetch_or(1 << node, Ordering::Relaxed) & (1 << node) == 0
    }

    /// Unmarks `node`; returns true if it was marked.
    fn forgive(&self, node: usize) -> bool {
        self.0.fetch_and(!(1 << node), Ordering::Relaxed) & (1 << node) != 0
    }
}

/// Warns of settings that are safe, but seldom meant. Called once for each client.
pub(crate) fn warn_of(nodes: NodeCount, fleet_max_ttl: Duration) {
    let count = nodes.get();
    if count.is_multiple_of(2) {
        warn!(
            target: TARGET,
            nodes = count,
            "an even number of nodes tolerates no more failures than one node less"
        );
    }
    if fleet_max_ttl >= LONG_TTL {
        warn!(
            target: TARGET,
            ?fleet_max_ttl,
            "a long fleet_max_ttl: a node that may have forgotten leases cannot vote before it has passed; for long \
             work, keep leases with a short TTL alive"
        );
    }
}

impl TracingObserver {
    pub(super) fn new(endpoints: &[Endpoint]) -> Self {
        let nodes = endpoints.iter().map(ToString::to_string).collect();
        let [unreachable, without_vote, twins] = Default::default();
        Self { nodes, unreachable, without_vote, twins }
    }

    /// Returns true if any subscriber is interested in events. Costs one load.
    pub(super) fn is_heard() -> bool {
        LevelFilter::current() != LevelFilter::OFF
    }

    fn connection_event(&self, event: &Event<'_>) {
        match *event {
            Event::Connected { node } => {
                let (was_away, node) = (self.unreachable.forgive(node), &self.nodes[node]);
                if was_away {
                    info!(target: TARGET, node, "a node can be reached again");
                } else {
                    debug!(target: TARGET, node, "connected");
                }
            }
            Event::ConnectFailed { node, error } => {
                let (is_new, node) = (self.unreachable.complain(node), &self.nodes[node]);
                if is_new {
                    warn!(target: TARGET, node, error, "a node cannot be reached");
                } else {
                    debug!(target: TARGET, node, error, "a node still cannot be reached");
                }
            }
            Event::Disconnected { node, error: None } => {
                debug!(target: TARGET, node = &self.nodes[node], "disconnected");
            }
            Event::Disconnected { node, error: Some(error) } => {
                self.unreachable.complain(node);
                let node = &self.nodes[node];
                warn!(target: TARGET, node, error, "the connection to a node is gone");
            }
            _ => self.vote_event(event),
        }
    }

    fn vote_event(&self, event: &Event<'_>) {
        match *event {
            Event::Eligible { node, standing: Standing::Counts, .. } => {
                let (did_not, node) = (self.without_vote.forgive(node), &self.nodes[node]);
                if did_not {
                    info!(target: TARGET, node, "the node's votes count again");
                } else {
                    debug!(target: TARGET, node, "the node's votes count");
                }
            }
            Event::Eligible { node, standing: Standing::Quarantined(left), .. } => {
                self.without_vote.complain(node);
                let (node, left_ms) = (&self.nodes[node], left.as_millis() as u64);
                warn!(
                    target: TARGET,
                    node, left_ms, "a node may have forgotten leases: in quarantine"
                );
            }
            Event::Eligible { node, standing: Standing::NotKnown, .. } => {
                self.without_vote.complain(node);
                let node = &self.nodes[node];
                warn!(
                    target: TARGET,
                    node,
                    "a node's votes do not count: it is a replica, loads its data, or has to introduce \
                     itself again"
                );
            }
            Event::SameServer { node, other } => {
                if self.twins.complain(node) {
                    let (node, other) = (&self.nodes[node], &self.nodes[other]);
                    warn!(
                        target: TARGET,
                        node, other, "two nodes are the same server: its vote counts twice"
                    );
                }
            }
            Event::QuarantineEnded { node } => {
                self.without_vote.forgive(node);
                let node = &self.nodes[node];
                info!(target: TARGET, node, "the quarantine is over: the votes count");
            }
            _ => self.command_event(event),
        }
    }

    fn command_event(&self, event: &Event<'_>) {
        match *event {
            Event::Written { node, operation, owner, resource, at } => {
                let (node, at_ns) = (&self.nodes[node], at.as_nanos());
                let attempt = owner.map(|it| display(Attempt(it)));
                let resource = (!resource.is_empty()).then(|| display(Name(resource)));
                trace!(target: TARGET, resource, attempt, node, ?operation, at_ns, "written");
            }
            Event::Answered { node, operation, owner, resource, answer, at } => {
                let (node, at_ns) = (&self.nodes[node], at.as_nanos());
                let attempt = owner.map(|it| display(Attempt(it)));
                let resource = (!resource.is_empty()).then(|| display(Name(resource)));
                trace!(
                    target: TARGET,
                    resource, attempt, node, ?operation, ?answer, at_ns, "answered"
                );
            }
            _ => {}
        }
    }

    fn acquisition_event(&self, event: &Event<'_>) {
        match *event {
            Event::AttemptBegan { owner, resource, ttl, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                let ttl_ms = ttl.as_millis() as u64;
                debug!(target: TARGET, %resource, %attempt, ttl_ms, "an attempt began");
            }
            Event::AttemptFailed { owner, resource, reason } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, ?reason, "an attempt failed");
            }
            Event::Decided { owner, resource, counted, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, ?counted, "an attempt was granted");
            }
            Event::Delivered { owner, resource, attempts: failures, waited, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, failures, ?waited, "acquired");
            }
            Event::AcquireFailed { resource, kind, attempts, waited } => {
                let resource = Name(resource);
                debug!(target: TARGET, %resource, ?kind, attempts, ?waited, "not acquired");
            }
            Event::AcquireCancelled { resource, attempts, waited } => {
                let resource = Name(resource);
                debug!(target: TARGET, %resource, attempts, ?waited, "the acquisition was dropped");
            }
            _ => self.connection_event(event),
        }
    }
}

impl Observer for TracingObserver {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Extended { owner, resource, counted, failures, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                if failures > 0 {
                    info!(target: TARGET, %resource, %attempt, failures, "extended again");
                } else {
                    debug!(target: TARGET, %resource, %attempt, ?counted, "extended");
                }
            }
            Event::ExtensionFailed { owner, resource, reason, failures } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                // The loss of a lease and its release are logged by events of their own.
                if failures == 1 && !matches!(reason, ExtendErrorKind::Lost(_)) {
                    warn!(target: TARGET, %resource, %attempt, ?reason, "an extension failed");
                } else {
                    debug!(target: TARGET, %resource, %attempt, ?reason, failures, "not extended");
                }
            }
            Event::Lost { owner, resource, reason, held } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                warn!(target: TARGET, %resource, %attempt, %reason, ?held, "a lease was lost");
            }
            Event::LeftToExpire { owner, resource, held, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, ?held, "left to expire");
            }
            Event::ReleaseCalled { owner, resource, held, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, ?held, "the release was asked for");
            }
            Event::Released { owner, resource, unconfirmed, .. } => {
                let (resource, attempt) = (Name(resource), Attempt(owner));
                debug!(target: TARGET, %resource, %attempt, ?unconfirmed, "released");
            }
            _ => self.acquisition_event(event),
        }
    }
}

/// A resource name, displayed in printable characters.
struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.escape_ascii())
    }
}

/// Identifies an attempt, and the lease that it becomes, by the first four of the twenty bytes of
/// its token: enough to recognise the key's value on a node, too little to release it.
struct Attempt(OwnerToken);

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bytes()[..4].iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
