//! The history of locks on Redis, version by version, as a page of Markdown: each defect is played
//! against every version, down to the defects that remain at the end.
//!
//! The verdicts come from runs; the text is in `versions/`, one file for each version.

use core::fmt::Write as _;

use lock_judge::oracle::Judgement;
use lock_judge::scenario::{Case, File, Override, Problems, Property};

use redlock_sim::engine::event::Engine;

use super::replay_command;

/// Number of seeds. Enough to show a verdict that every seed has; the scenarios' own tests play all
/// of them.
const SEEDS: u64 = 10;

/// A version of the lock.
struct Version {
    name: &'static str,
    subject: &'static str,
    /// True if the version locks a single master.
    single: bool,
    /// Short description, for the headings of the page.
    what: &'static str,
    /// Scenario whose defect this version has and the next version, if there is one, has not.
    defect: &'static str,
    text: &'static str,
}

const VERSIONS: [Version; 5] = [
    Version {
        name: "V2.0",
        subject: "set-plain-del",
        single: true,
        what: "`SET NX PX`, `DEL`",
        defect: "release-without-owner-check",
        text: include_str!("versions/v2.0.md"),
    },
    Version {
        name: "V3.0",
        subject: "timestamp-token",
        single: true,
        what: "the time as token, compared before the `DEL`",
        defect: "timestamp-token",
        text: include_str!("versions/v3.0.md"),
    },
    Version {
        name: "V3.1",
        subject: "unique-id",
        single: true,
        what: "a unique token",
        defect: "asynchronous-replica",
        text: include_str!("versions/v3.1.md"),
    },
    Version {
        name: "the literal algorithm",
        subject: "redlock-literal",
        single: false,
        what: "a majority of five masters",
        defect: "restart-without-persistence",
        text: include_str!("versions/redlock.md"),
    },
    Version {
        name: "this client",
        subject: "redlock",
        single: false,
        what: "with quarantine and a check before the section",
        defect: "node-clock-jump",
        text: include_str!("versions/this-client.md"),
    },
];

/// A defect that some versions have.
struct Defect {
    what: &'static str,
    counterexample: &'static str,
    scenario: &'static str,
    property: Property,
    /// Additional overrides for versions that lock one master; below, those for versions that lock
    /// five.
    single: &'static [&'static str],
    many: &'static [&'static str],
}

const FIVE: &str = r#"cluster.nodes=["A", "B", "C", "D", "E"]"#;

const DEFECTS: [Defect; 8] = [
    Defect {
        what: "a late release deletes another's key",
        counterexample: "S3",
        scenario: "release-without-owner-check",
        property: Property::MutualExclusion,
        single: &[],
        many: &[FIVE],
    },
    Defect {
        what: "two clients draw the same token",
        counterexample: "S4",
        scenario: "timestamp-token",
        property: Property::MutualExclusion,
        single: &[],
        many: &[FIVE],
    },
    Defect {
        what: "a replica without the key replaces a master; of five, all have voted",
        counterexample: "S6",
        scenario: "asynchronous-replica",
        property: Property::MutualExclusion,
        single: &[],
        many: &[r#"cluster.nodes=["M", "B", "C", "D", "E"]"#],
    },
    Defect {
        what: "a pause while the replies are on their way",
        counterexample: "K5",
        scenario: "pause-in-flight",
        property: Property::ExclusiveSection,
        single: &[],
        many: &[],
    },
    Defect {
        what: "a master restarts without its keys",
        counterexample: "K3",
        scenario: "restart-without-persistence",
        property: Property::MutualExclusion,
        single: &["fault.crash.kill.host=A"],
        many: &["lock.restart-guard=quarantine"],
    },
    Defect {
        what: "a master's clock jumps",
        counterexample: "K2",
        scenario: "node-clock-jump",
        property: Property::MutualExclusion,
        single: &["fault.jump.clock-jump.host=A"],
        many: &[],
    },
    Defect {
        what: "the holder stops after its last check",
        counterexample: "K1",
        scenario: "pause-after-the-check",
        property: Property::ExclusiveSection,
        single: &[],
        many: &[],
    },
    Defect {
        what: "the same, at a resource that checks fencing tokens",
        counterexample: "F1",
        scenario: "pause-after-the-check",
        property: Property::FencedOrder,
        single: &["store.checks=token-on-open-and-write"],
        many: &["store.checks=token-on-open-and-write"],
    },
];

/// Renders the page from runs of the scenarios among `files`.
///
/// # Errors
///
/// If a scenario cannot be overridden as a version needs.
///
/// # Panics
///
/// If a scenario is missing or needs another engine. Also if a version does not have the defect it
/// is known for, or if the next version still has it: then the text of the page would be wrong.
pub fn versions_page(files: &[File]) -> Result<String, Problems> {
    let mut cells = Vec::new();
    for defect in &DEFECTS {
        let row: Result<Vec<Found>, Problems> =
            VERSIONS.iter().map(|version| play(files, defect, version)).collect();
        cells.push(row?);
    }
    let mut commands = Vec::new();
    for (place, version) in VERSIONS.iter().enumerate() {
        let row = DEFECTS.iter().position(|it| it.scenario == version.defect);
        let row = row.expect("a defect's row");
        let (own, next) = (&cells[row][place], cells[row].get(place + 1));
        let is_its_own = own.is_violated() && !next.is_some_and(Found::is_violated);
        assert!(is_its_own, "{} and {}", version.name, version.defect);
        let case = case(files, &DEFECTS[row], version)?;
        commands.push(replay_command(&case, &case.full_name(), "event", 0, ""));
    }
    Ok(page(&cells, &commands))
}

/// Verdict of the runs of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Holds,
    /// No run put the property to the test.
    Vacuous,
    /// Violated in every seed, with the blame.
    Violated(String),
    /// Violated in some seeds, with the blame.
    Sometimes(String),
}

impl Found {
    fn is_violated(&self) -> bool {
        matches!(self, Self::Violated(_))
    }
}

fn play(files: &[File], defect: &Defect, version: &Version) -> Result<Found, Problems> {
    let case = case(files, defect, version)?;
    let mut engine = Engine::new(&case).expect("a scenario of this page runs on `event`");
    let judge = |seed| engine.run(seed, None).verdicts.of(defect.property);
    let judgements: Vec<Judgement> = (0..SEEDS).map(judge).collect();
    let blames = judgements.iter().filter_map(|judgement| match judgement {
        Judgement::Violated(violation) => Some(violation.blamed.names(&case.scenario).join(" + ")),
        _ => None,
    });
    let mut blames: Vec<String> = blames.collect();
    let violated = blames.len() as u64;
    blames.dedup();
    Ok(match violated {
        0 if judgements.contains(&Judgement::Holds) => Found::Holds,
        0 => Found::Vacuous,
        SEEDS => Found::Violated(blames.join("; ")),
        _ => Found::Sometimes(blames.join("; ")),
    })
}

/// Returns the base case of a scenario, with a version's subject for every client.
fn case(files: &[File], defect: &Defect, version: &Version) -> Result<Case, Problems> {
    let file = files.iter().find(|file| file.scenario().name == defect.scenario);
    let file = file.unwrap_or_else(|| panic!("there is no scenario `{}`", defect.scenario));
    let clients = file.scenario().clients.iter();
    let subjects = clients.map(|it| format!("client.{}.subject={}", it.id, version.subject));
    let own = if version.single { defect.single } else { defect.many };
    let settings = subjects.chain(own.iter().map(|&it| String::from(it)));
    let overrides: Vec<Override> =
        settings.map(|it| it.parse().expect("the settings of this page are well formed")).collect();
    Ok(file.cases(&overrides)?.remove(0))
}

fn page(cells: &[Vec<Found>], commands: &[String]) -> String {
    let mut page = String::from(include_str!("versions/head.md"));
    let names: Vec<&str> = VERSIONS.iter().map(|version| version.name).collect();
    let _ = writeln!(page, "\n| defect | scenario | {} |", names.join(" | "));
    let _ = writeln!(page, "| --- | --- |{}", " --- |".repeat(VERSIONS.len()));
    for (defect, row) in DEFECTS.iter().zip(cells) {
        let Defect { what, counterexample, scenario, property, .. } = defect;
        let found: Vec<String> = row.iter().map(cell).collect();
        let property = property.name();
        let found = found.join(" | ");
        let _ =
            writeln!(page, "| {what} ({counterexample}): {property} | `{scenario}` | {found} |");
    }
    for (version, command) in VERSIONS.iter().zip(commands) {
        let Version { name, what, text, subject, .. } = version;
        let (first, rest) = name.split_at(1);
        let title = first.to_uppercase() + rest;
        let command = command.replace(" --set", " \\\n    --set");
        let _ = write!(page, "\n## {title}: {what}\n\n{text}\n");
        let _ = writeln!(page, "Played as `{subject}`. A run in which it fails:");
        let _ = write!(page, "\n```console\n$ {command}\n```\n");
    }
    page + "\n" + include_str!("versions/tail.md")
}

fn cell(found: &Found) -> String {
    match found {
        Found::Holds => String::from("✓"),
        Found::Vacuous => String::from("–"),
        Found::Violated(blame) => format!("✗ {blame}"),
        Found::Sometimes(blame) => format!("(✗) {blame}"),
    }
}
