//! The protected resource: an actor behind delays, whoever waits for its answers.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use super::world::{State, World};
use crate::engine::stage::plan::Plan;
use crate::history::EventKind;
use crate::resource::{Served, StoreRequest};
use crate::world::{Choice, Direction, Label};

/// What is on its way to the resource or back.
#[derive(Clone, Copy, Debug)]
struct Message {
    at_ns: u64,
    serial: u64,
    client: u8,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Request(StoreRequest),
    /// The answer to the request `to`.
    Answer {
        to: u64,
        version: u32,
    },
}

/// All messages, and the answers that nobody has fetched yet.
#[derive(Debug, Default)]
pub(super) struct StoreQueue {
    messages: Vec<Message>,
    answers: Vec<(u64, u32)>,
    serial: u64,
}

impl StoreQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Messages of one client in one direction keep their order, as on a connection.
    fn send(&mut self, client: u8, what: What, at_ns: u64) -> u64 {
        let same_way = |it: &&Message| {
            it.client == client
                && matches!(it.what, What::Request(_)) == matches!(what, What::Request(_))
        };
        let last_ns = self.messages.iter().filter(same_way).map(|it| it.at_ns).max();
        let at_ns = at_ns.max(last_ns.unwrap_or(0));
        self.serial += 1;
        self.messages.push(Message { at_ns, serial: self.serial, client, what });
        self.serial
    }

    fn take_due(&mut self, now_ns: u64) -> Option<Message> {
        let due = self.messages.iter().enumerate().filter(|(_, it)| it.at_ns <= now_ns);
        let (place, _) = due.min_by_key(|(_, it)| (it.at_ns, it.serial))?;
        Some(self.messages.remove(place))
    }
}

impl World {
    /// What the resource answers: the version that a read saw, of no meaning for a write.
    pub(super) fn ask_store(
        self: &Arc<Self>,
        client: u8,
        request: StoreRequest,
    ) -> impl Future<Output = u32> + use<> {
        let mut state = self.lock();
        let at_ns = state.now_ns + state.store_delay(&self.plan, client, Direction::Up);
        let asked = state.store_queue.send(client, What::Request(request), at_ns);
        drop(state);
        let world = Arc::clone(self);
        // The process's waker is known to the world: it is woken as a whole.
        poll_fn(move |_| {
            let answers = &mut world.lock().store_queue.answers;
            match answers.iter().position(|&(to, _)| to == asked) {
                Some(place) => Poll::Ready(answers.swap_remove(place).1),
                None => Poll::Pending,
            }
        })
    }
}

impl State {
    /// Does what is due at the resource, and hands answers to who waits for them.
    pub(super) fn run_store(&mut self, plan: &Plan) {
        while let Some(message) = self.store_queue.take_due(self.now_ns) {
            let client = message.client;
            match message.what {
                What::Request(request) => {
                    let version = self.serve_store(request);
                    let at_ns = self.now_ns + self.store_delay(plan, client, Direction::Down);
                    let answer = What::Answer { to: message.serial, version };
                    self.store_queue.send(client, answer, at_ns);
                }
                What::Answer { to, version } => {
                    self.store_queue.answers.push((to, version));
                    self.wake_client(client);
                }
            }
        }
    }

    fn serve_store(&mut self, request: StoreRequest) -> u32 {
        let served = self.store.serve(request);
        match (request, served) {
            (_, Served::Read { version }) => version,
            (
                StoreRequest::Write { attempt, write, based_on, fencing_token },
                Served::Applied { version },
            ) => {
                let kind =
                    EventKind::WriteApplied { attempt, write, based_on, version, fencing_token };
                self.record(kind);
                version
            }
            (StoreRequest::Write { attempt, write, .. }, Served::Rejected(why)) => {
                self.record(EventKind::WriteRejected { attempt, write, why });
                0
            }
            (StoreRequest::Read { .. }, _) => unreachable!("a read is answered by a version"),
        }
    }

    fn store_delay(&self, plan: &Plan, client: u8, direction: Direction) -> u64 {
        let store = plan.scenario.store_host().get();
        let (shortest, longest) = plan.delays[plan.nodes.len() + usize::from(client)][store];
        let choice = Choice {
            direction: direction as u8,
            repeat: self.store_queue.serial as u32,
            ..Choice::of(Label::Delay, client)
        };
        self.choices.between(choice, shortest, longest)
    }
}
