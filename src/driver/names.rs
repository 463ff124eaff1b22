//! Names of resources. The machines know resources by number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redlock_protocol::{NodeSet, ResourceId};

/// Smallest number of unused names that triggers a sweep.
const SWEEP_LEAST: usize = 64;

/// Names and their numbers. A number is reused once nothing refers to it any more.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<Arc<[u8]>, ResourceId>,
    names: Vec<Arc<[u8]>>,
    free: Vec<ResourceId>,
    /// Names without an open use; a connection may still refer to them.
    retired: BTreeSet<ResourceId>,
    sweep_at: usize,
}

impl Names {
    /// Returns the number of `name`; a new name gets a free number.
    pub(super) fn intern(&mut self, name: &[u8], machine: &mut NodeSet) -> ResourceId {
        if let Some(&number) = self.numbers.get(name) {
            self.retired.remove(&number);
            return number;
        }
        // A sweep visits every use. To be worth that, it waits until about as many names are
        // unused.
        if self.retired.len() >= self.sweep_at.max(self.names.len() / 2).max(SWEEP_LEAST) {
            self.sweep(machine);
        }
        let name: Arc<[u8]> = Arc::from(name);
        let number = match self.free.pop() {
            Some(number) => {
                self.names[number.0 as usize] = Arc::clone(&name);
                number
            }
            None => {
                let next = u32::try_from(self.names.len()).expect("memory ends before the numbers");
                self.names.push(Arc::clone(&name));
                ResourceId(next)
            }
        };
        self.numbers.insert(name, number);
        number
    }

    /// Returns the number of `name`, if it has one.
    pub(super) fn number(&self, name: &[u8]) -> Option<ResourceId> {
        self.numbers.get(name).copied()
    }

    /// Returns the name of `number`.
    pub(super) fn name(&self, number: ResourceId) -> &[u8] {
        &self.names[number.0 as usize]
    }

    /// Returns a handle on the name of `number` that outlives its use.
    pub(super) fn shared(&self, number: ResourceId) -> Arc<[u8]> {
        Arc::clone(&self.names[number.0 as usize])
    }

    /// Marks `number` as unused: a use of it has ended.
    pub(super) fn retire(&mut self, number: ResourceId) {
        self.retired.insert(number);
    }

    /// Removes the retired names that the machines do not refer to any more.
    fn sweep(&mut self, machine: &mut NodeSet) {
        let mut in_use = vec![false; self.names.len()];
        machine.for_each_resource(|number| in_use[number.0 as usize] = true);
        let (kept, gone): (BTreeSet<_>, BTreeSet<_>) =
            self.retired.iter().copied().partition(|number| in_use[number.0 as usize]);
        for number in gone {
            let name = core::mem::take(&mut self.names[number.0 as usize]);
            self.numbers.remove(&name);
            machine.forget(number);
            self.free.push(number);
        }
        self.sweep_at = kept.len() * 2;
        self.retired = kept;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::driver::offline::lock_config;
    use redlock_protocol::{
        BootInstant, Command, Drift, Fresh, Holder, Introduction, LinkConfig, NodeIndex, Reply,
        RestartGuard, RetryDelay, RunId, Token, Window,
    };

    fn machine() -> NodeSet {
        NodeSet::new(&[LinkConfig {
            node_timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_millis(500),
            restart_guard: RestartGuard::Durable,
            fleet_max_ttl: Duration::from_secs(10),
            drift: Drift::default(),
            introduction_max_age: Duration::from_secs(1),
            window: Window::default(),
        }])
    }

    #[test]
    fn a_name_has_one_number() {
        let (mut names, mut machine) = (Names::default(), machine());
        let one = names.intern(b"one", &mut machine);
        let two = names.intern(b"two", &mut machine);
        assert_ne!(one, two);
        assert_eq!(names.intern(b"one", &mut machine), one);
        assert_eq!(names.name(two), b"two");
    }

    #[test]
    fn names_without_a_use_do_not_pile_up() {
        let (mut names, mut machine) = (Names::default(), machine());
        let kept = names.intern(b"kept", &mut machine);
        for round in 0..1_000_u32 {
            let number = names.intern(&round.to_le_bytes(), &mut machine);
            names.retire(number);
        }
        assert!(names.len() <= SWEEP_LEAST + 2, "{}", names.len());
        assert_eq!(names.name(kept), b"kept");
    }

    #[test]
    fn a_retired_name_that_is_used_again_stays() {
        let (mut names, mut machine) = (Names::default(), machine());
        let again = names.intern(b"again", &mut machine);
        names.retire(again);
        assert_eq!(names.intern(b"again", &mut machine), again);
        for round in 0..1_000_u32 {
            let number = names.intern(&round.to_le_bytes(), &mut machine);
            names.retire(number);
        }
        assert_eq!(names.name(again), b"again");
    }

    /// Makes `machine` meet another client's key on its one node.
    fn meet_another(machine: &mut NodeSet, resource: ResourceId, now: BootInstant) {
        let node = NodeIndex::new(0);
        machine.connect(now);
        let epoch = match machine.poll_command() {
            Some(Command::Dial { epoch, .. }) => epoch,
            other => panic!("no dial but {other:?}"),
        };
        machine.handle_connected(node, epoch, now);
        while machine.poll_command().is_some() {}
        let (run_id, uptime) = (RunId([1; 20]), Duration::from_secs(1_000));
        let introduction =
            Introduction { run_id, uptime, is_master: true, succession: None, canary: None };
        machine.handle_reply(node, epoch, Reply::Introduction(introduction), now);
        let config = lock_config(now.after(Duration::from_secs(10)));
        let lock = machine.open(resource, config, now);
        let fresh = Fresh { token: Token::from_bytes([1; Token::LENGTH]), jitter: 1 };
        machine.begin(lock, fresh, now);
        while machine.poll_command().is_some() {}
        machine.handle_reply(node, epoch, Reply::Held(Holder::of(&[2])), now);
        machine.release(lock, now);
        machine.handle_closed(node, epoch, now);
    }

    #[test]
    fn a_number_that_is_used_again_brings_no_contention_along() {
        let (mut names, mut machine) = (Names::default(), machine());
        let (now, retry) = (BootInstant::from_nanos(1_000_000_000), RetryDelay::default());
        let contended = names.intern(b"contended", &mut machine);
        meet_another(&mut machine, contended, now);
        assert!(machine.is_others_turn(contended, retry, now));
        names.retire(contended);
        // The release of the attempt's key is owed no longer.
        machine.handle_timeout(now.after(Duration::from_secs(60)));
        let fresh = (0..1_000_u32).find_map(|round| {
            let number = names.intern(&round.to_le_bytes(), &mut machine);
            names.retire(number);
            (number == contended).then_some(number)
        });
        let fresh = fresh.expect("the number is free again");
        assert!(!machine.is_others_turn(fresh, retry, now));
    }
}
