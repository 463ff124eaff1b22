//! Answer of one node to an operation that failed.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::health::Standing;

/// Reason for the end of a connection whose node did not answer.
pub(crate) const NO_ANSWER: &str = "no answer in time";

/// Reason of a dial that took too long: the node may not have been asked at all.
pub(crate) const NO_CONNECTION: &str = "no connection in time: the name lookup, the network, the \
                                        provider of credentials or the server is slow";

/// Reason of a connection whose TLS handshake was not answered.
pub(crate) const NO_TLS_ANSWER: &str =
    "no answer in time; the URL demands TLS: check that the port speaks it";

/// One node's part in an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeVerdict {
    /// The node was not asked: no connection accepted the command in time.
    #[default]
    NotAsked,
    /// The node was asked, and had not answered when the attempt was settled.
    Pending,
    /// The node set the key.
    Granted,
    /// The node set the key, but its vote does not count: it is in quarantine, or a replica.
    NotCounted,
    /// The node refused: another attempt's key was there.
    Taken,
    /// The node answered with an error.
    Error,
    /// The node did not answer in time.
    Silent,
}

impl From<redlock_protocol::NodeVerdict> for NodeVerdict {
    fn from(verdict: redlock_protocol::NodeVerdict) -> Self {
        use redlock_protocol::NodeVerdict as Verdict;
        match verdict {
            Verdict::NotAsked => Self::NotAsked,
            Verdict::Pending => Self::Pending,
            Verdict::Granted => Self::Granted,
            Verdict::NotCounted => Self::NotCounted,
            Verdict::Taken => Self::Taken,
            Verdict::Error => Self::Error,
            Verdict::Silent => Self::Silent,
        }
    }
}

impl NodeVerdict {
    /// Returns the verdict as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::NotCounted => "not_counted",
            Self::Taken => "taken",
            Self::Error => "error",
            Self::Silent => "silent",
        }
    }
}

/// Displays the verdict in words, as in "no answer in time".
impl fmt::Display for NodeVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotAsked => "not asked: no connection accepted the command",
            Self::Pending => "still pending when the attempt was decided",
            Self::Granted => "granted",
            Self::NotCounted => "granted, but not counted",
            Self::Taken => "taken",
            Self::Error => "error",
            Self::Silent => "no answer in time",
        })
    }
}

/// A node's answer to an operation, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAnswer {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
    /// The node's answer.
    pub verdict: NodeVerdict,
    /// Time from the start of the attempt to the verdict; zero if there was no attempt, or if the
    /// verdict is [`NodeVerdict::Pending`].
    pub after: Duration,
    /// Last error of the node or its connection, as the server or system worded it. With
    /// [`NodeVerdict::Taken`] only an error that kept the node from showing the key's holder.
    pub error: Option<Arc<str>>,
    /// Standing of the node when the answer was reported.
    pub(crate) standing: Standing,
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, verdict, after, .. } = self;
        match verdict {
            NodeVerdict::NotCounted => {
                formatter.write_str(node)?;
                formatter.write_str(" granted")?;
                self.write_after(formatter)?;
                write!(formatter, ", not counted: {}", self.why_not_counted())?;
            }
            NodeVerdict::Silent if !after.is_zero() => {
                write!(formatter, "{node} no answer within {after:.1?}")?;
            }
            NodeVerdict::NotAsked | NodeVerdict::Pending => write!(formatter, "{node} {verdict}")?,
            _ => {
                write!(formatter, "{node} {verdict}")?;
                self.write_after(formatter)?;
            }
        }
        match (self.error.as_deref(), verdict) {
            (None, _) | (_, NodeVerdict::Granted) => Ok(()),
            (Some(NO_ANSWER), NodeVerdict::Silent) => {
                formatter.write_str(" (the connection was closed because of that)")
            }
            (Some(error), NodeVerdict::Taken) => {
                write!(formatter, ", by a holder that it does not show ({error})")
            }
            (Some(error), _) => write!(formatter, " ({error})"),
        }
    }
}

impl NodeAnswer {
    /// Writes the time of the verdict, if there is one.
    fn write_after(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after.is_zero() { Ok(()) } else { write!(formatter, " after {:.1?}", self.after) }
    }

    /// Returns the reason why a vote was not counted, in words.
    fn why_not_counted(&self) -> String {
        match self.standing {
            Standing::Quarantined(left) => format!("in quarantine for another {left:.1?}"),
            Standing::NotKnown => "a replica, or a node that must introduce itself again".into(),
            Standing::Counts => "in quarantine when the attempt began".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_everything_once() {
        let answer = |verdict, after_ms, error: Option<&str>| {
            let (node, after) = (String::from("a"), Duration::from_millis(after_ms));
            let (error, standing) = (error.map(Into::into), Standing::Counts);
            NodeAnswer { place: 0, node, verdict, after, error, standing }
        };
        let shown = |verdict, after_ms, error| answer(verdict, after_ms, error).to_string();
        use NodeVerdict::{Error, Granted, NotAsked, NotCounted, Pending, Silent, Taken};
        let closed = "(the connection was closed because of that)";
        assert_eq!(shown(Silent, 0, None), "a no answer in time");
        assert_eq!(
            shown(Silent, 50, Some(NO_ANSWER)),
            format!("a no answer within 50.0ms {closed}")
        );
        assert_eq!(shown(Silent, 0, Some(NO_ANSWER)), format!("a no answer in time {closed}"));
        assert_eq!(shown(Silent, 50, Some("reset")), "a no answer within 50.0ms (reset)");
        let unasked = "a not asked: no connection accepted the command";
        assert_eq!(shown(NotAsked, 21, Some("refused")), format!("{unasked} (refused)"));
        assert_eq!(shown(Pending, 0, None), "a still pending when the attempt was decided");
        assert_eq!(shown(Error, 2, Some("OOM")), "a error after 2.0ms (OOM)");
        assert_eq!(shown(Granted, 2, Some("earlier")), "a granted after 2.0ms");
        assert_eq!(shown(Taken, 2, None), "a taken after 2.0ms");
        let hidden = "a taken after 2.0ms, by a holder that it does not show (WRONGTYPE)";
        assert_eq!(shown(Taken, 2, Some("WRONGTYPE")), hidden);
        let began = "a granted after 2.0ms, not counted: in quarantine when the attempt began";
        assert_eq!(shown(NotCounted, 2, None), began);
        let standing = Standing::Quarantined(Duration::from_secs(30));
        let quarantined = NodeAnswer { standing, ..answer(NotCounted, 0, None) };
        let left = "a granted, not counted: in quarantine for another 30.0s";
        assert_eq!(quarantined.to_string(), left);
    }
}
