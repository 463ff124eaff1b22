//! The smallest values of a stream, whatever its order.

/// Returns the smaller of two values that may be missing.
pub(super) fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// Returns the value whose `key` is smaller, of two that may be missing.
pub(super) fn smaller_by_key<T, K: Ord>(
    one: Option<T>,
    other: Option<T>,
    key: impl Fn(&T) -> K,
) -> Option<T> {
    one.into_iter().chain(other).min_by_key(key)
}

/// Inserts `value` into `values`, which holds the `limit` smallest distinct values, sorted.
pub(super) fn insert_smallest<T>(
    values: &mut Vec<T>,
    value: T,
    limit: usize,
    order: impl Fn(&T, &T) -> core::cmp::Ordering,
) {
    if let Err(place) = values.binary_search_by(|known| order(known, &value))
        && place < limit
    {
        values.truncate(limit - 1);
        values.insert(place, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_are_kept_whatever_the_order(values in vec(0_u64..40, 0..60)) {
            let mut kept = Vec::new();
            for value in &values {
                insert_smallest(&mut kept, *value, 8, u64::cmp);
            }
            let mut expected = values;
            expected.sort_unstable();
            expected.dedup();
            expected.truncate(8);
            prop_assert_eq!(kept, expected);
        }
    }
}
