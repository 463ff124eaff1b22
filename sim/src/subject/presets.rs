//! The subjects by name.

use core::time::Duration;

use lock_judge::scenario::OURS;

use super::php::SOCKET_TIMEOUT;
use super::policy::{
    AfterSet, Asking, Clock, Connect, DecisionPoint, Errors, Expiry, Extending, Fencing, LeaseForm,
    Policy, Quorum, ReleaseTo, TokenFrom, Unlock,
};

/// Type of a subject, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The `SETNX`/`GETSET` lock.
    GetSet,
    /// This project's own client.
    Ours,
    /// The PHP class.
    Php {
        /// Longest wait for a reply.
        socket_timeout: Duration,
    },
    /// The machine that follows a [`Policy`].
    Policy(Policy),
}

impl Kind {
    /// Returns true if the application checks the lease before it enters a section.
    #[must_use]
    pub fn checks_before_section(&self) -> bool {
        match self {
            Self::GetSet | Self::Php { .. } => false,
            Self::Ours => true,
            Self::Policy(policy) => policy.checks_before_section,
        }
    }

    /// Returns true if the subject is a client of a perfect lock server.
    #[must_use]
    pub fn needs_ideal_server(&self) -> bool {
        matches!(self, Self::Policy(policy) if policy.ideal_server)
    }

    /// Returns true if the subject locks on the first node of its list alone.
    #[must_use]
    pub fn uses_one_node(&self) -> bool {
        match self {
            Self::GetSet => true,
            Self::Ours | Self::Php { .. } => false,
            Self::Policy(policy) => policy.one_node,
        }
    }
}

/// Needs a majority of owner-checked replies before the old deadline; counts from T1; bounded.
const STRICT: Extending = Extending {
    by_any: false,
    recreates: false,
    from_reply: false,
    only_while_valid: true,
    checks_validity: true,
    unlocks_after_failure: false,
    is_bounded: true,
};

/// The specification to the letter: T1, SET NX PX everywhere, T2, validity, unlock everywhere,
/// random delay. No quarantine, no second check of the lease.
const LITERAL: Policy = Policy {
    clock: Clock::Boot,
    checks_validity: true,
    token: TokenFrom::Attempt,
    quorum: Quorum::Majority,
    asking: Asking::Parallel,
    settling: DecisionPoint::WhenCertain,
    errors: Errors::Unheard,
    has_node_timeout: true,
    release_after_failure: ReleaseTo::Everyone,
    release_when_too_slow: ReleaseTo::Everyone,
    unlock: Unlock::CompareAndDelete,
    expiry: Expiry::Px,
    then: AfterSet::Nothing,
    gives_up_drift: true,
    lasting: LeaseForm::Deadline,
    checks_before_section: false,
    fixed_retry: None,
    connect: Connect::Pooled,
    one_node: false,
    ideal_server: false,
    fencing: Fencing::Nowhere,
    extending: STRICT,
};

/// [`LITERAL`], with leases measured on the wall clock.
const WALL: Policy = Policy { clock: Clock::Wall, ..LITERAL };

/// One key on one node. The client believes in the lease for the whole TTL and never checks it.
const SINGLE: Policy = Policy {
    checks_validity: false,
    release_after_failure: ReleaseTo::Nobody,
    release_when_too_slow: ReleaseTo::Nobody,
    gives_up_drift: false,
    one_node: true,
    ..LITERAL
};

/// `SETNX`, and the expiry in a separate command.
const TWO_COMMANDS: Policy = Policy { expiry: Expiry::Never, ..SINGLE };

/// [`SINGLE`], for clients that ask how many replicas have the key; a failed attempt releases its
/// key.
const WAITING: Policy = Policy { release_after_failure: ReleaseTo::Everyone, ..SINGLE };

/// A correct client of one perfect lock server.
const LEASE_SERVICE: Policy = Policy {
    checks_validity: true,
    gives_up_drift: true,
    checks_before_section: true,
    ideal_server: true,
    ..SINGLE
};

/// Returns the kind of the subject `name`; `None` if there is no such subject.
#[must_use]
pub fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "getset" => Kind::GetSet,
        "php-redlock" => Kind::Php { socket_timeout: SOCKET_TIMEOUT },
        "php-redlock-short-timeout" => Kind::Php { socket_timeout: Duration::from_millis(50) },
        OURS => Kind::Ours,
        _ => {
            let found = single(name).or_else(|| weaker_redlock(name));
            Kind::Policy(found.or_else(|| redlock_extending(name))?)
        }
    })
}

/// Locks on one node.
fn single(name: &str) -> Option<Policy> {
    Some(match name {
        "counter-on-one-redis" => Policy { fencing: Fencing::Counters, ..SINGLE },
        "get-then-del" => Policy { unlock: Unlock::GetThenDelete, ..SINGLE },
        "lease-service" => LEASE_SERVICE,
        "lease-service-duration" => Policy { lasting: LeaseForm::Duration, ..LEASE_SERVICE },
        "set-plain-del" => Policy { unlock: Unlock::Delete, ..SINGLE },
        "setnx" => Policy { unlock: Unlock::Delete, ..TWO_COMMANDS },
        "setnx-and-expire-pipelined" => Policy { then: AfterSet::ExpirePipelined, ..TWO_COMMANDS },
        "setnx-then-expire" => Policy { then: AfterSet::Expire, ..TWO_COMMANDS },
        "timestamp-token" => Policy { clock: Clock::Wall, token: TokenFrom::WallClock, ..SINGLE },
        "unique-id" => SINGLE,
        "unique-id-wait" => Policy { then: AfterSet::Wait { ignored: false }, ..WAITING },
        "unique-id-wait-ignored" => Policy { then: AfterSet::Wait { ignored: true }, ..WAITING },
        _ => return None,
    })
}

/// Redlock with one rule removed or changed.
fn weaker_redlock(name: &str) -> Option<Policy> {
    Some(match name {
        "redlock-aborts-on-error" => Policy { errors: Errors::AbortAttempt, ..LITERAL },
        // Most subjects report any refusal as a taken lock, but do not claim that another client
        // has the lock. This subject makes that claim.
        "redlock-any-refusal" => Policy { checks_before_section: true, ..LITERAL },
        "redlock-connected-quorum" => Policy { quorum: Quorum::MajorityOfConnected, ..LITERAL },
        "redlock-counter-max" => Policy { fencing: Fencing::Counters, ..LITERAL },
        "redlock-duration" => Policy { lasting: LeaseForm::Duration, ..LITERAL },
        "redlock-literal" => LITERAL,
        "redlock-monotonic-clock" => Policy { clock: Clock::Monotonic, ..LITERAL },
        "redlock-no-jitter" => Policy { fixed_retry: Some(Duration::from_millis(200)), ..LITERAL },
        "redlock-no-node-timeout" => Policy {
            settling: DecisionPoint::AfterAll,
            errors: Errors::CountAsNo,
            has_node_timeout: false,
            ..LITERAL
        },
        "redlock-no-release" => Policy {
            release_after_failure: ReleaseTo::Nobody,
            release_when_too_slow: ReleaseTo::Nobody,
            ..LITERAL
        },
        "redlock-no-step-3" => Policy { checks_validity: false, ..LITERAL },
        "redlock-one-token" => {
            Policy { token: TokenFrom::Client, connect: Connect::SecondForRelease, ..LITERAL }
        }
        "redlock-pxat" => Policy { expiry: Expiry::PxAt, ..WALL },
        "redlock-quorum-2" => Policy { quorum: Quorum::Of(2), ..LITERAL },
        "redlock-release-acknowledged" => Policy {
            release_after_failure: ReleaseTo::Acknowledged,
            release_when_too_slow: ReleaseTo::Acknowledged,
            ..LITERAL
        },
        "redlock-resends" => Policy { connect: Connect::Resending, ..LITERAL },
        "redlock-sequential" => {
            Policy { asking: Asking::Sequential, settling: DecisionPoint::AfterAll, ..LITERAL }
        }
        "redlock-stops-at-quorum" => Policy { asking: Asking::Sequential, ..LITERAL },
        "redlock-timestamp-and-id-token" => Policy { token: TokenFrom::WallClockAndClient, ..WALL },
        "redlock-timestamp-token" => Policy { token: TokenFrom::WallClock, ..WALL },
        "redlock-too-slow-keeps" => Policy { release_when_too_slow: ReleaseTo::Nobody, ..LITERAL },
        "redlock-wall-clock" => WALL,
        "redlock-wall-clock-token" => Policy { fencing: Fencing::WallClock, ..WALL },
        _ => return None,
    })
}

/// Redlock with other rules for extending a lease.
fn redlock_extending(name: &str) -> Option<Policy> {
    let extending = match name {
        "redlock-extend-from-reply" => Extending { from_reply: true, ..STRICT },
        "redlock-extend-minority" => Extending { by_any: true, ..STRICT },
        "redlock-extend-recreates" => {
            Extending { recreates: true, only_while_valid: false, ..STRICT }
        }
        "redlock-extend-unchecked" => {
            Extending { only_while_valid: false, checks_validity: false, ..STRICT }
        }
        "redlock-extend-unlimited" => Extending { is_bounded: false, ..STRICT },
        "redlock-resends-and-extends-late" => Extending { only_while_valid: false, ..STRICT },
        "redlock-extend-unlocks" => Extending { unlocks_after_failure: true, ..STRICT },
        _ => return None,
    };
    let connect = match name {
        "redlock-resends-and-extends-late" => Connect::Resending,
        _ => Connect::Pooled,
    };
    Some(Policy { extending, connect, ..LITERAL })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_judge::scenario::{SUBJECTS, subject_names};

    #[test]
    fn every_name_has_a_kind_and_one_is_ours() {
        for name in subject_names() {
            assert!(kind(name).is_some(), "{name}");
            assert_eq!(kind(name) == Some(Kind::Ours), name == OURS, "{name}");
        }
        assert_eq!(kind("redlok"), None);
    }

    #[test]
    fn a_subject_with_a_machine_of_its_own_has_its_own_connections() {
        for subject in SUBJECTS {
            let has_knobs = matches!(kind(subject.name), Some(Kind::Policy(_)));
            assert_eq!(subject.owns_connections, !has_knobs, "{}", subject.name);
        }
    }

    #[test]
    fn the_guide_lists_every_name() {
        let readme = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/README.md"));
        for name in subject_names() {
            assert!(readme.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn no_two_names_mean_the_same() {
        for (place, name) in subject_names().enumerate() {
            for other in subject_names().take(place) {
                assert_ne!(kind(name), kind(other), "{name}, {other}");
            }
        }
    }
}
