//! Commands for clients of others: servers, workers, and what workers need.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use lock_judge::scenario::{SeedRange, Span};
use redis_sim::profile::{PROFILES, Profile};

use super::numbers::whole;
use super::{Amount, Messages, Out, Settings, Shard};

#[derive(Args, Debug)]
pub(in crate::command) struct Serve {
    /// Scenario (NAME), case (NAME::CASE) or file with the faults; no faults if not given
    #[arg(value_name = "NAME[::CASE]|PATH")]
    pub(in crate::command) which: Option<String>,
    /// Number of masters, 5 if not given; not for a scenario, which has its own
    #[arg(long, value_name = "N", value_parser = whole::<u8>(1, 9))]
    pub(in crate::command) nodes: Option<u8>,
    /// Port of the first master, followed by those of the others; 0 for any free ports
    #[arg(long, value_name = "PORT", default_value_t = 17_000, value_parser = whole::<u16>(0, 65_535))]
    pub(in crate::command) base_port: u16,
    /// Port of the observer; if not given, a hundred above the first master's, or any free one if
    /// there is no such port
    #[arg(long, value_name = "PORT", value_parser = whole::<u16>(0, 65_535))]
    pub(in crate::command) observer_port: Option<u16>,
    /// Server that the masters simulate; the scenario's if not given
    #[arg(long, value_name = "NAME", value_parser = profiles())]
    pub(in crate::command) profile: Option<&'static Profile>,
    /// Name of the lock's key, which may follow a prefix; the scenario's if not given
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::command) resource: Option<String>,
    /// Stop this long after the run starts, or earlier if the observer receives END
    #[arg(long = "for", value_name = "DURATION")]
    pub(in crate::command) limit: Option<Span>,
    /// Start the run when the observer receives START, not with the first command that could change
    /// the lock's key
    #[arg(long)]
    pub(in crate::command) wait_for_start: bool,
    /// Seed for message delays
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    pub(in crate::command) seed: u64,
    #[command(flatten)]
    pub(in crate::command) settings: Settings,
    #[command(flatten)]
    pub(in crate::command) out: Out,
    #[command(flatten)]
    pub(in crate::command) messages: Messages,
}

#[derive(Args, Debug)]
pub(in crate::command) struct Drive {
    /// Scenarios (NAME), cases (NAME::CASE), files, folders, tags (tag:TAG)
    #[arg(value_name = "NAME|PATH|tag:TAG", required = true)]
    pub(in crate::command) which: Vec<String>,
    /// Program and arguments of a worker, started once for each client of the scenario
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::command) worker: String,
    /// Seeds, the end excluded
    #[arg(long, value_name = "A..B", default_value = "0..1")]
    pub(in crate::command) seeds: SeedRange,
    /// Number of runs at a time; one per core if not given
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 1_024), allow_negative_numbers = true)]
    pub(in crate::command) jobs: Option<u16>,
    /// Longest time of a run, counted from its time 0; a run ends earlier if all workers have ended
    #[arg(long = "for", value_name = "DURATION")]
    pub(in crate::command) limit: Option<Span>,
    /// A worker that still runs this long after its start counts as hung; `--for` is added to it
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(in crate::command) timeout: Span,
    /// Server that the masters simulate; the scenario's if not given
    #[arg(long, value_name = "NAME", value_parser = profiles())]
    pub(in crate::command) profile: Option<&'static Profile>,
    #[command(flatten)]
    pub(in crate::command) settings: Settings,
    #[command(flatten)]
    pub(in crate::command) out: Out,
    #[command(flatten)]
    pub(in crate::command) shard: Shard,
    #[command(flatten)]
    pub(in crate::command) amount: Amount,
    #[command(flatten)]
    pub(in crate::command) messages: Messages,
}

#[derive(Args, Debug)]
pub(in crate::command) struct Init {
    /// Language of the worker
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(in crate::command) client: Language,
    /// Root of your repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(in crate::command) dir: PathBuf,
}

/// Language of a worker. `ci/full` runs the worker of each.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::command) enum Language {
    /// Python, its standard library alone
    Python,
    /// JavaScript, node alone
    Node,
    /// PHP 8.1 or newer, without extensions
    Php,
    /// Ruby, its standard library alone
    Ruby,
    /// Go, its standard library alone
    Go,
    /// Rust, its standard library alone
    Rust,
}

#[derive(Args, Debug)]
pub(in crate::command) struct Master {
    /// Server to simulate; redis-7.0 if not given
    #[arg(long, value_name = "NAME", value_parser = profiles())]
    pub(in crate::command) profile: Option<&'static Profile>,
    /// Options as `redis-server` takes them: `--port 6379 --bind 127.0.0.1 --maxmemory 1gb`
    #[arg(value_name = "REDIS-OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(in crate::command) options: Vec<String>,
}

/// Parser of a server's name.
fn profiles() -> impl TypedValueParser<Value = &'static Profile> {
    let names = PROFILES.iter().map(|profile| profile.name);
    PossibleValuesParser::new(names)
        .try_map(|name| Profile::named(&name).ok_or("there is no such profile"))
}
