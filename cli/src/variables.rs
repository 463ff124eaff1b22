//! The command line with the variables of its options: an empty variable counts as absent, and a
//! message about a value from a variable names the variable. And the place of a name that begins
//! with `-`.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, FromArgMatches};

use crate::arguments::{Arguments, Command as Called};
use crate::key::Key;

/// Parses the command line of this process.
pub(crate) fn parse() -> Result<Arguments, Error> {
    parse_words(&env::args_os().collect::<Vec<_>>())
}

fn parse_words(words: &[OsString]) -> Result<Arguments, Error> {
    let command =
        || Arguments::command().mut_subcommands(|command| command.mut_args(without_empty));
    let first = parse_by(command(), words);
    let is_incomplete =
        first.as_ref().is_err_and(|error| error.kind() == ErrorKind::MissingRequiredArgument);
    let Some((key, words)) = key_after_dashes(words).filter(|_| is_incomplete) else {
        return first;
    };
    let mut arguments = parse_by(command(), &words)?;
    if let Called::Run(run) = &mut arguments.command {
        let faulty = |why| command().error(ErrorKind::ValueValidation, why);
        run.key = Key::new(key).map_err(faulty)?;
    }
    Ok(arguments)
}

fn parse_by(mut command: Command, words: &[OsString]) -> Result<Arguments, Error> {
    let matches = command.try_get_matches_from_mut(words);
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.map_err(|error| naming_variable(error, &command, words))
}

/// Returns the name of the lock in `run [options] -- KEY -- COMMAND…`, and the words with another
/// name in the usual place. clap takes all that follows the first `--` for the command.
fn key_after_dashes(words: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let dashes = words.iter().position(|word| word == "--")?;
    let [key, again, _, ..] = &words[dashes + 1..] else {
        return None;
    };
    let is_run = words.get(1).is_some_and(|word| word == "run");
    let usual = [&words[..dashes], &[OsString::from("KEY")], &words[dashes + 2..]].concat();
    (is_run && again == "--").then(|| (key.clone(), usual))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name of the lock and the command.
    fn run(words: &str) -> Result<(Vec<u8>, Vec<OsString>), Error> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        match parse_words(&words)?.command {
            Called::Run(run) => Ok((run.key.bytes().to_vec(), run.command)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_may_follow_two_dashes() {
        for (words, key, command) in [
            ("redlock run -- -odd -- echo x", "-odd", &["echo", "x"][..]),
            ("redlock run -v --wait 0 -- --wait -- ls -l", "--wait", &["ls", "-l"]),
            ("redlock run -- plain -- true", "plain", &["true"]),
            ("redlock run plain -- -x -- true", "plain", &["-x", "--", "true"]),
            ("redlock run -- -odd -- a -- b", "-odd", &["a", "--", "b"]),
        ] {
            let (found, rest) = run(words).unwrap();
            assert_eq!(String::from_utf8_lossy(&found), key, "{words}");
            assert_eq!(rest, command, "{words}");
        }
    }

    #[test]
    fn a_name_is_required() {
        for words in ["redlock run -- true", "redlock run -- a b -- c", "redlock run -- a --"] {
            assert_eq!(
                run(words).unwrap_err().kind(),
                ErrorKind::MissingRequiredArgument,
                "{words}"
            );
        }
        let long = "-".repeat(1 << 20);
        assert!(run(&format!("redlock run -- {long} -- true")).is_err());
    }
}
