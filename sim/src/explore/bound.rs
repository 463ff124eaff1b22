//! Upper bound on the probability of a violation, from a number of runs.

/// Returns an upper bound, with 95 % confidence, on the probability that a further plan of the same
/// distribution violates a property which `violated` of `tested` plans violated: the one-sided
/// Clopper–Pearson bound. `None` if nothing was tested.
#[must_use]
pub fn upper_bound_95(violated: u64, tested: u64) -> Option<f64> {
    if tested == 0 {
        return None;
    }
    if violated >= tested {
        return Some(1.0);
    }
    // The bound is where so few violations have a probability of 5 %; that falls as the bound grows.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(violated, tested, middle) > 0.05 { low = middle } else { high = middle }
    }
    Some(high)
}

/// Returns the probability of at most `most` successes in `tries` tries of probability `p`.
pub(super) fn at_most(most: u64, tries: u64, p: f64) -> f64 {
    let (log_p, log_q) = (p.ln(), (1.0 - p).ln());
    let mut log_term = tries as f64 * log_q;
    let mut sum = log_term.exp();
    for successes in 0..most {
        let ratio = (tries - successes) as f64 / (successes + 1) as f64;
        log_term += ratio.ln() + log_p - log_q;
        sum += log_term.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(bound: Option<f64>, expected: f64) -> bool {
        bound.is_some_and(|bound| (bound / expected - 1.0).abs() < 1e-3)
    }

    #[test]
    fn the_bounds_are_those_of_the_tables() {
        assert_eq!(upper_bound_95(0, 0), None);
        assert_eq!(upper_bound_95(5, 5), Some(1.0));
        assert!(is_near(upper_bound_95(0, 100), 0.029_51), "{:?}", upper_bound_95(0, 100));
        assert!(is_near(upper_bound_95(1, 10), 0.394_16), "{:?}", upper_bound_95(1, 10));
        assert!(is_near(upper_bound_95(3, 50), 0.147_78), "{:?}", upper_bound_95(3, 50));
        assert!(is_near(upper_bound_95(0, 10_000_000), 2.995_73e-7));
    }
}
