//! Wakers to be called after the driver's lock has been released.

use core::task::Waker;

/// Number of wakers of an ordinary turn: five nodes, a timer, a caller or two.
const FEW: usize = 8;

/// Wakers, in the order of arrival. An ordinary turn allocates nothing for them.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    few: [Option<Waker>; FEW],
    count: usize,
    more: Vec<Waker>,
}

impl Wakes {
    pub(super) fn push(&mut self, waker: Waker) {
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = Some(waker);
                self.count += 1;
            }
            None => self.more.push(waker),
        }
    }

    pub(super) fn wake(mut self) {
        self.few[..self.count].iter_mut().filter_map(Option::take).for_each(Waker::wake);
        self.more.into_iter().for_each(Waker::wake);
    }
}

impl Extend<Waker> for Wakes {
    fn extend<T: IntoIterator<Item = Waker>>(&mut self, wakers: T) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }
}
