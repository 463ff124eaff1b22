//! What the oracle says.

use crate::history::{AttemptId, HostIndex};
use crate::scenario::{Property, Scenario};

/// One broken assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blame {
    /// A node lost a key that it had acknowledged.
    Amnesia(HostIndex),
    /// The application did not look, or did not stop.
    Application,
    /// A clock ran or jumped beyond the allowance.
    Clock(HostIndex),
    /// A write was under way while the lease ended.
    DelayedWrite,
    /// Somebody outside the lock touched a key.
    Operator,
    /// The process was stopped between its last look at the clock and the overlap.
    Pause,
}

/// A cause for each of nine nodes, and the clocks of two clients or what two applications did.
const CAUSES_MAX: usize = 12;

/// What a violation is blamed on. Nothing at all means that the client is wrong: `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blamed {
    causes: [Option<Blame>; CAUSES_MAX],
}

impl Blamed {
    /// Nobody but the client.
    pub const NONE: Self = Self { causes: [None; CAUSES_MAX] };

    /// Adds a cause, in order, once.
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

    /// The causes, in order.
    pub fn iter(&self) -> impl Iterator<Item = Blame> + '_ {
        self.causes.iter().flatten().copied()
    }

    /// Whether the client alone is to blame.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.causes[0].is_none()
    }

    /// Just one cause.
    #[must_use]
    pub fn just(cause: Blame) -> Self {
        let mut blamed = Self::NONE;
        blamed.add(cause);
        blamed
    }

    /// As scenarios and reports write it: `["clock(C)"]`, `["none"]`.
    #[must_use]
    pub fn names(&self, scenario: &Scenario) -> Vec<String> {
        if self.is_none() {
            return vec![String::from("none")];
        }
        let name = |blame: Blame| match blame {
            Blame::Amnesia(host) => format!("amnesia({})", scenario.host_name(host)),
            Blame::Application => String::from("application"),
            Blame::Clock(host) => format!("clock({})", scenario.host_name(host)),
            Blame::DelayedWrite => String::from("delayed-write"),
            Blame::Operator => String::from("operator"),
            Blame::Pause => String::from("pause"),
        };
        self.iter().map(name).collect()
    }
}

/// The first time that a property was broken in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// From when, in true time.
    pub from_ns: u64,
    /// To when; the same instant where the property is not about an interval.
    pub to_ns: u64,
    /// The earlier of the two leases, or the one attempt that it is about.
    pub first: AttemptId,
    /// The later lease, where there are two.
    pub second: Option<AttemptId>,
    /// The node that it is about, where there is one.
    pub node: Option<u8>,
    /// What broke.
    pub blamed: Blamed,
}

impl Violation {
    /// Something wrong with one attempt at one instant.
    pub(super) const fn of_one(attempt: AttemptId, at_ns: u64, blamed: Blamed) -> Self {
        let (first, second, node) = (attempt, None, None);
        Self { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed }
    }

    /// Something wrong between two leases at one instant, the earlier one first.
    pub(super) const fn of_two(pair: (AttemptId, AttemptId), at_ns: u64, blamed: Blamed) -> Self {
        let (first, second, node) = (pair.0, Some(pair.1), None);
        Self { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed }
    }
}

/// What the oracle found of one property in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// It was put to the test and held.
    Holds,
    /// Nothing in the run was its subject.
    #[default]
    Vacuous,
    /// The engine cannot record what it speaks of.
    Unjudged,
    /// It was broken.
    Violated(Violation),
}

impl Judgement {
    /// Whether it was broken; the first time is the one that is kept.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        matches!(self, Self::Violated(_))
    }

    /// There was a subject, and nothing wrong with it.
    pub(super) fn held(&mut self) {
        if !self.is_violated() {
            *self = Self::Holds;
        }
    }
}

/// What the oracle found of every property in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    judgements: [Judgement; Property::ALL.len()],
}

impl Verdicts {
    /// What was found of `property`.
    #[must_use]
    pub fn of(&self, property: Property) -> Judgement {
        self.judgements[property as usize]
    }

    /// Records what was found of `property`.
    pub fn set(&mut self, property: Property, judgement: Judgement) {
        self.judgements[property as usize] = judgement;
    }
}
