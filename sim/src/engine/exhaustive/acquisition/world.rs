//! The clients, the nodes, and time.

use core::cmp::Ordering;
use core::hash::Hash;
use std::rc::Rc;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::client::Client;
use super::node::{Ended, Executed, Key, Node};
use super::{Action, Answer, CLIENTS, Input, NODES, QUORUM, Request, Terms, Token};
use crate::engine::exhaustive::Model;

/// Violations of a state. Each counterexample names one.
pub mod violations {
    /// Both clients believe that they hold the lock.
    pub const EXCLUSION: &str = "both clients hold the lock";
    /// A release has deleted a key whose acknowledgement counts for an attempt under way, or for a
    /// lease.
    pub const DELETED: &str = "a release deleted a key that counts";
    /// A lease was granted at its deadline or later, or without a majority of nodes that have
    /// acknowledged its key.
    pub const UNSOUND: &str = "a lease was granted without a majority, or after its deadline";
    /// A node has a key of an attempt that is over, and no release of it is on its way or owed.
    pub const LEFT_BEHIND: &str = "a key was left behind, and nothing will release it";
}

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Duration of keys.
    pub terms: Terms,
    /// Number of attempts of each client.
    pub attempts: [u8; CLIENTS],
    /// Number of ticks that pass.
    pub ticks: u8,
    /// Number of connections that are lost, besides those that a restart ends.
    pub losses: u8,
    /// Number of restarts.
    pub restarts: u8,
}

/// An event. The first number of a pair is a client, the second one a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A tick passes.
    Tick,
    /// A client begins an attempt.
    Begin(usize),
    /// A client gives its lease up.
    Release(usize),
    /// A client's timers fire.
    Timer(usize),
    /// A client receives the next answer.
    Answer(usize, usize),
    /// A client connects to a node.
    Connect(usize, usize),
    /// A connection is lost.
    Lose(usize, usize),
    /// A client notices that a restart has ended its connection.
    Notice(usize, usize),
    /// A node restarts, and has forgotten its key.
    Restart(usize),
}

/// One event, with the commands that its node executes just before it.
///
/// The exact time at which a node executes a command affects only later events at that node. So the
/// model executes a command as late as possible: before its answer, before its connection is lost,
/// or before the node restarts. It is taken to be executed as early as possible: when it was
/// written, or just after the execution before it. A key that was set earlier may expire earlier,
/// so this makes every property easier to violate. A key expires just before the SET that it would
/// have blocked; without such a SET it makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The event.
    pub act: Act,
    /// Place of the executions among all that are possible.
    pub way: u16,
}

impl Act {
    /// Returns the node whose executions may come just before the event, if there is one.
    pub(super) fn node(self) -> Option<usize> {
        match self {
            Self::Answer(_, node) | Self::Lose(_, node) | Self::Restart(node) => Some(node),
            _ => None,
        }
    }
}

/// The complete state at one moment.
#[derive(Clone)]
pub struct World<C> {
    pub(super) clients: [Rc<C>; CLIENTS],
    pub(super) nodes: [Rc<Node>; NODES],
    pub(super) now: u8,
    /// True after the first event: time begins with it.
    has_begun: bool,
    losses: u8,
    restarts: u8,
    /// Nodes whose acknowledgements the client has received in its current attempt.
    acknowledged: [[bool; NODES]; CLIENTS],
    wrong: Option<&'static str>,
}

/// The model: two clients of the type `C`, within bounds.
pub struct Acquisition<C> {
    /// Bounds of the search.
    pub bounds: Bounds,
    /// The clients before their first attempts.
    pub clients: [C; CLIENTS],
    /// The violation that is searched for; `None`: any.
    pub sought: Option<&'static str>,
}

impl<C: Client> World<C> {
    fn new(clients: [C; CLIENTS]) -> Self {
        let node = Rc::new(Node::new(CLIENTS as u8));
        Self {
            clients: clients.map(Rc::new),
            nodes: core::array::from_fn(|_| Rc::clone(&node)),
            now: 0,
            has_begun: false,
            losses: 0,
            restarts: 0,
            acknowledged: [[false; NODES]; CLIENTS],
            wrong: None,
        }
    }

    /// Returns true if `act` can happen next.
    fn can(&self, act: Act, bounds: Bounds) -> bool {
        let can = |client: usize, input| self.clients[client].can(input, self.now);
        let connection = |client: usize, node: usize| self.nodes[node].connection(client);
        match act {
            _ if self.is_done(bounds) => false,
            Act::Tick => {
                let is_due = (0..CLIENTS).any(|client| can(client, Input::Timer));
                self.now < bounds.ticks && self.has_begun && !is_due
            }
            Act::Begin(client) => can(client, Input::Begin),
            Act::Release(client) => can(client, Input::Release),
            Act::Timer(client) => can(client, Input::Timer),
            Act::Answer(client, node) => {
                connection(client, node).is_some_and(|it| !it.answers.is_empty())
            }
            Act::Connect(client, node) => can(client, Input::Connected(node, 0)),
            Act::Lose(client, node) => {
                let is_open = connection(client, node).is_some_and(|it| it.ended == Ended::Not);
                is_open && self.losses < bounds.losses
            }
            Act::Notice(client, node) => {
                connection(client, node).is_some_and(|it| it.ended == Ended::ByNode)
            }
            Act::Restart(_) => self.restarts < bounds.restarts,
        }
    }

    /// Returns true if the clients can no longer hold the lock at the same time: one of them is done.
    /// All else concerns one client, and is explored with one client.
    fn is_done(&self, bounds: Bounds) -> bool {
        let is_alone = bounds.attempts.contains(&0);
        !is_alone && self.clients.iter().any(|client| client.is_done())
    }

    /// Plays the event; returns the client's actions, if the event concerns one.
    pub(super) fn take(&mut self, act: Act, ttl: u8) -> Vec<Action> {
        self.has_begun = true;
        let actions = match act {
            Act::Tick => {
                self.now += 1;
                Vec::new()
            }
            Act::Begin(client) => self.input(client, Input::Begin),
            Act::Release(client) => self.input(client, Input::Release),
            Act::Timer(client) => self.input(client, Input::Timer),
            Act::Answer(client, node) => {
                let (request, answer) = self.node(node).answer(client);
                if self.clients[client].tries().is_some_and(|it| request == Request::Set(it)) {
                    self.acknowledged[client][node] |= answer == Answer::Done;
                }
                self.input(client, Input::Answer(node, request, answer))
            }
            Act::Connect(client, node) => {
                self.node(node).connect(client);
                let incarnation = self.nodes[node].incarnation;
                self.input(client, Input::Connected(node, incarnation))
            }
            Act::Lose(client, node) | Act::Notice(client, node) => {
                self.losses += u8::from(matches!(act, Act::Lose(..)));
                self.node(node).close(client);
                self.input(client, Input::Closed(node))
            }
            Act::Restart(node) => {
                self.restarts += 1;
                let now = self.now;
                self.node(node).restart(now);
                Vec::new()
            }
        };
        self.wrong = self.look_for_violation(ttl).or(self.wrong);
        actions
    }

    fn node(&mut self, node: usize) -> &mut Node {
        Rc::make_mut(&mut self.nodes[node])
    }

    /// Passes `input` to the client, and its commands to the nodes.
    fn input(&mut self, client: usize, input: Input) -> Vec<Action> {
        let now = self.now;
        let actions = Rc::make_mut(&mut self.clients[client]).handle(input, now);
        for &action in &actions {
            match action {
                Action::Write(node, request) => self.node(node).receive(client, request, now),
                Action::Granted { deadline } => {
                    let votes = self.acknowledged[client].iter().filter(|&&it| it).count();
                    if votes < QUORUM || deadline <= self.now {
                        self.wrong = Some(violations::UNSOUND);
                    }
                    self.acknowledged[client] = [false; NODES];
                }
                Action::Failed => self.acknowledged[client] = [false; NODES],
                Action::Lost => {}
            }
        }
        actions
    }

    /// Takes the state of a node after the executions.
    pub(super) fn execute(&mut self, place: usize, executed: &[Executed], after: &Rc<Node>) {
        let counts = |token: Token| {
            let client = &self.clients[usize::from(token.client)];
            client.counts(place) && client.current() == Some(token)
        };
        if executed.iter().filter_map(|it| it.deleted).any(counts) {
            self.wrong = Some(violations::DELETED);
        }
        self.nodes[place] = Rc::clone(after);
    }

    fn look_for_violation(&self, ttl: u8) -> Option<&'static str> {
        if self.clients.iter().all(|client| client.believes(self.now)) {
            return Some(violations::EXCLUSION);
        }
        for (place, node) in self.nodes.iter().enumerate() {
            let is_judged = |key: &Key| !key.is_late && self.now < key.since + ttl;
            let Some(key) = node.key.filter(is_judged) else { continue };
            let client = &self.clients[usize::from(key.token.client)];
            if client.current() != Some(key.token) && !client.owes(place, key.token) {
                return Some(violations::LEFT_BEHIND);
            }
        }
        None
    }

    /// Returns the nodes in the order of their states, if `first` is the first client.
    fn encode_nodes(&self, first: usize, ttl: u8) -> [(Vec<u128>, usize); NODES] {
        let mut nodes = core::array::from_fn(|place| {
            let mut words = Vec::with_capacity(12);
            for client in [first, 1 - first] {
                words.push(self.clients[client].encode_node(place, self.now));
                words.push(u128::from(self.acknowledged[client][place]));
            }
            self.nodes[place].encode(first as u8, self.now, ttl, &mut words);
            (words, place)
        });
        nodes.sort_unstable();
        nodes
    }
}

impl<C: Client> Acquisition<C> {
    /// Returns the state before the first attempts.
    pub(super) fn world(&self) -> World<C> {
        World::new(self.clients.clone())
    }

    /// Returns all ways in which the node can execute commands now.
    pub(super) fn ways(&self, state: &World<C>, node: usize) -> Vec<(Vec<Executed>, Rc<Node>)> {
        Node::ways(&state.nodes[node], self.bounds.terms, state.now)
    }
}

/// Returns true if `executed` is needed just before the event: later executions are explored later.
fn is_needed(executed: &[Executed], node: &Node, act: Act) -> bool {
    let is_of = |it: &Executed, client: usize| usize::from(it.client) == client;
    match act {
        Act::Answer(client, _) => {
            let answered = node.connection(client).is_some_and(|it| !it.answers.is_empty());
            let own = executed.iter().filter(|it| is_of(it, client)).count();
            let ends_so = executed.last().is_some_and(|it| is_of(it, client));
            if answered { executed.is_empty() } else { own == 1 && ends_so }
        }
        Act::Lose(client, _) => executed.last().is_none_or(|it| is_of(it, client)),
        _ => true,
    }
}

/// Returns all events; most of them cannot happen at any one moment.
fn acts() -> Vec<Act> {
    let mut acts = vec![Act::Tick];
    acts.extend((0..NODES).map(Act::Restart));
    for client in 0..CLIENTS {
        acts.extend([Act::Begin(client), Act::Release(client), Act::Timer(client)]);
        for node in 0..NODES {
            acts.extend([Act::Answer(client, node), Act::Connect(client, node)]);
            acts.extend([Act::Lose(client, node), Act::Notice(client, node)]);
        }
    }
    acts
}

impl<C: Client> Model for Acquisition<C> {
    type State = World<C>;
    type Step = Step;
    type Key = u128;

    fn initial(&self) -> Vec<World<C>> {
        vec![self.world()]
    }

    fn successors(&self, state: &World<C>, visit: &mut dyn FnMut(Step, World<C>)) {
        let ttl = self.bounds.terms.ttl;
        let ways: [_; NODES] = core::array::from_fn(|node| self.ways(state, node));
        for act in acts() {
            let Some(node) = act.node() else {
                if state.can(act, self.bounds) {
                    let mut next = state.clone();
                    next.take(act, ttl);
                    visit(Step { act, way: 0 }, next);
                }
                continue;
            };
            for (way, (executed, after)) in ways[node].iter().enumerate() {
                if !is_needed(executed, &state.nodes[node], act) {
                    continue;
                }
                let mut next = state.clone();
                next.execute(node, executed, after);
                if next.can(act, self.bounds) {
                    next.take(act, ttl);
                    visit(Step { act, way: way as u16 }, next);
                }
            }
        }
    }

    /// Nodes differ only in their states, and so do clients: both are sorted by state.
    fn key(&self, state: &World<C>) -> u128 {
        let [one, two] = state.clients.each_ref().map(|client| client.encode(state.now));
        let nodes = |first| (state.encode_nodes(first, self.bounds.terms.ttl), first);
        let (nodes, first) = match one.cmp(&two) {
            Ordering::Less => nodes(0),
            Ordering::Greater => nodes(1),
            Ordering::Equal => nodes(0).min(nodes(1)),
        };
        let clients = [one.min(two), one.max(two)];
        let order = nodes.each_ref().map(|(_, place)| *place);
        let mut hasher = SipHasher13::new();
        let wrong = state.wrong.is_some();
        (state.now, state.has_begun, state.losses, state.restarts, wrong, clients)
            .hash(&mut hasher);
        nodes.iter().for_each(|(words, _)| words.hash(&mut hasher));
        for client in [first, 1 - first] {
            state.clients[client].fingerprint(order, state.now).hash(&mut hasher);
        }
        hasher.finish128().as_u128()
    }

    fn violation(&self, state: &World<C>) -> Option<&'static str> {
        state.wrong.filter(|&wrong| self.sought.is_none_or(|sought| sought == wrong))
    }
}
