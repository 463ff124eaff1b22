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

use std::panic;
use std::process::ExitCode;

use arguments::{Arguments, Command};
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
    // A panic is reported already, and its usual exit code could be the command's own.
    let exit = panic::catch_unwind(|| execute(&arguments)).unwrap_or(Exit::Failed);
    say::finish();
    exit.into()
}

fn execute(arguments: &Arguments) -> Exit {
    let done = match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Inspect(arguments) => inspect::inspect(arguments),
        Command::Who(arguments) => who::who(arguments),
        Command::Break(arguments) => who::break_lock(arguments),
    };
    done.unwrap_or_else(|Stop { exit, message }| {
        say::say(format_args!("{message}"));
        exit
    })
}
