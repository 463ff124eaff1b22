//! Publish/subscribe.

use super::call::count;
use super::{
    Call, Channels, Keys, LOADING, MAY_REPLICATE, NO_SCRIPT, Outcome, Refusal, STALE, SUBSCRIBER,
    Spec, text,
};
use crate::glob::matches;
use crate::resp::Value;
use crate::subscribed::Kind;

const SUBSCRIBE: u16 = NO_SCRIPT | LOADING | STALE | SUBSCRIBER;
const PUBLISH: u16 = LOADING | STALE | MAY_REPLICATE;

const PUBSUB: &[Spec] = &[
    show("pubsub|channels", -2, |call| channels(call, Kind::Channel)),
    show("pubsub|numpat", 2, |call| Ok(count(call.server.subscribed.names(Kind::Pattern).count()))),
    show("pubsub|numsub", -2, |call| Ok(subscribers(call, Kind::Channel))),
    show("pubsub|shardchannels", -2, |call| channels(call, Kind::Shard)),
    show("pubsub|shardnumsub", -2, |call| Ok(subscribers(call, Kind::Shard))),
];

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("psubscribe", -2, SUBSCRIBE, Keys::None, |call| subscribe(call, Kind::Pattern))
        .on(Channels::Patterns),
    Spec::new("publish", 3, PUBLISH, Keys::None, |call| Ok(publish(call, false)))
        .on(Channels::First),
    Spec::container("pubsub", PUBSUB),
    Spec::new("punsubscribe", -1, SUBSCRIBE, Keys::None, |call| unsubscribe(call, Kind::Pattern))
        .on(Channels::Left),
    Spec::new("spublish", 3, PUBLISH, Keys::First, |call| Ok(publish(call, true)))
        .on(Channels::First),
    Spec::new("ssubscribe", -2, SUBSCRIBE, Keys::All, |call| subscribe(call, Kind::Shard))
        .on(Channels::All),
    Spec::new("subscribe", -2, SUBSCRIBE, Keys::None, |call| subscribe(call, Kind::Channel))
        .on(Channels::All),
    Spec::new("sunsubscribe", -1, SUBSCRIBE, Keys::All, |call| unsubscribe(call, Kind::Shard))
        .on(Channels::Left),
    Spec::new("unsubscribe", -1, SUBSCRIBE, Keys::None, |call| unsubscribe(call, Kind::Channel))
        .on(Channels::Left),
];

const fn show(name: &'static str, arity: i8, run: super::Run) -> Spec {
    Spec::new(name, arity, LOADING | STALE, Keys::None, run)
}

fn publish(call: &mut Call<'_>, is_shard: bool) -> Value {
    let (channel, payload) = (call.words[1], call.words[2]);
    count(call.server.publish(is_shard, channel, payload))
}

fn subscribe(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let verb: &[u8] = match kind {
        Kind::Channel => b"subscribe",
        Kind::Pattern => b"psubscribe",
        Kind::Shard => b"ssubscribe",
    };
    // Real servers except the older commands from their rule about transactions.
    if call.is_inner && kind == Kind::Shard {
        return Err(Refusal::new("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    let id = call.session.id();
    let messages = call.arguments().iter().map(|name| {
        call.server.subscribed.subscribe(kind, id, name);
        confirmation(call, kind, verb, Value::bulk(name))
    });
    let messages = messages.collect();
    call.session.set_subscribed(true);
    Ok(Value::Sequence(messages))
}

/// Ends the named subscriptions of the connection, or all of this kind. There is a message for each
/// name, and one in any case.
fn unsubscribe(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let verb: &[u8] = match kind {
        Kind::Channel => b"unsubscribe",
        Kind::Pattern => b"punsubscribe",
        Kind::Shard => b"sunsubscribe",
    };
    let id = call.session.id();
    let names: Vec<_> = match call.arguments() {
        [] => call.server.subscribed.names_of(kind, id).iter().map(|it| it.share()).collect(),
        names => names.iter().map(|name| bytes::Bytes::copy_from_slice(name)).collect(),
    };
    let messages = names.iter().map(|name| {
        call.server.subscribed.unsubscribe(kind, id, name);
        confirmation(call, kind, verb, Value::Bulk(name.clone()))
    });
    let mut messages: Vec<_> = messages.collect();
    if messages.is_empty() {
        messages.push(confirmation(call, kind, verb, Value::Null));
    }
    call.session.set_subscribed(call.server.subscribed.counts(id) != [0; 3]);
    Ok(Value::Sequence(messages))
}

/// Returns the message about one subscription, with the number of those left. Shard channels are
/// counted by themselves.
fn confirmation(call: &Call<'_>, kind: Kind, verb: &[u8], name: Value) -> Value {
    let [channels, patterns, shards] = call.server.subscribed.counts(call.session.id());
    let left = if kind == Kind::Shard { shards } else { channels + patterns };
    Value::Push(vec![Value::bulk(verb), name, count(left)])
}

fn channels(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let pattern = match call.words[2..] {
        [] => None,
        [pattern] => Some(pattern),
        _ => return Err(text::subcommand_arity("pubsub", call.words[1])),
    };
    let names = call.server.subscribed.names(kind);
    let names = names.filter(|name| pattern.is_none_or(|pattern| matches(pattern, name)));
    Ok(Value::Array(names.map(|name| Value::Bulk(name.share())).collect()))
}

fn subscribers(call: &Call<'_>, kind: Kind) -> Value {
    let numbers = call.words[2..].iter().flat_map(|name| {
        [Value::bulk(name), count(call.server.subscribed.subscribers(kind, name))]
    });
    Value::Array(numbers.collect())
}
