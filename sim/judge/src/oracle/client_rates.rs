//! Rates at which the clocks of clients may run: what lasts a time on such a clock lasts longer or
//! shorter in true time.

use crate::scenario::{FaultKind, Scenario};

const MILLION: i64 = 1_000_000;

/// Slowest and fastest rate of a client's clock in a scenario, relative to true time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientRates {
    slowest_ppm: i64,
    fastest_ppm: i64,
}

impl ClientRates {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let faults = scenario.faults.iter().filter_map(|fault| match &fault.kind {
            FaultKind::ClockRate(it) => Some(it),
            _ => None,
        });
        let rates_ppm = scenario.clients.iter().flat_map(|client| {
            let usual_ppm = scenario.cluster.clocks.get(&client.id).map_or(0, |it| it.rate_ppm);
            let of_client = faults.clone().filter(|it| it.host.0.contains(&client.id));
            let extra_ppm = [0].into_iter().chain(of_client.map(|it| it.ppm));
            extra_ppm.map(move |extra_ppm| i64::from(usual_ppm) + i64::from(extra_ppm))
        });
        rates_ppm.fold(Self { slowest_ppm: 0, fastest_ppm: 0 }, |rates, ppm| Self {
            slowest_ppm: rates.slowest_ppm.min(ppm),
            fastest_ppm: rates.fastest_ppm.max(ppm),
        })
    }

    /// Returns the longest true time in which a client's clock advances by `span_ns`.
    pub(super) fn longest_ns(self, span_ns: u64) -> u64 {
        in_true_time(span_ns, self.slowest_ppm)
    }

    /// Returns the shortest true time in which a client's clock advances by `span_ns`.
    pub(super) fn shortest_ns(self, span_ns: u64) -> u64 {
        in_true_time(span_ns, self.fastest_ppm)
    }
}

fn in_true_time(span_ns: u64, ppm: i64) -> u64 {
    let rate = u128::from((MILLION + ppm).max(1).unsigned_abs());
    let true_ns = u128::from(span_ns) * u128::from(MILLION.unsigned_abs()) / rate;
    u64::try_from(true_ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_clocks_take_longer_and_fast_ones_less_long() {
        let rates = ClientRates { slowest_ppm: -500_000, fastest_ppm: 250_000 };
        assert_eq!((rates.longest_ns(100), rates.shortest_ns(100)), (200, 80));
        let right = ClientRates { slowest_ppm: 0, fastest_ppm: 0 };
        assert_eq!((right.longest_ns(100), right.shortest_ns(100)), (100, 100));
        assert_eq!(rates.longest_ns(u64::MAX), u64::MAX);
    }
}
