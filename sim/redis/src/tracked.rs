//! Client-side caching (`CLIENT TRACKING`): the keys that listening connections have read, and the
//! pushes caused by changes of these keys.
//!
//! Keys are registered by name, without their database, as real servers do.

use std::collections::{BTreeMap, BTreeSet};

use crate::pushes::{Message, Pushes};
use crate::{SmallBytes, trees};

/// Default limit on the number of keys in the table (`tracking-table-max-keys`).
const KEYS_MAX: usize = 1_000_000;

/// The tracking table of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    listeners: BTreeMap<u64, Listener>,
    /// Connections that read a key, including closed ones, until the key changes.
    readers: BTreeMap<SmallBytes, BTreeSet<u64>>,
    /// The connection whose request is being executed.
    current: Option<u64>,
    /// The connection whose request has ended its tracking, and the target of its redirection, to
    /// which the invalidations by this request still go.
    ended: Option<(u64, u64)>,
    /// Limit on the number of keys; 0 means no limit.
    keys_max: usize,
}

impl Default for Tracked {
    fn default() -> Self {
        Self {
            listeners: BTreeMap::new(),
            readers: BTreeMap::new(),
            current: None,
            ended: None,
            keys_max: KEYS_MAX,
        }
    }
}

/// Options of a listening connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) mode: Mode,
    /// True if the connection's own changes are not pushed to it.
    pub(super) noloop: bool,
    /// True if `CLIENT CACHING` reverses the mode for the next command.
    pub(super) is_reversed: bool,
    /// The connection that gets the invalidations instead.
    pub(super) redirect: Option<u64>,
    /// True if that connection had ended when there was an invalidation for it.
    pub(super) is_broken: bool,
}

/// Commands whose reads are registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// All commands.
    #[default]
    All,
    /// Commands after `CLIENT CACHING YES` (`OPTIN`).
    OptIn,
    /// All commands but those after `CLIENT CACHING NO` (`OPTOUT`).
    OptOut,
}

impl Tracked {
    /// Makes `connection` listen with these options. A reversal stays in force.
    pub(super) fn listen(
        &mut self,
        connection: u64,
        (mode, noloop): (Mode, bool),
        redirect: Option<u64>,
    ) {
        let listener = self.listeners.entry(connection).or_default();
        let is_reversed = listener.is_reversed;
        *listener = Listener { mode, noloop, is_reversed, redirect, is_broken: false };
    }

    /// Stops listening. Keys that the connection has read stay registered.
    pub(super) fn stop(&mut self, connection: u64) {
        if let Some(listener) = self.listeners.remove(&connection) {
            self.ended = listener.redirect.map(|target| (connection, target));
        }
    }

    /// Forgets a closed connection.
    pub(super) fn close(&mut self, connection: u64) {
        self.listeners.remove(&connection);
    }

    /// Returns true if any connection listens; otherwise nothing needs to be registered.
    pub(super) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    pub(super) fn listener(&self, connection: u64) -> Option<Listener> {
        self.listeners.get(&connection).copied()
    }

    /// Returns the connection that gets the invalidations of `connection` instead.
    pub(super) fn redirect(&self, connection: u64) -> Option<u64> {
        match self.listener(connection) {
            Some(listener) => listener.redirect,
            None => self.ended.filter(|ended| ended.0 == connection).map(|ended| ended.1),
        }
    }

    /// Sets or ends the reversal by `CLIENT CACHING`.
    pub(super) fn reverse(&mut self, connection: u64, is_reversed: bool) {
        if let Some(listener) = self.listeners.get_mut(&connection) {
            listener.is_reversed = is_reversed;
        }
    }

    /// Registers `connection` as a reader of `keys`. Costs nothing if it does not listen.
    pub(super) fn remember<'a>(&mut self, connection: u64, keys: impl Iterator<Item = &'a [u8]>) {
        let Some(listener) = self.listener(connection) else { return };
        let is_meant = match listener.mode {
            Mode::All => true,
            Mode::OptIn => listener.is_reversed,
            Mode::OptOut => !listener.is_reversed,
        };
        for key in keys.filter(|_| is_meant) {
            self.readers.entry(SmallBytes::new(key)).or_default().insert(connection);
        }
    }

    pub(super) fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
    }

    /// Begins the execution of a request of `connection`. First drops keys over the limit and
    /// pushes them as if they had changed.
    pub(super) fn begin(&mut self, connection: u64, pushes: &mut Pushes) {
        while self.keys_max > 0
            && self.readers.len() > self.keys_max
            && let Some((key, _)) = self.readers.first_key_value()
        {
            let key = key.clone();
            self.note(&key, pushes);
        }
        self.current = Some(connection);
        self.ended = None;
    }

    /// Ends the execution of the request.
    pub(super) fn end(&mut self) {
        self.current = None;
    }

    /// Pushes the change of `key`, in whatever database, to each connection that read it, and
    /// removes the registrations. Costs nothing while the table is empty.
    #[inline]
    pub(super) fn note(&mut self, key: &[u8], pushes: &mut Pushes) {
        if !self.readers.is_empty() {
            self.tell_readers(key, pushes);
        }
    }

    fn tell_readers(&mut self, key: &[u8], pushes: &mut Pushes) {
        for connection in self.readers.remove(key).into_iter().flatten() {
            let Some(listener) = self.listeners.get(&connection) else { continue };
            if !(listener.noloop && self.current == Some(connection)) {
                self.push(connection, Some(SmallBytes::new(key)), pushes);
            }
        }
    }

    /// Pushes an invalidation. One by the connection itself comes after everything else that the
    /// request causes.
    fn push(&self, connection: u64, key: Option<SmallBytes>, pushes: &mut Pushes) {
        let message = Message::Invalidated(key);
        match self.current == Some(connection) {
            true => pushes.add_last(connection, message),
            false => pushes.add(connection, message),
        }
    }

    /// Records that the connection to which `connection` redirects has ended.
    pub(super) fn set_broken(&mut self, connection: u64) {
        if let Some(listener) = self.listeners.get_mut(&connection) {
            listener.is_broken = true;
        }
    }

    /// Pushes the removal of all keys to every listening connection, whatever it has read.
    pub(super) fn empty(&mut self, pushes: &mut Pushes) {
        for &connection in self.listeners.keys() {
            self.push(connection, None, pushes);
        }
        self.readers.clear();
    }

    /// Forgets everything: a new process starts.
    pub(super) fn clear(&mut self) {
        trees::clear(&mut self.listeners);
        trees::clear(&mut self.readers);
        self.current = None;
        self.ended = None;
    }

    pub(super) fn listener_count(&self) -> usize {
        self.listeners.len()
    }

    /// Returns the number of registered keys and the number of pairs of a key and a connection.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.readers.len(), self.readers.values().map(BTreeSet::len).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(connection: u64, mode: Mode, noloop: bool) -> Tracked {
        let mut tracked = Tracked::default();
        tracked.listen(connection, (mode, noloop), None);
        tracked
    }

    fn read(tracked: &mut Tracked, connection: u64, key: &[u8]) {
        tracked.remember(connection, core::iter::once(key));
    }

    fn pushed(pushes: &mut Pushes) -> Vec<(u64, Option<Vec<u8>>)> {
        let pushes = pushes.take().into_iter();
        pushes
            .map(|push| match push.message {
                Message::Invalidated(key) => (push.connection, key.map(|key| key.to_vec())),
                other => unreachable!("nothing else happened: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_change_is_pushed_once_for_each_read() {
        let mut tracked = listening(1, Mode::All, false);
        let mut pushes = Pushes::default();
        read(&mut tracked, 1, b"k");
        tracked.note(b"other", &mut pushes);
        tracked.note(b"k", &mut pushes);
        tracked.note(b"k", &mut pushes);
        assert_eq!(pushed(&mut pushes), [(1, Some(b"k".to_vec()))]);
        read(&mut tracked, 1, b"k");
        tracked.note(b"k", &mut pushes);
        assert_eq!(pushed(&mut pushes), [(1, Some(b"k".to_vec()))]);
    }

    #[test]
    fn a_connection_without_tracking_registers_nothing() {
        let mut tracked = listening(1, Mode::All, false);
        read(&mut tracked, 2, b"k");
        assert_eq!(tracked.counts(), (0, 0));
    }

    #[test]
    fn noloop_drops_the_registration_without_a_push() {
        let mut tracked = listening(1, Mode::All, true);
        let mut pushes = Pushes::default();
        read(&mut tracked, 1, b"k");
        tracked.begin(1, &mut pushes);
        tracked.note(b"k", &mut pushes);
        tracked.end();
        tracked.note(b"k", &mut pushes);
        assert_eq!(pushed(&mut pushes), []);
    }

    #[test]
    fn caching_reverses_the_mode() {
        for (mode, is_reversed, remembers) in [
            (Mode::All, true, true),
            (Mode::OptIn, false, false),
            (Mode::OptIn, true, true),
            (Mode::OptOut, false, true),
            (Mode::OptOut, true, false),
        ] {
            let mut tracked = listening(1, mode, false);
            tracked.reverse(1, is_reversed);
            read(&mut tracked, 1, b"k");
            assert_eq!(tracked.counts().0 == 1, remembers, "{mode:?} {is_reversed}");
        }
    }

    #[test]
    fn emptied_data_set_is_pushed_to_all_and_clears_the_table() {
        let mut tracked = listening(1, Mode::OptIn, true);
        let mut pushes = Pushes::default();
        tracked.listen(2, (Mode::All, false), None);
        read(&mut tracked, 2, b"k");
        tracked.begin(1, &mut pushes);
        tracked.empty(&mut pushes);
        tracked.note(b"k", &mut pushes);
        pushes.end_request();
        assert_eq!(pushed(&mut pushes), [(2, None), (1, None)]);
    }

    #[test]
    fn registrations_outlive_tracking_off() {
        let mut tracked = listening(1, Mode::All, false);
        let mut pushes = Pushes::default();
        read(&mut tracked, 1, b"k");
        tracked.stop(1);
        tracked.listen(1, (Mode::All, false), None);
        tracked.note(b"k", &mut pushes);
        assert_eq!(pushed(&mut pushes), [(1, Some(b"k".to_vec()))]);
    }

    #[test]
    fn a_table_that_is_too_large_gives_keys_up_and_says_so() {
        let mut tracked = listening(1, Mode::All, true);
        let mut pushes = Pushes::default();
        tracked.set_keys_max(1);
        read(&mut tracked, 1, b"k");
        tracked.begin(1, &mut pushes);
        tracked.end();
        assert_eq!(pushed(&mut pushes), []);
        read(&mut tracked, 1, b"l");
        tracked.begin(1, &mut pushes);
        assert_eq!(pushed(&mut pushes), [(1, Some(b"k".to_vec()))]);
        assert_eq!(tracked.counts(), (1, 1));
    }

    #[test]
    fn a_closed_connection_is_pushed_nothing() {
        let mut tracked = listening(1, Mode::All, false);
        let mut pushes = Pushes::default();
        read(&mut tracked, 1, b"k");
        tracked.close(1);
        tracked.note(b"k", &mut pushes);
        assert_eq!(pushed(&mut pushes), []);
    }
}
