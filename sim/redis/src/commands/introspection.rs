//! `COMMAND`: a server's description of its commands; and the commands that a rule of `ACL SETUSER`
//! selects.

use super::call::{count, is};
use super::dispatch::look_up;
use super::facts::{self, Facts, KeySpec, Place};
use super::{
    Call, Channels, Keys, LOADING, NO_SCRIPT_WAITS, Outcome, Refusal, SORTED, STALE, Spec, text,
};
use crate::glob;
use crate::profile::{Feature, Profile};
use crate::resp::Value;
use crate::server::Server;

const FLAGS: u16 = LOADING | STALE;

pub(super) const COMMANDS: &[Spec] = &[Spec::group("command", FLAGS, SUBCOMMANDS, all)];

const SUBCOMMANDS: &[Spec] = &[
    sub("command|count", 2, |call| Ok(count(known(call.server).count()))),
    sub("command|docs", -2, docs),
    sub("command|getkeys", -4, keys),
    sub("command|info", -2, info),
    sub("command|list", -2, list),
];

const fn sub(name: &'static str, arity: i8, run: super::Run) -> Spec {
    Spec::new(name, arity, FLAGS, Keys::None, run)
}

/// Iterates over the commands of the server, without subcommands.
fn known(server: &Server) -> impl Iterator<Item = &'static Spec> {
    SORTED.iter().copied().filter(|spec| server.has(spec))
}

/// Iterates over a command and its subcommands.
fn with_subcommands(spec: &'static Spec) -> impl Iterator<Item = &'static Spec> {
    core::iter::once(spec).chain(spec.subcommands)
}

/// Finds the command or subcommand of this whole name (`client|id`).
fn named(name: &[u8], server: &Server) -> Option<&'static Spec> {
    let parts: Vec<&[u8]> = name.split(|&byte| byte == b'|').collect();
    let spec = look_up(&parts, server).ok()?;
    let is_whole = parts.len() == spec.name.split('|').count();
    is_whole.then_some(spec)
}

/// Returns the names of the commands that a rule of `ACL SETUSER` means: those of a category
/// (`@read`), or one command or subcommand. Returns `None` if there is no such category or command.
pub(super) fn meant_by(subject: &[u8], profile: &Profile) -> Option<Vec<&'static str>> {
    let mut every = SORTED.iter().copied().flat_map(with_subcommands);
    if let [b'@', name @ ..] = subject {
        let category = facts::category(name)?;
        let is_in = |spec: &&Spec| {
            // Servers that do not forbid a command in scripts call it blocking instead.
            let blocks = spec.has(NO_SCRIPT_WAITS) && profile.has(Feature::WaitInScripts);
            let more = blocks.then_some("blocking");
            Facts::of(spec).categories().chain(more).any(|it| it == category)
        };
        return Some(every.filter(is_in).map(|spec| spec.name).collect());
    }
    let spec = every.find(|spec| subject.eq_ignore_ascii_case(spec.name.as_bytes()))?;
    Some(vec![spec.name])
}

fn all(call: &mut Call<'_>) -> Outcome {
    let server = &*call.server;
    Ok(Value::Array(known(server).map(|spec| description(spec, server)).collect()))
}

fn info(call: &mut Call<'_>) -> Outcome {
    let names = &call.words[2..];
    if names.is_empty() {
        return all(call);
    }
    let server = &*call.server;
    let described = names.iter().map(|name| match named(name, server) {
        Some(spec) => description(spec, server),
        None => Value::Null,
    });
    Ok(Value::Array(described.collect()))
}

/// `COMMAND DOCS`, limited to the group of a command and the version that brought it.
fn docs(call: &mut Call<'_>) -> Outcome {
    let server = &*call.server;
    let names = &call.words[2..];
    let specs: Vec<&Spec> = match names {
        [] => known(server).collect(),
        names => names.iter().filter_map(|name| named(name, server)).collect(),
    };
    let documented = specs.into_iter().map(|spec| {
        let Facts { group, since, .. } = Facts::of(spec);
        let pairs = [("since", since), ("group", group)];
        (word(spec.name), Value::Map(pairs.map(|(name, text)| (word(name), word(text))).to_vec()))
    });
    Ok(Value::Map(documented.collect()))
}

fn list(call: &mut Call<'_>) -> Outcome {
    let every = known(call.server).flat_map(with_subcommands).filter(|it| call.server.has(it));
    let names = |specs: Vec<&Spec>| {
        Ok(Value::Array(specs.into_iter().map(|spec| word(spec.name)).collect()))
    };
    match call.words[2..] {
        [] => names(every.collect()),
        [option, kind, _] if is(option, "FILTERBY") && is(kind, "MODULE") => names(Vec::new()),
        [option, kind, name] if is(option, "FILTERBY") && is(kind, "ACLCAT") => {
            let category = facts::category(name);
            let is_in = |spec: &&Spec| Facts::of(spec).categories().any(|it| Some(it) == category);
            names(every.filter(is_in).collect())
        }
        [option, kind, pattern] if is(option, "FILTERBY") && is(kind, "PATTERN") => {
            let pattern = pattern.to_ascii_lowercase();
            names(every.filter(|it| glob::matches(&pattern, it.name.as_bytes())).collect())
        }
        _ => Err(text::SYNTAX),
    }
}

/// `COMMAND GETKEYS`.
fn keys(call: &mut Call<'_>) -> Outcome {
    let words = &call.words[2..];
    let spec = look_up(words, call.server);
    let spec = spec.map_err(|_| Refusal::new("ERR Invalid command specified"))?;
    if spec.keys == Keys::None || spec.channels != Channels::None {
        return Err(Refusal::new("ERR The command has no key arguments"));
    }
    if !spec.takes(words.len()) {
        return Err(Refusal::new("ERR Invalid number of arguments specified for command"));
    }
    Ok(Value::Array(spec.keys.of(words).map(Value::bulk).collect()))
}

fn word(text: &str) -> Value {
    Value::bulk(text.as_bytes())
}

fn statuses(words: impl Iterator<Item = &'static str>) -> Value {
    Value::Set(words.map(Value::simple).collect())
}

/// Returns the reply of `COMMAND INFO` about one command.
fn description(spec: &Spec, server: &Server) -> Value {
    let facts = Facts::of(spec);
    let [first, last, step] = spec.keys.range().map(Value::Integer);
    let categories = facts.categories().map(|name| Value::simple(format!("@{name}")));
    let subcommands = spec.subcommands.iter().filter(|it| server.has(it));
    Value::Array(vec![
        word(spec.name),
        Value::Integer(i64::from(spec.arity)),
        statuses(facts.flags()),
        first,
        last,
        step,
        Value::Set(categories.collect()),
        Value::Set(facts.tips().map(word).collect()),
        Value::Set(facts.keys().map(key_spec).collect()),
        Value::Set(subcommands.map(|it| description(it, server)).collect()),
    ])
}

fn key_spec(spec: KeySpec) -> Value {
    let numbers = |names: [&str; 3], numbers: [i64; 3]| {
        let pairs = names.into_iter().zip(numbers);
        pairs.map(|(name, number)| (word(name), Value::Integer(number))).collect()
    };
    let (kind, place) = match spec.place {
        Place::Range(it) => ("range", numbers(["lastkey", "keystep", "limit"], it)),
        Place::Counted(it) => ("keynum", numbers(["keynumidx", "firstkey", "keystep"], it)),
    };
    let typed =
        |kind, spec| Value::Map(vec![(word("type"), word(kind)), (word("spec"), Value::Map(spec))]);
    let index = vec![(word("index"), Value::Integer(spec.index))];
    let mut pairs: Vec<_> =
        spec.notes.map(|notes| (word("notes"), word(notes))).into_iter().collect();
    pairs.push((word("flags"), statuses(spec.flags.split(' ').filter(|it| !it.is_empty()))));
    pairs.push((word("begin_search"), typed("index", index)));
    pairs.push((word("find_keys"), typed(kind, place)));
    Value::Map(pairs)
}
