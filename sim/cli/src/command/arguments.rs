//! The command line.

mod clients;
mod examples;
mod numbers;
mod shard;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use lock_judge::scenario::{Override, RESOURCES_MAX, SeedRange, Span};
use redlock_sim::explore::Assumption;
use redlock_sim::search::Engine;

pub(super) use self::clients::{Drive, Init, Language, Master, Serve};
use self::examples::{
    AFTER_HELP, CHECK_EXAMPLES, DRIVE_EXAMPLES, EXPLORE_EXAMPLES, GATE_EXAMPLES, INIT_EXAMPLES,
    LIST_EXAMPLES, MASTER_EXAMPLES, MERGE_EXAMPLES, REPLAY_EXAMPLES, RUN_EXAMPLES, SERVE_EXAMPLES,
    SHOW_EXAMPLES,
};
use self::numbers::{Plans, some_time, whole};
pub(super) use self::shard::{Merge, Shard};

/// Name of the hidden command that outlives `drive`.
pub(super) const WATCHDOG: &str = "watchdog";

/// Runs Redis locks under faults, judges mutual exclusion and liveness, and explains every
/// violation.
///
/// Without a command, runs every scenario: those in `./scenarios`, or else the built-in ones.
#[derive(Debug, Parser)]
#[command(name = "redlock-sim", version, after_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Use of colours; `auto` checks the terminal and the variable NO_COLOR
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run scenarios with many seeds, compare with their expectations, write reports
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Repeat one run and explain it
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Replay),
    /// Judge a stored history again
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Run random scenarios, judge each by the assumptions that it keeps, shrink findings
    #[command(after_help = EXPLORE_EXAMPLES)]
    Explore(Explore),
    /// Compare the results of a run with known departures, for CI
    #[command(after_help = GATE_EXAMPLES)]
    Gate(Gate),
    /// Add up shards, and write the reports that one process would have written
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(Merge),
    /// List scenarios and their cases
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Print scenarios as TOML: the text of their files
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Show),
    /// Serve simulated masters on loopback TCP, for any client
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Serve),
    /// Run scenarios against your own lock client: serve masters, start workers, judge
    #[command(after_help = DRIVE_EXAMPLES)]
    Drive(Drive),
    /// Write a worker, scenarios and a CI workflow for `drive` into your own repository
    #[command(after_help = INIT_EXAMPLES)]
    Init(Init),
    /// Wait for the end of `drive`, then kill its workers
    #[command(name = WATCHDOG, hide = true)]
    Watchdog {
        /// Mark in the environment of the workers
        mark: String,
    },
    /// Print the JSON Schema of the scenario format, for editors
    Schema,
    /// Print the completions of a shell: `redlock-sim completions bash > …/completions/redlock-sim`
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Run one simulated server that accepts `redis-server`'s options
    #[command(after_help = MASTER_EXAMPLES)]
    Master(Master),
}

impl Command {
    /// Returns the format of the command's messages.
    pub(super) fn message_format(&self) -> MessageFormat {
        let messages = match self {
            Self::Run(it) => it.messages,
            Self::Replay(it) => it.messages,
            Self::Check(it) => it.messages,
            Self::Explore(it) => it.messages,
            Self::Merge(it) => it.messages,
            Self::Serve(it) => it.messages,
            Self::Drive(it) => it.messages,
            Self::List(it) => it.messages,
            Self::Show(it) => it.messages,
            Self::Completions { .. }
            | Self::Schema
            | Self::Gate(_)
            | Self::Init(_)
            | Self::Watchdog { .. }
            | Self::Master(_) => Messages::default(),
        };
        messages.message_format
    }
}

#[derive(Args, Clone, Debug)]
pub(super) struct Run {
    /// Scenarios (NAME), cases (NAME::CASE), files, folders, tags (tag:TAG); all if not given
    #[arg(value_name = "NAME|PATH|tag:TAG")]
    pub(super) which: Vec<String>,
    /// Engine of the runs
    #[arg(long, default_value_t, value_name = "ENGINE", value_parser = engines())]
    pub(super) engine: Engine,
    /// Seeds, the end excluded, instead of the scenario's own
    #[arg(long, value_name = "A..B")]
    pub(super) seeds: Option<SeedRange>,
    /// Number of threads; one per core if not given
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 1_024), allow_negative_numbers = true)]
    pub(super) jobs: Option<u16>,
    #[command(flatten)]
    pub(super) settings: Settings,
    #[command(flatten)]
    pub(super) out: Out,
    /// Write `results.json` alone: no pages, no histories
    #[arg(long)]
    pub(super) results_only: bool,
    #[command(flatten)]
    pub(super) shard: Shard,
    #[command(flatten)]
    pub(super) amount: Amount,
    #[command(flatten)]
    pub(super) messages: Messages,
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
            results_only: false,
            shard: Shard::default(),
            amount: Amount::default(),
            messages: Messages::default(),
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Replay {
    /// Scenario (NAME), case (NAME::CASE) or file
    #[arg(value_name = "NAME[::CASE]|PATH")]
    pub(super) which: String,
    /// Seed of the run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, u64::MAX - 1), allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Engine of the run
    #[arg(long, default_value_t, value_name = "ENGINE", value_parser = engines())]
    pub(super) engine: Engine,
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Directory of reports; the run is compared with their histories
    #[arg(long, value_name = "DIR", default_value = OUT)]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) amount: Amount,
    #[command(flatten)]
    pub(super) messages: Messages,
}

#[derive(Args, Debug)]
pub(super) struct Check {
    /// History that a run has stored, compressed or not
    #[arg(value_name = "HISTORY.jsonl.gz")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) amount: Amount,
    #[command(flatten)]
    pub(super) messages: Messages,
}

#[derive(Args, Debug)]
pub(super) struct Explore {
    /// Subject of every client of a plan; `scenarios/README.md` lists the subjects
    #[arg(long, value_name = "NAME", default_value = "redlock")]
    pub(super) subject: String,
    /// Engine of the runs; `turmoil` runs `redlock` alone
    #[arg(long, default_value_t, value_name = "ENGINE", value_parser = engines())]
    pub(super) engine: Engine,
    /// Number of plans, or the plans from A to before B; 100000 if neither plans nor a time is given
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true)]
    pub(super) plans: Option<Plans>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = some_time)]
    pub(super) limit: Option<Span>,
    /// Seed from which plans are drawn
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Assumption that plans may break: clock, membership, memory, operator or randomness. May be
    /// given several times
    #[arg(long = "break", value_name = "ASSUMPTION")]
    pub(super) broken: Vec<Assumption>,
    /// Most locks that the clients of a plan use, on the same connections; more than one only for
    /// `redlock` on the engine `event`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1, RESOURCES_MAX as u64), allow_negative_numbers = true)]
    pub(super) resources: usize,
    /// Write what the plans cost to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["limit", "shard", "shard_from_env"])]
    pub(super) figures: Option<PathBuf>,
    /// Play the plans of a file that another build wrote with `--figures`; fail if they cost more now
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "subject", "engine", "plans", "limit", "seed", "broken", "resources", "shard",
            "shard_from_env",
        ]
    )]
    pub(super) baseline: Option<PathBuf>,
    /// Directory of the results and findings; findings of earlier explorations stay there
    #[arg(long, value_name = "DIR", default_value = OUT)]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) shard: Shard,
    #[command(flatten)]
    pub(super) messages: Messages,
}

#[derive(Args, Debug)]
pub(super) struct Gate {
    /// Results of `run`, `serve` or `drive`
    #[arg(value_name = "RESULTS", default_value = "reports/results.json")]
    pub(super) results: PathBuf,
    /// File of the known departures; without one, none is known
    #[arg(long, value_name = "FILE", required_if_eq("bless", "true"))]
    pub(super) baseline: Option<PathBuf>,
    /// Write the baseline that the results meet; refused where the variable CI is set
    #[arg(long)]
    pub(super) bless: bool,
    /// Reason why new departures are accepted
    #[arg(long, value_name = "TEXT", requires = "bless")]
    pub(super) reason: Option<String>,
    /// Format of the changes; `github` also appends a table to the file GITHUB_STEP_SUMMARY
    #[arg(long, default_value = "text")]
    pub(super) format: GateFormat,
    /// File for the results of all cases as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
}

/// Format in which `gate` prints changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GateFormat {
    /// A line for each change
    Text,
    /// One JSON object
    Json,
    /// Markdown tables
    Markdown,
    /// Annotations of a GitHub workflow
    Github,
}

#[derive(Args, Debug)]
pub(super) struct List {
    /// Format of the list; `json` prints one array
    #[arg(long, default_value = "text", conflicts_with = "message_format")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) messages: Messages,
}

#[derive(Args, Debug)]
pub(super) struct Show {
    /// Scenarios (NAME), files, folders, tags (tag:TAG)
    #[arg(value_name = "NAME|PATH|tag:TAG", required = true)]
    pub(super) which: Vec<String>,
    #[command(flatten)]
    pub(super) messages: Messages,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Use of colours.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Amount of output.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    /// Print only what is not as expected
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Print more: every verdict and story of a case, every event of a replay
    #[arg(short, long)]
    pub(super) verbose: bool,
}

/// Format of what is printed on standard output.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    /// Format of the output: text for people, or one JSON object per line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) message_format: MessageFormat,
}

/// Format of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum MessageFormat {
    /// Text for people
    #[default]
    Human,
    /// One JSON object per line
    Json,
}

/// Parser of an engine's name.
fn engines() -> impl TypedValueParser<Value = Engine> {
    let event = PossibleValue::new("event").help("Protocol machines and a model of the masters");
    let turmoil = PossibleValue::new("turmoil").help("The real client over simulated TCP");
    PossibleValuesParser::new([event, turmoil]).try_map(|name| name.parse::<Engine>())
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Settings {
    /// Override a field of the scenario: `lock.ttl=5s`, `fault.jump.clock-jump.by=90ms`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) overrides: Vec<Override>,
}

/// Default directory of the reports.
const OUT: &str = "reports";

#[derive(Args, Clone, Debug)]
pub(super) struct Out {
    /// Directory of the reports; replaces those of an earlier run there
    #[arg(long, value_name = "DIR", default_value = OUT)]
    pub(super) out: PathBuf,
}
