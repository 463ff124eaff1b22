//! Administrative commands that operators, test suites and cautious clients send.

use super::call::{count, integer, is};
use super::{
    Call, Ending, Keys, LOADING, NO_MULTI, NO_SCRIPT, NO_SCRIPT_WAITS, Outcome, READ, Refusal,
    STALE, Spec, text,
};
use crate::Content;
use crate::profile::Feature;
use crate::resp::Value;
use crate::server::Config;
use crate::subscribed::Kind;

const ADMIN: u16 = NO_SCRIPT | LOADING | STALE;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::container("acl", ACL),
    Spec::new("asking", 1, 0, Keys::None, no_cluster),
    Spec::new("bgrewriteaof", 1, NO_SCRIPT, Keys::None, |_| {
        Ok(Value::simple("Background append only file rewriting started"))
    }),
    Spec::new("bgsave", -1, NO_SCRIPT, Keys::None, save_in_background),
    Spec::container("cluster", CLUSTER),
    Spec::container("config", CONFIG),
    Spec::new("debug", -2, ADMIN, Keys::None, no_debugging),
    Spec::new("lastsave", 1, LOADING | STALE, Keys::None, |call| {
        Ok(Value::Integer(call.server.saved_wall_s()))
    }),
    Spec::container("object", OBJECT),
    Spec::new("readonly", 1, LOADING | STALE, Keys::None, read_only),
    Spec::new("readwrite", 1, LOADING | STALE, Keys::None, read_only),
    Spec::new("replicaof", 3, NO_SCRIPT | STALE, Keys::None, follow),
    Spec::new("role", 1, ADMIN, Keys::None, role),
    Spec::new("save", 1, NO_SCRIPT | NO_MULTI, Keys::None, save),
    Spec::new("slaveof", 3, NO_SCRIPT | STALE, Keys::None, follow),
    Spec::new("wait", 3, NO_SCRIPT_WAITS, Keys::None, wait),
    Spec::new("waitaof", 4, NO_SCRIPT_WAITS, Keys::None, wait_for_disk)
        .where_there_is(Feature::WaitAof),
];

const ACL: &[Spec] = &[
    Spec::new("acl|deluser", -3, ADMIN, Keys::None, delete_users),
    Spec::new("acl|setuser", -3, ADMIN, Keys::None, set_user),
    Spec::new("acl|users", 2, ADMIN, Keys::None, |call| {
        let names = call.server.users().names().map(|name| Value::bulk(name));
        Ok(Value::Array(names.collect()))
    }),
    Spec::new("acl|whoami", 2, ADMIN, Keys::None, |call| Ok(Value::bulk(call.session.user_name()))),
];

const CLUSTER: &[Spec] = &[
    Spec::new("cluster|info", 2, STALE, Keys::None, no_cluster),
    Spec::new("cluster|keyslot", 3, STALE, Keys::None, no_cluster),
    Spec::new("cluster|myid", 2, STALE, Keys::None, no_cluster),
    Spec::new("cluster|nodes", 2, STALE, Keys::None, no_cluster),
    Spec::new("cluster|shards", 2, STALE, Keys::None, no_cluster),
    Spec::new("cluster|slots", 2, STALE, Keys::None, no_cluster),
];

const CONFIG: &[Spec] = &[
    Spec::new("config|get", -3, ADMIN, Keys::None, get),
    Spec::new("config|resetstat", 2, ADMIN, Keys::None, |call| {
        call.server.statistics_mut().reset();
        Ok(Value::ok())
    }),
    Spec::new("config|rewrite", 2, ADMIN, Keys::None, |_| {
        Err(Refusal::new("ERR The server is running without a config file"))
    }),
    Spec::new("config|set", -4, ADMIN, Keys::None, set),
];

const OBJECT: &[Spec] = &[Spec::new("object|encoding", 3, READ, Keys::Second, encoding)];

fn get(call: &mut Call<'_>) -> Outcome {
    let mut found = std::collections::BTreeMap::new();
    for pattern in &call.words[2..] {
        found.extend(call.server.config().matching(pattern));
    }
    let bulk = |word: &str| Value::bulk(word.as_bytes());
    Ok(Value::Map(found.into_iter().map(|(name, value)| (bulk(name), bulk(value))).collect()))
}

/// Sets all of the parameters or none.
fn set(call: &mut Call<'_>) -> Outcome {
    let (pairs, []) = call.words[2..].as_chunks() else { return Err(text::SYNTAX) };
    let mut parsed = Vec::new();
    for [name, value] in pairs {
        let (known, value) = match Config::parse(name, value) {
            Ok(it) => it,
            Err(None) => {
                let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
                return Err(text::around(before, name, "'"));
            }
            Err(Some(why)) => return Err(refused(name, &why)),
        };
        if parsed.iter().any(|(other, _)| *other == known) {
            return Err(refused(name, "duplicate parameter"));
        }
        // Persistence is fixed before the process starts.
        if known == "appendonly" && call.server.config().get(known) != value {
            return Err(refused(name, "can't set immutable config"));
        }
        parsed.push((known, value));
    }
    parsed.into_iter().for_each(|(name, value)| call.server.configure(name, value));
    Ok(Value::ok())
}

fn refused(name: &[u8], why: &str) -> Refusal {
    let after = format!("') - {why}");
    text::around("ERR CONFIG SET failed (possibly related to argument '", name, &after)
}

fn set_user(call: &mut Call<'_>) -> Outcome {
    let (name, rules) = (call.words[2], &call.words[3..]);
    let profile = call.server.profile();
    let meant_by = |subject: &[u8]| super::introspection::meant_by(subject, profile);
    match call.server.changed_users().set(name, rules, &meant_by) {
        Ok(loses_channels) => {
            if loses_channels {
                close_forbidden(call, name);
            }
            Ok(Value::ok())
        }
        Err((rule, why)) => {
            let after = format!("': {why}");
            Err(text::around("ERR Error in ACL SETUSER modifier '", rule, &after))
        }
    }
}

/// Closes the user's connections that are subscribed to channels which the user may no longer use.
fn close_forbidden(call: &mut Call<'_>, user: &[u8]) {
    if call.server.subscribed.is_empty() {
        return;
    }
    let Some(rights) = call.server.users().restricted(user) else { return };
    let subscribed = &call.server.subscribed;
    let is_forbidden = |id: u64| {
        let all = |kind, may: &dyn Fn(&[u8]) -> bool| {
            subscribed.names_of(kind, id).iter().all(|name| may(name))
        };
        !(all(Kind::Pattern, &|pattern| rights.may_hear_pattern(pattern))
            && all(Kind::Channel, &|channel| rights.may_hear(channel))
            && all(Kind::Shard, &|channel| rights.may_hear(channel)))
    };
    let clients = call.server.clients().iter();
    let theirs = clients.filter(|(id, client)| *client.user == *user && is_forbidden(*id));
    let theirs: Vec<u64> = theirs.map(|(id, _)| id).collect();
    theirs.into_iter().for_each(|id| call.kill(id));
}

/// Removes users, and closes their connections.
fn delete_users(call: &mut Call<'_>) -> Outcome {
    if call.words[2..].contains(&b"default".as_slice()) {
        return Err(Refusal::new("ERR The 'default' user cannot be removed"));
    }
    let mut removed = 0;
    for name in &call.words[2..] {
        if call.server.changed_users().remove(name) {
            removed += 1;
            let clients = call.server.clients().iter();
            let theirs = clients.filter(|(_, client)| *client.user == **name);
            let theirs: Vec<u64> = theirs.map(|(id, _)| id).collect();
            theirs.into_iter().for_each(|id| call.kill(id));
        }
    }
    Ok(count(removed))
}

fn no_cluster(_: &mut Call<'_>) -> Outcome {
    Err(Refusal::new("ERR This instance has cluster support disabled"))
}

fn read_only(call: &mut Call<'_>) -> Outcome {
    if call.server.profile().has(Feature::ReadOnlyAnywhere) {
        return Ok(Value::ok());
    }
    no_cluster(call)
}

fn no_debugging(_: &mut Call<'_>) -> Outcome {
    Err(Refusal::new(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
         you can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    ))
}

fn encoding(call: &mut Call<'_>) -> Outcome {
    const EMBEDDED_MAX: usize = 44;
    let value = match call.content(call.words[2]) {
        None => return Ok(Value::Null),
        Some(Content::Hash(fields)) if fields.is_short() => return Ok(Value::bulk(b"listpack")),
        Some(Content::Hash(_)) => return Ok(Value::bulk(b"hashtable")),
        Some(Content::List(_)) => return Ok(Value::bulk(b"quicklist")),
        Some(Content::SortedSet(set)) if set.is_short() => return Ok(Value::bulk(b"listpack")),
        Some(Content::SortedSet(_)) => return Ok(Value::bulk(b"skiplist")),
        Some(Content::String(value)) => value,
    };
    Ok(Value::bulk(match integer(&value) {
        Ok(_) => b"int",
        Err(_) if value.len() <= EMBEDDED_MAX => b"embstr",
        Err(_) => b"raw",
    }))
}

fn save_in_background(call: &mut Call<'_>) -> Outcome {
    if !matches!(*call.arguments(), []) && !is(call.arguments()[0], "SCHEDULE") {
        return Err(text::SYNTAX);
    }
    let wall_ms = call.wall_ms();
    call.server.save(wall_ms);
    Ok(Value::simple("Background saving started"))
}

fn save(call: &mut Call<'_>) -> Outcome {
    let wall_ms = call.wall_ms();
    if call.server.save(wall_ms) { Ok(Value::ok()) } else { Err(Refusal::new("ERR")) }
}

fn follow(call: &mut Call<'_>) -> Outcome {
    let &[host, port] = call.arguments() else { return Err(call.arity()) };
    let nobody = is(host, "NO") && is(port, "ONE");
    let port = integer(port).ok().filter(|port| (0..=65_535).contains(port));
    if !nobody && port.is_none() {
        return Err(Refusal::new("ERR Invalid master port"));
    }
    call.server.set_replica(!nobody);
    Ok(Value::ok())
}

fn role(call: &mut Call<'_>) -> Outcome {
    if call.server.is_replica() {
        let words = [b"slave".as_slice(), b"127.0.0.1"].map(Value::bulk).to_vec();
        let rest = [Value::Integer(6_379), Value::bulk(b"connect"), Value::Integer(-1)];
        return Ok(Value::Array([words, rest.to_vec()].concat()));
    }
    Ok(Value::Array(vec![Value::bulk(b"master"), Value::Integer(0), Value::Array(Vec::new())]))
}

fn timeout_of(call: &Call<'_>, word: &[u8]) -> Result<i64, Refusal> {
    let ends = call.server.profile().has(Feature::WaitEnds);
    text::timeout(word, ends.then(|| call.wall_ms()))
}

/// `WAIT`. Does not wait within a transaction or a script, or if enough replicas already have the
/// writes.
fn wait(call: &mut Call<'_>) -> Outcome {
    let &[replicas, timeout] = call.arguments() else { return Err(call.arity()) };
    if call.server.is_replica() {
        return Err(Refusal::new(call.server.profile().texts.wait_on_replica));
    }
    let replicas = integer(replicas)?;
    let timeout_ms = timeout_of(call, timeout)?;
    let have = call.server.replica_count();
    if !call.is_inner && have < replicas {
        call.ending = Some(Ending::Wait { replicas, timeout_ms });
    }
    Ok(Value::Integer(have))
}

/// `WAITAOF`: like [`wait`], for the append-only log.
fn wait_for_disk(call: &mut Call<'_>) -> Outcome {
    let &[local, replicas, timeout] = call.arguments() else { return Err(call.arity()) };
    let local = integer(local)?;
    if !(0..=1).contains(&local) {
        return Err(Refusal::new("ERR value is out of range, value must between 0 and 1"));
    }
    let Some(replicas) = integer(replicas).ok().filter(|replicas| *replicas >= 0) else {
        return Err(Refusal::new("ERR value is out of range, must be positive"));
    };
    let timeout_ms = timeout_of(call, timeout)?;
    let appends = call.server.config().is_on("appendonly");
    if local > 0 && !appends {
        return Err(Refusal::new(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    let kept = i64::from(appends && !call.server.disk().is_sync_due());
    let have = call.server.replica_count();
    if !call.is_inner && (kept < local || have < replicas) {
        call.ending = Some(Ending::Wait { replicas, timeout_ms });
    }
    Ok(Value::Array(vec![Value::Integer(kept), Value::Integer(have)]))
}
