//! The nearest command for a word that is no command.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use lock_judge::scenario::nearest;

use super::arguments::Arguments;

/// Adds the nearest command to an error about an unknown one. The parser's own measure finds no
/// command for two swapped letters of a short word.
pub(super) fn with_nearest(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let command = Arguments::command();
    let names = command.get_subcommands().map(|command| command.get_name());
    if let Some(name) = nearest(word, names)
        && error.get(ContextKind::SuggestedSubcommand).is_none()
    {
        let names = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
    error
}
