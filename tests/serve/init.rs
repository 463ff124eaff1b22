//! `init`: what it writes is run by `drive`, is green, and is red with the bug of its README.

use crate::drive::{Place, said};

/// Returns the bug that the README plants: the only block of code in the language.
fn bug(readme: &str, language: &str) -> String {
    let (_, behind) = readme.split_once(&format!("```{language}\n")).unwrap();
    behind.split_once("\n```").unwrap().0.to_owned()
}

fn a_worker_is_green_and_its_bug_is_red(client: &str, worker: &str, language: &str) {
    let place = Place::new(&format!("init-{client}"));
    let run = |arguments: &[&str]| said(&place.command(arguments).output().unwrap());
    let (code, text) = run(&["init", "--client", client]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = run(&["init", "--client", client]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("exists, so nothing was written"), "{text}");

    let readme = std::fs::read_to_string(place.0.join("lock-tests/README.md")).unwrap();
    let command = readme.lines().find_map(|it| it.strip_prefix("$ redlock-sim drive ")).unwrap();
    let (scenarios, command) = command.split_once(" --worker ").unwrap();
    let command = command.trim_matches('\'');
    let drive = ["drive", scenarios, "--worker", command, "--jobs", "3"];
    let (code, text) = run(&drive);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("3 runs met, 0 failed, 0 inconclusive"), "{text}");

    let file = place.0.join("lock-tests").join(worker);
    let right = std::fs::read_to_string(&file).unwrap();
    let bug = bug(&readme, language);
    let (name, _) = bug.split_once('"').unwrap();
    let wrong: Vec<&str> =
        right.lines().map(|line| if line.starts_with(name) { &bug } else { line }).collect();
    assert_ne!(wrong, right.lines().collect::<Vec<_>>());
    std::fs::write(&file, wrong.join("\n")).unwrap();
    let (code, text) =
        run(&["drive", "./lock-tests/scenarios/contention.toml", "--worker", command]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("VIOLATION owner-only") && text.contains("blame   none"), "{text}");
}

#[test]
fn the_python_worker_is_green_and_its_bug_is_red() {
    a_worker_is_green_and_its_bug_is_red("python", "worker.py", "python");
}

#[test]
fn the_node_worker_is_green_and_its_bug_is_red() {
    a_worker_is_green_and_its_bug_is_red("node", "worker.cjs", "js");
}

#[test]
fn the_workflow_runs_the_command_of_the_readme() {
    let place = Place::new("init-workflow");
    let (code, text) = said(
        &place
            .command(&["init", "--client", "python", "--dir", "new/repository"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, Some(0), "{text}");
    let read =
        |file: &str| std::fs::read_to_string(place.0.join("new/repository").join(file)).unwrap();
    let readme = read("lock-tests/README.md");
    let command = readme.lines().find_map(|it| it.strip_prefix("$ ")).unwrap();
    let workflow = read(".github/workflows/lock-tests.yml");
    assert!(workflow.contains(&format!("- run: {command} --seeds 0..5\n")), "{workflow}");
    let is_open = |text: &str| text.split('@').skip(1).any(|it| it.starts_with(char::is_uppercase));
    assert!(!is_open(&readme) && !is_open(&workflow));
}
