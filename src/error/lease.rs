//! Reasons for the end of a lease, and outcomes of releases.

use core::fmt;

use redlock_protocol as protocol;

use super::NodeAnswer;
use crate::votes::Votes;

/// Reason why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The client was closed. Also returned in a child process, forked without `exec`, of the
    /// process that has the lease: the lease is that process's alone.
    Closed,
    /// The deadline of the lease has passed, or is at most 2 ms away. Also returned by
    /// [`Lease::check`](crate::Lease::check) if no more than the needed time is left.
    DeadlinePassed,
    /// The deadline of the lease has passed, or is about to, because its keep-alive limit was
    /// reached.
    KeepAliveEnded,
    /// The deadline of a lease that is kept alive has passed, or is about to, because too few nodes
    /// confirmed the last extension in time. Either the nodes did not answer or refused, or nothing
    /// served the connections: their runtime was blocked, or had ended and no call from within
    /// another one followed (see "Runtime" in the crate's documentation).
    KeepAliveFailed,
    /// So many nodes have lost the key that another client can get a majority.
    KeysGone,
    /// The lease was released.
    Released,
}

impl LostReason {
    /// Returns the reason as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::DeadlinePassed => "deadline_passed",
            Self::KeepAliveEnded => "keep_alive_ended",
            Self::KeepAliveFailed => "keep_alive_failed",
            Self::KeysGone => "keys_gone",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Closed => "the client was closed",
            Self::DeadlinePassed => "the lease's deadline has passed, or is too near",
            Self::KeepAliveEnded => "the keep-alive limit of the lease is reached",
            Self::KeepAliveFailed => {
                "too few nodes confirmed the extensions that keep the lease alive"
            }
            Self::KeysGone => "so many nodes lost the key that another client can get a majority",
            Self::Released => "the lease was released",
        })
    }
}

impl std::error::Error for LostReason {}

impl From<protocol::LostReason> for LostReason {
    fn from(reason: protocol::LostReason) -> Self {
        match reason {
            protocol::LostReason::DeadlinePassed => Self::DeadlinePassed,
            protocol::LostReason::KeepAliveEnded => Self::KeepAliveEnded,
            protocol::LostReason::KeepAliveFailed => Self::KeepAliveFailed,
            protocol::LostReason::KeysGone => Self::KeysGone,
        }
    }
}

/// Reason why a lease does not pass [`Lease::check_confirmed`](crate::Lease::check_confirmed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The lease is over, or has too little time left.
    Lost(LostReason),
    /// The lease is not lost, but too few nodes are known to have its key.
    Unconfirmed(Votes),
}

impl fmt::Display for CheckError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => reason.fmt(formatter),
            Self::Unconfirmed(Votes { confirmed, majority, .. }) => {
                write!(
                    formatter,
                    "too few nodes confirm the lease: {confirmed} of the {majority} that are needed"
                )
            }
        }
    }
}

impl std::error::Error for CheckError {}

impl From<LostReason> for CheckError {
    fn from(reason: LostReason) -> Self {
        Self::Lost(reason)
    }
}

/// Outcome of a release. In every case the lease is over. The client retries unconfirmed releases.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Every node that could have had the key has answered, and none had it any more.
    AlreadyExpired,
    /// Every node that could have had the key has answered, and none has it now. A node that was
    /// unreachable during the acquisition was sent no SET, and has nothing to confirm.
    Confirmed,
    /// These nodes may have the key and have not confirmed its deletion. They may keep the key
    /// until it expires.
    Unconfirmed(Vec<NodeAnswer>),
}

impl Released {
    /// Returns the outcome as one word, for logs and metrics: `expired`, `confirmed` or
    /// `unconfirmed`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AlreadyExpired => "expired",
            Self::Confirmed => "confirmed",
            Self::Unconfirmed(_) => "unconfirmed",
        }
    }
}

/// Names the nodes that have not confirmed, each with the reason.
impl fmt::Display for Released {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyExpired => formatter.write_str("no node had the key any more"),
            Self::Confirmed => {
                formatter.write_str("released on every node that could have had the key")
            }
            Self::Unconfirmed(nodes) => {
                formatter.write_str("released, but not confirmed by ")?;
                list(nodes, formatter)
            }
        }
    }
}

/// Writes the answers, separated by semicolons.
fn list(nodes: &[NodeAnswer], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, node) in nodes.iter().enumerate() {
        write!(formatter, "{}{node}", if place == 0 { "" } else { "; " })?;
    }
    Ok(())
}

/// Outcome of closing a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nodes may still be owed releases"]
pub struct Closed {
    pub(crate) left: Vec<NodeAnswer>,
}

impl Closed {
    /// Returns the nodes that have unanswered commands, or are owed releases. They may keep keys
    /// until these expire. The client keeps trying as long as its runtime exists.
    #[must_use]
    pub fn left(&self) -> &[NodeAnswer] {
        &self.left
    }

    /// Returns true if every node has answered and no release is owed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// Names the nodes that are left, each with the reason.
impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complete() {
            return formatter.write_str("every node has confirmed");
        }
        formatter.write_str("not confirmed by ")?;
        list(&self.left, formatter)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::error::NodeVerdict;
    use crate::health::Standing;

    #[test]
    fn outcomes_name_the_nodes_that_have_not_confirmed() {
        let answer = |place, node: &str, error: Option<&str>| NodeAnswer {
            place,
            node: node.into(),
            verdict: NodeVerdict::Silent,
            after: Duration::ZERO,
            standing: Standing::NotKnown,
            error: error.map(Into::into),
        };
        let nodes = vec![answer(0, "redis://a:6379", None), answer(2, "redis://c:6379", Some("x"))];
        let named = "redis://a:6379 no answer in time; redis://c:6379 no answer in time (x)";
        let released = Released::Unconfirmed(nodes.clone());
        assert_eq!(released.to_string(), format!("released, but not confirmed by {named}"));
        assert_eq!(Closed { left: nodes }.to_string(), format!("not confirmed by {named}"));
        assert_eq!(Closed { left: Vec::new() }.to_string(), "every node has confirmed");
    }
}
