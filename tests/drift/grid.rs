//! Runs in which a holder's clocks are slow and a master's are fast, and the closed form for a
//! sufficient drift allowance.
//!
//! With a client that runs at `1 − ρc`, a master at `1 + ρi`, a TTL, and a drift allowance of the
//! share `f` of the TTL plus a constant `pad`, a lease is safe at a master iff `(TTL·(1 − f) − pad)
//! / (1 − ρc) ≤ (TTL − 1 ms) / (1 + ρi)` (counterexample C5): the holder stops believing before the key
//! can be gone. A key lives for up to a millisecond longer than that, depending on the phase of the
//! master's clock within its millisecond.

use lock_judge::oracle::{Judgement, Violation};
use lock_judge::scenario::{Case, File, Property};
use redlock_sim::engine::event::Engine;
use redlock_sim_cli::report::drift::Cell;

/// TTL of all runs.
pub(crate) const TTL_NS: u128 = 10_000_000_000;

/// Constant time that a lease gives up in addition to its share.
const PAD_NS: u128 = 2_000_000;

/// One millisecond: the resolution of a master's expiry.
pub(crate) const TICK_NS: u128 = 1_000_000;

/// Time by which the single request of c2 precedes the end of c1's belief.
pub(crate) const BEFORE_NS: u128 = 200_000;

const MILLION: u128 = 1_000_000;

/// Clock errors, and the share that leases give up for them; all in parts per million.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Rate by which the holder's clocks are slow.
    pub(crate) client_ppm: u32,
    /// Rate by which the clocks are fast on the master that both leases count.
    pub(crate) node_ppm: u32,
    /// Share of the TTL that a lease gives up.
    pub(crate) share_ppm: u32,
}

impl Rates {
    /// End of c1's belief in true time since T1, rounded up.
    pub(crate) fn belief_ns(self) -> u128 {
        let local_ns = TTL_NS - TTL_NS * u128::from(self.share_ppm) / MILLION - PAD_NS;
        (local_ns * MILLION).div_ceil(MILLION - u128::from(self.client_ppm))
    }

    /// True lifetime of a key that lasts `local_ns` on the master's clock, rounded down.
    pub(crate) fn key_ns(self, local_ns: u128) -> u128 {
        local_ns * MILLION / (MILLION + u128::from(self.node_ppm))
    }

    /// Returns true if the closed form calls the rates safe.
    pub(crate) fn is_covered(self) -> bool {
        self.belief_ns() <= self.key_ns(TTL_NS - TICK_NS)
    }
}

/// Returns the violation of mutual exclusion in the run of `seed`, if there is one.
pub(crate) fn overlap(rates: Rates, seed: u64) -> Option<Violation> {
    let mut engine = Engine::new(&case(rates)).expect("clock rates are played");
    match engine.run(seed, None).verdicts.of(Property::MutualExclusion) {
        Judgement::Violated(violation) => Some(violation),
        _ => None,
    }
}

/// The scenario: c1 holds A, B and C from time 0; c2 asks once, just before c1 stops believing. C's
/// clocks are fast, c1's are slow. c1 runs the literal algorithm, because this project's client
/// ends its belief 2 ms before the deadline.
fn case(rates: Rates) -> Case {
    let Rates { client_ppm, node_ppm, share_ppm } = rates;
    let asks_ns = rates.belief_ns() - BEFORE_NS;
    let text = format!(
        r#"
        schema = 1
        name = "grid"
        title = "Two clocks that drift apart"
        [cluster]
        network = {{ delay = "10us" }}
        clocks = {{ C = {{ rate-ppm = {node_ppm} }}, c1 = {{ rate-ppm = -{client_ppm} }} }}
        [lock]
        drift = {{ share-ppm = {share_ppm}, constant = "2ms" }}
        [[client]]
        id = "c1"
        subject = "redlock-literal"
        steps = [{{ at = "0s", acquire = {{}} }}, {{ hold = "until-deadline" }}]
        [[client]]
        id = "c2"
        steps = [{{ at = "{asks_ns}ns", acquire = {{}} }}, {{ hold = "1s" }}]
        [[fault]]
        id = "c1-sees-abc"
        at = "0s"
        until = "20s"
        partition = {{ between = [["c1"], ["D", "E"]] }}
        "#
    );
    let file = File::parse("grid.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
    file.cases(&[]).unwrap_or_else(|problems| panic!("{problems}")).remove(0)
}

/// Returns the cells of the chart, by the clock errors of both sides, for leases that give up one
/// per cent and 2 ms.
pub(crate) fn cells() -> Vec<Cell> {
    const SEEDS: u64 = 4;
    let steps = || (0..=15_u32).map(|step| step * 1_000);
    let pairs = steps().flat_map(|node_ppm| steps().map(move |client_ppm| (client_ppm, node_ppm)));
    let cell = |(client_ppm, node_ppm)| {
        let rates = Rates { client_ppm, node_ppm, share_ppm: 10_000 };
        let violated = (0..SEEDS).filter(|&seed| overlap(rates, seed).is_some()).count() as u64;
        Cell { client_ppm, node_ppm, violated, runs: SEEDS }
    };
    pairs.map(cell).collect()
}
