//! `CLIENT`: properties that connections set, and information about connections.

mod filter;
mod tracking;

use self::filter::Filter;
use super::call::{count, integer, is};
use super::connection::check_name;
use super::{Call, Ending, Keys, LOADING, NO_SCRIPT, Outcome, Refusal, STALE, Spec, text};
use crate::SmallBytes;
use crate::integer::parse_integer;
use crate::profile::Feature;
use crate::pushes::Release;
use crate::resp::Value;
use crate::server::{Hears, Replies, Server};

const FLAGS: u16 = NO_SCRIPT | LOADING | STALE;

const SUBCOMMANDS: &[Spec] = &[
    sub("client|caching", 3, tracking::cache),
    sub("client|capa", -3, done).where_there_is(Feature::ClientCapabilities),
    sub("client|getname", 2, name),
    sub("client|getredir", 2, tracking::redirected),
    sub("client|id", 2, |call| Ok(count(call.session.id() as usize))),
    sub("client|info", 2, info),
    sub("client|kill", -3, kill),
    sub("client|list", -2, list),
    sub("client|no-evict", 3, switch),
    sub("client|no-touch", 3, switch).where_there_is(Feature::ClientInfo),
    sub("client|pause", -3, pause),
    sub("client|reply", 3, reply),
    sub("client|setinfo", 4, set_info).where_there_is(Feature::ClientInfo),
    sub("client|setname", 3, set_name),
    sub("client|tracking", -3, tracking::track),
    sub("client|trackinginfo", 2, tracking::info),
    sub("client|unblock", -3, unblock),
    sub("client|unpause", 2, done),
];

pub(super) const COMMANDS: &[Spec] = &[Spec::container("client", SUBCOMMANDS)];

const fn sub(name: &'static str, arity: i8, run: super::Run) -> Spec {
    Spec::new(name, arity, FLAGS, Keys::None, run)
}

fn done(_: &mut Call<'_>) -> Outcome {
    Ok(Value::ok())
}

fn name(call: &mut Call<'_>) -> Outcome {
    let client = call.server.clients().get(call.session.id());
    let name = client.map(|client| &client.name).filter(|name| !name.is_empty());
    Ok(name.map_or(Value::Null, |name| Value::Bulk(name.share())))
}

fn set_name(call: &mut Call<'_>) -> Outcome {
    let name = call.words[2];
    check_name(name, call.server.profile())?;
    call.session.set_name(call.server, name);
    Ok(Value::ok())
}

fn set_info(call: &mut Call<'_>) -> Outcome {
    let [option, value] = [call.words[2], call.words[3]];
    let place = ["LIB-NAME", "LIB-VER"].iter().position(|known| is(option, known));
    let Some(place) = place else {
        return Err(text::around("ERR Unrecognized option '", option, "'"));
    };
    if !text::until_zero(value).iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        let after = " cannot contain spaces, newlines or special characters.";
        return Err(text::around("ERR ", option, after));
    }
    call.server.clients_mut().of(call.session.id()).library[place] = SmallBytes::new(value);
    Ok(Value::ok())
}

fn switch(call: &mut Call<'_>) -> Outcome {
    let option = call.words[2];
    if is(option, "ON") || is(option, "OFF") { Ok(Value::ok()) } else { Err(text::SYNTAX) }
}

fn pause(call: &mut Call<'_>) -> Outcome {
    text::timeout(call.words[2], None)?;
    Ok(Value::ok())
}

fn reply(call: &mut Call<'_>) -> Outcome {
    let option = call.words[2];
    let replies = if is(option, "ON") {
        Replies::On
    } else if is(option, "OFF") {
        Replies::Off
    } else if is(option, "SKIP") {
        Replies::SkipNext
    } else {
        return Err(text::SYNTAX);
    };
    call.session.set_replies(replies);
    if replies != Replies::On {
        call.ending = Some(Ending::Silence);
    }
    Ok(Value::ok())
}

/// Shows this connection as it is now, during its command.
fn show_itself(call: &mut Call<'_>) {
    let name = if call.is_inner { "exec" } else { call.name };
    call.session.be_known(call.server, Some(name), call.turn.wall_ns);
}

fn hears(server: &Server, id: u64) -> Hears {
    let tracking = server.tracked.listener(id);
    let is_blocked = server.is_blocked(id);
    Hears { tracking, is_blocked, subscriptions: server.subscribed.counts(id) }
}

fn line(call: &Call<'_>, id: u64) -> Vec<u8> {
    let hears = hears(call.server, id);
    let client = call.server.clients().get(id);
    let profile = call.server.profile();
    let line = client.map(|it| it.line((id, &hears), call.turn.wall_ns, profile));
    let mut line = line.unwrap_or_default();
    line.push(b'\n');
    line
}

fn info(call: &mut Call<'_>) -> Outcome {
    show_itself(call);
    Ok(Value::text(line(call, call.session.id())))
}

/// Type of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Subscriber,
    /// A type that no client here has.
    Other,
}

impl Kind {
    fn of(server: &Server, id: u64) -> Self {
        if hears(server, id).is_subscribed() { Self::Subscriber } else { Self::Normal }
    }
}

/// Parses a client type.
///
/// # Errors
///
/// If there is no such type.
fn kind(word: &[u8]) -> Result<Kind, Refusal> {
    if is(word, "NORMAL") {
        return Ok(Kind::Normal);
    }
    if is(word, "PUBSUB") {
        return Ok(Kind::Subscriber);
    }
    if ["MASTER", "REPLICA", "SLAVE"].iter().any(|other| is(word, other)) {
        return Ok(Kind::Other);
    }
    Err(text::around("ERR Unknown client type '", word, "'"))
}

fn list(call: &mut Call<'_>) -> Outcome {
    let mut of_kind = None;
    let wanted = match call.words[2..] {
        [] => None,
        [option, word] if is(option, "TYPE") => {
            of_kind = Some(kind(word)?);
            None
        }
        [option, _, ..] if is(option, "ID") => {
            let ids = call.words[3..].iter().map(|word| parse_integer(word));
            Some(ids.collect::<Option<Vec<_>>>().ok_or(Refusal::new("ERR Invalid client ID"))?)
        }
        _ => return Err(text::SYNTAX),
    };
    show_itself(call);
    let ids = call.server.clients().iter().map(|(id, _)| id);
    let wanted = |id: &u64| {
        wanted.as_ref().is_none_or(|ids| ids.contains(&(*id as i64)))
            && of_kind.is_none_or(|kind| kind == Kind::of(call.server, *id))
    };
    let lines = ids.filter(wanted).flat_map(|id| line(call, id));
    Ok(Value::text(lines.collect::<Vec<u8>>()))
}

/// Ends the wait of another connection.
fn unblock(call: &mut Call<'_>) -> Outcome {
    let release = match call.words[3..] {
        [how] if is(how, "ERROR") => {
            Release::Refused("UNBLOCKED client unblocked via CLIENT UNBLOCK")
        }
        [how] if !is(how, "TIMEOUT") => {
            return Err(Refusal::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        [] | [_] => Release::Nothing,
        _ => return Err(text::subcommand_arity("client", call.words[1])),
    };
    let id = u64::try_from(integer(call.words[2])?);
    let was_blocked = id.is_ok_and(|id| call.server.unblock(id, release));
    Ok(Value::Integer(i64::from(was_blocked)))
}

fn kill(call: &mut Call<'_>) -> Outcome {
    let by_address = call.words.len() == 3;
    let filter = if by_address { Filter::at(call.words[2]) } else { Filter::parse(call)? };
    let own = call.session.id();
    let clients = call.server.clients().iter();
    let wall_ns = call.turn.wall_ns;
    let doomed = clients.filter(|(id, client)| {
        filter.kinds.iter().all(|kind| *kind == Kind::of(call.server, *id))
            && filter.is_about(*id, client, wall_ns)
            && !(filter.spares_self && *id == own)
    });
    let doomed: Vec<u64> = doomed.map(|(id, _)| id).collect();
    doomed.iter().for_each(|&id| call.kill(id));
    match (by_address, doomed.len()) {
        (true, 0) => Err(Refusal::new("ERR No such client")),
        (true, _) => Ok(Value::ok()),
        (false, killed) => Ok(count(killed)),
    }
}
