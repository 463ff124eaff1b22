//! The subjects by name.

use core::time::Duration;

use super::policy::{Clock, Connect, Lasting, Policy, ReleaseTo, Then, Unlock};

/// The names that a scenario may give as `subject`.
pub const NAMES: [&str; 19] = [
    "get-then-del",
    "lease-service",
    "lease-service-duration",
    "redlock",
    "redlock-duration",
    "redlock-literal",
    "redlock-monotonic-clock",
    "redlock-no-jitter",
    "redlock-no-release",
    "redlock-no-step-3",
    "redlock-one-token",
    "redlock-quorum-2",
    "redlock-release-acknowledged",
    "redlock-wall-clock",
    "set-plain-del",
    "setnx",
    "unique-id",
    "unique-id-wait",
    "unique-id-wait-ignored",
];

/// The specification to the letter: T1, SET NX PX everywhere, T2, validity, unlock everywhere,
/// random delay. No quarantine, no second look.
const LITERAL: Policy = Policy {
    clock: Clock::Boot,
    checks_validity: true,
    fresh_token: true,
    quorum: None,
    release_after_failure: ReleaseTo::Everyone,
    unlock: Unlock::CompareAndDelete,
    expires: true,
    gives_up_drift: true,
    lasting: Lasting::Deadline,
    looks_before_section: false,
    fixed_retry: None,
    connect: Connect::Pooled,
    one_node: false,
    then: Then::Nothing,
};

/// One key on one node; the lease is believed for the whole TTL, and nobody looks.
const SINGLE: Policy = Policy {
    checks_validity: false,
    release_after_failure: ReleaseTo::Nobody,
    gives_up_drift: false,
    one_node: true,
    ..LITERAL
};

/// [`SINGLE`] that asks how many replicas have the key; a failure releases what it set.
const UNIQUE_ID_WAIT: Policy = Policy { release_after_failure: ReleaseTo::Everyone, ..SINGLE };

/// A client of one perfect lock server that does everything right.
const LEASE_SERVICE: Policy =
    Policy { checks_validity: true, gives_up_drift: true, looks_before_section: true, ..SINGLE };

/// The policy of a subject other than `redlock`; `None` if there is no such subject.
#[must_use]
pub fn policy(name: &str) -> Option<Policy> {
    Some(match name {
        "get-then-del" => Policy { unlock: Unlock::GetThenDelete, ..SINGLE },
        "lease-service" => LEASE_SERVICE,
        "lease-service-duration" => Policy { lasting: Lasting::Duration, ..LEASE_SERVICE },
        "redlock-duration" => Policy { lasting: Lasting::Duration, ..LITERAL },
        "redlock-literal" => LITERAL,
        "redlock-monotonic-clock" => Policy { clock: Clock::Monotonic, ..LITERAL },
        "redlock-no-jitter" => Policy { fixed_retry: Some(Duration::from_millis(200)), ..LITERAL },
        "redlock-no-release" => Policy { release_after_failure: ReleaseTo::Nobody, ..LITERAL },
        "redlock-no-step-3" => Policy { checks_validity: false, ..LITERAL },
        "redlock-one-token" => {
            Policy { fresh_token: false, connect: Connect::SecondForRelease, ..LITERAL }
        }
        "redlock-quorum-2" => Policy { quorum: Some(2), ..LITERAL },
        "redlock-release-acknowledged" => {
            Policy { release_after_failure: ReleaseTo::Acknowledged, ..LITERAL }
        }
        "redlock-wall-clock" => Policy { clock: Clock::Wall, ..LITERAL },
        "set-plain-del" => Policy { unlock: Unlock::Delete, ..SINGLE },
        "setnx" => Policy { unlock: Unlock::Delete, expires: false, ..SINGLE },
        "unique-id" => SINGLE,
        "unique-id-wait" => Policy { then: Then::Wait { ignored: false }, ..UNIQUE_ID_WAIT },
        "unique-id-wait-ignored" => Policy { then: Then::Wait { ignored: true }, ..UNIQUE_ID_WAIT },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_but_our_own_has_a_policy() {
        for name in NAMES {
            assert_eq!(policy(name).is_none(), name == "redlock", "{name}");
        }
    }
}
