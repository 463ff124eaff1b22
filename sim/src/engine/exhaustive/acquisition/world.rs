//! The clients, the nodes, and time.

use core::cmp::Ordering;

use super::client::Client;
use super::client_state::{ClientState, hash};
use super::node::{Ended, Executed, Node};
use super::node_state::{NodeInput, NodeState};
use super::table::Table;
use super::{Action, CLIENTS, Input, NODES, Terms, Violation};
use crate::engine::exhaustive::Model;

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
#[derive(Clone, Copy)]
pub struct World {
    /// Numbers of the clients' states.
    clients: [u32; CLIENTS],
    /// Numbers of the nodes' states.
    nodes: [u32; NODES],
    pub(super) now: u8,
    /// True after the first event: time begins with it.
    has_begun: bool,
    losses: u8,
    restarts: u8,
    wrong: Option<Violation>,
}

/// The model: two clients of the type `C`, within bounds.
pub struct Acquisition<C> {
    /// Bounds of the search.
    pub bounds: Bounds,
    clients: [C; CLIENTS],
    sought: Option<Violation>,
    client_states: Table<ClientState<C>>,
    node_states: Table<NodeState>,
}

impl<C: Client> Acquisition<C> {
    /// Returns the model with these clients, before their first attempts. `sought` is the violation
    /// that is searched for; `None`: any.
    #[must_use]
    pub fn new(bounds: Bounds, clients: [C; CLIENTS], sought: Option<Violation>) -> Self {
        let (client_states, node_states) = (Table::new(), Table::new());
        Self { bounds, clients, sought, client_states, node_states }
    }

    /// Returns the state before the first attempts.
    pub(super) fn world(&self) -> World {
        let client = |number: usize| {
            let client = self.clients[number].clone();
            ClientState::number(&self.client_states, client, number, [false; NODES], 0)
        };
        let node = Node::new(CLIENTS as u8);
        World {
            clients: core::array::from_fn(client),
            nodes: [NodeState::number(&self.node_states, node, self.bounds.terms, 0); NODES],
            now: 0,
            has_begun: false,
            losses: 0,
            restarts: 0,
            wrong: None,
        }
    }

    /// Returns all ways in which the node can execute commands now, with the number of its state
    /// afterwards.
    pub(super) fn ways(&self, state: &World, node: usize) -> &[(Vec<Executed>, u32)] {
        self.node(state, node).ways(&self.node_states, self.bounds.terms)
    }

    fn client(&self, state: &World, client: usize) -> &ClientState<C> {
        self.client_states.get(state.clients[client])
    }

    fn node(&self, state: &World, node: usize) -> &NodeState {
        self.node_states.get(state.nodes[node])
    }

    /// Returns true if `act` can happen next.
    fn can(&self, state: &World, act: Act) -> bool {
        let client = |client: usize| self.client(state, client);
        let node_state = |node: usize| self.node(state, node);
        match act {
            Act::Tick => {
                let is_due = (0..CLIENTS).any(|it| client(it).is_due);
                state.now < self.bounds.ticks && state.has_begun && !is_due
            }
            Act::Begin(of) => client(of).can_begin,
            Act::Release(of) => client(of).can_release,
            Act::Timer(of) => client(of).is_due,
            Act::Answer(of, node) => node_state(node).next_answer(of).is_some(),
            Act::Connect(of, node) => client(of).can_connect[node],
            Act::Lose(of, node) => {
                state.losses < self.bounds.losses && node_state(node).has_ended(of, Ended::Not)
            }
            Act::Notice(of, node) => node_state(node).has_ended(of, Ended::ByNode),
            Act::Restart(_) => state.restarts < self.bounds.restarts,
        }
    }

    /// Returns true if the clients can no longer hold the lock at the same time: one of them is done.
    /// All else concerns one client, and is explored with one client.
    fn is_done(&self, state: &World) -> bool {
        let is_alone = self.bounds.attempts.contains(&0);
        !is_alone && (0..CLIENTS).any(|client| self.client(state, client).is_done)
    }

    /// Plays the event; returns the client's actions, if the event concerns one.
    pub(super) fn take(&self, state: &mut World, act: Act) -> &[Action] {
        state.has_begun = true;
        let actions: &[Action] = match act {
            Act::Tick => {
                state.now += 1;
                state.clients =
                    state.clients.map(|it| self.client_states.get(it).later(&self.client_states));
                (0..NODES).for_each(|node| self.input_at(state, node, NodeInput::Tick));
                &[]
            }
            Act::Begin(client) => self.input(state, client, Input::Begin),
            Act::Release(client) => self.input(state, client, Input::Release),
            Act::Timer(client) => self.input(state, client, Input::Timer),
            Act::Answer(client, node) => {
                let next = self.node(state, node).next_answer(client);
                let (request, answer) = next.expect("there is an answer");
                self.input_at(state, node, NodeInput::Answer(client));
                self.input(state, client, Input::Answer(node, request, answer))
            }
            Act::Connect(client, node) => {
                self.input_at(state, node, NodeInput::Connect(client));
                let incarnation = self.node(state, node).node.incarnation;
                self.input(state, client, Input::Connected(node, incarnation))
            }
            Act::Lose(client, node) | Act::Notice(client, node) => {
                state.losses += u8::from(matches!(act, Act::Lose(..)));
                self.input_at(state, node, NodeInput::Close(client));
                self.input(state, client, Input::Closed(node))
            }
            Act::Restart(node) => {
                state.restarts += 1;
                self.input_at(state, node, NodeInput::Restart);
                &[]
            }
        };
        state.wrong = self.look_for_violation(state).or(state.wrong);
        actions
    }

    /// Passes `input` to the node.
    fn input_at(&self, state: &mut World, node: usize, input: NodeInput) {
        let before = self.node(state, node);
        state.nodes[node] = before.after(&self.node_states, self.bounds.terms, input);
    }

    /// Passes `input` to the client, and its commands to the nodes.
    fn input(&self, state: &mut World, client: usize, input: Input) -> &[Action] {
        let after = self.client(state, client).handle(&self.client_states, input);
        state.clients[client] = after.client;
        for &action in &after.actions {
            if let Action::Write(node, request) = action {
                self.input_at(state, node, NodeInput::Receive(client, request));
            }
        }
        if after.is_unsound {
            state.wrong = Some(Violation::Unsound);
        }
        &after.actions
    }

    /// Takes the state of a node after the executions.
    pub(super) fn execute(
        &self,
        state: &mut World,
        node: usize,
        (executed, after): &(Vec<Executed>, u32),
    ) {
        let counts = |it: &Executed| {
            it.deleted.is_some_and(|token| {
                let client = self.client(state, usize::from(token.client));
                client.counts[node] && client.current == Some(token)
            })
        };
        if executed.iter().any(counts) {
            state.wrong = Some(Violation::Deleted);
        }
        state.nodes[node] = *after;
    }

    fn look_for_violation(&self, state: &World) -> Option<Violation> {
        if (0..CLIENTS).all(|client| self.client(state, client).believes) {
            return Some(Violation::Exclusion);
        }
        for node in 0..NODES {
            let judged = self.node(state, node).judged(self.bounds.terms.ttl);
            let Some(token) = judged else { continue };
            let client = self.client(state, usize::from(token.client));
            if client.current != Some(token) && !client.owes(node, token) {
                return Some(Violation::LeftBehind);
            }
        }
        None
    }

    /// Returns the key of the state if `first` is the first client. The nodes are sorted.
    fn key_with(&self, state: &World, first: usize) -> u128 {
        let clients = [first, 1 - first].map(|client| self.client(state, client));
        let mut nodes = core::array::from_fn(|node| {
            let node_hash = self.node(state, node).hashes[first];
            (clients.map(|client| client.parts[node]), node_hash, node)
        });
        nodes.sort_unstable();
        let order = nodes.map(|(_, _, node)| node);
        let counts = [state.now, u8::from(state.has_begun), state.losses, state.restarts];
        let counts = counts
            .iter()
            .fold(u128::from(state.wrong.is_some()), |all, &it| all << 8 | u128::from(it));
        let [one, two] = clients.map(|client| client.hash(order));
        let [a, b, c] = nodes.map(|(_, node_hash, _)| node_hash);
        hash([counts, one, two, a, b, c])
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
    type State = World;
    type Step = Step;

    fn initial(&self) -> Vec<World> {
        vec![self.world()]
    }

    fn successors(&self, state: &World, visit: &mut dyn FnMut(Step, World)) {
        if self.is_done(state) {
            return;
        }
        for act in acts() {
            let Some(node) = act.node() else {
                if self.can(state, act) {
                    let mut next = *state;
                    self.take(&mut next, act);
                    visit(Step { act, way: 0 }, next);
                }
                continue;
            };
            for (way, it) in self.ways(state, node).iter().enumerate() {
                if !is_needed(&it.0, &self.node(state, node).node, act) {
                    continue;
                }
                let mut next = *state;
                self.execute(&mut next, node, it);
                if self.can(&next, act) {
                    self.take(&mut next, act);
                    visit(Step { act, way: way as u16 }, next);
                }
            }
        }
    }

    /// Nodes differ only in their states, and so do clients: both are sorted by state. If two clients
    /// differ only in what concerns single nodes, the smaller key is taken.
    fn key(&self, state: &World) -> u128 {
        let [one, two] = [0, 1].map(|client| self.client(state, client).whole);
        match one.cmp(&two) {
            Ordering::Less => self.key_with(state, 0),
            Ordering::Greater => self.key_with(state, 1),
            Ordering::Equal => self.key_with(state, 0).min(self.key_with(state, 1)),
        }
    }

    fn violation(&self, state: &World) -> Option<&'static str> {
        let wrong = state.wrong.filter(|&wrong| self.sought.is_none_or(|sought| sought == wrong));
        wrong.map(Violation::words)
    }
}
