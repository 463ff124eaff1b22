//! Attribution of requests to attempts.
//!
//! A request with a value belongs to the attempt with that value. The value that a master stores names
//! the attempt, too: only the master knows what a script makes of its arguments. A request without a
//! value is attributed by the key that it meets.

use bytes::Bytes;
use lock_judge::history::{ClientId, CommandId, OpKind, Writer};
use redis_sim::script::Sha;
use redis_sim::server::Touched;
use redis_sim::{Change, Reply};

use super::{Log, SCRIPTS_MAX, Use, number_of, preliminary};
use crate::keys::writer_of;
use crate::serve::meaning::{self, Meaning};
use crate::serve::recorder::{Peer, Told};

impl Log {
    /// Returns the attempt of a request, and the purpose of the request: `Set` if it asks for the
    /// lock. Returns `None` if the request belongs to no attempt.
    pub(in crate::serve::recorder) fn use_of(
        &mut self,
        peer: &Peer,
        meaning: &Meaning<'_>,
    ) -> Option<(u32, OpKind)> {
        let worker = self.worker_named(peer.name.as_deref());
        let place = meaning.script.and_then(|script| self.places.get(&script));
        let token = place.and_then(|&it| meaning.values.get(it)).or(meaning.token);
        let mut values = token.into_iter().chain(meaning.values);
        let known = values.find_map(|it| self.with_value(it, worker));
        let known = known.or_else(|| self.with_word(peer, meaning.script?, token?));
        let votes = meaning.op == Some(OpKind::Set);
        let asks = |it: &Use| votes || (it.script.is_some() && it.script == meaning.script);
        let number = match (known, token) {
            (Some(number), Some(value)) => {
                // A request with the same value to the same node, after a section, starts a new
                // attempt, unless a key is still there: then it extends the lease.
                let it = &self.uses[number as usize];
                let is_gone = it.keys.is_empty();
                let again =
                    asks(it) && self.is_old(number) && it.asked.contains(peer.node) && is_gone;
                if again { self.begin(peer, meaning.script, Some(value))? } else { number }
            }
            (Some(number), None) => number,
            (None, Some(value)) => self.begin(peer, meaning.script, Some(value))?,
            (None, None) if meaning.changes => self.last_of(peer)?,
            // The key that a read meets decides.
            (None, None) => return None,
        };
        if asks(&self.uses[number as usize]) {
            self.ask(number, peer.node);
            return Some((number, OpKind::Set));
        }
        if let (Some(script), Some(text)) = (meaning.script, meaning.text) {
            self.learn(script, text);
        }
        let purpose = || meaning.script.and_then(|script| self.scripts.get(&script).copied());
        Some((number, meaning.op.or_else(purpose).unwrap_or(OpKind::Release)))
    }

    /// Remembers the purpose of a script, so that it is known by its hash.
    pub(in crate::serve::recorder) fn learn(&mut self, script: Sha, text: &[u8]) {
        if self.scripts.len() < SCRIPTS_MAX {
            self.scripts.entry(script).or_insert_with(|| meaning::purpose(text));
        }
    }

    /// Records that the attempt `number` of `worker` is the newest with `value`.
    pub(super) fn name(&mut self, number: u32, value: &[u8], worker: Option<ClientId>) {
        // Copied, because a slice of the buffer would keep alive everything that arrived with it.
        let same = self.by_value.entry(Bytes::copy_from_slice(value)).or_default();
        same.retain(|&other| self.uses.get(other as usize).is_some_and(|it| it.worker != worker));
        same.push(number);
    }

    /// Records that `request` set a node's key: the value that the node has stored names the attempt.
    /// If that is another argument of a script than was taken for the value, it is so in all later
    /// requests.
    pub(in crate::serve::recorder) fn stored(
        &mut self,
        attempt: Writer,
        peer: &Peer,
        touched: &Touched,
        request: &[Bytes],
    ) {
        let value = touched.stored.as_ref().and_then(meaning::owner_in);
        let (Writer::Attempt(id), Some(value)) = (attempt, value) else { return };
        let Some(it) = self.uses.get(number_of(id)) else { return };
        let (number, worker) = (number_of(id) as u32, it.worker);
        if self.with_value(value, worker).is_none_or(|newest| newest < number) {
            self.name(number, value, worker);
        }
        self.stored.insert(peer.node, (number, value.clone()));
        let Some((script, arguments)) = meaning::arguments(request) else { return };
        let place = arguments.iter().position(|it| **it == **value);
        let Some(place) = place.filter(|_| self.places.len() < SCRIPTS_MAX) else { return };
        self.places.insert(script, place);
        for other in arguments.iter().filter(|it| ***it != **value) {
            let same = self.by_value.get_mut(other);
            same.into_iter().for_each(|same| same.retain(|it| *it != number));
        }
    }

    /// Returns the newest attempt with `value` that may be the worker's: of its own connections, or
    /// of one that is no worker's by name. Without a worker, any may be.
    pub(in crate::serve::recorder) fn with_value(
        &self,
        value: &[u8],
        worker: Option<ClientId>,
    ) -> Option<u32> {
        let may_be = |number: &&u32| {
            let owner = self.uses[**number as usize].worker;
            owner.is_none() || worker.is_none() || owner == worker
        };
        self.by_value.get(value)?.iter().rev().find(may_be).copied()
    }

    /// Returns the client's attempt whose key on the node has `word` in its value: some clients store
    /// more than the value by which their other scripts know it.
    fn with_word(&self, peer: &Peer, script: Sha, word: &[u8]) -> Option<u32> {
        let (number, value) = self.stored.get(&peer.node)?;
        let it = self.uses.get(*number as usize).filter(|it| it.script != Some(script))?;
        let is_own = it.keys.contains(peer.node) && self.may_be_of(*number, peer);
        (is_own && meaning::has_word(value, word)).then_some(*number)
    }

    /// Returns the attempt whose key the connection has read, if the node still has this key; or else
    /// the newest attempt of the connection's name, or else of the connection: a client with a pool
    /// asks over one connection and deletes over another. Starts one if there is none.
    fn last_of(&mut self, peer: &Peer) -> Option<u32> {
        let has_key = |it: &u32| self.uses[*it as usize].keys.contains(peer.node);
        let read = peer.read.filter(has_key);
        let of_name = || peer.name.as_ref().and_then(|name| self.by_name.get(name).copied());
        read.or_else(of_name).or(peer.last).or_else(|| self.begin(peer, None, None))
    }

    /// Returns true if the attempt `number` was begun by a connection with the name of `peer`, or, if that
    /// has none, by `peer` itself.
    fn is_of(&self, number: u32, peer: &Peer) -> bool {
        self.uses.get(number as usize).is_some_and(|it| match &peer.name {
            Some(name) => it.name.as_ref() == Some(name),
            None => it.connection == (peer.node, peer.id),
        })
    }

    /// Returns true if the attempt `number` is of the same client as `peer`, as far as names and
    /// entrances tell.
    fn may_be_of(&self, number: u32, peer: &Peer) -> bool {
        let entered = |number: u32| self.uses.get(number as usize)?.entered;
        let by_entrance = || match (entered(number), peer.last.and_then(entered)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.is_of(number, peer) || (peer.name.is_none() && by_entrance())
    }

    /// Attributes the effects `touched` of a request that was attributed to no attempt when it arrived.
    /// A read belongs to the attempt whose value it shows, if that is of the same client. Another, such
    /// as EXEC, belongs to the attempt whose key it ended, if that is of the same client, else to the
    /// last attempt of the connection.
    pub(in crate::serve::recorder) fn unasked(
        &mut self,
        peer: &mut Peer,
        touched: &[&Touched],
    ) -> Option<Told> {
        let changes = |it: &&Touched| it.executed.effect.change != Change::Nothing;
        let is_read = !touched.iter().any(changes);
        let mut met = touched.iter().filter_map(|it| match writer_of(it.executed.effect.before) {
            Writer::Attempt(id) => Some((number_of(id) as u32, &it.executed.reply)),
            Writer::Nobody | Writer::Operator => None,
        });
        let op = if is_read { OpKind::Get } else { OpKind::Release };
        let number = if is_read {
            let (number, _) = met.find(|it| matches!(it.1, Reply::Bulk(_)))?;
            peer.read = Some(number).filter(|number| self.may_be_of(*number, peer));
            peer.read?
        } else {
            let is_own = |number: &u32| self.is_of(*number, peer) || peer.read == Some(*number);
            let own = met.map(|it| it.0).find(is_own);
            let number = own.or_else(|| self.last_of(peer))?;
            peer.last = Some(number);
            number
        };
        let told = Told { command: CommandId(self.commands), attempt: preliminary(number), op };
        self.commands += 1;
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use lock_judge::history::NodeId;
    use redis_sim::SmallBytes;

    use super::*;
    use crate::serve::recorder::log::What;
    use crate::serve::run_clock::RunClock;

    #[test]
    fn nothing_is_stored_once_the_limit_is_reached() {
        let mut log = Log::default();
        let peer = Peer::new(NodeId(0), 1);
        let words = ["SET", "res", "one"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), Some((0, OpKind::Set)));
        log.is_full = true;
        assert_eq!(log.use_of(&peer, &meaning), Some((0, OpKind::Set)), "what is known is known");
        let words = ["SET", "res", "two"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        assert_eq!(log.use_of(&peer, &meaning), None);
        assert_eq!((log.uses.len(), log.by_value.len()), (1, 1));
    }

    #[test]
    fn a_full_log_remembers_no_key() {
        let mut log = Log::default();
        log.executed_early(CommandId(0), &SmallBytes::new(b"a"));
        log.is_full = true;
        log.executed_early(CommandId(1), &SmallBytes::new(b"b"));
        assert_eq!(log.early.len(), 1);
    }

    #[test]
    fn an_attempt_keeps_its_number_when_an_earlier_one_asks_later() {
        let mut log = Log::with_workers(vec![String::from("c1")]);
        let peer = Peer::new(NodeId(0), 1).named(Some(String::from("c1")));
        let mut use_of = |words: &[&'static str]| {
            let words: Vec<Bytes> =
                words.iter().map(|it| Bytes::from_static(it.as_bytes())).collect();
            let meaning = meaning::of(&words, |key| key == b"res").unwrap();
            let (number, _) = log.use_of(&peer, &meaning).unwrap();
            log.attempt_of(preliminary(number)).unwrap().number
        };
        let extension = ["SET", "res", "one", "IFEQ", "one"];
        assert_eq!(use_of(&extension), 0, "it has not asked");
        assert_eq!(use_of(&["SET", "res", "two"]), 1);
        assert_eq!(use_of(&["SET", "res", "one"]), 2);
        assert_eq!(use_of(&["SET", "res", "two"]), 1);
    }

    #[test]
    fn an_attempt_is_old_once_its_worker_has_left_after_it_began() {
        let mut log = Log::with_workers(vec![String::from("c1"), String::from("c2")]);
        let clock = RunClock::begin();
        clock.start(0);
        let peer = |name: &str| Peer::new(NodeId(0), 1).named(Some(name.to_owned()));
        let begin = |log: &mut Log, name| log.begin(&peer(name), None, None).unwrap();
        let first = ["c1", "c2", "pool"].map(|name| begin(&mut log, name));
        log.push(&clock, What::Left { worker: ClientId(0) });
        let second = ["c1", "c2", "pool"].map(|name| begin(&mut log, name));
        assert_eq!(first.map(|it| log.is_old(it)), [true, false, true]);
        assert_eq!(second.map(|it| log.is_old(it)), [false; 3]);
    }

    #[test]
    fn one_value_of_two_workers_is_two_attempts() {
        let mut log = Log::with_workers(vec![String::from("c1"), String::from("c2")]);
        let words = ["SET", "res", "host"].map(|word| Bytes::from_static(word.as_bytes()));
        let meaning = meaning::of(&words, |key| key == b"res").unwrap();
        let peer =
            |name: Option<&str>| Peer { name: name.map(String::from), ..Peer::new(NodeId(0), 1) };
        let mut number = |name| log.use_of(&peer(name), &meaning).unwrap().0;
        assert_eq!([Some("c1"), Some("c2"), Some("c1")].map(&mut number), [0, 1, 0]);
        // Without a worker's name a request is of the newest.
        assert_eq!([None, Some("pool")].map(&mut number), [1, 1]);
        assert_eq!(log.with_value(b"host", Some(ClientId(0))), Some(0));
        assert_eq!(log.with_value(b"host", Some(ClientId(7))), None);
    }
}
