//! `init`: its worker in each language is judged as right by `drive`, and as wrong with the bug of its
//! README.
//!
//! The variable `REDLOCK_LANGUAGES` has the languages whose workers are run, separated by commas; each
//! of them must be installed. Without it the workers of all installed languages are run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A language, its program, and its name in Markdown.
type Language = (&'static str, &'static str, &'static str);

const LANGUAGES: [Language; 6] = [
    ("python", "python3", "python"),
    ("node", "node", "js"),
    ("php", "php", "php"),
    ("ruby", "ruby", "ruby"),
    ("go", "go", "go"),
    ("rust", "cargo", "rust"),
];

/// Number of tests that run at the same time. Most of them wait most of the time.
const TOGETHER: usize = 3;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TOGETHER);
    let wanted = env::var("REDLOCK_LANGUAGES").ok();
    let mut trials = vec![
        Trial::test("every_language_is_tested", passes(every_language_is_tested)),
        Trial::test("the_next_command_is_for_a_shell", passes(the_next_command_is_for_a_shell)),
    ];
    if is_on_path("python3") {
        let test = passes(a_lock_that_outlives_its_holder_is_red);
        trials.push(Trial::test("python::a_lock_that_outlives_its_holder_is_red", test));
        let test = passes(a_worker_that_trusts_its_lease_after_a_pause_is_red);
        trials.push(Trial::test("python::trust_after_a_pause_is_red", test));
    }
    for language @ (name, program, _) in LANGUAGES {
        let is_named = wanted.as_ref().is_none_or(|it| it.split(',').any(|it| it == name));
        let is_required = wanted.is_some();
        let run = move || match (is_named, is_on_path(program)) {
            (false, _) => Ok(Completion::ignored_with(format!("REDLOCK_LANGUAGES has no {name}"))),
            (true, false) if is_required => Err(Failed::from(missing(program))),
            (true, false) => Ok(Completion::ignored_with(missing(program))),
            (true, true) => {
                is_green_and_its_bug_is_red(language);
                Ok(Completion::Completed)
            }
        };
        trials.push(Trial::ignorable_test(format!("{name}::is_green_and_its_bug_is_red"), run));
        let test = passes(move || the_workflow_runs_the_commands_of_the_readme(name));
        trials.push(Trial::test(format!("{name}::the_workflow_is_as_the_readme"), test));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn passes(test: impl FnOnce() + Send + 'static) -> impl FnOnce() -> Result<(), Failed> + Send {
    move || {
        test();
        Ok(())
    }
}

fn missing(program: &str) -> String {
    format!("no `{program}` on PATH")
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A directory of a test. Its name has a space.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("init").join(format!("a {name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    /// Runs a line of a shell, with `redlock-sim` on PATH; returns the exit code and the output.
    fn shell(&self, line: &str) -> (Option<i32>, String) {
        let binary = Path::new(env!("CARGO_BIN_EXE_redlock-sim"));
        let mut path = vec![binary.parent().unwrap().to_owned()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let output = Command::new("sh")
            .args(["-c", line])
            .env("PATH", env::join_paths(path).unwrap())
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let texts = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        (output.status.code(), texts.concat())
    }

    fn init(&self, options: &str) -> String {
        let (code, text) = self.shell(&format!("redlock-sim init --client {options}"));
        assert_eq!(code, Some(0), "{text}");
        text
    }
}

/// Returns the commands of the README that build the worker and drive it.
fn commands(readme: &str) -> Vec<&str> {
    readme.lines().filter_map(|it| it.strip_prefix("$ ")).collect()
}

/// Returns the worker with the bug that the README shows, its only block of code in the language.
fn with_bug(worker: &str, readme: &str, highlight: &str) -> String {
    let (_, behind) = readme.split_once(&format!("```{highlight}\n")).unwrap();
    let (bug, _) = behind.split_once("\n```").unwrap();
    let (declaration, _) = bug.split_once('"').unwrap();
    let (before, rest) = worker.split_once(declaration.trim_end()).unwrap();
    // The script ends with its line, or begins in the next one.
    let (first, behind) = rest.split_once('\n').unwrap();
    let after = if first.is_empty() { behind.split_once('\n').unwrap().1 } else { behind };
    format!("{before}{bug}\n{after}")
}

fn is_green_and_its_bug_is_red((name, _, highlight): Language) {
    let place = Place::new(name);
    let wrote = place.init(name);
    let (code, text) = place.shell(&format!("redlock-sim init --client {name}"));
    assert!(code == Some(2) && text.contains("exists, so nothing was written"), "{text}");

    let readme = place.read("lock-tests/README.md");
    let commands = commands(&readme);
    let (drive, builds) = commands.split_last().unwrap();
    let build = || {
        for command in builds {
            let (code, text) = place.shell(command);
            assert_eq!(code, Some(0), "{text}");
        }
    };
    build();
    let (code, text) = place.shell(&format!("{drive} --jobs 3"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("6 runs met, 0 failed, 0 inconclusive"), "{text}");

    let file = wrote.lines().next().and_then(|it| it.strip_prefix("wrote ./")).unwrap();
    let wrong = with_bug(&place.read(file), &readme, highlight);
    fs::write(place.0.join(file), wrong).unwrap();
    build();
    let contention = drive.replace("scenarios/", "scenarios/contention.toml");
    let (code, text) = place.shell(&contention);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("VIOLATION owner-only") && text.contains("blame   none"), "{text}");
}

/// Locks without a TTL, and with a much longer one than that of the scenario.
fn a_lock_that_outlives_its_holder_is_red() {
    let place = Place::new("python TTL");
    place.init("python");
    let worker = place.read("lock-tests/worker.py").replace("PATIENCE_S = 20", "PATIENCE_S = 5");
    for (set, told) in [
        ("\"NX\")", "and has no TTL: set it with the scenario’s TTL, 1.5 s"),
        ("\"NX\", \"PX\", 600000)", "and would live for 59"),
    ] {
        let wrong = worker.replace("\"NX\", \"PX\", TTL_MS)", set);
        fs::write(place.0.join("lock-tests/worker.py"), wrong).unwrap();
        let (code, text) = place.shell(
            "redlock-sim drive ./lock-tests/scenarios/crash.toml \
             --worker 'python3 lock-tests/worker.py'",
        );
        assert_eq!(code, Some(1), "{text}");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("FAILED  crash") && first.contains(", expected ..4s"), "{text}");
        assert!(text.contains("’s key for “res” was left on "), "{text}");
        assert!(text.contains(told), "{told}: {text}");
        assert!(!text.contains("no worker sent ENTER"), "{text}");
    }
}

fn a_worker_that_trusts_its_lease_after_a_pause_is_red() {
    let place = Place::new("python pause");
    place.init("python");
    let worker = place.read("lock-tests/worker.py");
    for (scenario, right, wrong, violated) in [
        ("pause", "    redlock.release(token)", "    redlock.ask(\"DEL\", RESOURCE)", "owner-only"),
        ("pause-at-grant", " and left_s > 0:", ":", "sound-grant"),
    ] {
        assert!(worker.contains(right), "{right}");
        fs::write(place.0.join("lock-tests/worker.py"), worker.replace(right, wrong)).unwrap();
        let (code, text) = place.shell(&format!(
            "redlock-sim drive ./lock-tests/scenarios/{scenario}.toml \
             --worker 'python3 lock-tests/worker.py'"
        ));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(&format!("{violated}: expected to hold, violated by 1")), "{text}");
    }
}

fn the_workflow_runs_the_commands_of_the_readme(name: &str) {
    let place = Place::new(&format!("{name} workflow"));
    place.init(&format!("{name} --dir new/repository"));
    let readme = place.read("new/repository/lock-tests/README.md");
    let workflow = place.read("new/repository/.github/workflows/lock-tests.yml");
    let commands = commands(&readme);
    let (drive, builds) = commands.split_last().unwrap();
    for step in builds.iter().map(|it| (*it).to_owned()).chain([format!("{drive} --seeds 0..5")]) {
        assert!(workflow.contains(&format!("      - run: {step}\n")), "{step}: {workflow}");
    }
    let is_open = |text: &str| text.split('@').skip(1).any(|it| it.starts_with(char::is_uppercase));
    assert!(!is_open(&readme) && !is_open(&workflow));
}

fn every_language_is_tested() {
    let (_, help) = Place::new("help").shell("redlock-sim init --help");
    let (_, values) = help.split_once("Possible values:\n").unwrap();
    let (values, _) = values.split_once("\n\n").unwrap();
    let offered: Vec<&str> = values
        .lines()
        .map(|it| it.trim().trim_start_matches("- ").split(':').next().unwrap())
        .collect();
    assert_eq!(offered, LANGUAGES.map(|(name, ..)| name));
}

fn the_next_command_is_for_a_shell() {
    let place = Place::new("next");
    let text = place.init("go --dir 'my repository'");
    let (_, next) = text.split_once("\nnext: ").unwrap();
    let (cd, _) = next.split_once(" && ").unwrap();
    let (code, text) = place.shell(&format!("{cd} && ls lock-tests/worker.go"));
    assert_eq!(code, Some(0), "{text}");
}
