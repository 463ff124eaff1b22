//! Reads a history event by event.

use std::collections::BTreeMap;

use lock_judge::history::{
    AttemptId, ClockKind, CommandId, Event, EventKind, FencingToken, HostId, NodeId, NodeIds,
    OpKind, Segment, Writer,
};
use lock_judge::scenario::Scenario;

use super::{
    Absence, AbsenceKind, Attempt, Command, Extension, FaultWindow, Interval, Key, KeyEnded,
    Moment, Timeline, Write, belief, resource_of,
};

pub(super) fn read<'a>(scenario: &'a Scenario, events: &'a [Event]) -> Timeline<'a> {
    let mut reader = Reader {
        commands: BTreeMap::new(),
        entered: BTreeMap::new(),
        masters: BTreeMap::new(),
        timeline: Timeline {
            scenario,
            events,
            attempts: Vec::new(),
            keys: Vec::new(),
            commands: Vec::new(),
            writes: Vec::new(),
            absences: Vec::new(),
            fault_windows: Vec::new(),
            clocks: BTreeMap::new(),
            end_ns: events.last().map_or(0, |event| event.at_ns),
            granted: Vec::new(),
            clients: 0,
        },
    };
    for (place, event) in events.iter().enumerate() {
        reader.event(Moment { at_ns: event.at_ns, event: place }, event.kind);
    }
    reader.finish()
}

struct Reader<'a> {
    timeline: Timeline<'a>,
    /// Index of each command by its number.
    commands: BTreeMap<CommandId, usize>,
    /// Instant at which the holder of each attempt entered its section; only sections that have not
    /// ended.
    entered: BTreeMap<AttemptId, u64>,
    /// Host that is each node's master; only nodes that failed over.
    masters: BTreeMap<NodeId, HostId>,
}

impl<'a> Reader<'a> {
    fn event(&mut self, at: Moment, kind: EventKind) {
        match kind {
            EventKind::Clock { host, clock, local_ns, rate_ppb } => {
                let segment = Segment { true_ns: at.at_ns, local_ns, rate_ppb };
                self.timeline.clocks.entry((host, clock)).or_default().push(segment);
            }
            EventKind::FaultBegan { fault } => {
                let trouble = FaultWindow { fault, began: at, ended: None };
                self.timeline.fault_windows.push(trouble);
            }
            EventKind::FaultEnded { fault } => {
                let mut open = self.timeline.fault_windows.iter_mut().rev();
                if let Some(trouble) = open.find(|it| it.fault == fault) {
                    trouble.ended.get_or_insert(at);
                }
            }
            EventKind::FailedOver { node, host } => _ = self.masters.insert(node, host),
            EventKind::NodeUp { .. }
            | EventKind::NodeDown { .. }
            | EventKind::NodeStalled { .. }
            | EventKind::NodeUnstalled { .. }
            | EventKind::Stopped { .. }
            | EventKind::Continued { .. }
            | EventKind::Killed { .. } => self.presence(at, kind),
            EventKind::Written { .. }
            | EventKind::Executed { .. }
            | EventKind::Delivered { .. }
            | EventKind::KeyEnded { .. }
            | EventKind::KeyReturned { .. } => self.command(at, kind),
            EventKind::WriteSent { .. }
            | EventKind::WriteApplied { .. }
            | EventKind::WriteRejected { .. } => self.write(at, kind),
            other => self.attempt(at, other),
        }
    }

    fn presence(&mut self, at: Moment, kind: EventKind) {
        match kind {
            EventKind::NodeDown { node, power } => self.away(node.first_host(), dead(power), at),
            EventKind::NodeStalled { node } => {
                self.away(node.first_host(), AbsenceKind::Stalled, at)
            }
            EventKind::Stopped { host, suspended } => {
                let why = if suspended { AbsenceKind::Suspended } else { AbsenceKind::Stopped };
                self.away(host, why, at);
            }
            EventKind::Killed { host, power } => {
                self.away(host, dead(power), at);
                self.leave_all(host, at.at_ns);
            }
            EventKind::NodeUp { node, .. } | EventKind::NodeUnstalled { node } => {
                self.back(node.first_host(), at);
            }
            EventKind::Continued { host } => self.back(host, at),
            _ => {}
        }
    }

    fn away(&mut self, host: HostId, why: AbsenceKind, from: Moment) {
        self.timeline.absences.push(Absence { host, why, from, to: None });
    }

    fn back(&mut self, host: HostId, at: Moment) {
        let mut last = self.timeline.absences.iter_mut().rev();
        if let Some(away) = last.find(|away| away.host == host && away.to.is_none()) {
            away.to = Some(at);
        }
    }

    fn leave_all(&mut self, host: HostId, at_ns: u64) {
        let scenario = self.timeline.scenario;
        let of_host = |id: &AttemptId| scenario.client_host(id.client) == host;
        let gone: Vec<AttemptId> = self.entered.keys().copied().filter(of_host).collect();
        gone.into_iter().for_each(|id| self.leave(id, at_ns));
    }

    fn leave(&mut self, id: AttemptId, to_ns: u64) {
        if let Some(from_ns) = self.entered.remove(&id) {
            self.with(id, |attempt| attempt.sections.push(Interval { from_ns, to_ns }));
        }
    }

    fn command(&mut self, at: Moment, kind: EventKind) {
        match kind {
            EventKind::Written { command, attempt, node, op } => {
                self.commands.insert(command, self.timeline.commands.len());
                self.timeline.commands.push(Command {
                    attempt,
                    node,
                    op,
                    written: at,
                    executed: None,
                    delivered: None,
                });
            }
            EventKind::Executed {
                command,
                node,
                op,
                answer,
                changed,
                after,
                expires_wall_ms,
                ..
            } => {
                self.with_command(command, |it| it.executed = Some((at, answer)));
                let retimes = matches!(op, OpKind::Expire | OpKind::Extend);
                match after {
                    Writer::Nobody => {}
                    _ if !changed => {}
                    _ => {
                        let expected_ns = self.expected_ns(at, node, after, expires_wall_ms);
                        let ended = None;
                        match retimes {
                            true => self.key_retimed((node, after), expected_ns),
                            false => self.timeline.keys.push(Key {
                                node,
                                writer: after,
                                set: at,
                                ended,
                                expected_ns,
                            }),
                        }
                    }
                }
            }
            EventKind::Delivered { command, .. } => {
                self.with_command(command, |it| it.delivered = Some(at));
            }
            EventKind::KeyReturned { node, writer, .. } => {
                let (ended, expected_ns) = (None, None);
                self.timeline.keys.push(Key { node, writer, set: at, ended, expected_ns });
            }
            EventKind::KeyEnded { node, writer, cause, by, .. } => {
                let ended = KeyEnded { moment: at, cause, by };
                if let Some(key) = self.keys_of((node, writer)).next() {
                    key.ended.get_or_insert(ended);
                }
            }
            _ => {}
        }
    }

    fn with_command(&mut self, number: CommandId, change: impl FnOnce(&mut Command)) {
        if let Some(&place) = self.commands.get(&number) {
            change(&mut self.timeline.commands[place]);
        }
    }

    fn key_retimed(&mut self, key: (NodeId, Writer), expected_ns: Option<u64>) {
        if let Some(key) = self.keys_of(key).find(|key| key.ended.is_none()) {
            key.expected_ns = expected_ns;
        }
    }

    /// Returns the keys of `writer`'s lock on `node`, the latest first.
    fn keys_of(&mut self, (node, writer): (NodeId, Writer)) -> impl Iterator<Item = &mut Key> {
        let (scenario, keys) = (self.timeline.scenario, self.timeline.keys.iter_mut().rev());
        let of = resource_of(scenario, writer);
        keys.filter(move |key| key.node == node && resource_of(scenario, key.writer) == of)
    }

    /// Returns the end of a key of `writer` whose expiry on the node's wall clock is set at `at`.
    fn expected_ns(
        &self,
        at: Moment,
        node: NodeId,
        writer: Writer,
        expires_wall_ms: u64,
    ) -> Option<u64> {
        let is_expected = matches!(writer, Writer::Attempt(_)) && expires_wall_ms != u64::MAX;
        let host = self.masters.get(&node).copied().unwrap_or_else(|| node.first_host());
        let clock = self.timeline.clocks.get(&(host, ClockKind::Wall)).filter(|_| is_expected)?;
        let wall_ns = clock.last()?.local_at(at.at_ns);
        let left_ns = expires_wall_ms.saturating_mul(1_000_000).saturating_sub(wall_ns);
        at.at_ns.checked_add(left_ns)
    }

    fn write(&mut self, at: Moment, kind: EventKind) {
        let arrived = match kind {
            EventKind::WriteSent { attempt, write, based_on, fencing_token } => {
                self.timeline.writes.push(Write {
                    attempt,
                    id: write,
                    sent: at,
                    based_on,
                    fencing_token,
                    arrived: None,
                });
                return;
            }
            EventKind::WriteApplied { write, version, .. } => (write, Ok(version)),
            EventKind::WriteRejected { write, why, .. } => (write, Err(why)),
            _ => return,
        };
        let mut sent = self.timeline.writes.iter_mut().rev();
        if let Some(write) = sent.find(|write| write.id == arrived.0) {
            write.arrived = Some((at, arrived.1));
        }
    }

    fn attempt(&mut self, at: Moment, kind: EventKind) {
        match kind {
            EventKind::AttemptBegan { attempt, clock, t1_local_ns, ttl_ns, drift_ns, needed } => {
                let mut began = blank(attempt, at);
                began.clock = clock;
                (began.t1_local_ns, began.needed) = (t1_local_ns, needed);
                (began.ttl_ns, began.drift_ns) = (ttl_ns, drift_ns);
                self.timeline.attempts.push(began);
            }
            EventKind::AttemptSettled { attempt, outcome } => {
                self.with(attempt, |it| it.settled = Some((at, outcome)));
            }
            EventKind::GrantDecided { attempt, counted, t2_local_ns, .. } => {
                let (timeline, id) = (&self.timeline, attempt);
                let earlier = timeline.attempt(id).map(|it| belief::of(timeline, it, at.at_ns));
                self.with(attempt, |it| {
                    if it.delivered.is_some() {
                        it.earlier.push(it.grant());
                        it.beliefs.extend(earlier.unwrap_or_default());
                    }
                    it.counted = counted;
                    it.decided = Some((at, t2_local_ns));
                });
            }
            EventKind::GrantDelivered { attempt, deadline_local_ns, fencing_token, .. } => {
                self.with(attempt, |it| {
                    it.delivered = Some((at, deadline_local_ns));
                    it.deadlines.push((at.at_ns, deadline_local_ns));
                    // A worker that enters again by one lease believes in it again.
                    it.released = None;
                    it.fencing_token = fencing_token;
                });
            }
            EventKind::ReleaseCalled { attempt } => {
                self.with(attempt, |it| _ = it.released.get_or_insert(at));
            }
            EventKind::LostDelivered { attempt, reason } => {
                self.with(attempt, |it| _ = it.lost.get_or_insert((at, reason)));
            }
            EventKind::Checked { attempt, alive } => {
                self.with(attempt, |it| it.checks.push((at, alive)));
            }
            EventKind::SectionEntered { attempt } => {
                self.entered.insert(attempt, at.at_ns);
            }
            EventKind::SectionLeft { attempt } => self.leave(attempt, at.at_ns),
            other => self.extension(at, other),
        }
    }

    fn extension(&mut self, at: Moment, kind: EventKind) {
        match kind {
            EventKind::ExtensionBegan { attempt, ttl_ns, .. } => {
                let (failed, extended, delivered) = (None, None, None);
                let round = Extension { began: at, ttl_ns, failed, extended, delivered };
                self.with(attempt, |it| it.extensions.push(round));
            }
            EventKind::ExtensionRefused { attempt, why, .. } => {
                self.with(attempt, |it| it.refusals.push((at, why)));
            }
            EventKind::ExtensionSettled { attempt, extended, counted, .. } => {
                self.with_round(attempt, |round| match extended {
                    true => round.extended = Some((at, counted)),
                    false => round.failed = Some(at),
                });
            }
            EventKind::ExtensionDelivered { attempt, deadline_local_ns, .. } => {
                self.with(attempt, |it| it.deadlines.push((at.at_ns, deadline_local_ns)));
                self.with_round(attempt, |round| round.delivered = Some((at, deadline_local_ns)));
            }
            _ => {}
        }
    }

    fn with_round(&mut self, id: AttemptId, change: impl FnOnce(&mut Extension)) {
        self.with(id, |attempt| {
            if let Some(round) = attempt.extensions.last_mut() {
                change(round);
            }
        });
    }

    fn with(&mut self, id: AttemptId, change: impl FnOnce(&mut Attempt)) {
        if let Some(attempt) = self.timeline.attempts.iter_mut().rev().find(|it| it.id == id) {
            change(attempt);
        }
    }

    fn finish(mut self) -> Timeline<'a> {
        let end_ns = self.timeline.end_ns;
        let inside: Vec<AttemptId> = self.entered.keys().copied().collect();
        inside.into_iter().for_each(|id| self.leave(id, end_ns));

        let mut timeline = self.timeline;
        let leases = timeline.attempts.iter().filter(|attempt| attempt.delivered.is_some());
        timeline.granted = leases.map(|attempt| attempt.id).collect();
        timeline.clients = timeline.drawn_clients();
        for place in 0..timeline.attempts.len() {
            let last = belief::of(&timeline, &timeline.attempts[place], end_ns);
            timeline.attempts[place].beliefs.extend(last);
        }
        timeline
    }
}

fn dead(power: bool) -> AbsenceKind {
    if power { AbsenceKind::PowerLost } else { AbsenceKind::Killed }
}

fn blank(id: AttemptId, began: Moment) -> Attempt {
    Attempt {
        id,
        began,
        clock: ClockKind::default(),
        t1_local_ns: 0,
        ttl_ns: 0,
        drift_ns: 0,
        needed: 0,
        counted: NodeIds::EMPTY,
        decided: None,
        delivered: None,
        fencing_token: FencingToken::NONE,
        earlier: Vec::new(),
        settled: None,
        released: None,
        lost: None,
        deadlines: Vec::new(),
        beliefs: Vec::new(),
        sections: Vec::new(),
        checks: Vec::new(),
        extensions: Vec::new(),
        refusals: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
