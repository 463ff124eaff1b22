//! Draws faults by which a node executes a command behind one that its client wrote later.

use lock_judge::scenario::{
    At, AttemptPoint, AttemptStep, Chance, Delay, Fault, FaultKind, Lost, Message, Partition, Span,
    SpanRange,
};

use super::Sketch;

/// Commands that may be overtaken, and the steps in which they leave the client and are answered.
const COMMANDS: [(Message, AttemptStep, AttemptStep); 3] = [
    (Message::Set, AttemptStep::Write, AttemptStep::Reply),
    (Message::Extend, AttemptStep::ExtendWrite, AttemptStep::ExtendReply),
    (Message::Release, AttemptStep::ReleaseWrite, AttemptStep::ReleaseReply),
];

impl Sketch {
    /// Adds a delay of one command to a node, and a reset of its connection when another node has
    /// answered: the client's next connection overtakes the command.
    pub(super) fn overtaken(&mut self, number: u64) {
        let (only, written, replied) = self.dice.pick(&COMMANDS);
        let (clients, nodes) = (self.names_of_clients(), self.names_of_nodes());
        let (client, node) = (self.dice.pick(&clients), self.dice.pick(&nodes));
        let by = self.dice.length(Span::from_ms(1), self.ttls(10));
        let [from, to] = [vec![client.clone()], vec![node]];
        let delay = Delay { from, to, by: SpanRange::exactly(by), only: Some(only) };
        let between = [delay.from.clone(), delay.to.clone()];
        let reset = Partition { between, one_way: false, lost: Lost::Reset };
        let moment = SpanRange::exactly(Span::from_ms(1));
        let kinds = [(written, FaultKind::Delay(delay)), (replied, FaultKind::Partition(reset))];
        let attempt = self.which_attempt(written);
        for ((before, kind), name) in kinds.into_iter().zip(["slow", "reset"]) {
            let at = AttemptPoint { client: client.clone(), attempt, before, node: None };
            let id = format!("{name}-{}", number + 1);
            self.once(id, At::Point(at), (None, Some(moment)), kind);
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

    /// Adds a fault that begins once, and certainly.
    fn once(
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
