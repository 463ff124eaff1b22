//! The command line with the variables of its options: an empty variable counts as absent, and a
//! message about a value from a variable names the variable.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, CommandFactory, Error, FromArgMatches};

use crate::arguments::Arguments;

/// Parses the command line of this process.
pub(crate) fn parse() -> Result<Arguments, Error> {
    let words: Vec<OsString> = env::args_os().collect();
    let mut command =
        Arguments::command().mut_subcommands(|command| command.mut_args(without_empty));
    let matches = command.try_get_matches_from_mut(&words);
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.map_err(|error| naming_variable(error, &command, &words))
}

fn without_empty(argument: Arg) -> Arg {
    let value = argument.get_env().and_then(env::var_os);
    if value.is_some_and(|value| value.is_empty()) {
        return argument.env(Resettable::Reset);
    }
    argument
}

/// Adds the variable to an error about its value. An option of the command line overrides its
/// variable, so the value is the variable's if the option is not there.
fn naming_variable(mut error: Error, command: &Command, words: &[OsString]) -> Error {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(name) = shown.split(' ').next().and_then(|option| option.strip_prefix("--")) else {
        return error;
    };
    let mut arguments = command.get_subcommands().flat_map(Command::get_arguments);
    let faulty = arguments.find(|argument| argument.get_long() == Some(name));
    let variable = faulty.and_then(Arg::get_env).filter(|_| !is_named(name, words));
    if let Some(variable) = variable.map(OsStr::to_string_lossy) {
        let shown = format!("{shown} (from {variable})");
        error.insert(ContextKind::InvalidArg, ContextValue::String(shown));
    }
    error
}

/// Returns true if the command line has the option.
fn is_named(option: &str, words: &[OsString]) -> bool {
    let own = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    own.filter_map(|word| word.strip_prefix("--")?.strip_prefix(option))
        .any(|rest| rest.is_empty() || rest.starts_with('='))
}
