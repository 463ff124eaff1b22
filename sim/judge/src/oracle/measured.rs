//! Values of the quantities of one run.

use crate::scenario::Quantity;

/// Quantities of one run. A quantity has no value if nothing in the run can be measured: there is
/// no section, or an acquisition ended without a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    values: [Option<u64>; Quantity::ALL.len()],
}

impl Measured {
    /// Returns the value of `quantity`, in its unit.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<u64> {
        self.values[quantity as usize]
    }

    /// Returns the measured quantities and their values.
    pub fn iter(&self) -> impl Iterator<Item = (Quantity, u64)> + '_ {
        Quantity::ALL.into_iter().filter_map(|it| Some((it, self.of(it)?)))
    }

    /// Forgets the value of every quantity that is not in `known`: the engine does not record
    /// enough for the others.
    #[must_use]
    pub fn only(mut self, known: &[Quantity]) -> Self {
        for quantity in Quantity::ALL.into_iter().filter(|it| !known.contains(it)) {
            self.values[quantity as usize] = None;
        }
        self
    }

    pub(super) fn set(&mut self, quantity: Quantity, value: Option<u64>) {
        self.values[quantity as usize] = value;
    }
}
