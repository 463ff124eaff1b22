//! Judges the simulated masters from outside: random streams of commands are sent to a real server
//! and to the simulated one, and the replies are compared byte for byte.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `JUDGE_COMMANDS` | number of commands sent to each real server; a small sample by default |
//! | `JUDGE_SEED` | seed of the streams; printed |
//! | `JUDGE_ROUND` | plays only this round of the seed |
//! | `JUDGE_DIFFERENCES` | number of distinct differences after which the search ends |
//! | `JUDGE_WITHOUT` | commands that are not sent, separated by commas |
//! | `BLESS` | records the transcripts anew where there is a real server |
//! | `REDIS_SERVER`, `VALKEY_SERVER` | the programs, unless they are on PATH |
//! | `REDLOCK_REQUIRE_REDIS` | a missing `redis-server` is a failure |
//!
//! Without a real server the committed transcripts are played.

#![expect(clippy::disallowed_methods, reason = "real servers are what is compared with")]
#![expect(clippy::disallowed_types, reason = "real servers are what is compared with")]

mod bad_input;
mod channels;
mod commands;
mod dice;
mod expressions;
mod generator;
mod locks;
mod play;
mod real;
mod reply;
mod round;
mod scripts;
mod shrink;
mod simulated;
mod tracking;
mod transcript;
mod words;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Instant;
use std::{env, io};

use libtest_mimic::{Arguments, Failed, Trial};
use redis_sim::profile::Profile;

use crate::play::{Counts, Difference, Judge};
use crate::round::{Item, Round};

/// Number of commands that plain `cargo test` sends.
const SAMPLE: u64 = 5_000;

/// At most one reply in this many may go without a comparison, plus a constant number. A round that
/// a busy machine interrupts is lost, which costs a few hundred replies.
const SKIPPED_ONE_IN: u64 = 10;
const SKIPPED_BESIDES: u64 = 1_000;

/// A test of a server profile, given its name and the program to compare with.
type Against = fn(&str, &str) -> Result<(), Failed>;

fn main() {
    let mut trials = vec![Trial::test("shortest_lives", simulated::shortest_lives)];
    for (name, variable, program) in [
        ("redis-7.0", "REDIS_SERVER", "redis-server"),
        ("valkey-9", "VALKEY_SERVER", "valkey-server"),
    ] {
        let program = env::var(variable).unwrap_or_else(|_| program.to_owned());
        let is_required = name == "redis-7.0" && env::var_os("REDLOCK_REQUIRE_REDIS").is_some();
        let is_missing = !real::is_there(&program) && !is_required;
        let bless = (env::var_os("BLESS").is_some() && !is_missing).then(|| program.clone());
        let transcript = move || match (&bless, Profile::named(name)) {
            (Some(program), _) => transcript::record(name, program),
            (None, Some(profile)) => transcript::play(name, profile),
            (None, None) => Err("no such profile".into()),
        };
        trials.push(Trial::test(format!("transcript::{name}"), transcript));
        let against: [(&str, Against); 4] = [
            ("streams", streams),
            ("bad_input", bad_input::compare),
            ("endless", bad_input::endless),
            ("channels", channels::compare),
        ];
        for (what, test) in against {
            let program = program.clone();
            let test = Trial::test(format!("{what}::{name}"), move || test(name, &program));
            trials.push(test.with_ignored_flag(is_missing));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Plays random streams and fails if there is a difference.
fn streams(name: &str, program: &str) -> Result<(), Failed> {
    let profile = Profile::named(name).ok_or("no such profile")?;
    let seed = number("JUDGE_SEED").unwrap_or(1);
    let only = number("JUDGE_ROUND");
    let wanted = number("JUDGE_COMMANDS").unwrap_or(SAMPLE);
    let tolerated = number("JUDGE_DIFFERENCES").unwrap_or(1) as usize;
    let left_out = env::var("JUDGE_WITHOUT").unwrap_or_default().to_ascii_uppercase();
    let began = Instant::now();
    let server = real::Server::start(program)?;
    let mut judge = Judge::new(&server, profile)?;
    let mut counts = Counts::default();
    let mut differences = BTreeMap::new();
    for number in only.unwrap_or(0).. {
        let mut round = generator::round(seed, number);
        round.leave_out(&left_out);
        // Commands are described as by Redis 7.0, in every profile.
        if profile.server != "redis" {
            round.leave_out("COMMAND");
        }
        let (played, difference) = judge.play(&round).map_err(|error| {
            format!("{name}: seed {seed}, round {number}: the server is gone: {error}")
        })?;
        counts.add(played);
        if let Some(difference) = difference
            && let Entry::Vacant(place) = differences.entry(difference.signature(&round))
        {
            let told = shrunk(&mut judge, round, difference)?;
            place.insert(format!("{name}: seed {seed}, round {number}\n{told}"));
        }
        if counts.compared() >= wanted || only.is_some() || differences.len() >= tolerated {
            break;
        }
    }
    let Counts { exact, interval, pushes, skipped } = counts;
    println!(
        "{name}: seed {seed}: {exact} replies exact, {interval} as intervals, {pushes} behind \
         pushes, {skipped} skipped, in {} s",
        began.elapsed().as_secs()
    );
    if !differences.is_empty() {
        return Err(differences.into_values().collect::<Vec<_>>().join("\n").into());
    }
    if pushes == 0 && left_out.is_empty() && only.is_none() {
        return Err("nothing was pushed".into());
    }
    // Valkey's cached time may be a millisecond old, so that half of its rounds blur.
    let one_in = if profile.server == "valkey" { 1 } else { SKIPPED_ONE_IN };
    if skipped.saturating_sub(SKIPPED_BESIDES) * one_in > counts.compared() {
        return Err("too many replies were not compared".into());
    }
    Ok(())
}

/// Describes the shortest round that still shows a difference.
fn shrunk(judge: &mut Judge<'_>, round: Round, difference: Difference) -> io::Result<String> {
    let (round, difference) = shrink::shrink(judge, round, difference)?;
    let mut told: Vec<_> = round.items.iter().map(Item::told).collect();
    told.push(format!("real      {}", difference.real));
    told.push(format!("simulated {}\n", difference.simulated));
    Ok(told.join("\n"))
}
