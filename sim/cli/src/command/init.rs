//! `init`: writes a worker, scenarios, a CI workflow and a README into the user's own repository.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::arguments::{Init, Language};
use super::exit::{Exit, Stop};
use super::say::say;

/// Folder of everything except the workflow.
const FOLDER: &str = "lock-tests";

const README: &str = include_str!("init/README.md");
const WORKFLOW: &str = include_str!("init/workflow.yml");
const SCENARIOS: [(&str, &str); 3] = [
    ("contention", include_str!("init/scenarios/contention.toml")),
    ("late-replies", include_str!("init/scenarios/late-replies.toml")),
    ("pause", include_str!("init/scenarios/pause.toml")),
];

/// The parts of the files that depend on the language.
struct Template {
    worker: &'static str,
    text: &'static str,
    program: &'static str,
    needs: &'static str,
    /// Language of a block of code in Markdown.
    highlight: &'static str,
    /// Line that plants the bug of the README.
    bug: &'static str,
}

impl Language {
    const fn template(self) -> Template {
        match self {
            Self::Python => Template {
                worker: "worker.py",
                text: include_str!("init/python/worker.py"),
                program: "python3",
                needs: "Python’s standard library alone",
                highlight: "python",
                bug: "RELEASE = \"return redis.call('DEL', KEYS[1])\"",
            },
            Self::Node => Template {
                worker: "worker.cjs",
                text: include_str!("init/node/worker.cjs"),
                program: "node",
                needs: "node alone",
                highlight: "js",
                bug: "const RELEASE = \"return redis.call('DEL', KEYS[1])\";",
            },
        }
    }
}

/// Writes the files, or none if one exists.
pub(super) fn init(arguments: &Init) -> Result<Exit, Stop> {
    let files = files(&arguments.client.template());
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| arguments.dir.join(path)).collect();
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(Stop::usage(format!(
            "error: {} exists, so nothing was written\n  = help: `--dir` names another directory",
            path.display()
        )));
    }
    for (place, (path, (_, text))) in paths.iter().zip(&files).enumerate() {
        write(path, text).map_err(|error| {
            paths[..place].iter().for_each(|path| drop(fs::remove_file(path)));
            Stop::usage(format!("error: {} cannot be written: {error}", path.display()))
        })?;
    }
    paths.iter().for_each(|path| say(format_args!("wrote {}", path.display())));
    let command = command(&arguments.client.template());
    say(match arguments.dir.as_path() {
        here if here == Path::new(".") => format!("\nnext: {command}"),
        there => format!("\nnext: cd {}; {command}", there.display()),
    });
    Ok(Exit::Met)
}

/// Returns the files, with their paths in the repository.
fn files(template: &Template) -> Vec<(String, String)> {
    let command = command(template);
    let values = [
        ("@COMMAND@", command.as_str()),
        ("@WORKER@", template.worker),
        ("@NEEDS@", template.needs),
        ("@LANGUAGE@", template.highlight),
        ("@BUG@", template.bug),
    ];
    let filled = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    let mut files = vec![
        (format!("{FOLDER}/{}", template.worker), template.text.to_owned()),
        (format!("{FOLDER}/README.md"), filled(README)),
        (String::from(".github/workflows/lock-tests.yml"), filled(WORKFLOW)),
    ];
    for (name, text) in SCENARIOS {
        files.push((format!("{FOLDER}/scenarios/{name}.toml"), text.to_owned()));
    }
    files
}

/// Returns the command that runs the scenarios, from the root of the repository.
fn command(template: &Template) -> String {
    let Template { program, worker, .. } = template;
    format!("redlock-sim drive ./{FOLDER}/scenarios/ --worker '{program} {FOLDER}/{worker}'")
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    File::create_new(path)?.write_all(text.as_bytes())
}
