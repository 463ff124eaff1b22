//! `CLIENT TRACKING` and the subcommands about its state.

use super::super::call::{integer, is};
use super::super::{Call, Outcome, Refusal, text};
use crate::resp::Value;
use crate::tracked::{Listener, Mode};

const CACHING_WITHOUT_MODE: Refusal = Refusal::new(
    "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
     OPTOUT mode enabled",
);
const BCAST_SWITCHED: Refusal = Refusal::new(
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);
const MODE_SWITCHED: Refusal = Refusal::new(
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);

#[derive(Default)]
struct Options<'a> {
    redirect: Option<u64>,
    bcast: bool,
    optin: bool,
    optout: bool,
    noloop: bool,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut rest = &call.words[3..];
        while let [option, after @ ..] = rest {
            rest = after;
            if let (true, [id, after @ ..]) = (is(option, "REDIRECT"), after) {
                options.redirect(call, id)?;
                rest = after;
            } else if let (true, [prefix, after @ ..]) = (is(option, "PREFIX"), after) {
                options.prefixes.push(prefix);
                rest = after;
            } else if is(option, "BCAST") {
                options.bcast = true;
            } else if is(option, "OPTIN") {
                options.optin = true;
            } else if is(option, "OPTOUT") {
                options.optout = true;
            } else if is(option, "NOLOOP") {
                options.noloop = true;
            } else {
                return Err(text::SYNTAX);
            }
        }
        Ok(options)
    }

    fn redirect(&mut self, call: &Call<'_>, id: &[u8]) -> Result<(), Refusal> {
        if self.redirect.is_some() {
            return Err(Refusal::new("ERR A client can only redirect to a single other client"));
        }
        let id = integer(id)?;
        let there = u64::try_from(id).ok();
        self.redirect = there.filter(|&id| call.server.clients().get(id).is_some());
        if self.redirect.is_none() {
            return Err(Refusal::new("ERR The client ID you want redirect to does not exist"));
        }
        Ok(())
    }

    /// Returns the mode, or rejects options that contradict each other or the state `before`,
    /// checked in the order of real servers.
    fn mode(&self, before: Option<Listener>) -> Result<Mode, Refusal> {
        if !self.bcast && !self.prefixes.is_empty() {
            return Err(Refusal::new("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if self.bcast && before.is_some() {
            return Err(BCAST_SWITCHED);
        }
        if self.bcast && (self.optin || self.optout) {
            return Err(Refusal::new("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        let mode = match (self.optin, self.optout) {
            (true, true) => {
                let text = "ERR You can't specify both OPTIN mode and OPTOUT mode";
                return Err(Refusal::new(text));
            }
            (true, false) => Mode::OptIn,
            (false, true) => Mode::OptOut,
            (false, false) => Mode::All,
        };
        self.check_prefixes()?;
        let before = before.map_or(Mode::All, |listener| listener.mode);
        if before != Mode::All && mode != Mode::All && before != mode {
            return Err(MODE_SWITCHED);
        }
        Ok(mode)
    }

    fn check_prefixes(&self) -> Result<(), Refusal> {
        for (place, one) in self.prefixes.iter().enumerate() {
            for other in &self.prefixes[place + 1..] {
                if one.starts_with(other) || other.starts_with(one) {
                    let [one, other] = [one, other].map(|it| String::from_utf8_lossy(it));
                    return Err(Refusal::of(format!(
                        "ERR Prefix '{one}' overlaps with another provided prefix '{other}'. \
                         Prefixes for a single client must not overlap."
                    )));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn track(call: &mut Call<'_>) -> Outcome {
    let options = Options::parse(call)?;
    let id = call.session.id();
    if is(call.words[2], "OFF") {
        call.server.tracked.stop(id);
        return Ok(Value::ok());
    }
    if !is(call.words[2], "ON") {
        return Err(text::SYNTAX);
    }
    let mode = options.mode(call.server.tracked.listener(id))?;
    if options.bcast {
        return Err(Refusal::new("ERR BCAST of CLIENT TRACKING is not simulated"));
    }
    call.server.tracked.listen(id, (mode, options.noloop), options.redirect);
    Ok(Value::ok())
}

pub(super) fn cache(call: &mut Call<'_>) -> Outcome {
    let id = call.session.id();
    let listener = call.server.tracked.listener(id).ok_or(CACHING_WITHOUT_MODE)?;
    let option = call.words[2];
    if is(option, "YES") {
        if listener.mode != Mode::OptIn {
            return Err(Refusal::new(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
    } else if is(option, "NO") {
        if listener.mode != Mode::OptOut {
            return Err(Refusal::new(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
    } else {
        return Err(text::SYNTAX);
    }
    call.server.tracked.reverse(id, true);
    Ok(Value::ok())
}

/// Returns the connection to which invalidations are redirected.
fn redirection(call: &Call<'_>) -> Value {
    Value::Integer(super::hears(call.server, call.session.id()).redirection())
}

pub(super) fn redirected(call: &mut Call<'_>) -> Outcome {
    Ok(redirection(call))
}

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let listener = call.server.tracked.listener(call.session.id());
    let word = |word: &str| Value::bulk(word.as_bytes());
    let mut flags = vec![word(if listener.is_some() { "on" } else { "off" })];
    if let Some(Listener { mode, noloop, is_reversed, is_broken, .. }) = listener {
        let words = match mode {
            Mode::All => None,
            Mode::OptIn => Some(("optin", "caching-yes")),
            Mode::OptOut => Some(("optout", "caching-no")),
        };
        if let Some((mode, caching)) = words {
            flags.push(word(mode));
            flags.extend(is_reversed.then(|| word(caching)));
        }
        flags.extend(noloop.then(|| word("noloop")));
        flags.extend(is_broken.then(|| word("broken_redirect")));
    }
    Ok(Value::Map(vec![
        (word("flags"), Value::Set(flags)),
        (word("redirect"), redirection(call)),
        (word("prefixes"), Value::Array(Vec::new())),
    ]))
}
