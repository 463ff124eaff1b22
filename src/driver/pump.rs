//! Executes the commands of the machines and handles their events, until there are no more.

use redlock_protocol::{BootInstant, Command, Event, Fresh, LockId, ReleaseOutcome, Token};

use crate::deadline::Deadline;
use crate::error::AcquireErrorKind;
use crate::observe::{self, Instant, Nodes};

use super::{Driver, State};

impl Driver {
    /// Reports changes of the nodes' eligibility, then drains the machines.
    pub(super) fn pump(&self, state: &mut State, now: BootInstant) {
        for node in state.machine.nodes().iter() {
            self.tell_eligibility(state, node, now);
        }
        self.drain(state, now);
    }

    /// Carries out the machines' commands and handles their events until there are no more.
    pub(super) fn drain(&self, state: &mut State, now: BootInstant) {
        loop {
            // An extension is reported before its first command is written.
            while let Some(event) = state.machine.poll_event() {
                self.hear(state, event, now);
            }
            let Some(command) = state.machine.poll_command() else {
                break;
            };
            self.carry_out(state, command, now);
        }
    }

    fn carry_out(&self, state: &mut State, command: Command, now: BootInstant) {
        let node = match command {
            Command::Dial { node, epoch } => {
                state.nodes[node.get()].epoch = Some(epoch);
                node
            }
            Command::Reset { node, epoch, why } => {
                debug_assert_eq!(state.nodes[node.get()].epoch, Some(epoch), "an unknown epoch");
                self.reset(state, node, why);
                node
            }
            Command::Write { node, epoch, op, .. } => {
                debug_assert_eq!(state.nodes[node.get()].epoch, Some(epoch), "an unknown epoch");
                self.write(state, node, op, now);
                node
            }
        };
        state.nodes[node.get()].task.wake(&mut state.wakes);
    }

    fn hear(&self, state: &mut State, event: Event, now: BootInstant) {
        match event {
            Event::AttemptDue(lock) => self.begin(state, lock, now),
            Event::AttemptFailed { lock, token, reason, ballot } => {
                state.uses.attempt_failed(lock, ballot);
                self.tell(|| {
                    let resource = state.name_of(lock);
                    observe::Event::AttemptFailed { owner: token, resource, reason: reason.into() }
                });
            }
            Event::Decided { lock, token, counted, deadline } => {
                self.tell(|| observe::Event::Decided {
                    owner: token,
                    resource: state.name_of(lock),
                    counted: Nodes::new(counted),
                    t2: Instant::new(now),
                    deadline: Deadline::new(deadline),
                });
                state.uses.decided(lock, &mut state.wakes);
            }
            Event::ExtensionBegan { lock, token, t1, ttl } => self.tell(|| {
                let resource = state.name_of(lock);
                observe::Event::ExtensionBegan { owner: token, resource, t1: Instant::new(t1), ttl }
            }),
            Event::Extended { lock, token, counted, deadline } => {
                let failures = state.uses.extension_settled(lock, Ok(deadline), &mut state.wakes);
                self.tell(|| observe::Event::Extended {
                    owner: token,
                    resource: state.name_of(lock),
                    counted: Nodes::new(counted),
                    deadline: Deadline::new(deadline),
                    failures,
                });
            }
            Event::ExtensionFailed { lock, token, reason } => {
                let failures = state.uses.extension_settled(lock, Err(reason), &mut state.wakes);
                self.tell(|| observe::Event::ExtensionFailed {
                    owner: token,
                    resource: state.name_of(lock),
                    reason: reason.into(),
                    failures,
                });
            }
            Event::GaveUp { lock, reason, taken_for } => {
                self.tell_failed(state, lock, reason.into(), now);
                let taken_for = taken_for.map(|left| (left, now));
                let ended = state.uses.gave_up(lock, reason.into(), taken_for, &mut state.wakes);
                ended.into_iter().for_each(|resource| state.names.retire(resource));
            }
            Event::Lost { lock, reason } => {
                self.tell_lost(state, lock, reason.into(), now);
                state.uses.lost(lock, reason.into(), &mut state.wakes);
            }
            Event::Released { lock, outcome } => self.settle_release(state, lock, outcome),
        }
    }

    /// Ends a use whose release is settled, and forgets the name of its resource.
    fn settle_release(&self, state: &mut State, lock: LockId, outcome: ReleaseOutcome) {
        let Some(ended) = state.uses.released(lock, outcome, &mut state.wakes) else { return };
        self.tell(|| observe::Event::Released {
            owner: ended.owner,
            resource: state.names.name(ended.resource),
            deleted: Nodes::new(outcome.deleted),
            absent: Nodes::new(outcome.absent),
            unconfirmed: Nodes::new(outcome.unconfirmed),
        });
        state.names.retire(ended.resource);
    }

    /// Draws the token and jitter of an attempt, then reads T1, then begins the attempt.
    fn begin(&self, state: &mut State, lock: LockId, now: BootInstant) {
        if state.uses.acquiring(lock).is_none() {
            // It was closed after its attempt had become due, in the same turn.
            return;
        }
        let mut random = [0; Token::LENGTH + size_of::<u64>()];
        let drawn = self.environment.fill_random(&mut random);
        let t1 = self.read_clock(state);
        if drawn.is_err() {
            self.tell_failed(state, lock, AcquireErrorKind::NoEntropy, now);
            state.uses.fail(lock, AcquireErrorKind::NoEntropy);
            return state.machine.release(lock, t1);
        }
        let (token, jitter) = random.split_first_chunk().expect("it is longer than a token");
        let jitter = jitter.first_chunk().expect("eight bytes follow the token");
        let owner = Token::from_bytes(*token);
        let (resource, ttl) = state.uses.begin(lock, owner);
        let resource = state.names.name(resource);
        self.tell(|| observe::Event::AttemptBegan { owner, resource, t1: Instant::new(t1), ttl });
        let fresh = Fresh { token: owner, jitter: u64::from_le_bytes(*jitter) };
        state.machine.begin(lock, fresh, t1);
    }
}
