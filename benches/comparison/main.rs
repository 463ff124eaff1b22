//! Compares our client, its peer and the bound on the same servers.
//!
//! ```text
//! cargo bench -p redlock-client --bench comparison [-- PART…]
//! ```
//!
//! Starts five `redis-server` processes of its own and runs the named parts, or all of them. Each
//! part alternates between ours, `rslock` and a raw bound, five rounds each. It prints every round,
//! and then a table of medians and ranges. A missed gate fails the program. `pairs` compares this
//! build with another one.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a measurement in real time, outside of any simulated world"
)]

mod burst;
mod clients;
mod contended;
mod kept_alive;
mod latency;
mod pairs;
mod process;
mod raw;
mod report;
mod servers;
mod stopped;
mod throughput;
mod waiting;

use std::process::ExitCode;

use self::report::Report;
use self::servers::Servers;

#[global_allocator]
static ALLOCATOR: process::Counting = process::Counting;

/// Rounds of each client in each part.
const ROUNDS: usize = 5;

type Part = fn(&mut Servers, &mut Report);

const PARTS: [(&str, Part); 7] = [
    ("throughput", throughput::run),
    ("latency", latency::run),
    ("stopped", stopped::run),
    ("contended", contended::run),
    ("waiting", waiting::run),
    ("burst", burst::run),
    ("kept-alive", kept_alive::run),
];

fn main() -> ExitCode {
    // Cargo passes options of its own, such as `--bench`.
    let named: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    if let [slices, urls @ ..] = &named[..]
        && slices == "slices"
    {
        pairs::slices(urls);
        return ExitCode::SUCCESS;
    }
    let other = match &named[..] {
        [pairs, other] if pairs == "pairs" => Some(other),
        _ => None,
    };
    let is_part = |it: &&String| PARTS.iter().any(|(part, _)| part == it);
    if other.is_none()
        && let Some(unknown) = named.iter().find(|it| !is_part(it))
    {
        let parts = PARTS.map(|(part, _)| part).join(", ");
        eprintln!("`{unknown}` is no part; there are {parts}");
        return ExitCode::FAILURE;
    }
    let mut servers = match Servers::start(5) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("cannot start `redis-server`: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(other) = other {
        return pairs::run(&servers, other);
    }
    println!("{}", process::host());
    let mut report = Report::default();
    for (part, run) in PARTS {
        if named.is_empty() || named.iter().any(|it| it == part) {
            run(&mut servers, &mut report);
        }
    }
    report.print();
    if report.is_gate_missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
