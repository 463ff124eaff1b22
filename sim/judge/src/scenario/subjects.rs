//! The lock clients that a scenario can run: the only table of their names, with the properties
//! that the judge and the checks need.

/// Name of this project's own client, the default of a scenario.
pub const OURS: &str = "redlock";

/// An external client that this program does not implement: `serve` tests it, and no engine runs
/// it.
pub const WORKER: &str = "worker";

/// A lock client that a scenario can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectSpec {
    /// Name in scenarios.
    pub name: &'static str,
    /// True if its use of connections cannot be configured.
    pub owns_connections: bool,
    /// True if its refusal, "the lock is taken", claims that somebody else has the lock.
    pub says_whose: bool,
}

/// All subjects. The first is ours.
pub const SUBJECTS: [SubjectSpec; 46] = [
    SubjectSpec { owns_connections: true, says_whose: true, ..plain(OURS) },
    plain("redlock-literal"),
    plain("redlock-no-step-3"),
    plain("redlock-wall-clock"),
    plain("redlock-monotonic-clock"),
    plain("redlock-one-token"),
    plain("redlock-quorum-2"),
    plain("redlock-release-acknowledged"),
    plain("redlock-no-release"),
    plain("redlock-no-jitter"),
    plain("redlock-duration"),
    plain("setnx"),
    plain("set-plain-del"),
    plain("get-then-del"),
    plain("unique-id"),
    plain("unique-id-wait"),
    plain("unique-id-wait-ignored"),
    plain("lease-service"),
    plain("lease-service-duration"),
    plain("counter-on-one-redis"),
    SubjectSpec { owns_connections: true, ..plain("getset") },
    SubjectSpec { owns_connections: true, ..plain("php-redlock") },
    SubjectSpec { owns_connections: true, ..plain("php-redlock-short-timeout") },
    plain("redlock-aborts-on-error"),
    SubjectSpec { says_whose: true, ..plain("redlock-any-refusal") },
    plain("redlock-connected-quorum"),
    plain("redlock-counter-max"),
    plain("redlock-extend-from-reply"),
    plain("redlock-extend-minority"),
    plain("redlock-extend-recreates"),
    plain("redlock-extend-unchecked"),
    plain("redlock-extend-unlimited"),
    plain("redlock-extend-unlocks"),
    plain("redlock-no-node-timeout"),
    plain("redlock-pxat"),
    plain("redlock-resends"),
    plain("redlock-resends-and-extends-late"),
    plain("redlock-sequential"),
    plain("redlock-stops-at-quorum"),
    plain("redlock-timestamp-and-id-token"),
    plain("redlock-timestamp-token"),
    plain("redlock-too-slow-keeps"),
    plain("redlock-wall-clock-token"),
    plain("setnx-and-expire-pipelined"),
    plain("setnx-then-expire"),
    plain("timestamp-token"),
];

const fn plain(name: &'static str) -> SubjectSpec {
    SubjectSpec { name, owns_connections: false, says_whose: false }
}

/// Returns the subject `name`; `None` if there is no such subject.
#[must_use]
pub fn subject(name: &str) -> Option<SubjectSpec> {
    SUBJECTS.into_iter().find(|it| it.name == name)
}

/// Iterates over the names of all subjects.
pub fn subject_names() -> impl Iterator<Item = &'static str> + Clone {
    SUBJECTS.into_iter().map(|it| it.name)
}
