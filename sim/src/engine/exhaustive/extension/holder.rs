//! Interface between the model and the holder of the lease.

use super::{HolderAction, HolderInput, Policy, Production};

/// The holder of a lease that nodes 0 and 1 granted at tick 0.
pub trait Holder: Clone + Send + Sync {
    /// Begins a round if the rule allows one; returns true if a round began.
    fn extend(&mut self, now: u8, told: &mut Vec<HolderAction>) -> bool;
    /// Handles an input from a node.
    fn hear(&mut self, place: usize, heard: HolderInput, now: u8, told: &mut Vec<HolderAction>);
    /// Fires the due timers.
    fn fire(&mut self, now: u8, told: &mut Vec<HolderAction>);
    /// Returns true if a timer is due.
    fn is_due(&self, now: u8) -> bool;
    /// Returns the deadline of the lease.
    fn deadline(&self) -> u8;
    /// Returns true if the lease was lost.
    fn is_lost(&self) -> bool;
    /// Returns true if a round is under way.
    fn is_extending(&self) -> bool;
    /// Encodes the state that decides future steps, without the parts about single nodes.
    fn encode(&self, now: u8) -> u64;
    /// Encodes the part of the state that concerns one node.
    fn encode_node(&self, place: usize, now: u8) -> u64;
    /// Returns a further hash that distinguishes states; the nodes are taken in `order`.
    fn fingerprint(&self, order: [usize; super::NODES], now: u8) -> u128;
}

/// Both forms of the rule as built, run side by side step by step: the machines that a client runs,
/// and the short rule with which the weaker wordings are compared.
#[derive(Clone)]
pub struct Both {
    policy: Policy,
    production: Production,
    words: Vec<HolderAction>,
}

impl Both {
    /// Returns both forms at the grant.
    #[must_use]
    pub fn new(policy: Policy, production: Production) -> Self {
        Self { policy, production, words: Vec::new() }
    }

    fn compare(&mut self, told: &[HolderAction], now: u8) {
        let agree = self.words.len() == told.len() && self.words.iter().all(|it| told.contains(it));
        assert!(agree, "the wording says {:?}, the machines say {told:?}", self.words);
        self.words.clear();
        assert_eq!(self.production.is_alive(now), !self.is_lost() && now < self.deadline());
    }
}

impl Holder for Both {
    fn extend(&mut self, now: u8, told: &mut Vec<HolderAction>) -> bool {
        let begun = self.policy.extend(now, &mut self.words);
        assert_eq!(self.production.extend(now, told), begun, "one of them refuses");
        self.compare(told, now);
        begun
    }

    fn hear(&mut self, place: usize, heard: HolderInput, now: u8, told: &mut Vec<HolderAction>) {
        self.policy.hear(place, heard, now, &mut self.words);
        self.production.hear(place, heard, now, told);
        self.compare(told, now);
    }

    fn fire(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        self.policy.fire(now, &mut self.words);
        self.production.fire(now, told);
        self.compare(told, now);
    }

    fn is_due(&self, now: u8) -> bool {
        let due = self.policy.is_due(now);
        assert_eq!(self.production.is_due(now), due, "one of them has a timer");
        due
    }

    fn deadline(&self) -> u8 {
        self.policy.deadline()
    }

    fn is_lost(&self) -> bool {
        self.policy.is_lost()
    }

    fn is_extending(&self) -> bool {
        self.policy.is_extending()
    }

    fn encode(&self, now: u8) -> u64 {
        self.policy.encode(now)
    }

    fn encode_node(&self, place: usize, now: u8) -> u64 {
        self.policy.encode_node(place, now)
    }

    fn fingerprint(&self, order: [usize; super::NODES], now: u8) -> u128 {
        self.production.fingerprint(order, now)
    }
}
