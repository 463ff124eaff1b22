//! The nodes, the messages, the other client, and time.

use super::{Answer, Heard, Holder, NODES, Request, Told};
use crate::engine::exhaustive::Model;

/// What is wrong with a state. Each counterexample names one.
pub mod violations {
    /// A round succeeded, and somebody else had been granted between the grant and its T1.
    pub const CONTINUITY: &str = "extended although another was granted before the round began";
    /// Somebody else was granted before the deadline, and no node that was counted had forgotten
    /// the key since T1: the keys did not outlive the deadline.
    pub const OUTLIVED: &str = "another was granted before the deadline, and nothing was forgotten";
    /// A round succeeded, and somebody else had been granted when the lease was over.
    pub const REVIVED: &str = "a lease was revived after another was granted at its end";
}

/// How much may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In ticks.
    pub ttl: u8,
    /// Rounds that are begun.
    pub rounds: u8,
    /// How often a node forgets the holder's key.
    pub forgets: u8,
    /// How often a connection is cut.
    pub cuts: u8,
}

/// One thing that happens. Numbers are nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A tick passes.
    Tick,
    /// The holder begins a round.
    Extend,
    /// The holder's timers fire.
    Fire,
    /// A node executes the next command.
    Execute(usize),
    /// The holder hears the next answer.
    Answer(usize),
    /// A node forgets the holder's key.
    Forget(usize),
    /// The other client sets its key.
    Take(usize),
    /// The other client takes its key away.
    Leave(usize),
    /// A connection is cut.
    Cut(usize),
    /// A SET that was on a connection that was cut is executed.
    Stray(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Free,
    Other,
    /// The holder's, gone at this tick.
    Ours(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    request: Request,
    /// Once it is executed.
    answer: Option<Answer>,
}

/// The most commands without an answer on one connection: one a round, and a SET behind each.
const MESSAGES_MAX: usize = 9;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    queue: [Option<Message>; MESSAGES_MAX],
    /// A SET of a connection that was cut may be executed yet.
    stray: bool,
    /// The latest success counted it (the grant is one), and it has forgotten the key since T1.
    counted: bool,
    forgot: bool,
    /// It has forgotten the key since T1 of the round that is under way.
    forgot_in_round: bool,
}

/// Everything at one moment.
#[derive(Clone)]
pub struct World<H> {
    holder: H,
    now: u8,
    nodes: [Node; NODES],
    rounds: u8,
    forgets: u8,
    cuts: u8,
    /// Somebody else was granted since the holder was.
    other: bool,
    /// That was before T1 of the round that is under way.
    other_before_round: bool,
    /// Somebody else was granted since T1 of that round.
    other_in_round: bool,
    /// Somebody else was granted when the lease was over.
    other_after_deadline: bool,
    wrong: Option<&'static str>,
}

/// The model: how a holder of the kind `H` fares within bounds.
pub struct Extension<H> {
    /// The bounds.
    pub bounds: Bounds,
    /// The holder at the grant.
    pub holder: H,
}

impl<H: Holder> World<H> {
    fn new(holder: H, ttl: u8) -> Self {
        let node = |key, first, counted| Node {
            key,
            queue: [first, None, None, None, None, None, None, None, None],
            stray: false,
            counted,
            forgot: false,
            forgot_in_round: false,
        };
        let set = Message { request: Request::Set, answer: None };
        let granting = node(Key::Ours(ttl), None, true);
        Self {
            holder,
            now: 0,
            nodes: [granting, granting, node(Key::Free, Some(set), false)],
            rounds: 0,
            forgets: 0,
            cuts: 0,
            other: false,
            other_before_round: false,
            other_in_round: false,
            other_after_deadline: false,
            wrong: None,
        }
    }

    /// What can happen next. Nothing once the lease is lost: the holder believes in it no more, and
    /// extends it no more.
    fn can(&self, step: Step, bounds: Bounds) -> bool {
        let node = |place: usize| &self.nodes[place];
        let has = |place: usize, executed: bool| {
            let first = node(place).queue.iter().flatten();
            let mut first = first.skip_while(|it| !executed && it.answer.is_some());
            first.next().is_some_and(|it| it.answer.is_some() == executed)
        };
        match step {
            _ if self.holder.is_lost() => false,
            Step::Tick => {
                // With nothing under way that the lease's end could matter to, time is over.
                self.now < self.holder.deadline() || self.holder.is_extending()
            }
            Step::Extend => self.rounds < bounds.rounds && !self.holder.is_extending(),
            Step::Fire => self.holder.is_due(self.now),
            Step::Execute(place) => has(place, false),
            Step::Answer(place) => has(place, true),
            Step::Forget(place) => {
                self.forgets < bounds.forgets && matches!(node(place).key, Key::Ours(_))
            }
            Step::Take(place) => node(place).key == Key::Free,
            Step::Leave(place) => node(place).key == Key::Other,
            Step::Cut(place) => self.cuts < bounds.cuts && node(place).queue[0].is_some(),
            Step::Stray(place) => node(place).stray,
        }
    }

    fn take(&mut self, step: Step, ttl: u8) -> bool {
        let mut told = Vec::new();
        match step {
            Step::Tick => self.tick(),
            Step::Extend => {
                let other = self.other;
                if !self.holder.extend(self.now, &mut told) {
                    return false;
                }
                self.rounds += 1;
                (self.other_before_round, self.other_in_round) = (other, false);
                self.nodes.iter_mut().for_each(|node| node.forgot_in_round = false);
            }
            Step::Fire => self.holder.fire(self.now, &mut told),
            Step::Execute(place) => self.execute(place, ttl),
            Step::Answer(place) => {
                let queue = &mut self.nodes[place].queue;
                let message = queue[0].take().expect("it can be answered");
                queue.rotate_left(1);
                let answer = message.answer.expect("it was executed");
                let heard = Heard::Answer(message.request, answer);
                self.holder.hear(place, heard, self.now, &mut told);
            }
            Step::Forget(place) => {
                self.forgets += 1;
                let node = &mut self.nodes[place];
                (node.key, node.forgot, node.forgot_in_round) = (Key::Free, true, true);
            }
            Step::Take(place) => {
                self.nodes[place].key = Key::Other;
                self.look_at_the_other();
            }
            Step::Leave(place) => self.nodes[place].key = Key::Free,
            Step::Cut(place) => self.cut(place, &mut told),
            Step::Stray(place) => {
                self.nodes[place].stray = false;
                self.nodes[place].set(self.now + ttl);
            }
        }
        told.into_iter().for_each(|told| self.hear(told));
        true
    }

    fn tick(&mut self) {
        self.now += 1;
        for node in &mut self.nodes {
            if node.key == Key::Ours(self.now) {
                node.key = Key::Free;
            }
        }
    }

    fn execute(&mut self, place: usize, ttl: u8) {
        let until = self.now + ttl;
        let node = &mut self.nodes[place];
        let next = node.queue.iter().position(|it| it.is_some_and(|it| it.answer.is_none()));
        let next = next.expect("it can execute something");
        let request = node.queue[next].expect("just found").request;
        let done = match request {
            Request::Set => node.set(until),
            Request::Extend { .. } => node.extend(until),
        };
        let answer = Some(if done { Answer::Done } else { Answer::Refused });
        node.queue[next] = Some(Message { request, answer });
    }

    fn cut(&mut self, place: usize, told: &mut Vec<Told>) {
        self.cuts += 1;
        let node = &mut self.nodes[place];
        let lost = core::mem::take(&mut node.queue);
        let mut lost = lost.into_iter().flatten();
        let unexecuted = |it: &Message| it.answer.is_none() && it.request == Request::Set;
        node.stray |= lost.clone().any(|it| unexecuted(&it));
        let latest = Request::Extend { round: self.rounds };
        let round_outstanding = lost.any(|it| it.request == latest);
        self.holder.hear(place, Heard::Closed { round_outstanding }, self.now, told);
    }

    fn look_at_the_other(&mut self) {
        let keys = self.nodes.iter().filter(|node| node.key == Key::Other).count();
        if keys <= NODES / 2 {
            return;
        }
        self.other = true;
        self.other_in_round = true;
        if self.now >= self.holder.deadline() {
            self.other_after_deadline = true;
        } else if !self.nodes.iter().any(|node| node.counted && node.forgot) {
            self.wrong = Some(violations::OUTLIVED);
        }
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Write(place, request) => {
                let queue = &mut self.nodes[place].queue;
                let free = queue.iter_mut().find(|it| it.is_none()).expect("rounds are bounded");
                *free = Some(Message { request, answer: None });
            }
            Told::Extended { counted, .. } => {
                for (node, counted) in self.nodes.iter_mut().zip(counted) {
                    (node.counted, node.forgot) = (counted, node.forgot_in_round);
                }
                let forgot = self.nodes.iter().any(|node| node.counted && node.forgot);
                if self.other_before_round {
                    self.wrong = Some(violations::CONTINUITY);
                } else if self.other_after_deadline {
                    self.wrong = Some(violations::REVIVED);
                } else if self.other_in_round && !forgot {
                    self.wrong = Some(violations::OUTLIVED);
                }
            }
            Told::Failed | Told::Lost => {}
        }
    }

    fn encode_node(&self, place: usize) -> u64 {
        let node = &self.nodes[place];
        let key = match node.key {
            Key::Free => 0,
            Key::Other => 1,
            Key::Ours(until) => 2 + u64::from(until - self.now),
        };
        let queue = node.queue.iter().flatten().fold(0, |queue, message| {
            let kind = match message.request {
                Request::Set => 0,
                Request::Extend { round } if round == self.rounds => 1,
                Request::Extend { .. } => 2,
            };
            let answer = message.answer.map_or(0, |answer| 1 + answer as u64);
            queue << 4 | 1 + kind + 3 * answer
        });
        let in_round = self.holder.is_extending() && node.forgot_in_round;
        let forgot = node.counted && node.forgot;
        let flags = [node.stray, node.counted, forgot, in_round];
        let flags = flags.iter().fold(0, |flags, &flag| flags << 1 | u64::from(flag));
        self.holder.encode_node(place) | flags << 8 | key << 12 | queue << 20
    }

    fn encode(&self) -> u64 {
        let extending = self.holder.is_extending();
        let flags = [
            self.other,
            extending && self.other_before_round,
            extending && self.other_in_round,
            self.other_after_deadline,
            self.wrong.is_some(),
        ];
        let flags = flags.iter().fold(0, |flags, &flag| flags << 1 | u64::from(flag));
        let used = u64::from(self.forgets) << 8 | u64::from(self.cuts) << 10;
        self.holder.encode(self.now) | (flags | used) << 48
    }
}

impl Node {
    fn set(&mut self, until: u8) -> bool {
        let free = self.key == Key::Free;
        if free {
            self.key = Key::Ours(until);
        }
        free
    }

    fn extend(&mut self, until: u8) -> bool {
        let ours = matches!(self.key, Key::Ours(_));
        if ours {
            self.key = Key::Ours(until);
        }
        ours
    }
}

impl<H: Holder> Model for Extension<H> {
    type State = World<H>;
    type Step = Step;
    type Key = ([u64; 1 + NODES], Vec<u64>);

    fn initial(&self) -> Vec<World<H>> {
        vec![World::new(self.holder.clone(), self.bounds.ttl)]
    }

    fn successors(&self, state: &World<H>, visit: &mut dyn FnMut(Step, World<H>)) {
        let of_node = [
            Step::Execute,
            Step::Answer,
            Step::Forget,
            Step::Take,
            Step::Leave,
            Step::Cut,
            Step::Stray,
        ];
        let of_nodes = of_node.into_iter().flat_map(|step| (0..NODES).map(step));
        for step in [Step::Tick, Step::Extend, Step::Fire].into_iter().chain(of_nodes) {
            if state.can(step, self.bounds) {
                let mut next = state.clone();
                if next.take(step, self.bounds.ttl) {
                    visit(step, next);
                }
            }
        }
    }

    /// Nodes are alike but for their states: they are taken in the order of these.
    fn key(&self, state: &World<H>) -> Self::Key {
        let mut nodes: [(u64, usize); NODES] =
            core::array::from_fn(|place| (state.encode_node(place), place));
        nodes.sort_unstable();
        let [first, second, third] = nodes.map(|(words, _)| words);
        let more = state.holder.encode_more(nodes.map(|(_, place)| place), state.now);
        ([state.encode(), first, second, third], more)
    }

    fn violation(&self, state: &World<H>) -> Option<&'static str> {
        state.wrong
    }
}
