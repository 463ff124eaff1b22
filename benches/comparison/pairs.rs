//! Compares this build of the client with another one, in interleaved pairs of rounds.
//!
//! ```text
//! cargo bench -p redlock-client --bench comparison -- pairs OTHER
//! ```
//!
//! `OTHER` is the program that `cargo bench --bench comparison --no-run` left in another checkout.
//! Each round of either build is a process of its own, `OTHER alone`, and prints three figures. A
//! round of a pair is the best of several processes, interleaved with those of the other build: the
//! memory layout of a process changes its figures by more than most code changes do.

use std::process::{Command, ExitCode, Stdio};

use crate::clients::Ours;
use crate::report::{quantile, rounded};
use crate::servers::Servers;
use crate::{latency, throughput};

/// Number of pairs. An odd pair begins with the other build, so that neither build always comes
/// first.
const PAIRS: usize = 10;

/// Number of processes of each build in a pair. The two builds alternate.
const PROCESSES: usize = 11;

/// Runs one process, n = 5. Prints throughput in cycles per second, CPU time per cycle in µs, and
/// p50 of an acquisition in µs.
pub(crate) fn alone(servers: &mut Servers) {
    let [cycles, cpu_us] = throughput::round(servers, Ours::connect);
    let p50_us = latency::round(servers, Ours::connect);
    println!("figures {cycles} {cpu_us} {p50_us}");
}

/// Compares this program with `other`. A ratio above 1 is an improvement.
pub(crate) fn run(other: &str) -> ExitCode {
    let this = std::env::current_exe().expect("the program has a path");
    let this = this.to_string_lossy().into_owned();
    let mut ratios = [const { Vec::new() }; 3];
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
        let of_pair = [after[0] / before[0], before[1] / after[1], before[2] / after[2]];
        println!(
            "pair {pair}: {:.0} and {:.0} cycles/s ({:.3}); CPU {:.1} and {:.1} µs ({:.3}); \
             p50 {:.1} and {:.1} µs ({:.3})",
            after[0],
            before[0],
            of_pair[0],
            after[1],
            before[1],
            of_pair[1],
            after[2],
            before[2],
            of_pair[2],
        );
        ratios.iter_mut().zip(of_pair).for_each(|(all, it)| all.push(it));
    }
    for (figure, ratios) in ["throughput", "CPU time a cycle", "p50"].into_iter().zip(ratios) {
        println!("{figure}: {}", median_with_interval(ratios));
    }
    ExitCode::SUCCESS
}

/// Returns the best value of each figure of each program, or `None` if one of its processes fails.
/// The best is the right measure, because other load on the machine or its host only ever slows a
/// process down.
fn in_turn(programs: [&str; 2]) -> [Option<[f64; 3]>; 2] {
    let rounds: Vec<_> = (0..PROCESSES).map(|_| programs.map(figures)).collect();
    [0, 1].map(|program| {
        let figures: Option<Vec<_>> = rounds.iter().map(|round| round[program]).collect();
        let figures = figures?;
        let least = |at: usize| figures.iter().map(|it| it[at]).fold(f64::INFINITY, f64::min);
        let most = figures.iter().map(|it| it[0]).fold(0.0, f64::max);
        Some([most, least(1), least(2)])
    })
}

/// Runs one process of `program` and returns its three figures, or `None` if it fails.
fn figures(program: &str) -> Option<[f64; 3]> {
    let output = Command::new(program).arg("alone").stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("figures "))?;
    let figures: Vec<f64> = line.split(' ').map_while(|figure| figure.parse().ok()).collect();
    figures.try_into().ok()
}

/// Formats the median of ten ratios, with the second and the ninth as its interval. By the binomial
/// distribution the true median lies in the interval with a probability of 97.9 %, whatever the
/// distribution of the noise.
fn median_with_interval(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[1], ratios[PAIRS - 2]);
    let middle = (quantile(&ratios, 0.4) + quantile(&ratios, 0.6)) / 2.0;
    format!("median ratio {} ({} to {})", rounded(middle), rounded(least), rounded(most))
}
