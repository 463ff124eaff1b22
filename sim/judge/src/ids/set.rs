//! Small sets of identities, as bit sets.

use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use super::{CLIENTS_MAX, ClientId, HOSTS_MAX, HostId, Id, NODES_MAX, NodeId};

/// Declares sets. `a | b` is the union, `a & b` the intersection, and `a - b` the difference.
macro_rules! sets {
    ($($(#[$documentation:meta])* $name:ident($bits:ty) of $id:ident;)+) => {$(
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($bits);

        impl $name {
            /// The set of nothing.
            pub const EMPTY: Self = Self(0);

            /// The set of everything that there can be.
            pub const ALL: Self = Self(<$bits>::MAX);

            /// Returns the set in which bit `n` stands for the identity `n`.
            #[must_use]
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            /// Returns the set as a number: bit `n` stands for the identity `n`.
            #[must_use]
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// Returns the set of `id` alone; the empty set if there can be no such `id`.
            #[must_use]
            #[inline]
            pub const fn just(id: $id) -> Self {
                // Evaluated without a branch in optimised builds.
                match (1 as $bits).checked_shl(id.0 as u32) {
                    Some(bit) => Self(bit),
                    None => Self::EMPTY,
                }
            }

            /// Returns the set of the first `count` identities.
            #[must_use]
            pub fn first(count: usize) -> Self {
                $id::first(count).collect()
            }

            /// Returns true if `id` is in the set.
            #[must_use]
            #[inline]
            pub const fn contains(self, id: $id) -> bool {
                self.0 & Self::just(id).0 != 0
            }

            /// Adds `id`.
            #[inline]
            pub const fn insert(&mut self, id: $id) {
                self.0 |= Self::just(id).0;
            }

            /// Removes `id`.
            #[inline]
            pub const fn remove(&mut self, id: $id) {
                self.0 &= !Self::just(id).0;
            }

            /// Adds `id` if `is_in`, and removes it otherwise.
            #[inline]
            pub const fn set(&mut self, id: $id, is_in: bool) {
                if is_in { self.insert(id) } else { self.remove(id) }
            }

            /// Removes the smallest identity, and returns it.
            #[inline]
            pub fn pop_first(&mut self) -> Option<$id> {
                let id = (self.0 != 0).then(|| $id(self.0.trailing_zeros() as _))?;
                self.0 &= self.0 - 1;
                Some(id)
            }

            /// Returns the number of identities in the set.
            #[must_use]
            #[inline]
            pub const fn count(self) -> u32 {
                self.0.count_ones()
            }

            /// Returns true if the set is empty.
            #[must_use]
            #[inline]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns true if the two sets have a member in common.
            #[must_use]
            #[inline]
            pub const fn meets(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Iterates over the set, the smallest identity first.
            #[inline]
            pub fn iter(self) -> impl Iterator<Item = $id> {
                let mut rest = self;
                core::iter::from_fn(move || rest.pop_first())
            }
        }

        impl FromIterator<$id> for $name {
            fn from_iter<I: IntoIterator<Item = $id>>(ids: I) -> Self {
                ids.into_iter().fold(Self::EMPTY, |set, id| set | Self::just(id))
            }
        }

        impl BitOr for $name {
            type Output = Self;

            #[inline]
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $name {
            #[inline]
            fn bitor_assign(&mut self, other: Self) {
                *self = *self | other;
            }
        }

        impl BitAnd for $name {
            type Output = Self;

            #[inline]
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl BitAndAssign for $name {
            #[inline]
            fn bitand_assign(&mut self, other: Self) {
                *self = *self & other;
            }
        }

        impl Sub for $name {
            type Output = Self;

            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
    )+};
}

sets! {
    /// A set of nodes.
    NodeIds(u16) of NodeId;
    /// A set of clients.
    ClientIds(u128) of ClientId;
    /// A set of hosts.
    HostIds(u128) of HostId;
}

const _: () = assert!(NODES_MAX <= 16 && CLIENTS_MAX < 128 && HOSTS_MAX <= 128, "each has a bit");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set: NodeIds = [4, 0, 2].map(NodeId).into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 4].map(NodeId));
        set.set(NodeId(2), false);
        assert_eq!((set.count(), set.bits()), (2, 0b1_0001));
        assert!(set.contains(NodeId(4)) && !set.contains(NodeId(2)));
        assert_eq!((set - NodeIds::just(NodeId(4))).iter().last(), Some(NodeId(0)));
    }

    #[test]
    fn every_client_and_the_probe_have_a_place() {
        let all = ClientIds::first(CLIENTS_MAX + 1);
        assert_eq!((all.count(), all.iter().last()), (65, Some(ClientId(64))));
        assert!(HostIds::first(HOSTS_MAX).contains(HostId(83)));
    }

    #[test]
    fn impossible_ids_are_in_no_set() {
        assert!(NodeIds::just(NodeId(200)).is_empty());
        assert!(!NodeIds::ALL.contains(NodeId(16)));
    }
}
