//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::explore::Assumption;
use crate::scenario::{Override, SeedRange, Span};
use crate::search::Engine;

/// Plays Redis locks against what goes wrong, judges what happened, and explains it.
///
/// Without a command every scenario is played: those in `./scenarios`, or else those built in.
#[derive(Debug, Parser)]
#[command(name = "redlock-sim", version, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 every expectation met, 1 an expectation failed, 2 usage, \
                          invalid file or no place for reports, 3 inconclusive, 4 nothing \
                          selected, 5 nondeterminism, 70 internal error";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Play scenarios by many seeds, compare with what they expect, write reports
    Run(Run),
    /// Play one run again and tell what happened
    Replay(Replay),
    /// Judge a stored history again
    Check(Check),
    /// Play random scenarios, judge each by the assumptions that it keeps, shrink what is found
    Explore(Explore),
    /// Say which scenarios there are
    List(List),
    /// Serve masters on loopback TCP, for any client
    Serve(Serve),
    /// Be one master, in the place of `redis-server` and with its options
    Master(Master),
}

#[derive(Args, Clone, Debug)]
pub(super) struct Run {
    /// Scenarios (NAME), cases (NAME::CASE), files or folders, tags (tag:TAG); all if not given
    #[arg(value_name = "NAME|PATH|tag:TAG")]
    pub(super) which: Vec<String>,
    /// What plays: `event` or `turmoil`
    #[arg(long, default_value_t)]
    pub(super) engine: Engine,
    /// The seeds, the end excluded, instead of the scenario's own
    #[arg(long, value_name = "A..B")]
    pub(super) seeds: Option<SeedRange>,
    /// How many threads; one a core if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) jobs: Option<u16>,
    #[command(flatten)]
    pub(super) settings: Settings,
    #[command(flatten)]
    pub(super) out: Out,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            which: Vec::new(),
            engine: Engine::default(),
            seeds: None,
            jobs: None,
            settings: Settings::default(),
            out: Out { out: PathBuf::from(OUT) },
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Replay {
    /// The scenario (NAME), case (NAME::CASE) or file
    #[arg(value_name = "NAME[::CASE]")]
    pub(super) which: String,
    /// The seed
    #[arg(long, value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    pub(super) seed: u64,
    /// What plays: `event` or `turmoil`
    #[arg(long, default_value_t)]
    pub(super) engine: Engine,
    #[command(flatten)]
    pub(super) settings: Settings,
    #[command(flatten)]
    pub(super) out: Out,
}

#[derive(Args, Debug)]
pub(super) struct Check {
    /// A history that a run has stored
    #[arg(value_name = "HISTORY.jsonl")]
    pub(super) file: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct Explore {
    /// Lock client that every client of a plan runs
    #[arg(long, value_name = "NAME", default_value = "redlock")]
    pub(super) subject: String,
    /// Number of plans; 100000 if neither a number nor a time is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) plans: Option<u64>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION")]
    pub(super) limit: Option<Span>,
    /// Seed from which plans are drawn
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Assumption that plans may break: clock, memory or operator. May be given several times
    #[arg(long = "break", value_name = "ASSUMPTION")]
    pub(super) broken: Vec<Assumption>,
    #[command(flatten)]
    pub(super) out: Out,
}

#[derive(Args, Debug)]
pub(super) struct List {
    /// How
    #[arg(long, default_value = "text")]
    pub(super) format: Format,
}

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// The scenario (NAME), case (NAME::CASE) or file whose faults happen; none if not given
    #[arg(value_name = "NAME[::CASE]|PATH")]
    pub(super) which: Option<String>,
    /// How many masters; 5 if not given. A scenario has its own
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(super) nodes: Option<u8>,
    /// The port of the first master, those of the others follow; 0: any that are free
    #[arg(long, value_name = "PORT", default_value_t = 17_000)]
    pub(super) base_port: u16,
    /// The port of the observer; a hundred above the first master's if not given
    #[arg(long, value_name = "PORT")]
    pub(super) observer_port: Option<u16>,
    /// Which server the masters are; what the scenario says if not given
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// What is locked: the name of the key, perhaps behind a prefix; the scenario's if not given
    #[arg(long, value_name = "NAME")]
    pub(super) resource: Option<String>,
    /// End so long after time 0, and not only when the observer says END
    #[arg(long = "for", value_name = "DURATION")]
    pub(super) limit: Option<Span>,
    /// Let time 0 be when the observer says START, not the first command about the resource
    #[arg(long)]
    pub(super) wait_for_start: bool,
    /// The seed by which the lengths of ways are drawn
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) settings: Settings,
    #[command(flatten)]
    pub(super) out: Out,
}

#[derive(Args, Debug)]
pub(super) struct Master {
    /// Which server it is: redis-7.0, redis-7.2, redis-8.4 or valkey-9
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// Options as `redis-server` takes them: `--port 6379 --bind 127.0.0.1 --maxmemory 1gb`
    #[arg(value_name = "REDIS-OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) options: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Settings {
    /// Give a value of the scenario another one: `lock.ttl=5s`, `fault.jump.clock-jump.by=90ms`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) overrides: Vec<Override>,
}

/// Where reports go unless something else is said.
const OUT: &str = "reports";

#[derive(Args, Clone, Debug)]
pub(super) struct Out {
    /// Where the reports and the histories are
    #[arg(long, value_name = "DIR", default_value = OUT)]
    pub(super) out: PathBuf,
}
