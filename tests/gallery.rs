//! The committed results must equal the results of the runs: the gallery, the README's table and
//! its pictures, compared byte for byte.
//!
//! `BLESS=1 cargo test --test gallery` rewrites them, and lists the changes (never in CI).

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lock_judge::scenario;
use redlock_sim::library;
use redlock_sim::part::Part;
use redlock_sim::search::{Campaign, CaseResult, Engine, Played};
use redlock_sim_cli::command;
use redlock_sim_cli::report::{self, gallery, picture};

const GALLERY: &str = "../../reports/gallery";
const HISTORY: &str = "../../docs/history.md";
const PICTURE: &str = "../../docs/pause-sweep.svg";
const README: &str = "../../README.md";
const TABLE: [&str; 2] = ["<!-- table: generated -->\n", "<!-- table: end -->"];

/// Scenarios of the gallery's pages: those of the debate of 2016, and one of each other kind.
const PAGES: [&str; 12] = [
    "asynchronous-replica",
    "canonical",
    "client-wall-clock-set-back",
    "delayed-write",
    "ideal-lease-service",
    "node-clock-jump",
    "pause-after-the-check",
    "pause-in-flight",
    "pause-sweep",
    "recreated-key",
    "restart-without-persistence",
    "token-reused",
];

fn blesses() -> bool {
    let blesses = std::env::var_os("BLESS").is_some();
    assert!(!blesses || std::env::var_os("CI").is_none(), "nothing is blessed in CI");
    blesses
}

fn play_all() -> Vec<Played> {
    let never = AtomicBool::new(false);
    let files = library::load(Path::new("../../scenarios")).expect("the scenarios are valid");
    let cases = files.iter().flat_map(|file| file.cases(&[]).expect("the cases are valid"));
    let play = |case: scenario::Case| {
        let engine = Engine::Event;
        let seeds = engine.seeds(&case).0;
        let campaign = Campaign {
            case: &case,
            engine,
            seeds,
            part: Part::WHOLE,
            is_checked: false,
            stop: &never,
            progress: &|_| {},
        };
        command::keep(&campaign).expect("every case runs on `event`")
    };
    cases.map(play).collect()
}

#[test]
fn committed_pages_are_those_of_the_runs() {
    let played = play_all();
    let results: Vec<CaseResult> = played.iter().map(|one| one.result.clone()).collect();
    let rendered = gallery::render(&played, &PAGES).expect("the gallery can be drawn");
    let svg = picture::sweep_svg(&picture::cells(&results, &["pause-sweep"]));
    let readme = std::fs::read_to_string(README).expect("there is a README");
    let table = report::readme_table(&results);
    assert!(!table.contains("not played"), "a row of the README's table names no case\n{table}");
    let fresh = with_table(&readme, &table);
    if blesses() {
        let differences = gallery::bless(Path::new(GALLERY), &rendered).expect("it can be written");
        print!("{differences}");
        std::fs::write(PICTURE, &svg).unwrap();
        std::fs::write(README, &fresh).unwrap();
    }
    let differences = gallery::compare(Path::new(GALLERY), &rendered).expect("it can be read");
    assert!(differences.is_empty(), "the gallery differs\n{differences}");
    assert_eq!(std::fs::read_to_string(PICTURE).unwrap_or_default(), svg, "{PICTURE} differs");
    let committed = std::fs::read_to_string(README).expect("there is a README");
    assert_eq!(committed, fresh, "the table of the README differs");
}

#[test]
fn the_history_of_versions_is_what_the_runs_give() {
    let files = library::load(Path::new("../../scenarios")).expect("the scenarios are valid");
    let page = report::versions_page(&files).unwrap_or_else(|problems| panic!("{problems}"));
    if blesses() {
        std::fs::write(HISTORY, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(HISTORY).unwrap_or_default(), page, "{HISTORY} differs");
}

/// Returns the README with `table` between its marks.
fn with_table(readme: &str, table: &str) -> String {
    let [begin, end] = TABLE;
    let (before, rest) = readme.split_once(begin).expect("the README marks its table");
    let (_, after) = rest.split_once(end).expect("the README marks the end of its table");
    format!("{before}{begin}\n{table}\n{end}{after}")
}
