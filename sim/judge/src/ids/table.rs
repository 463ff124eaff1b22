//! Tables with one entry for each identity of a kind.

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use super::{CLIENTS_MAX, ClientId, HOSTS_MAX, HostId, Id, NODES_MAX, NodeId};

/// A list that is indexed by the identity `I` of its entries.
#[derive(Debug)]
pub struct IdVec<I, T> {
    entries: Vec<T>,
    of: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// Returns the empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), of: PhantomData }
    }

    /// Returns a list of `count` copies of `entry`.
    #[must_use]
    pub fn filled(count: usize, entry: T) -> Self
    where
        T: Clone,
    {
        vec![entry; count].into()
    }

    /// Adds an entry and returns its identity.
    pub fn push(&mut self, entry: T) -> I {
        self.entries.push(entry);
        I::at(self.entries.len() - 1)
    }

    /// Removes all entries and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Sets every entry to a copy of `entry`.
    pub fn fill(&mut self, entry: T)
    where
        T: Clone,
    {
        self.entries.fill(entry);
    }

    /// Changes the number of entries; a new one is a copy of `entry`.
    pub fn resize(&mut self, count: usize, entry: T)
    where
        T: Clone,
    {
        self.entries.resize(count, entry);
    }

    /// Returns the number of entries.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry of `id`, if there is one.
    #[must_use]
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// Returns the entry of `id`, if there is one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// Returns the entries of two different identities.
    ///
    /// # Panics
    ///
    /// If the identities are the same, or one has no entry.
    pub fn pair_mut(&mut self, [one, other]: [I; 2]) -> [&mut T; 2] {
        let places = [one.index(), other.index()];
        self.entries.get_disjoint_mut(places).expect("two different entries")
    }

    /// Returns the identities of the entries. The list may change meanwhile.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.entries.len()).map(I::at)
    }

    /// Iterates over the entries, in the order of their identities.
    #[inline]
    pub fn values(&self) -> core::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// Iterates over the entries, in the order of their identities.
    #[inline]
    pub fn values_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// Iterates over the entries with their identities.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.entries.iter().enumerate().map(|(index, entry)| (I::at(index), entry))
    }

    /// Iterates over the entries with their identities.
    #[inline]
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> {
        self.entries.iter_mut().enumerate().map(|(index, entry)| (I::at(index), entry))
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), of: PhantomData }
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(entries: Vec<T>) -> Self {
        Self { entries, of: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

/// An array with an entry for each of at most `N` identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdArray<I, T, const N: usize> {
    entries: [T; N],
    of: PhantomData<fn(I)>,
}

/// An entry for each node that a scenario may have.
pub type PerNode<T> = IdArray<NodeId, T, NODES_MAX>;

/// An entry for each client that a scenario may have, and for its probes.
pub type PerClient<T> = IdArray<ClientId, T, { CLIENTS_MAX + 1 }>;

/// An entry for each host that a scenario may have.
pub type PerHost<T> = IdArray<HostId, T, HOSTS_MAX>;

impl<I: Id, T, const N: usize> IdArray<I, T, N> {
    /// Returns an array in which every entry is `entry`.
    pub const fn filled(entry: T) -> Self
    where
        T: Copy,
    {
        Self { entries: [entry; N], of: PhantomData }
    }

    /// Returns an array with the entry that `make` returns for each identity.
    pub fn from_fn(mut make: impl FnMut(I) -> T) -> Self {
        Self { entries: core::array::from_fn(|index| make(I::at(index))), of: PhantomData }
    }

    /// Sets every entry to `entry`.
    pub fn fill(&mut self, entry: T)
    where
        T: Copy,
    {
        self.entries.fill(entry);
    }

    /// Returns the entry of `id`; `None` if there can be no such `id`.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// Returns the entry of `id`; `None` if there can be no such `id`.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// Returns the entries of the first `count` identities.
    pub fn first_mut(&mut self, count: usize) -> &mut [T] {
        &mut self.entries[..count]
    }

    /// Returns the identities of the entries.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T, N> {
        (0..N).map(I::at)
    }

    /// Iterates over the entries, in the order of their identities.
    #[inline]
    pub fn values(&self) -> core::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// Iterates over the entries, in the order of their identities.
    #[inline]
    pub fn values_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// Iterates over the entries with their identities.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.entries.iter().enumerate().map(|(index, entry)| (I::at(index), entry))
    }

    /// Iterates over the entries with their identities.
    #[inline]
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> {
        self.entries.iter_mut().enumerate().map(|(index, entry)| (I::at(index), entry))
    }
}

impl<I: Id, T: Default, const N: usize> Default for IdArray<I, T, N> {
    fn default() -> Self {
        Self::from_fn(|_| T::default())
    }
}

impl<I: Id, T, const N: usize> Index<I> for IdArray<I, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T, const N: usize> IndexMut<I> for IdArray<I, T, N> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_the_identity_that_it_was_given() {
        let mut names: IdVec<NodeId, &str> = IdVec::new();
        let a = names.push("A");
        let b = names.push("B");
        assert_eq!((names[a], names[b]), ("A", "B"));
        assert_eq!(names.get(NodeId(2)), None);
        let [one, other] = names.pair_mut([b, a]);
        core::mem::swap(one, other);
        assert_eq!(
            names.iter().map(|(id, name)| (id.0, *name)).collect::<Vec<_>>(),
            [(0, "B"), (1, "A")]
        );
    }

    #[test]
    fn an_array_has_no_entry_for_an_impossible_id() {
        let votes = PerNode::filled(1);
        assert_eq!((votes[NodeId(8)], votes.get(NodeId(9))), (1, None));
    }
}
