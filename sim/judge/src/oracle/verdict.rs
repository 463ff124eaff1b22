//! Results of the oracle: verdicts, violations and blames.

use serde::{Deserialize, Serialize};

use crate::history::{AttemptId, HostId, NodeId};
use crate::scenario::{Property, Scenario};

/// One broken assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// A node forgot a SET or a release that it had acknowledged.
    Amnesia(HostId),
    /// The application did not check the lease, or did not stop when it ended.
    Application,
    /// A clock ran or jumped beyond the drift that the lease allows for.
    Clock(HostId),
    /// A write was in transit when the lease ended.
    DelayedWrite,
    /// Two clients have different lists of nodes, and a majority of each list is free of the other's
    /// keys. Or a client has a majority only of names: some are one server's.
    Membership,
    /// An operator or a program outside the lock changed a key.
    Operator,
    /// The process was stopped when its lease ended, and would have been in time otherwise.
    Pause,
    /// Two clients drew the same random numbers, and have attempts with the same token.
    Randomness,
}

impl Blame {
    /// Returns the name in scenarios and reports, without the host that a cause may have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amnesia(_) => "amnesia",
            Self::Application => "application",
            Self::Clock(_) => "clock",
            Self::DelayedWrite => "delayed-write",
            Self::Membership => "membership",
            Self::Operator => "operator",
            Self::Pause => "pause",
            Self::Randomness => "randomness",
        }
    }

    const fn host(self) -> Option<HostId> {
        match self {
            Self::Amnesia(host) | Self::Clock(host) => Some(host),
            _ => None,
        }
    }
}

/// Maximum number of causes: one for each of nine nodes, the clocks of two clients or two causes in
/// applications, and different lists of nodes.
const CAUSES_MAX: usize = 13;

/// Causes of a violation. The empty set, written `none`, means that the client is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Blame>", try_from = "Vec<Blame>")]
pub struct Blamed {
    causes: [Option<Blame>; CAUSES_MAX],
}

impl Blamed {
    /// No cause: only the client is to blame.
    pub const NONE: Self = Self { causes: [None; CAUSES_MAX] };

    /// Adds a cause; keeps the causes sorted and distinct.
    ///
    /// # Panics
    ///
    /// If there are more causes than two leases on nine nodes can have.
    pub fn add(&mut self, cause: Blame) {
        if self.iter().any(|known| known == cause) {
            return;
        }
        let free = self
            .causes
            .iter()
            .position(Option::is_none)
            .expect("a cause a node, and one or two a client");
        self.causes[free] = Some(cause);
        self.causes[..=free].sort_unstable();
    }

    /// Returns the causes, sorted.
    pub fn iter(&self) -> impl Iterator<Item = Blame> + '_ {
        self.causes.iter().flatten().copied()
    }

    /// Returns true if only the client is to blame.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.causes[0].is_none()
    }

    /// Returns a blame with a single cause.
    #[must_use]
    pub fn just(cause: Blame) -> Self {
        let mut blamed = Self::NONE;
        blamed.add(cause);
        blamed
    }

    /// Returns the causes in the notation of scenarios and reports: `["clock(C)"]`, `["none"]`.
    #[must_use]
    pub fn names(&self, scenario: &Scenario) -> Vec<String> {
        if self.is_none() {
            return vec![String::from("none")];
        }
        let name = |blame: Blame| match blame.host() {
            Some(host) => format!("{}({})", blame.name(), scenario.host_name(host)),
            None => blame.name().to_owned(),
        };
        self.iter().map(name).collect()
    }
}

impl From<Blamed> for Vec<Blame> {
    fn from(blamed: Blamed) -> Self {
        blamed.iter().collect()
    }
}

impl TryFrom<Vec<Blame>> for Blamed {
    type Error = &'static str;

    fn try_from(causes: Vec<Blame>) -> Result<Self, Self::Error> {
        if causes.len() > CAUSES_MAX {
            return Err("more causes than a violation can have");
        }
        let mut blamed = Self::NONE;
        causes.into_iter().for_each(|cause| blamed.add(cause));
        Ok(blamed)
    }
}

/// Violation of a property in a run: the first that no broken assumption explains, or else the first.
/// An assumption that explains one violation must not hide a wrong client at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Violation {
    /// Start of the violation, in true time.
    pub from_ns: u64,
    /// End of the violation, in true time; equal to the start if the property is not about an
    /// interval.
    pub to_ns: u64,
    /// The earlier of the two leases, or the only attempt concerned.
    pub first: AttemptId,
    /// The later of the two leases, if two are concerned.
    pub second: Option<AttemptId>,
    /// Node concerned, if there is one.
    pub node: Option<NodeId>,
    /// Broken assumptions.
    pub blamed: Blamed,
}

impl Violation {
    /// Creates a violation by one attempt at one instant.
    pub(super) const fn of_one(attempt: AttemptId, at_ns: u64, blamed: Blamed) -> Self {
        let (first, second, node) = (attempt, None, None);
        Self { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed }
    }

    /// Creates a violation by one attempt from `from_ns` to `to_ns`.
    pub(super) const fn lasting(
        attempt: AttemptId,
        from_ns: u64,
        to_ns: u64,
        blamed: Blamed,
    ) -> Self {
        Self { from_ns, ..Self::of_one(attempt, to_ns, blamed) }
    }

    /// Creates a violation between two leases at one instant; `pair` holds the earlier lease first.
    pub(super) const fn of_two(pair: (AttemptId, AttemptId), at_ns: u64, blamed: Blamed) -> Self {
        let (first, second, node) = (pair.0, Some(pair.1), None);
        Self { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed }
    }
}

/// Judgement of one property in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// The property was put to the test and held.
    Holds,
    /// Nothing in the run put the property to the test.
    #[default]
    Vacuous,
    /// The engine cannot record the events that the property is about.
    Unjudged,
    /// The property was violated.
    Violated(Violation),
}

impl Judgement {
    /// Returns true if the property was violated.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        matches!(self, Self::Violated(_))
    }

    /// Returns true if no later violation is reported instead of the one that was found.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Violated(found) if found.blamed.is_none())
    }

    /// Records a violation, unless an earlier one is reported: see [`Violation`]. Returns true if it was
    /// recorded.
    pub(super) fn violated(&mut self, found: Violation) -> bool {
        let is_reported = !self.is_violated() || found.blamed.is_none() && !self.is_final();
        if is_reported {
            *self = Self::Violated(found);
        }
        is_reported
    }

    /// Records that the property was put to the test and held this time. Keeps a violation.
    pub(super) fn held(&mut self) {
        if !self.is_violated() {
            *self = Self::Holds;
        }
    }
}

/// Judgements of every property in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    judgements: [Judgement; Property::ALL.len()],
}

impl Verdicts {
    /// Returns the judgement of `property`.
    #[must_use]
    pub fn of(&self, property: Property) -> Judgement {
        self.judgements[property as usize]
    }

    /// Records the judgement of `property`.
    pub fn set(&mut self, property: Property, judgement: Judgement) {
        self.judgements[property as usize] = judgement;
    }
}
