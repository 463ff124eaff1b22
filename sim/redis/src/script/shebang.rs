//! The first line of a script (`#!lua …`), which names its engine and flags.

use super::Style;
use crate::resp::inline_words;

const SHEBANG: &[u8] = b"#!";

/// Flags that a script declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The script does not write.
    pub no_writes: bool,
    /// The script may run while memory is full.
    pub allow_oom: bool,
    /// The script may run on a replica that has lost its master.
    pub allow_stale: bool,
}

impl Flags {
    /// Sets one flag; returns false if it is unknown.
    fn take(&mut self, flag: &[u8]) -> bool {
        match flag {
            b"no-writes" => self.no_writes = true,
            b"allow-oom" => self.allow_oom = true,
            b"allow-stale" => self.allow_stale = true,
            // Nothing to do: there is no cluster.
            b"no-cluster" | b"allow-cross-slot-keys" => {}
            _ => return false,
        }
        true
    }
}

/// Returns the flags that a script declares; `None` if it has no valid first line.
#[must_use]
pub fn flags(text: &[u8], style: &Style) -> Option<Flags> {
    let Line { engine, flags, .. } = Line::of(text, style).ok()??;
    // Valkey checks the engine later.
    (style.is_valkey || engine.is_ok()).then_some(flags)
}

/// Returns the script without its `#!lua` line; the line's end is kept.
///
/// # Errors
///
/// The error in the line.
pub(super) fn body<'a>(text: &'a [u8], style: &Style) -> Result<&'a [u8], String> {
    let Some(line) = Line::of(text, style)? else { return Ok(text) };
    line.engine.map(|()| line.rest)
}

struct Line<'a> {
    /// `Ok` if the line names Lua.
    engine: Result<(), String>,
    flags: Flags,
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parses the first line of `text`, if it is a shebang.
    fn of(text: &'a [u8], style: &Style) -> Result<Option<Self>, String> {
        if !text.starts_with(SHEBANG) {
            return Ok(None);
        }
        let Some(end) = text.iter().position(|&byte| byte == b'\n') else {
            return Err(String::from("ERR Invalid script shebang"));
        };
        let words = inline_words(&text[..end], style.is_valkey);
        let words = words.ok_or_else(|| String::from("ERR Invalid engine in script shebang"))?;
        let (engine, options) = match words.split_first() {
            Some((engine, options)) => (&**engine, options),
            None => (SHEBANG, &[][..]),
        };
        let engine = engine_of(engine, style);
        if !style.is_valkey {
            engine.clone()?;
        }
        Ok(Some(Self { engine, flags: flags_of(options)?, rest: &text[end..] }))
    }
}

fn engine_of(word: &[u8], style: &Style) -> Result<(), String> {
    let name = word.get(SHEBANG.len()..).unwrap_or_default();
    match style.is_valkey {
        true if name.eq_ignore_ascii_case(b"lua") => Ok(()),
        true => {
            let name = String::from_utf8_lossy(name);
            Err(format!("ERR Could not find scripting engine '{name}'"))
        }
        false if name == b"lua" => Ok(()),
        false => {
            let engine = String::from_utf8_lossy(word);
            Err(format!("ERR Unexpected engine in script shebang: {engine}"))
        }
    }
}

fn flags_of(options: &[bytes::Bytes]) -> Result<Flags, String> {
    let mut flags = Flags::default();
    for option in options {
        let Some(words) = option.strip_prefix(b"flags=") else {
            let option = String::from_utf8_lossy(option);
            return Err(format!("ERR Unknown lua shebang option: {option}"));
        };
        if words.is_empty() {
            continue;
        }
        for flag in words.split(|&byte| byte == b',') {
            if !flags.take(flag) {
                let flag = String::from_utf8_lossy(flag);
                return Err(format!("ERR Unexpected flag in script shebang: {flag}"));
            }
        }
    }
    Ok(flags)
}
