//! The set of states that a search has visited, as keys alone.

/// Number of parts; each grows alone, so that growing takes little room.
const PARTS: usize = 256;

/// Hashes of 128 bits, at most three quarters of the slots in use. Never iterated.
pub(super) struct Keys {
    parts: Vec<Part>,
    len: usize,
}

/// Open addressing with linear probing. An empty slot is zero.
struct Part {
    slots: Vec<u128>,
    len: usize,
}

impl Keys {
    pub(super) fn new() -> Self {
        let parts = (0..PARTS).map(|_| Part { slots: vec![0; 16], len: 0 }).collect();
        Self { parts, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, key: u128) -> bool {
        let part = &self.parts[part_of(key)];
        part.slots[part.slot(key.max(1))] != 0
    }

    /// Adds a key; returns false if the set has it.
    pub(super) fn insert(&mut self, key: u128) -> bool {
        let is_new = self.parts[part_of(key)].insert(key.max(1));
        self.len += usize::from(is_new);
        is_new
    }
}

fn part_of(key: u128) -> usize {
    (key >> 120) as usize % PARTS
}

impl Part {
    /// Returns the slot that has `key`, or the empty slot in which it belongs.
    fn slot(&self, key: u128) -> usize {
        let mut slot = ((u128::from(key as u64) * self.slots.len() as u128) >> 64) as usize;
        while self.slots[slot] != 0 && self.slots[slot] != key {
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
        slot
    }

    fn insert(&mut self, key: u128) -> bool {
        let slot = self.slot(key);
        if self.slots[slot] == key {
            return false;
        }
        self.slots[slot] = key;
        self.len += 1;
        if self.len * 4 > self.slots.len() * 3 {
            self.grow();
        }
        true
    }

    /// By a half: doubling would leave more of the room unused.
    fn grow(&mut self) {
        let more = self.slots.len() / 2 * 3;
        for key in core::mem::replace(&mut self.slots, vec![0; more]) {
            if key != 0 {
                let slot = self.slot(key);
                self.slots[slot] = key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once_however_many_there_are() {
        let key = |it: u128| it.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let keys: Vec<u128> = (0..20_000).map(|it| key(it).rotate_left(64)).collect();
        let mut set = Keys::new();
        assert!(keys.iter().all(|&key| !set.contains(key) && set.insert(key)));
        assert!(keys.iter().all(|&key| set.contains(key) && !set.insert(key)));
        assert_eq!(set.len(), 20_000);
    }
}
