//! The command `redlock`: runs a command under a distributed lock, and shows who holds a lock.

#![forbid(unsafe_code)]

mod arguments;
mod exit;
mod guard;
mod inspect;
mod key;
mod run;
mod runtime;
mod say;
mod settings;
mod variables;
mod who;

use std::process::ExitCode;

use arguments::Command;
use exit::{Exit, Stop};

fn main() -> ExitCode {
    let arguments = match variables::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed standard error is no reason for another exit code.
            let _ = error.print();
            return if error.use_stderr() { Exit::Failed.into() } else { Exit::Yes.into() };
        }
    };
    if let Err(error) = say::start() {
        eprintln!("redlock: no thread can be started: {error}");
        return Exit::Failed.into();
    }
    let done = match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Inspect(arguments) => inspect::inspect(arguments),
        Command::Who(arguments) => who::who(arguments),
        Command::Break(arguments) => who::break_lock(arguments),
    };
    let exit = done.unwrap_or_else(|Stop { exit, message }| {
        say::say(format_args!("{message}"));
        exit
    });
    say::finish();
    exit.into()
}
