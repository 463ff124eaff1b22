//! Checks the documentation: the scenarios and rights it cites exist, and its copies of code agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of the scenario `name`, if there is one.
fn scenario(name: &str) -> Option<PathBuf> {
    let families = fs::read_dir(root().join("scenarios")).unwrap();
    let mut files = families.map(|it| it.unwrap().path().join(format!("{name}.toml")));
    files.find(|file| file.exists())
}

/// Returns true for the code of a counterexample, such as K5.
fn is_code(word: &str) -> bool {
    let digits = word.trim_start_matches(|it: char| it.is_ascii_uppercase());
    digits.len() + 1 == word.len() && digits.parse::<u8>().is_ok()
}

/// Returns the pairs of a counterexample's code and a scenario that `text` cites, as in: K1 `pause`.
fn citations(text: &str) -> Vec<(&str, &str)> {
    let cited = text.match_indices(" `").filter_map(|(at, _)| {
        let number = text[..at].rsplit([' ', '(', '|']).next()?;
        let name = text[at + 2..].split('`').next()?;
        is_code(number).then_some((number, name))
    });
    cited.collect()
}

#[test]
fn every_code_of_a_scenario_has_a_row_and_every_row_a_scenario() {
    let page = fs::read_to_string(root().join("docs/counterexamples.md")).unwrap();
    let rows = page.lines().filter_map(|it| it.strip_prefix("| ")?.split(" |").next());
    let rows: Vec<&str> = rows.filter(|it| is_code(it)).collect();
    let mut tags = BTreeSet::new();
    for family in fs::read_dir(root().join("scenarios")).unwrap() {
        let Ok(files) = fs::read_dir(family.unwrap().path()) else { continue };
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let line = text.lines().find(|line| line.starts_with("tags")).unwrap();
            tags.extend(line.split('"').filter(|it| is_code(it)).map(str::to_owned));
        }
    }
    let explained: BTreeSet<String> = rows.iter().map(|&it| it.to_owned()).collect();
    assert_eq!(rows.len(), explained.len(), "a code has two rows");
    // Shown by tests of the client: the page says why.
    tags.insert(String::from("N5"));
    assert_eq!(explained, tags);
}

#[test]
fn every_cited_scenario_has_the_cited_code() {
    for (document, least) in [("src/lib.rs", 30), ("docs/operations.md", 25)] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cited = citations(&text);
        assert!(cited.len() >= least, "{document}: {} citations", cited.len());
        for (number, name) in cited {
            let file = scenario(name).unwrap_or_else(|| panic!("{document}: no `{name}`"));
            let text = fs::read_to_string(file).unwrap();
            let tags = text.lines().find(|line| line.starts_with("tags")).unwrap();
            assert!(tags.contains(&format!("\"{number}\"")), "{document}: {number} {name}: {tags}");
        }
    }
}

#[test]
fn manual_has_the_rights_of_the_tests_on_servers() {
    let manual = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let tests = fs::read_to_string(root().join("tests/real/access.rs")).unwrap();
    let rights = tests.split("const RIGHTS: &str = \"").nth(1).unwrap().split('"').next().unwrap();
    let rights = rights.replace("\\\n", "");
    let rights = rights.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(rights.contains("+evalsha"), "{rights}");
    assert!(manual.contains(&rights), "the manual lacks `{rights}`");
}

#[test]
fn the_quick_start_of_the_readme_is_that_of_the_crate() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let quick_start = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(quick_start.lines().count(), 12);
    for line in quick_start.lines().filter(|line| !line.starts_with("use std::")) {
        assert!(library.contains(&format!("//! {line}\n")) || line.is_empty(), "{line}");
    }
}
