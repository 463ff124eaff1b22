//! Publish/subscribe: the channels and patterns to which connections are subscribed.

use std::collections::{BTreeMap, BTreeSet};

use crate::events::{Event, Events};
use crate::glob::matches;
use crate::pushes::{Message, Pushes, Source};
use crate::{SmallBytes, trees};

/// Kind of subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Channel,
    Pattern,
    Shard,
}

/// Number of kinds.
const KINDS: usize = 3;

/// The subscriptions of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscribed {
    /// The connections subscribed to each name, by kind. No set is empty.
    names: [BTreeMap<SmallBytes, BTreeSet<u64>>; KINDS],
    /// The names to which each connection is subscribed, by kind. Each has one at least.
    connections: BTreeMap<u64, [BTreeSet<SmallBytes>; KINDS]>,
}

impl Subscribed {
    /// Returns true if no connection is subscribed to anything.
    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn subscribe(&mut self, kind: Kind, connection: u64, name: &[u8]) {
        let name = SmallBytes::new(name);
        let own = &mut self.connections.entry(connection).or_default()[kind as usize];
        if own.insert(name.clone()) {
            self.names[kind as usize].entry(name).or_default().insert(connection);
        }
    }

    pub(super) fn unsubscribe(&mut self, kind: Kind, connection: u64, name: &[u8]) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if !own[kind as usize].remove(name) {
            return;
        }
        if own.iter().all(BTreeSet::is_empty) {
            self.connections.remove(&connection);
        }
        self.leave(kind as usize, connection, name);
    }

    fn leave(&mut self, kind: usize, connection: u64, name: &[u8]) {
        if let Some(connections) = self.names[kind].get_mut(name) {
            connections.remove(&connection);
            if connections.is_empty() {
                self.names[kind].remove(name);
            }
        }
    }

    /// Ends all subscriptions of a connection.
    pub(super) fn close(&mut self, connection: u64) {
        let kinds = self.connections.remove(&connection).into_iter().flatten().enumerate();
        for (kind, names) in kinds {
            names.iter().for_each(|name| self.leave(kind, connection, name));
        }
    }

    /// Returns the names to which a connection is subscribed, sorted. Real servers use the order of
    /// a hash table.
    pub(super) fn names_of(&self, kind: Kind, connection: u64) -> Vec<SmallBytes> {
        let own = self.connections.get(&connection).map(|own| &own[kind as usize]);
        own.into_iter().flatten().cloned().collect()
    }

    /// Returns the numbers of a connection's channels, patterns and shard channels.
    pub(super) fn counts(&self, connection: u64) -> [usize; KINDS] {
        let own = self.connections.get(&connection);
        own.map_or([0; KINDS], |own| own.each_ref().map(BTreeSet::len))
    }

    /// Iterates over the names that have a subscriber, in order.
    pub(super) fn names(&self, kind: Kind) -> impl Iterator<Item = &SmallBytes> {
        self.names[kind as usize].keys()
    }

    /// Returns the number of connections subscribed to `name`.
    pub(super) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.names[kind as usize].get(name).map_or(0, BTreeSet::len)
    }

    /// Pushes a message to the subscribers of a channel, and then, unless it is a shard channel, to
    /// those of each matching pattern. Returns the number of pushes. Costs nothing without
    /// subscribers.
    pub(super) fn publish(
        &self,
        is_shard: bool,
        channel: &[u8],
        payload: &[u8],
        pushes: &mut Pushes,
    ) -> usize {
        if self.is_empty() {
            return 0;
        }
        let (kind, source) = match is_shard {
            true => (Kind::Shard, Source::Shard),
            false => (Kind::Channel, Source::Channel),
        };
        let named = self.names[kind as usize].get(channel).map(|it| (source, it));
        let patterns = self.names[Kind::Pattern as usize].iter();
        let patterns = patterns.filter(|(pattern, _)| !is_shard && matches(pattern, channel));
        let patterns = patterns.map(|(pattern, it)| (Source::Pattern(pattern.clone()), it));
        let mut count = 0;
        for (source, connections) in named.into_iter().chain(patterns) {
            for &connection in connections {
                let (channel, payload) = (SmallBytes::new(channel), SmallBytes::new(payload));
                let source = source.clone();
                pushes.add(connection, Message::Published { source, channel, payload });
                count += 1;
            }
        }
        count
    }

    /// Publishes a keyspace event in the forms that the configuration names, if it names its class.
    /// Costs nothing without subscribers.
    pub(super) fn notify(&self, events: Events, event: Event<'_>, pushes: &mut Pushes) {
        if self.is_empty() || events.is_off() || !events.has(event.class) {
            return;
        }
        let Event { name, database, key, .. } = event;
        if events.by_key() {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            self.publish(false, &channel, name.as_bytes(), pushes);
        }
        if events.by_event() {
            let channel = format!("__keyevent@{database}__:{name}");
            self.publish(false, channel.as_bytes(), key, pushes);
        }
    }

    /// Forgets everything: a new process starts.
    pub(super) fn clear(&mut self) {
        self.names.iter_mut().for_each(trees::clear);
        trees::clear(&mut self.connections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(subscribed: &Subscribed, is_shard: bool, channel: &[u8]) -> Vec<(u64, Source)> {
        let mut pushes = Pushes::default();
        let count = subscribed.publish(is_shard, channel, b"m", &mut pushes);
        let pushes = pushes.take().into_iter().map(|push| match push.message {
            Message::Published { source, .. } => (push.connection, source),
            other => unreachable!("nothing else happened: {other:?}"),
        });
        let pushes: Vec<_> = pushes.collect();
        assert_eq!(pushes.len(), count);
        pushes
    }

    #[test]
    fn each_matching_subscription_brings_the_message_once() {
        let mut subscribed = Subscribed::default();
        let pattern = |text: &[u8]| Source::Pattern(SmallBytes::new(text));
        subscribed.subscribe(Kind::Channel, 1, b"a");
        subscribed.subscribe(Kind::Channel, 1, b"a");
        subscribed.subscribe(Kind::Pattern, 1, b"[ab]");
        subscribed.subscribe(Kind::Pattern, 2, b"?");
        subscribed.subscribe(Kind::Shard, 3, b"a");
        let expected = [(1, Source::Channel), (2, pattern(b"?")), (1, pattern(b"[ab]"))];
        assert_eq!(published(&subscribed, false, b"a"), expected);
        assert_eq!(published(&subscribed, true, b"a"), [(3, Source::Shard)]);
        assert_eq!(published(&subscribed, true, b"b"), []);
        assert_eq!(subscribed.counts(1), [1, 1, 0]);
    }

    #[test]
    fn ended_subscriptions_leave_nothing() {
        let mut subscribed = Subscribed::default();
        for connection in [1, 2] {
            subscribed.subscribe(Kind::Channel, connection, b"a");
            subscribed.subscribe(Kind::Pattern, connection, b"*");
            subscribed.subscribe(Kind::Shard, connection, b"a");
        }
        subscribed.close(1);
        assert_eq!(published(&subscribed, false, b"a").len(), 2);
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            let names = subscribed.names_of(kind, 2);
            names.iter().for_each(|name| subscribed.unsubscribe(kind, 2, name));
        }
        assert_eq!(subscribed, Subscribed::default());
    }

    #[test]
    fn an_unknown_subscription_ends_nothing() {
        let mut subscribed = Subscribed::default();
        subscribed.subscribe(Kind::Channel, 1, b"a");
        subscribed.unsubscribe(Kind::Pattern, 1, b"a");
        subscribed.unsubscribe(Kind::Channel, 2, b"a");
        assert_eq!(subscribed.subscribers(Kind::Channel, b"a"), 1);
    }
}
