//! Compares this build of the client with another one, in interleaved pairs of rounds.
//!
//! ```text
//! cargo bench -p redlock-client --bench comparison -- pairs OTHER
//! ```
//!
//! `OTHER` is the program built by `cargo bench --bench comparison --no-run` in another checkout.
//! Both builds run side by side as processes of their own (`OTHER slices URL…`) on the same
//! servers, and work in turns of about ten milliseconds. Other load on the machine changes more
//! slowly than that, and slows both down in the same way. The memory layout of a process affects
//! its figures more than most code changes do, so a pair uses several processes of each build.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::clients::{Client, Ours};
use crate::process;
use crate::report::{quantile, rounded};
use crate::servers::Servers;
use crate::{latency, throughput};

const NODES: usize = 5;

/// Number of pairs.
const PAIRS: usize = 10;

/// Number of processes of each build in a pair.
const PROCESSES: usize = 6;

/// Turns of each process and kind. An odd turn begins with the other build, so that neither build
/// always comes first.
const TURNS: usize = 10;

const FIGURES: [&str; 4] = ["throughput", "CPU time a cycle", "p50", "first lease of a new client"];

/// Measures one slice for each line on standard input, and answers with its figures on a line.
/// `throughput`: cycles per second, CPU time of this process per cycle in µs, cycles.
/// `latency`: p50 of an acquisition in µs. `first`: p50 of the first lease of a new client in µs,
/// from `build` to the end of its release, with connections and introductions.
pub(crate) fn slices(urls: &[String]) {
    let many = throughput::runtime(Ours::NAME);
    let shared = many.block_on(Ours::connect(urls.to_vec())).into();
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let one = one.expect("a runtime");
    let alone = one.block_on(Ours::connect(urls.to_vec()));
    for line in std::io::stdin().lines() {
        match line.expect("the parent writes text").as_str() {
            "throughput" => {
                let [cycles, elapsed_s, cpu_s] = throughput::slice(&many, &shared);
                println!("figures {} {} {cycles}", cycles / elapsed_s, cpu_s * 1e6 / cycles);
            }
            slice => {
                process::pin(None, Some(1));
                let p50_us = if slice == "first" {
                    one.block_on(latency::first(urls))
                } else {
                    one.block_on(latency::slice(&alone))
                };
                println!("figures {p50_us}");
                process::pin(None, None);
            }
        }
    }
}

/// Compares this program with `other`. A ratio above 1 is an improvement.
pub(crate) fn run(servers: &Servers, other: &str) -> ExitCode {
    let this = std::env::current_exe().expect("the program has a path");
    let programs = [&*this.to_string_lossy(), other];
    let mut ratios = FIGURES.map(|_| Vec::new());
    for pair in 0..PAIRS {
        let mut turns = FIGURES.map(|_| Vec::new());
        for _ in 0..PROCESSES {
            if measure(servers, programs, &mut turns).is_none() {
                eprintln!("`{other}` is no build of this benchmark, or a round failed");
                return ExitCode::FAILURE;
            }
        }
        let of_pair = turns.map(median);
        let named =
            FIGURES.iter().zip(of_pair).map(|(figure, ratio)| format!("{figure} {ratio:.3}"));
        println!("pair {pair}: {}", named.collect::<Vec<_>>().join("; "));
        ratios.iter_mut().zip(of_pair).for_each(|(all, it)| all.push(it));
    }
    for (figure, ratios) in FIGURES.into_iter().zip(ratios) {
        println!("{figure}: {}", median_with_interval(ratios));
    }
    ExitCode::SUCCESS
}

/// Runs one process of each program, and adds the ratios of each turn to `turns`. Returns `None` if
/// one of them fails.
fn measure(
    servers: &Servers,
    programs: [&str; 2],
    turns: &mut [Vec<f64>; FIGURES.len()],
) -> Option<()> {
    let mut processes =
        [Slices::start(programs[0], servers)?, Slices::start(programs[1], servers)?];
    // The first turn warms both up.
    for turn in 0..=TURNS {
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        let (mut many, mut one, mut first) = ([[0.0; 2]; 2], [0.0; 2], [0.0; 2]);
        for it in order {
            many[it] = processes[it].throughput(servers)?;
        }
        for it in order {
            one[it] = processes[it].alone("latency", servers)?;
        }
        for it in order {
            first[it] = processes[it].alone("first", servers)?;
        }
        if turn > 0 {
            turns[0].push(many[0][0] / many[1][0]);
            turns[1].push(many[1][1] / many[0][1]);
            turns[2].push(one[1] / one[0]);
            turns[3].push(first[1] / first[0]);
        }
    }
    Some(())
}

/// A running process of one build. A drop ends it.
struct Slices {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Slices {
    fn start(program: &str, servers: &Servers) -> Option<Self> {
        let mut command = Command::new(program);
        command.arg("slices").args(servers.urls(NODES));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Self { child, input, output })
    }

    /// Returns cycles per second, and CPU time of this process and the servers per cycle in µs.
    fn throughput(&mut self, servers: &Servers) -> Option<[f64; 2]> {
        let before = servers.cpu();
        let &[a_second, cpu_us, cycles] = &self.ask("throughput")?[..] else { return None };
        let servers_us = (servers.cpu() - before).as_secs_f64() * 1e6 / cycles;
        Some([a_second, cpu_us + servers_us])
    }

    /// Returns the figure of `slice` in µs, with client and servers on cores of their own.
    fn alone(&mut self, slice: &str, servers: &Servers) -> Option<f64> {
        servers.pin(Some(0));
        let figures = self.ask(slice);
        servers.pin(None);
        figures?.first().copied()
    }

    fn ask(&mut self, slice: &str) -> Option<Vec<f64>> {
        writeln!(self.input, "{slice}").ok()?;
        let mut line = String::new();
        // Another part of the program may print lines of its own.
        while !line.starts_with("figures ") {
            line.clear();
            (self.output.read_line(&mut line).ok()? > 0).then_some(())?;
        }
        line.split_whitespace().skip(1).map(|it| it.parse().ok()).collect()
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        // An error means that it is dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
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
