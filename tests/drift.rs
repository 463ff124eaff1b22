//! The verdict of the engine `event` changes where the closed form predicts, for every combination
//! of clock rates and drift allowance. The tolerance is the resolution of the masters' clocks, a
//! millisecond, plus the time by which c2 asks before c1 stops believing.

#[path = "drift/grid.rs"]
mod grid;

use grid::{BEFORE_NS, Rates, TICK_NS, TTL_NS};
use redlock_sim_cli::report::drift::drift_svg;

const SEEDS: u64 = 6;

/// Rates from a good quartz to antirez's "10 % error", and beyond.
const PPM: [u32; 8] = [0, 50, 500, 2_500, 5_000, 10_000, 50_000, 107_000];

/// Returns the smallest share that the closed form accepts.
fn enough_ppm(client_ppm: u32, node_ppm: u32) -> u32 {
    let is_covered = |&share_ppm: &u32| Rates { client_ppm, node_ppm, share_ppm }.is_covered();
    let (mut too_little, mut enough) = (None, 1_000_000 - 1_000);
    let mut least = 0;
    while least < enough {
        let middle = least + (enough - least) / 2;
        if is_covered(&middle) {
            enough = middle;
        } else {
            (too_little, least) = (Some(middle), middle + 1);
        }
    }
    assert!(is_covered(&enough) && too_little.is_none_or(|it| !is_covered(&it)));
    enough
}

#[test]
fn the_closed_form_holds_at_its_edge() {
    for client_ppm in PPM {
        for node_ppm in PPM {
            let share_ppm = enough_ppm(client_ppm, node_ppm);
            let rates = Rates { client_ppm, node_ppm, share_ppm };
            for seed in 0..SEEDS {
                assert!(grid::overlap(rates, seed).is_none(), "{rates:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_little_beyond_the_edge_it_is_violated_by_every_seed() {
    let mut checked = 0;
    for client_ppm in PPM {
        for node_ppm in PPM {
            // Time from TTL − 1 ms to the latest end of a key, and the time that c2 needs.
            let slack_ns = 2 * TICK_NS + BEFORE_NS + TICK_NS / 10;
            let slack_ppm = (slack_ns * 1_000_000).div_ceil(TTL_NS) as u32;
            let enough = enough_ppm(client_ppm, node_ppm);
            let Some(share_ppm) = enough.checked_sub(slack_ppm) else { continue };
            let rates = Rates { client_ppm, node_ppm, share_ppm };
            for seed in 0..SEEDS {
                let found = grid::overlap(rates, seed);
                let found = found.unwrap_or_else(|| panic!("{rates:?} holds by seed {seed}"));
                assert!(!found.blamed.is_none(), "{rates:?}: clocks are to blame");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} pairs of rates need a share");
}

#[test]
fn the_boundary_depends_on_the_masters_phase_alone() {
    // Between the two bounds the seeds differ, and no seed flips back.
    let (client_ppm, node_ppm) = (5_000, 5_000);
    let enough = enough_ppm(client_ppm, node_ppm);
    let mut edges = std::collections::BTreeSet::new();
    for seed in 0..SEEDS {
        let shares = enough - 230..enough;
        let holds: Vec<bool> = shares
            .clone()
            .step_by(10)
            .map(|share_ppm| {
                grid::overlap(Rates { client_ppm, node_ppm, share_ppm }, seed).is_none()
            })
            .collect();
        let edge = holds.iter().position(|&holds| holds).expect("enough holds");
        assert!(holds[edge..].iter().all(|&holds| holds), "seed {seed} flips back: {holds:?}");
        edges.insert(edge);
    }
    assert!(edges.len() > 1, "every seed flips at once: the clocks have no phase");
}

#[test]
fn the_committed_picture_is_what_the_runs_give() {
    const PICTURE: &str = "../../docs/drift-boundary.svg";
    let drift = drift_svg(&grid::cells());
    if std::env::var_os("BLESS").is_some() {
        assert!(std::env::var_os("CI").is_none(), "nothing is blessed in CI");
        std::fs::write(PICTURE, &drift).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PICTURE).unwrap_or_default(), drift, "{PICTURE} differs");
}
