//! `init`: writes a worker, scenarios, a CI workflow and a README into the user's own repository.

mod language;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use self::language::Template;
use super::arguments::{Init, Language};
use super::exit::{Exit, Stop};
use super::say::say;

/// Folder of everything except the workflow.
const FOLDER: &str = "lock-tests";

const README: &str = include_str!("init/README.md");
const WORKFLOW: &str = include_str!("init/workflow.yml");
const SCENARIOS: [(&str, &str); 6] = [
    ("contention", include_str!("init/scenarios/contention.toml")),
    ("crash", include_str!("init/scenarios/crash.toml")),
    ("late-replies", include_str!("init/scenarios/late-replies.toml")),
    ("partition", include_str!("init/scenarios/partition.toml")),
    ("pause", include_str!("init/scenarios/pause.toml")),
    ("pause-at-grant", include_str!("init/scenarios/pause-at-grant.toml")),
];

/// Writes the files, or none if one exists.
pub(super) fn init(arguments: &Init) -> Result<Exit, Stop> {
    let template = arguments.client.template();
    let files = files(template);
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
    say(format_args!("\nnext: {}", next(&arguments.dir, template)));
    Ok(Exit::Met)
}

/// Returns the files, with their paths in the repository.
fn files(template: &Template) -> Vec<(String, String)> {
    let Template { files, build, needs, steps, highlight, bug, .. } = template;
    let (worker, _) = files.first().expect("the first file is the worker");
    let commands = commands(template).map(|command| format!("$ {command}"));
    let values = [
        ("@STEPS@", steps.trim_end()),
        ("@BUILD@", build.unwrap_or_default()),
        ("@DRIVE@", &drive(template)),
        ("@COMMANDS@", &commands.collect::<Vec<_>>().join("\n")),
        ("@WORKER@", worker),
        ("@NEEDS@", needs),
        ("@LANGUAGE@", highlight),
        ("@BUG@", bug),
    ];
    let filled = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    let mut written: Vec<(String, String)> = files
        .iter()
        .map(|(path, text)| (format!("{FOLDER}/{path}"), String::from(*text)))
        .collect();
    written.push((format!("{FOLDER}/README.md"), filled(README)));
    written.push((String::from(".github/workflows/lock-tests.yml"), filled(WORKFLOW)));
    for (name, text) in SCENARIOS {
        written.push((format!("{FOLDER}/scenarios/{name}.toml"), text.to_owned()));
    }
    written
}

/// Returns the command that runs the scenarios, from the root of the repository.
fn drive(template: &Template) -> String {
    format!("redlock-sim drive ./{FOLDER}/scenarios/ --worker '{}'", template.run)
}

/// Returns the commands that build the worker and run the scenarios, from the root of the repository.
fn commands(template: &Template) -> impl Iterator<Item = String> {
    template.build.map(String::from).into_iter().chain([drive(template)])
}

/// Returns what to type after `init` to run the scenarios.
fn next(directory: &Path, template: &Template) -> String {
    let mut commands: Vec<String> = commands(template).collect();
    if directory != Path::new(".") {
        let directory = directory.to_string_lossy();
        // No path has a NUL.
        let quoted = shlex::try_quote(&directory).unwrap_or_default();
        commands.insert(0, format!("cd {quoted}"));
    }
    commands.join(" && ")
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    File::create_new(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use lock_judge::scenario;

    use super::*;

    #[test]
    fn scenarios_can_have_one_server() {
        // A partition needs masters on either side.
        for (name, text) in SCENARIOS.into_iter().filter(|(name, _)| *name != "partition") {
            let text = text.replace("[cluster]\n", "[cluster]\nnodes = [\"A\"]\n");
            assert!(text.contains("nodes = "), "{name}");
            let file = scenario::File::parse(&format!("{name}.toml"), &text);
            assert!(file.is_ok_and(|it| it.cases(&[]).is_ok()), "{name}");
        }
    }
}
