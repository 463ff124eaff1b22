//! Checks on a request before its execution, in the order of Redis.

use super::call::is;
use super::{
    AT_ONCE, Call, Channels, DENY_OOM, Ending, LOADING, NO_AUTH, NO_MULTI, Outcome, READ, Refusal,
    STALE, SUBSCRIBER, Spec, WRITE, find, text,
};
use crate::profile::{Feature, Rights};
use crate::resp::Value;
use crate::script;
use crate::server::{Server, Session};

/// Never called: a request that names only a container has too few words, and a request that names
/// a subcommand is dispatched to that subcommand.
pub(super) fn unreachable_container(call: &mut Call<'_>) -> Outcome {
    Err(call.arity())
}

/// Finds the command or subcommand of a request.
///
/// # Errors
///
/// If the server knows no command of that name.
pub(super) fn look_up(words: &[&[u8]], server: &Server) -> Result<&'static Spec, Refusal> {
    let known = find(words[0]).filter(|spec| server.has(spec));
    let spec = known.ok_or_else(|| text::unknown_command(words))?;
    let (Some(name), false) = (words.get(1), spec.subcommands.is_empty()) else { return Ok(spec) };
    let matches = |it: &&Spec| it.is_selected_by(name) && server.has(it);
    let subcommand = spec.subcommands.iter().find(matches);
    match subcommand {
        Some(subcommand) => Ok(subcommand),
        None => Err(text::unknown_subcommand(spec.name, name)),
    }
}

/// Executes or queues a request of a connection.
pub(crate) fn perform(call: &mut Call<'_>) -> Value {
    let outcome = match admit(call) {
        Ok(spec) if call.session.is_in_transaction() && !spec.has(AT_ONCE) => queue(spec, call),
        Ok(spec) => execute_and_remember(spec, call),
        Err(refusal) if is(call.words[0], "EXEC") => {
            call.session.end_transaction();
            call.session.unwatch(call.server);
            Err(text::aborted(&refusal))
        }
        Err(refusal) => {
            call.session.refuse_transaction();
            Err(refusal)
        }
    };
    outcome.unwrap_or_else(Value::from)
}

/// Queues a command. Real servers close a connection whose queue grows over the limit without a
/// reply.
fn queue(spec: &'static Spec, call: &mut Call<'_>) -> Outcome {
    // The transaction will not be executed, so the command need not be stored.
    if call.session.is_refused() || call.session.is_in_vain(call.server) {
        return Ok(Value::simple("QUEUED"));
    }
    let flags = flags_of(spec, call.words, call.server);
    let queued_bytes = call.session.queue(flags, call.words) as u64;
    let limit = call.server.config().number("client-query-buffer-limit");
    if u64::try_from(limit).is_ok_and(|limit| queued_bytes > limit) {
        call.session.end_transaction();
        call.ending = Some(Ending::Close);
        return Err(Refusal::new("ERR the transaction is over client-query-buffer-limit"));
    }
    Ok(Value::simple("QUEUED"))
}

/// Returns true if the request is `CLIENT` with a subcommand that this server knows.
pub(crate) fn names_client_subcommand(words: &[&[u8]], server: &Server) -> bool {
    is(words[0], "CLIENT")
        && look_up(words, server).is_ok_and(|spec| spec.name.starts_with("client|"))
}

/// Executes a command of a connection and, if the connection tracks keys, registers the keys that
/// the command read.
pub(super) fn execute_and_remember(spec: &'static Spec, call: &mut Call<'_>) -> Outcome {
    let outcome = execute(spec, call);
    if spec.has(READ) && call.server.tracked.has_listeners() {
        call.server.tracked.remember(call.session.id(), spec.keys.of(call.words));
    }
    outcome
}

/// Executes an admitted command and counts it.
pub(super) fn execute(spec: &'static Spec, call: &mut Call<'_>) -> Outcome {
    call.name = spec.name;
    let outcome = (spec.run)(call);
    let failed = matches!(outcome, Err(_) | Ok(Value::Error(_)));
    call.server.statistics_mut().executed(spec.name, failed);
    outcome
}

/// Returns the command if the server admits the request.
fn admit(call: &mut Call<'_>) -> Result<&'static Spec, Refusal> {
    let profile = call.server.profile();
    let unauthenticated = call.session.is_unauthenticated();
    let may = |spec: &Spec| !unauthenticated || spec.has(NO_AUTH);
    let found = look_up(call.words, call.server);
    if found.is_err() {
        call.server.note_unknown(call.words[0], false);
    }
    if profile.asks_who_first && !found.as_ref().is_ok_and(|spec| may(spec)) && unauthenticated {
        return Err(text::NO_AUTHENTICATION);
    }
    let spec = found?;
    call.name = spec.name;
    if !spec.takes(call.words.len()) {
        return Err(text::arity(spec.name));
    }
    let admitted = if may(spec) { check(spec, call) } else { Err(text::NO_AUTHENTICATION) };
    if let Err(refusal) = admitted {
        call.server.statistics_mut().rejected(spec.name);
        return Err(refusal);
    }
    Ok(spec)
}

fn check(spec: &'static Spec, call: &Call<'_>) -> Result<(), Refusal> {
    let (server, session) = (&*call.server, &*call.session);
    // On servers where a nested MULTI has an error of its own, commands that run at once report it
    // themselves.
    let says_itself = spec.has(AT_ONCE) && server.profile().names_nesting;
    if session.is_in_transaction() && spec.has(NO_MULTI) && !says_itself {
        let text = server.profile().texts.not_in_transaction;
        return Err(Refusal::of(text.replace("{command}", spec.name)));
    }
    check_rights(spec, call.words, server, session, server.profile().texts.rights)?;
    check_state(spec, call)
}

/// Returns the command's flags. For a script, its first line may change them.
fn flags_of(spec: &Spec, words: &[&[u8]], server: &Server) -> u16 {
    let known;
    let text = match spec.name {
        "eval" | "eval_ro" => words[1],
        "evalsha" | "evalsha_ro" => match server.script_named(words[1]) {
            Some(text) => {
                known = text;
                &*known
            }
            None => return spec.flags,
        },
        _ => return spec.flags,
    };
    script::flags(text, server.profile().style).map_or(spec.flags, |said| flags_said(spec, said))
}

/// Returns the flags of a command that runs a script with the flags `said`.
pub(super) fn flags_said(spec: &Spec, said: script::Flags) -> u16 {
    let flag = |is_there: bool, flag| if is_there { flag } else { 0 };
    spec.flags & !(WRITE | DENY_OOM | STALE)
        | flag(!said.no_writes, WRITE)
        | flag(!said.no_writes && !said.allow_oom, DENY_OOM)
        | flag(said.allow_stale, STALE)
}

/// Returns an error if the server's state does not permit the command.
fn check_state(spec: &'static Spec, call: &Call<'_>) -> Result<(), Refusal> {
    let (server, session) = (&*call.server, &*call.session);
    let flags = flags_of(spec, call.words, server);
    let drops = server.profile().has(Feature::DropsRefusedTransactions);
    let is_empty = drops && (session.is_refused() || session.is_in_vain(server));
    let executes = spec.name == "exec" && !is_empty;
    let has = |flag| flags & flag != 0 || (executes && session.has_queued(flag));
    let lacks = |flag| flags & flag == 0 || (executes && session.has_queued_without(flag));
    // Queued commands need memory too: a server that is out of memory queues nothing.
    let ends = matches!(spec.name, "discard" | "exec" | "quit" | "reset");
    let queues = session.is_in_transaction() && !ends;
    let queues = queues && !server.profile().has(Feature::QueuesWhenFull);
    if (has(DENY_OOM) || queues) && server.is_out_of_memory() {
        return Err(text::OUT_OF_MEMORY);
    }
    if has(WRITE) || spec.name == "ping" {
        server.check_disk()?;
    }
    if has(WRITE) {
        server.check_replicas()?;
        server.check_writable()?;
    }
    if session.is_subscriber() && !spec.has(SUBSCRIBER) {
        return Err(text::subscriber(spec.name));
    }
    if lacks(STALE) && server.is_stale() {
        return Err(text::MASTER_DOWN);
    }
    if lacks(LOADING) && server.is_loading() {
        return Err(Refusal::new(server.profile().texts.loading));
    }
    Ok(())
}

/// Returns an error if the user lacks permission. Commands that authenticate are always permitted.
pub(super) fn check_rights(
    spec: &Spec,
    words: &[&[u8]],
    server: &Server,
    session: &Session,
    texts: &Rights,
) -> Result<(), Refusal> {
    let Some(user) = server.users().restricted(session.user_name()) else { return Ok(()) };
    if spec.has(NO_AUTH) {
        return Ok(());
    }
    let fill = |text: &str| {
        let name = String::from_utf8_lossy(session.user_name());
        Refusal::of(text.replace("{user}", &name).replace("{command}", spec.name))
    };
    if !user.may_use(spec.name) {
        return Err(fill(texts.no_command));
    }
    // In the commands on shard channels, the keys are channels.
    let has_keys = spec.channels == Channels::None;
    if has_keys && !spec.keys.of(words).all(|key| user.may_touch(key)) {
        return Err(fill(texts.no_key));
    }
    let arguments = &words[1..];
    let may_hear = match spec.channels {
        Channels::None | Channels::Left => true,
        Channels::First => arguments.iter().take(1).all(|channel| user.may_hear(channel)),
        Channels::All => arguments.iter().all(|channel| user.may_hear(channel)),
        Channels::Patterns => arguments.iter().all(|pattern| user.may_hear_pattern(pattern)),
    };
    if may_hear { Ok(()) } else { Err(fill(texts.no_channel)) }
}
