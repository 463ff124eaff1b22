//! EVAL and related commands. Scripts reach other commands through the same table.

use bytes::Bytes;

use super::call::{count, integer, is};
use super::dispatch::{check_rights, execute, look_up};
use super::{
    BUSY, Call, DENY_OOM, Keys, LOADING, MAY_REPLICATE, NO_SCRIPT, NO_SCRIPT_WAITS, Outcome, READ,
    Refusal, STALE, Spec, WRITE, find, text,
};
use crate::Writer;
use crate::profile::Feature;
use crate::resp::{Protocol, Value};
use crate::script::{self, Caller, named, sha_of};
use crate::server::{Server, Session, Touched, Turn};

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("eval", -3, NO_SCRIPT | STALE, Keys::Counted, |call| eval(call, false)),
    Spec::new("eval_ro", -3, NO_SCRIPT | STALE, Keys::Counted, |call| eval(call, true)),
    Spec::new("evalsha", -3, NO_SCRIPT | STALE, Keys::Counted, |call| eval_named(call, false)),
    Spec::new("evalsha_ro", -3, NO_SCRIPT | STALE, Keys::Counted, |call| eval_named(call, true)),
    Spec::container("script", SCRIPT),
];

const SCRIPT: &[Spec] = &[
    Spec::new("script|exists", -3, NO_SCRIPT, Keys::None, exist),
    Spec::new("script|flush", -2, NO_SCRIPT, Keys::None, flush),
    Spec::new("script|kill", 2, NO_SCRIPT | BUSY, Keys::None, kill),
    Spec::new("script|load", 3, NO_SCRIPT | STALE, Keys::None, load),
];

/// Greatest number of interrupt checks of a script that no other thread can end: some twenty
/// million instructions in all.
const INTERRUPTS_MAX: u32 = 2_000;

fn eval(call: &mut Call<'_>, read_only: bool) -> Outcome {
    let sha = sha_of(call.words[1]);
    let known = call.server.script(&sha);
    let text = known.unwrap_or_else(|| Bytes::copy_from_slice(call.words[1]));
    let split = split(call)?;
    script::compile(&text, &sha, call.server.profile().style).map_err(refusal)?;
    call.server.learn(sha, text.clone());
    run(call, &text, &sha, split, read_only)
}

fn eval_named(call: &mut Call<'_>, read_only: bool) -> Outcome {
    let unknown = Refusal::new(call.server.profile().texts.no_script);
    let Some(sha) = named(call.words[1]) else { return Err(unknown) };
    let split = split(call)?;
    let Some(text) = call.server.script(&sha) else { return Err(unknown) };
    run(call, &text, &sha, split, read_only)
}

/// Converts the error value of a script that does not compile.
fn refusal(value: Value) -> Refusal {
    match value {
        Value::Error(text) => Refusal(text),
        other => Refusal::of(format!("ERR {other:?}")),
    }
}

/// The keys and the other arguments of a script.
type Split<'a> = (&'a [&'a [u8]], &'a [&'a [u8]]);

fn split<'a>(call: &Call<'a>) -> Result<Split<'a>, Refusal> {
    let keys = integer(call.words[2])?;
    let keys =
        usize::try_from(keys).map_err(|_| Refusal::new("ERR Number of keys can't be negative"))?;
    let too_many = Refusal::new("ERR Number of keys can't be greater than number of args");
    call.words[3..].split_at_checked(keys).ok_or(too_many)
}

fn run(
    call: &mut Call<'_>,
    text: &Bytes,
    sha: &script::Sha,
    (keys, arguments): Split<'_>,
    read_only: bool,
) -> Outcome {
    let style = call.server.profile().style;
    let flags = script::flags(text, style);
    check_state(call.server, flags, read_only)?;
    let (is_out_of_memory, flags) = (call.server.is_out_of_memory(), flags.unwrap_or_default());
    let control = call.server.script_control();
    control.begin();
    let mut running = Running {
        session: call.session.for_script(),
        keys,
        server: call.server,
        wall_ns: call.turn.wall_ns,
        writer: call.turn.writer,
        touched: call.turn.touched,
        is_read_only: read_only || flags.no_writes,
        is_out_of_memory: is_out_of_memory && !flags.allow_oom,
        has_written: false,
        interrupts: 0,
    };
    let value = script::run(text, sha, keys, arguments, style, &mut running);
    control.end();
    Ok(value)
}

/// Returns an error if a script with these flags may not begin. Checked on every run, because EXEC
/// does not check its commands one by one.
fn check_state(
    server: &Server,
    said: Option<script::Flags>,
    read_only: bool,
) -> Result<(), Refusal> {
    let may_be_stale = said.is_some_and(|said| said.allow_stale);
    if server.is_stale() && !may_be_stale {
        return Err(text::MASTER_DOWN);
    }
    let Some(said) = said.filter(|said| !said.no_writes) else { return Ok(()) };
    if read_only {
        let text = "ERR Can not execute a script with write flag using *_ro command.";
        return Err(Refusal::new(text));
    }
    server.check_writable()?;
    server.check_disk()?;
    server.check_replicas()?;
    if server.is_out_of_memory() && !said.allow_oom {
        return Err(text::OUT_OF_MEMORY);
    }
    Ok(())
}

/// A running script.
struct Running<'a> {
    server: &'a mut Server,
    session: Session,
    /// Keys declared by the script's sender.
    keys: &'a [&'a [u8]],
    wall_ns: u64,
    writer: Writer,
    touched: &'a mut Vec<Touched>,
    is_read_only: bool,
    /// True if memory was full when the script began; later changes do not count.
    is_out_of_memory: bool,
    has_written: bool,
    interrupts: u32,
}

impl Running<'_> {
    fn admit(&self, words: &[&[u8]]) -> Result<&'static Spec, Refusal> {
        let profile = self.server.profile();
        let texts = &profile.texts;
        let spec = look_up(words, self.server).map_err(|refusal| {
            let is_subcommand = find(words[0]).is_some_and(|spec| profile.has(spec.feature));
            match is_subcommand && profile.has(Feature::NamesSubcommandsInScripts) {
                true => refusal,
                false => Refusal::new(texts.script_unknown),
            }
        })?;
        if !spec.takes(words.len()) {
            return Err(Refusal::new(texts.script_arity));
        }
        let waits = spec.has(NO_SCRIPT_WAITS) && !profile.has(Feature::WaitInScripts);
        if spec.has(NO_SCRIPT) || waits {
            return Err(Refusal::new(texts.script_forbidden));
        }
        let check_rights =
            || check_rights(spec, words, self.server, &self.session, texts.rights_in_scripts);
        if profile.style.is_valkey {
            self.check_memory(spec)?;
            check_rights()?;
            self.check_write(spec)?;
            self.check_age(spec)?;
        } else {
            self.check_age(spec)?;
            check_rights()?;
            self.check_write(spec)?;
            self.check_memory(spec)?;
        }
        if self.server.is_loading() && !spec.has(LOADING) {
            return Err(Refusal::new(texts.loading));
        }
        Ok(spec)
    }

    /// Registers the keys of a read for the script's sender, if it tracks keys.
    fn remember(&mut self, spec: &Spec, words: &[&[u8]]) {
        let id = self.session.id();
        if self.server.profile().has(Feature::TracksScriptReads) {
            self.server.tracked.remember(id, spec.keys.of(words));
        } else {
            self.server.tracked.remember(id, self.keys.iter().copied());
        }
    }

    fn check_age(&self, spec: &Spec) -> Result<(), Refusal> {
        if self.server.is_stale() && !spec.has(STALE) {
            return Err(Refusal::new("ERR Can not execute the command on a stale replica"));
        }
        Ok(())
    }

    fn check_write(&self, spec: &Spec) -> Result<(), Refusal> {
        if self.is_read_only && (spec.has(WRITE) || spec.has(MAY_REPLICATE)) {
            return Err(Refusal::new("ERR Write commands are not allowed from read-only scripts."));
        }
        if !spec.has(WRITE) {
            return Ok(());
        }
        // A script that has written is not stopped half-way.
        if self.has_written {
            return Ok(());
        }
        self.server.check_writable()?;
        self.server.check_disk()?;
        self.server.check_replicas()
    }

    fn check_memory(&self, spec: &Spec) -> Result<(), Refusal> {
        let is_refused = spec.has(DENY_OOM) && self.is_out_of_memory && !self.has_written;
        if is_refused { Err(text::OUT_OF_MEMORY) } else { Ok(()) }
    }
}

impl Caller for Running<'_> {
    fn call(&mut self, words: &[&[u8]], protocol: Protocol) -> Value {
        let spec = match self.admit(words) {
            Ok(spec) => spec,
            Err(refusal) => {
                self.server.note_unknown(words[0], true);
                return refusal.into();
            }
        };
        if spec.has(WRITE) {
            self.has_written = true;
            self.server.script_control().write();
        }
        self.session.speak(protocol);
        let (wall_ns, writer) = (self.wall_ns, self.writer);
        let mut call = Call {
            server: self.server,
            session: &mut self.session,
            words,
            turn: Turn { wall_ns, writer, touched: self.touched },
            name: spec.name,
            is_inner: true,
            ending: None,
        };
        let outcome = execute(spec, &mut call);
        if spec.has(READ) && self.server.tracked.has_listeners() {
            self.remember(spec, words);
        }
        outcome.unwrap_or_else(Value::from)
    }

    fn interrupt(&mut self) -> Option<String> {
        self.interrupts += 1;
        let control = self.server.script_control();
        let killed =
            control.is_killed() || (!control.is_watched() && self.interrupts > INTERRUPTS_MAX);
        killed.then(|| self.server.profile().texts.script_killed.to_owned())
    }

    fn left(&self) -> script::CarriedState {
        self.server.left_by_scripts()
    }

    fn leave(&mut self, left: script::CarriedState) {
        self.server.set_left_by_scripts(left);
    }

    fn is_allowed(&mut self, words: &[&[u8]]) -> Option<bool> {
        let spec = look_up(words, self.server).ok()?;
        let texts = self.server.profile().texts.rights_in_scripts;
        Some(check_rights(spec, words, self.server, &self.session, texts).is_ok())
    }
}

fn load(call: &mut Call<'_>) -> Outcome {
    let text = Bytes::copy_from_slice(call.words[2]);
    let sha = sha_of(&text);
    script::compile(&text, &sha, call.server.profile().style).map_err(refusal)?;
    call.server.learn(sha, text);
    Ok(Value::bulk(&sha))
}

fn exist(call: &mut Call<'_>) -> Outcome {
    let known = call.words[2..].iter().map(|word| {
        let script = call.server.script_named(word);
        count(usize::from(script.is_some()))
    });
    Ok(Value::Array(known.collect()))
}

fn flush(call: &mut Call<'_>) -> Outcome {
    match call.words[2..] {
        [] => {}
        [how] if is(how, "SYNC") || is(how, "ASYNC") => {}
        _ => return Err(Refusal::new("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    call.server.forget_scripts();
    Ok(Value::ok())
}

/// The transport itself handles `SCRIPT KILL` while a script runs (`ScriptControl`), so this
/// function is reached only when none runs.
fn kill(_: &mut Call<'_>) -> Outcome {
    Err(Refusal::new("NOTBUSY No scripts in execution right now."))
}
