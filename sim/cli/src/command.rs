//! The command line: parses the arguments, runs the command, prints the results and returns the
//! exit code.

mod arguments;
mod drive;
mod exit;
mod explore;
mod gate;
mod in_order;
mod init;
mod lines;
mod list;
mod master;
mod merge;
mod paint;
mod progress;
mod replay;
mod run;
mod say;
mod select;
mod serve;
mod session;
mod show;
mod stop_signal;
mod suggest;
mod sums;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

pub use exit::Exit;
pub use lines::{told, told_with};
pub use run::keep;

use arguments::{Arguments, Command};
use exit::Stop;

/// Runs the command given by `arguments`; the first argument is the name of the program.
///
/// Errors go to standard error. Invalid arguments and requests for help end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = Arguments::try_parse_from(arguments)
        .unwrap_or_else(|error| suggest::with_nearest(error).exit());
    paint::use_colors(arguments.color);
    let format = arguments.command.as_ref().map(Command::message_format);
    say::use_format(format.unwrap_or_default());
    let done = match &arguments.command {
        None => run::run(&arguments::Run::default()),
        Some(Command::Run(arguments)) => run::run(arguments),
        Some(Command::Replay(arguments)) => replay::replay(arguments),
        Some(Command::Check(arguments)) => replay::check(arguments),
        Some(Command::Explore(arguments)) => explore::explore(arguments),
        Some(Command::Merge(arguments)) => merge::merge(arguments),
        Some(Command::Gate(arguments)) => gate::gate(arguments),
        Some(Command::Drive(arguments)) => drive::drive(arguments),
        Some(Command::Watchdog { mark }) => drive::watchdog(mark),
        Some(Command::Init(arguments)) => init::init(arguments),
        Some(Command::Completions { shell }) => completions(*shell),
        Some(Command::Schema) => schema(),
        Some(Command::List(arguments)) => list::list(arguments),
        Some(Command::Show(arguments)) => show::show(arguments),
        Some(Command::Master(arguments)) => master::master(arguments),
        Some(Command::Serve(arguments)) => serve::serve(arguments),
    };
    let exit = done.unwrap_or_else(|stop| {
        anstream::eprintln!("{}", paint::paint(&stop.message));
        stop.exit
    });
    let Some(error) = say::unwritten() else { return exit };
    eprintln!("error: standard output cannot be written: {error}");
    exit.max(Exit::Usage)
}

fn schema() -> Result<Exit, Stop> {
    say::say(format_args!("{:#}", lock_judge::scenario::schema()));
    Ok(Exit::Met)
}

fn completions(shell: Shell) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&Arguments::command()), "redlock-sim", &mut script);
    say::say(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Met)
}

/// Returns `command` without its hidden commands, which the generator of completions would offer.
fn visible(command: &clap::Command) -> clap::Command {
    let commands = command.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    clap::Command::new("redlock-sim")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(commands)
}
