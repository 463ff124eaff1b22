//! A table of different values, each with a number. It only grows.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Values that several threads add and read. A number depends on who was first, so nothing that is
/// reported may depend on it.
///
/// A state of the search has the numbers of its clients and nodes: these are few, although their
/// combinations are many.
pub(super) struct Table<T> {
    numbers: Mutex<BTreeMap<u128, u32>>,
    /// The first part has one slot, and each further one twice as many as the one before: so a value
    /// stays where it is, and is read without a lock.
    parts: [OnceLock<Box<[OnceLock<T>]>>; 32],
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self { numbers: Mutex::default(), parts: [const { OnceLock::new() }; 32] }
    }

    /// Returns the number of the value with this key, which is made if there is none.
    pub(super) fn number(&self, key: u128, make: impl FnOnce() -> T) -> u32 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert_with(|| {
            let (part, slot) = place(next);
            let slots = || (0..1usize << part).map(|_| OnceLock::new()).collect();
            let is_free = self.parts[part].get_or_init(slots)[slot].set(make()).is_ok();
            assert!(is_free, "each number is given once");
            next
        })
    }

    pub(super) fn get(&self, number: u32) -> &T {
        let (part, slot) = place(number);
        let value = self.parts[part].get().and_then(|slots| slots[slot].get());
        value.expect("a number is known once its value is there")
    }
}

/// Returns the part and the slot of a number.
fn place(number: u32) -> (usize, usize) {
    let part = (number + 1).ilog2();
    (part as usize, (number + 1 - (1 << part)) as usize)
}
