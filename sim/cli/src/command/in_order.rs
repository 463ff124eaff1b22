//! Work on many items at a time, with results in the order of the items.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Plays the items on all threads of the current pool, in their order, and lets `take` have each
/// result as soon as those of all earlier items are there.
pub(super) fn in_order<I: Sync, R: Send>(
    items: &[I],
    play: impl Fn(&I) -> R + Sync,
    take: impl FnMut(&I, R) + Send,
) {
    let begun = AtomicUsize::new(0);
    let finished = Mutex::new((take, BTreeMap::new(), 0));
    let work = || {
        loop {
            let index = begun.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = play(item);
            let mut guard = finished.lock().expect("nobody panics with the lock");
            let (take, waiting, taken) = &mut *guard;
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(taken) {
                take(&items[*taken], result);
                *taken += 1;
            }
        }
    };
    rayon::scope(|scope| {
        (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| work()));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let last_is_done = std::sync::Barrier::new(2);
        let items: Vec<usize> = (0..100).collect();
        let mut taken = Vec::new();
        let play = |&item: &usize| {
            if item == 0 || item == 99 {
                last_is_done.wait();
            }
            item * 2
        };
        pool.install(|| in_order(&items, play, |&item, result| taken.push((item, result))));
        assert_eq!(taken, items.iter().map(|&item| (item, item * 2)).collect::<Vec<_>>());
    }
}
