//! The committed gallery is what the scenarios give today, byte for byte. After a look at what has
//! changed, `GALLERY=bless cargo test -p redlock-sim --test gallery` makes it so.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use redlock_sim::command;
use redlock_sim::report::Played;
use redlock_sim::report::gallery;
use redlock_sim::scenario::{self, Case};
use redlock_sim::search::{Campaign, Engine};

/// The scenarios whose pages are committed.
const PAGES: [&str; 12] = [
    "client-wall-clock-set-back",
    "delayed-write",
    "get-then-del",
    "ideal-lease-service",
    "node-clock-jump",
    "pause-after-the-check",
    "pause-in-flight",
    "pause-sweep",
    "relative-validity",
    "restart-without-persistence",
    "suspend-defeats-step-3",
    "token-reused",
];

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn the_gallery_is_what_the_scenarios_give() {
    let files = scenario::load(Path::new("../scenarios")).expect("the scenarios are valid");
    let cases = files.iter().flat_map(|file| file.cases(&[]).expect("the cases are valid"));
    let played: Vec<Played> = cases.map(|case| play(&case)).collect();
    let rendered = gallery::render(&played, &PAGES).expect("a gallery");
    let committed = Path::new("../reports/gallery");

    if std::env::var_os("GALLERY").is_some_and(|what| what == "bless") {
        let changed = gallery::bless(committed, &rendered).expect("the gallery can be blessed");
        println!("{changed}");
    }
    let differences = gallery::compare(committed, &rendered).expect("the gallery can be read");
    assert!(
        differences.is_empty(),
        "the gallery is not what the scenarios give\n{differences}\
         look at it with GALLERY=bless cargo test -p redlock-sim --test gallery"
    );
}

fn play(case: &Case) -> Played {
    let engine = Engine::Event;
    let seeds = engine.seeds(case).0;
    let campaign = Campaign { case, engine, seeds, stop: &NEVER, progress: &|_| {} };
    command::keep(&campaign).expect("the engine `event` can play every case")
}
