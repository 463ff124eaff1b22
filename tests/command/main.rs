//! Behaviour of the command as its user sees it: output, exit codes, files.

mod gate;
mod messages;
mod output;
mod refusals;
mod reports;
mod schema;
mod shards;

use std::fs;
use std::path::{Path, PathBuf};

use snapbox::cmd::{Command, OutputAssert};

const GOOD: &str = include_str!("../../sim/judge/src/scenario/testdata/clock-jump.toml");

const NODE_CLOCK_JUMP: &str = include_str!("../../scenarios/exchange/node-clock-jump.toml");

/// Creates a folder for one test, with these scenarios in it.
fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command").join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("scenarios")).unwrap();
    for (name, text) in files {
        fs::write(folder.join("scenarios").join(name), text).unwrap();
    }
    folder
}

fn redlock_sim(folder: &Path, arguments: &[&str]) -> OutputAssert {
    let command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
    command.current_dir(folder).args(arguments).assert()
}
