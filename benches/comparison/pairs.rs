//! This build of the client against another one, in interleaved pairs of rounds.
//!
//! ```text
//! cargo bench -p redlock-client --bench comparison -- pairs OTHER
//! ```
//!
//! `OTHER` is the program that `cargo bench --bench comparison --no-run` left in another checkout. Each
//! round of either is a process of its own, `OTHER alone`, and prints two figures. A round of a pair is
//! the median of several, in turn with those of the other build: where a process lies in memory moves its
//! figures by more than most changes do.

use std::process::{Command, ExitCode, Stdio};

use crate::clients::Ours;
use crate::report::{quantile, rounded};
use crate::servers::Servers;
use crate::{latency, throughput};

/// An odd pair begins with the other build, so that neither always comes first.
const PAIRS: usize = 10;

/// Processes of each build in a pair, one after the other in turn.
const PROCESSES: usize = 11;

/// One process: throughput in cycles a second, p50 of an acquisition in µs; n = 5.
pub(crate) fn alone(servers: &mut Servers) {
    let cycles = throughput::round(servers, Ours::connect);
    let p50_us = latency::round(servers, Ours::connect);
    println!("figures {cycles} {p50_us}");
}

/// Compares this program with `other`; a ratio above 1 is an improvement.
pub(crate) fn run(other: &str) -> ExitCode {
    let this = std::env::current_exe().expect("the program has a path");
    let this = this.to_string_lossy().into_owned();
    let (mut throughputs, mut latencies) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let order = if pair % 2 == 0 { [&*this, other] } else { [other, &*this] };
        let mut rounds = in_turn(order);
        if pair % 2 == 1 {
            rounds.reverse();
        }
        let [Some(after), Some(before)] = rounds else {
            eprintln!("`{other}` is no build of this benchmark, or a round failed");
            return ExitCode::FAILURE;
        };
        let ratios = [after[0] / before[0], before[1] / after[1]];
        println!(
            "pair {pair}: {:.0} and {:.0} cycles/s ({:.3}); p50 {:.1} and {:.1} µs ({:.3})",
            after[0], before[0], ratios[0], after[1], before[1], ratios[1],
        );
        throughputs.push(ratios[0]);
        latencies.push(ratios[1]);
    }
    for (figure, ratios) in [("throughput", throughputs), ("p50", latencies)] {
        println!("{figure}: {}", median_with_interval(ratios));
    }
    ExitCode::SUCCESS
}

/// The medians of throughput and p50 of each program; `None` if one of its processes fails.
fn in_turn(programs: [&str; 2]) -> [Option<[f64; 2]>; 2] {
    let rounds: Vec<_> = (0..PROCESSES).map(|_| programs.map(figures)).collect();
    [0, 1].map(|program| {
        let figures: Option<Vec<_>> = rounds.iter().map(|round| round[program]).collect();
        figures.map(|figures| [0, 1].map(|figure| median(figures.iter().map(|it| it[figure]))))
    })
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    quantile(&figures, 0.5)
}

/// Runs one process of `program` and returns its throughput and p50; `None` if it fails.
fn figures(program: &str) -> Option<[f64; 2]> {
    let output = Command::new(program).arg("alone").stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("figures "))?;
    let (cycles, p50_us) = line.split_once(' ')?;
    Some([cycles.parse().ok()?, p50_us.parse().ok()?])
}

/// The median of ten, between their second and ninth: by the binomial distribution the true median
/// lies there with a probability of 97.9 %, whatever the noise looks like.
fn median_with_interval(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[1], ratios[PAIRS - 2]);
    let middle = (quantile(&ratios, 0.4) + quantile(&ratios, 0.6)) / 2.0;
    format!("median ratio {} ({} to {})", rounded(middle), rounded(least), rounded(most))
}
