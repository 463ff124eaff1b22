//! Commands about the connection: authentication, protocol version, database.

use super::call::{integer, is};
use super::keys::database;
use super::{
    AT_ONCE, BUSY, Call, Ending, Keys, LOADING, NO_AUTH, NO_SCRIPT, Outcome, Refusal, STALE,
    SUBSCRIBER, Spec, WRITE, text,
};
use crate::profile::{Feature, Profile};
use crate::resp::{Protocol, Value};

/// Allowed before AUTH and in every state of the server, but not in a script.
const GREETING: u16 = NO_AUTH | NO_SCRIPT | LOADING | STALE | BUSY;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("auth", -2, GREETING, Keys::None, authenticate),
    Spec::new("echo", 2, LOADING | STALE, Keys::None, |call| Ok(Value::bulk(call.arguments()[0]))),
    Spec::new("hello", -1, GREETING, Keys::None, hello),
    Spec::new("ping", -1, SUBSCRIBER, Keys::None, ping),
    Spec::new("quit", -1, GREETING | AT_ONCE | SUBSCRIBER, Keys::None, quit),
    Spec::new("reset", 1, GREETING | AT_ONCE | SUBSCRIBER, Keys::None, reset),
    Spec::new("select", 2, LOADING | STALE, Keys::None, select),
    Spec::new("swapdb", 3, WRITE, Keys::None, swap),
    Spec::new("time", 1, LOADING | STALE, Keys::None, time),
];

fn ping(call: &mut Call<'_>) -> Outcome {
    if call.session.is_subscriber() && call.words.len() <= 2 {
        let message = call.arguments().first().copied().unwrap_or_default();
        return Ok(Value::Array(vec![Value::bulk(b"pong"), Value::bulk(message)]));
    }
    match *call.arguments() {
        [] => Ok(Value::simple("PONG")),
        [message] => Ok(Value::bulk(message)),
        _ => Err(call.arity()),
    }
}

fn quit(call: &mut Call<'_>) -> Outcome {
    call.ending = Some(Ending::Close);
    Ok(Value::ok())
}

fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.reset(call.server);
    Ok(Value::simple("RESET"))
}

fn select(call: &mut Call<'_>) -> Outcome {
    let database = database(call, call.arguments()[0])?;
    call.session.select(database);
    Ok(Value::ok())
}

fn swap(call: &mut Call<'_>) -> Outcome {
    let invalid = |which: &'static str| move |_| Refusal::new(which);
    let &[one, other] = call.arguments() else { return Err(call.arity()) };
    let index =
        |word: &[u8]| integer(word).and_then(|it| i32::try_from(it).map_err(|_| text::SYNTAX));
    let one = index(one).map_err(invalid("ERR invalid first DB index"))?;
    let other = index(other).map_err(invalid("ERR invalid second DB index"))?;
    let known = |number: i32| {
        let number = u8::try_from(number).ok();
        number.filter(|number| *number < call.server.database_count()).ok_or(text::DATABASE_RANGE)
    };
    let (one, other) = (known(one)?, known(other)?);
    let wall_ms = call.wall_ms();
    call.server.swap_databases(one, other, wall_ms);
    Ok(Value::ok())
}

fn time(call: &mut Call<'_>) -> Outcome {
    let us = call.turn.wall_ns / 1_000;
    let words = [us / 1_000_000, us % 1_000_000].map(|it| Value::bulk(it.to_string().as_bytes()));
    Ok(Value::Array(words.to_vec()))
}

fn authenticate(call: &mut Call<'_>) -> Outcome {
    let (user, password): (&[u8], _) = match *call.arguments() {
        [_] if call.server.users().is_open() => {
            return Err(Refusal::new(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        [password] => (b"default", password),
        [user, password] => (user, password),
        _ => return Err(text::SYNTAX),
    };
    admit(call, user, password)?;
    Ok(Value::ok())
}

fn admit(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> Result<(), Refusal> {
    let name = call.server.users().admit(user, password).ok_or(text::WRONG_PASSWORD)?;
    call.session.become_user(name);
    Ok(())
}

/// Checks a client's name. Servers that know `CLIENT SETINFO` read it as a C string.
pub(super) fn check_name(name: &[u8], profile: &Profile) -> Result<(), Refusal> {
    let name = if profile.has(Feature::ClientInfo) { text::until_zero(name) } else { name };
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(Refusal::new("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn hello(call: &mut Call<'_>) -> Outcome {
    let (protocol, options) = match call.arguments() {
        [] => (None, [].as_slice()),
        [version, options @ ..] => (Some(version_of(version)?), options),
    };
    let checks_first = call.server.profile().has(Feature::HelloChecksFirst);
    let (mut name, mut user) = (None, None);
    let mut rest = options;
    loop {
        rest = match rest {
            [] => break,
            [option, who, password, after @ ..] if is(option, "AUTH") => {
                match checks_first {
                    true => user = Some((*who, *password)),
                    false => admit(call, who, password)?,
                }
                after
            }
            [option, given, after @ ..] if is(option, "SETNAME") => {
                check_name(given, call.server.profile())?;
                match checks_first {
                    true => name = Some(*given),
                    false => call.session.set_name(call.server, given),
                }
                after
            }
            [option, ..] => {
                return Err(text::around("ERR Syntax error in HELLO option '", option, "'"));
            }
        };
    }
    if let Some((user, password)) = user {
        admit(call, user, password)?;
    }
    if call.session.is_unauthenticated() {
        return Err(Refusal::new(call.server.profile().texts.hello_unauthenticated));
    }
    if let Some(name) = name {
        call.session.set_name(call.server, name);
    }
    if let Some(protocol) = protocol {
        call.session.speak(protocol);
        // Messages that the rest of a transaction causes need it at once.
        call.server.clients_mut().of(call.session.id()).protocol = protocol;
    }
    Ok(introduction(call))
}

fn version_of(word: &[u8]) -> Result<Protocol, Refusal> {
    let version = integer(word)
        .map_err(|_| Refusal::new("ERR Protocol version is not an integer or out of range"))?;
    match version {
        2 => Ok(Protocol::Resp2),
        3 => Ok(Protocol::Resp3),
        _ => Err(Refusal::new("NOPROTO unsupported protocol version")),
    }
}

fn introduction(call: &Call<'_>) -> Value {
    let profile = call.server.profile();
    let word = |word: &str| Value::bulk(word.as_bytes());
    let version = if call.session.protocol() == Protocol::Resp3 { 3 } else { 2 };
    let number = i64::try_from(call.session.id()).unwrap_or(i64::MAX);
    let role = if call.server.is_replica() { "replica" } else { "master" };
    let modules = profile.modules.iter().map(|(name, version)| {
        Value::Map(vec![
            (word("name"), word(name)),
            (word("ver"), Value::Integer(*version)),
            (word("path"), word(name)),
            (word("args"), Value::Array(Vec::new())),
        ])
    });
    Value::Map(vec![
        (word("server"), word(profile.server)),
        (word("version"), word(profile.version)),
        (word("proto"), Value::Integer(version)),
        (word("id"), Value::Integer(number)),
        (word("mode"), word("standalone")),
        (word("role"), word(role)),
        (word("modules"), Value::Array(modules.collect())),
    ])
}
