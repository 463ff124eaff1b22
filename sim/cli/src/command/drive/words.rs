//! The worker's command line: words, and what takes the place of `{client}` and the like.

use crate::command::exit::Stop;

/// The names that may stand in braces.
pub(super) const NAMES: [&str; 7] =
    ["client", "nodes", "observer", "resource", "scenario", "seed", "ttl-ms"];

/// A command line, split into words.
#[derive(Clone, Debug)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Splits `command` as a shell would; nothing but quotes and backslashes has a meaning.
    pub(super) fn parse(command: &str) -> Result<Self, Stop> {
        let words = shlex::split(command).ok_or_else(|| {
            Stop::usage("error: `--worker`: a quote is not closed, or a backslash ends the command")
        })?;
        if words.is_empty() {
            return Err(Stop::usage("error: `--worker` is empty: give the command of a worker"));
        }
        let words = Self(words);
        words.filled(|name| NAMES.contains(&name).then(String::new)).map_err(|name| {
            let known = NAMES.map(|name| format!("{{{name}}}")).join(", ");
            Stop::usage(format!(
                "error: `--worker`: there is no `{{{name}}}`\n  = help: known are {known}; a brace \
                 itself is written twice, `{{{{`"
            ))
        })?;
        Ok(words)
    }

    /// Returns the words with every `{name}` replaced by its value. Returns the first name without a
    /// value as an error.
    pub(super) fn filled(
        &self,
        value: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<String>, String> {
        self.0.iter().map(|word| filled(word, &value)).collect()
    }
}

fn filled(word: &str, value: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once(['{', '}']) {
        text += before;
        let brace = &rest[before.len()..=before.len()];
        rest = behind;
        if let Some(behind) = rest.strip_prefix(brace) {
            text += brace;
            rest = behind;
            continue;
        }
        let name = rest.split_once('}').filter(|_| brace == "{");
        match name.filter(|(name, _)| is_name(name)) {
            Some((name, behind)) => {
                text += &value(name).ok_or_else(|| name.to_owned())?;
                rest = behind;
            }
            // Not a name: an argument may be JSON.
            None => text += brace,
        }
    }
    Ok(text + rest)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_lowercase() || it == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_replaced_and_nothing_else() {
        let words = Words::parse("run '{client} {seed}' {{client}} {\"a\":1} x}y ''").unwrap();
        let filled = words.filled(|name| Some(format!("<{name}>"))).unwrap();
        assert_eq!(filled, ["run", "<client> <seed>", "{client}", "{a:1}", "x}y", ""]);
    }

    #[test]
    fn an_unknown_name_an_open_quote_and_nothing_are_refused() {
        for (command, said) in [
            ("run {who}", "there is no `{who}`"),
            ("run 'half", "a quote is not closed"),
            ("  ", "is empty"),
        ] {
            let stop = Words::parse(command).unwrap_err();
            assert!(stop.message.contains(said), "{command}: {}", stop.message);
        }
    }
}
