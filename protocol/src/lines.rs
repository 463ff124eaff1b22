//! Queues of one client's uses of the same resource.
//!
//! Tasks of one process that want the same lock do not compete over the network: they queue, first
//! come, first served, and only the head of the queue makes attempts. When the head releases its
//! lease, the SETs of the next use follow the releases on the same connections, so that the keys
//! are gone when the SETs are executed.

use core::fmt;
use std::collections::VecDeque;

use super::command::{LockId, ResourceId};

/// One queue per resource. The head attempts or holds the lock; the others wait.
#[derive(Clone, Default)]
pub(super) struct Lines(Vec<VecDeque<LockId>>);

impl Lines {
    pub(super) fn is_empty(&self, resource: ResourceId) -> bool {
        self.0.get(resource.0 as usize).is_none_or(VecDeque::is_empty)
    }

    /// Returns the head of the queue: the use that attempts or holds the lock.
    pub(super) fn head(&self, resource: ResourceId) -> Option<LockId> {
        self.0.get(resource.0 as usize)?.front().copied()
    }

    /// Appends `lock` to the queue.
    pub(super) fn join(&mut self, resource: ResourceId, lock: LockId) {
        let place = resource.0 as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, VecDeque::new);
        }
        self.0[place].push_back(lock);
    }

    /// Removes `lock` from the queue, if it is there, and returns the new head if `lock` was the
    /// head.
    pub(super) fn leave(&mut self, resource: ResourceId, lock: LockId) -> Option<LockId> {
        let line = self.0.get_mut(resource.0 as usize)?;
        if line.front() == Some(&lock) {
            line.pop_front();
            return line.front().copied();
        }
        if let Some(place) = line.iter().position(|&waiting| waiting == lock) {
            line.remove(place);
        }
        None
    }

    pub(super) fn place_of(&self, resource: ResourceId, lock: LockId) -> Option<usize> {
        self.0.get(resource.0 as usize)?.iter().position(|&waiting| waiting == lock)
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(VecDeque::clear);
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().enumerate().filter(|(_, line)| !line.is_empty());
        formatter.debug_map().entries(lines).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCE: ResourceId = ResourceId(3);

    fn lock(slot: u32) -> LockId {
        LockId { slot, generation: 1 }
    }

    fn line_of_three() -> Lines {
        let mut lines = Lines::default();
        (1..=3).for_each(|slot| lines.join(RESOURCE, lock(slot)));
        lines
    }

    #[test]
    fn the_first_in_the_queue_is_next() {
        let mut lines = line_of_three();
        assert_eq!(lines.leave(RESOURCE, lock(1)), Some(lock(2)));
        assert_eq!(lines.leave(RESOURCE, lock(2)), Some(lock(3)));
        assert_eq!(lines.leave(RESOURCE, lock(3)), None);
        assert!(lines.is_empty(RESOURCE));
    }

    #[test]
    fn leaving_the_middle_of_the_queue_keeps_its_head() {
        let mut lines = line_of_three();
        assert_eq!(lines.leave(RESOURCE, lock(2)), None);
        assert_eq!(lines.leave(RESOURCE, lock(1)), Some(lock(3)));
    }

    #[test]
    fn removing_a_use_that_is_not_queued_changes_nothing() {
        let mut lines = line_of_three();
        assert_eq!(lines.leave(RESOURCE, lock(9)), None);
        assert_eq!(lines.leave(ResourceId(99), lock(1)), None);
        assert_eq!(lines.leave(RESOURCE, lock(1)), Some(lock(2)));
    }
}
