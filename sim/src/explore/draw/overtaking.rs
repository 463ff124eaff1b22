//! Draws faults by which a node executes a command behind one that its client wrote later.

use lock_judge::scenario::{
    At, AttemptPoint, AttemptStep, Chance, Delay, Extend, Fault, FaultKind, Lost, Message,
    Partition, Span, SpanRange, Step,
};

use super::Sketch;
use super::faults::FAULTS_MAX;

/// Share of the plans in which commands are overtaken besides those that other faults leave behind.
const OVERTAKEN_PERCENT: u64 = 10;

/// Commands that may be overtaken, and the steps in which they leave the client and are answered.
const COMMANDS: [(Message, AttemptStep, AttemptStep); 3] = [
    (Message::Set, AttemptStep::Write, AttemptStep::Reply),
    (Message::Extend, AttemptStep::ExtendWrite, AttemptStep::ExtendReply),
    (Message::Release, AttemptStep::ReleaseWrite, AttemptStep::ReleaseReply),
];

/// Steps at which a connection may be reset that has a command on the wire, besides the answer to that
/// command by another node.
const RESETS: [AttemptStep; 3] =
    [AttemptStep::Deliver, AttemptStep::ExtendWrite, AttemptStep::ExtendReply];

impl Sketch {
    /// Lets commands be overtaken in some more plans. Drawn last: plans without it are as they would be
    /// if no command were overtaken.
    pub(super) fn overtakings(&mut self) {
        if self.is_ours && self.dice.percent(OVERTAKEN_PERCENT) {
            for number in 0..self.dice.between(1, 3) {
                self.overtaken(FAULTS_MAX + number, true);
            }
        }
    }

    /// Adds a delay of one command to a node, and a reset of its connection when another node has
    /// answered: the client's next connection overtakes the command. With `is_wide`, several nodes may
    /// be concerned, and the reset may come later.
    pub(super) fn overtaken(&mut self, number: u64, is_wide: bool) {
        let (only, written, replied) = self.dice.pick(&COMMANDS);
        let (clients, nodes) = (self.names_of_clients(), self.names_of_nodes());
        let client = self.dice.pick(&clients);
        let to = if is_wide { self.dice.some(&nodes) } else { vec![self.dice.pick(&nodes)] };
        let by = self.dice.length(Span::from_ms(1), self.ttls(10));
        let delay = Delay {
            from: vec![self.process_of(&client)],
            to,
            by: SpanRange::exactly(by),
            only: Some(only),
        };
        let between = [delay.from.clone(), delay.to.clone()];
        let reset = Partition { between, one_way: false, lost: Lost::Reset };
        let moment = SpanRange::exactly(Span::from_ms(1));
        let attempt = self.which_attempt(written);
        let is_later = is_wide && self.dice.percent(60);
        let later = if is_later { self.dice.pick(&RESETS) } else { replied };
        if is_wide && only == Message::Extend {
            self.extended_twice(&client);
        }
        let kinds = [(written, FaultKind::Delay(delay)), (later, FaultKind::Partition(reset))];
        for ((before, kind), name) in kinds.into_iter().zip(["slow", "reset"]) {
            let at = AttemptPoint { client: client.clone(), attempt, before, node: None };
            let id = format!("{name}-{}", number + 1);
            self.once(id, At::Point(at), (None, Some(moment)), kind);
        }
    }

    /// Lets `client` extend its first lease twice, the second time for longer.
    fn extended_twice(&mut self, client: &str) {
        let longest = self.plan.lock.fleet_max_ttl.unwrap_or(self.plan.lock.ttl).0 / 1_000_000;
        let first = self.dice.between(longest / 3, longest);
        let ttls = [first, self.dice.between(first, longest)];
        let extends = ttls.map(|ttl_ms| {
            let (ttl, times) = (Some(Span::from_ms(ttl_ms)), Some(1));
            let every = Some(self.lengths(Span::from_ms(1), self.ttls(5)));
            Step { extend: Some(Extend { ttl, every, times }), ..Step::default() }
        });
        for it in self.plan.clients.iter_mut().filter(|it| it.id == client) {
            // The first lease may be that of a loop.
            if let Some(place) = it.steps.iter().position(|step| step.acquire.is_some()) {
                it.steps.splice(place + 1..=place, extends.clone());
            }
        }
    }

    /// Returns a delay of the messages that a reset leaves on the wire; perhaps none.
    pub(super) fn slow_before(&mut self, kind: &FaultKind) -> Option<Delay> {
        let FaultKind::Partition(Partition { between, lost: Lost::Reset, .. }) = kind else {
            return None;
        };
        if self.dice.percent(50) {
            return None;
        }
        let is_client = |names: &[String]| self.plan.clients.iter().any(|it| it.id == names[0]);
        let [one, other] = between.clone();
        let (from, to) = if is_client(&one) { (one, other) } else { (other, one) };
        let by = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(20)));
        Some(Delay { from, to, by, only: self.dice.pick(&[None, Some(Message::Set)]) })
    }

    /// Adds a delay that ends when the last fault begins, if that has a time: later messages are fast.
    pub(super) fn end_with_the_last(&mut self, delay: Option<Delay>, id: String) {
        let (Some(delay), Some(last)) = (delay, self.plan.faults.last()) else { return };
        let At::Time(SpanRange { min: until, .. }) = last.at else { return };
        let length = self.dice.length(Span::from_ms(1), self.ttls(10));
        let at = At::Time(SpanRange::exactly(Span(until.0.saturating_sub(length.0))));
        self.once(id, at, (Some(until), None), FaultKind::Delay(delay));
    }

    /// Returns the name of the process that the client named `client` runs in.
    pub(super) fn process_of(&self, client: &str) -> String {
        let host = self.plan.client_named(client).map(|it| self.plan.client_host(it));
        self.plan.host_name(host.expect("a client of the plan")).to_owned()
    }

    /// Adds a fault that begins once, and certainly.
    pub(super) fn once(
        &mut self,
        id: String,
        at: At,
        (until, lasts): (Option<Span>, Option<SpanRange>),
        kind: FaultKind,
    ) {
        let chance = Chance::CERTAIN;
        let (every, times) = (None, None);
        let fault = Fault { id, at, until, lasts, every, times, chance, enabled: true, kind };
        self.plan.faults.push(fault);
    }
}
