//! Runs in which a holder's clocks are slow and a master's are fast, and the closed form that says
//! for which rates a lease gives up enough.
//!
//! With a client that runs at `1 − ρc`, a master at `1 + ρi`, a TTL of which the share `f` and a
//! constant `pad` are given up, a lease is safe at a master iff
//! `(TTL·(1 − f) − pad) / (1 − ρc) ≤ (TTL − 1 ms) / (1 + ρi)` (catalogue §2): the holder stops
//! believing before the key can be gone. A key lives for up to a millisecond more than that,
//! depending on where the master's clock is in its millisecond.

use redlock_sim::engine::event::Engine;
use redlock_sim::oracle::{Judgement, Violation};
use redlock_sim::report::drift::Cell;
use redlock_sim::scenario::{Case, File, Property};

/// The TTL of all runs.
pub(crate) const TTL_NS: u128 = 10_000_000_000;

/// What a lease gives up besides its share.
const PAD_NS: u128 = 2_000_000;

/// A millisecond: what a master's expiry is rounded to.
pub(crate) const TICK_NS: u128 = 1_000_000;

/// So long before C1 stops believing C2 asks, once.
pub(crate) const BEFORE_NS: u128 = 200_000;

const MILLION: u128 = 1_000_000;

/// How wrong clocks are, and what leases give up for it; all in parts per million.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// How slow the holder's clocks are.
    pub(crate) client_ppm: u32,
    /// How fast the clocks of the master are that both count.
    pub(crate) node_ppm: u32,
    /// The share of the TTL that a lease gives up.
    pub(crate) share_ppm: u32,
}

impl Rates {
    /// When C1 stops believing, from T1, in true time, rounded up.
    pub(crate) fn belief_ns(self) -> u128 {
        let local_ns = TTL_NS - TTL_NS * u128::from(self.share_ppm) / MILLION - PAD_NS;
        (local_ns * MILLION).div_ceil(MILLION - u128::from(self.client_ppm))
    }

    /// For how long a key lives that lasts `local_ns` on the master's clock, rounded down.
    pub(crate) fn key_ns(self, local_ns: u128) -> u128 {
        local_ns * MILLION / (MILLION + u128::from(self.node_ppm))
    }

    /// What the closed form says.
    pub(crate) fn is_covered(self) -> bool {
        self.belief_ns() <= self.key_ns(TTL_NS - TICK_NS)
    }
}

/// The violation of mutual exclusion in the run by `seed`, if there is one.
pub(crate) fn overlap(rates: Rates, seed: u64) -> Option<Violation> {
    let mut engine = Engine::new(&case(rates)).expect("clock rates are played");
    match engine.run(seed, None).verdicts.of(Property::MutualExclusion) {
        Judgement::Violated(violation) => Some(violation),
        _ => None,
    }
}

/// C1 holds A, B and C from time 0; C2 asks once, just before C1 stops believing. C's clocks are
/// fast, C1's are slow. C1 is the algorithm to the letter: ours lets go 2 ms before its deadline.
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

/// The cells of the picture: leases that give up one per cent and 2 ms, by how wrong the clocks of
/// both sides are.
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
