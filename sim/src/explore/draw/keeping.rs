//! Draws leases that are kept alive for long, while one node after the other is struck.

use lock_judge::scenario::{
    Acquire, At, Client, Ends, FaultKind, Flush, Hold, HostNames, Lost, Nothing, OneHost, OneKey,
    Partition, RestartGuard, Restarting, Span, SpanRange, Step,
};

use super::Sketch;
use super::faults::{FAULTS_MAX, NO_RESTART};
use crate::explore::assumptions::Assumption;

/// Share of the plans that have such a lease.
const KEPT_PERCENT: u64 = 10;

/// Most faults that strike its nodes, besides those of every plan.
const STRIKES_MAX: u64 = 6;

impl Sketch {
    /// Lets a client keep its first lease for long in some more plans, and strikes nodes meanwhile, as
    /// a rolling restart does. Drawn last: plans without it are as they would be if no lease were kept
    /// for long.
    pub(super) fn keepers(&mut self) {
        if !self.is_ours || !self.dice.percent(KEPT_PERCENT) {
            return;
        }
        let acquires = |client: &&Client| client.steps.iter().any(|it| it.acquire.is_some());
        let clients = self.plan.clients.iter().filter(acquires);
        let ids: Vec<String> = clients.map(|client| client.id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let id = self.dice.pick(&ids);
        let kept = self.dice.length(self.ttls(50), self.ttls(300));
        let held = self.dice.length(self.ttls(20), kept);
        let begin = self.keep(&id, kept, held);
        self.strikes(&id, begin, Span(begin.0 + held.0));
    }

    /// Lets the client `id` wait for its first lease, keep it alive for `kept`, and release it after
    /// `held`, and nothing more. Returns the instant from which on it acquires.
    fn keep(&mut self, id: &str, kept: Span, held: Span) -> Span {
        let steps =
            &mut self.plan.clients.iter_mut().find(|it| it.id == id).expect("a client").steps;
        let place = steps.iter().position(|it| it.acquire.is_some()).expect("it acquires");
        let begin = steps[place].at.map_or(Span(0), |at| at.min);
        let wait = Some(SpanRange::exactly(kept));
        let ttl = steps[place].acquire.and_then(|it| it.ttl);
        steps[place].acquire =
            Some(Acquire { wait, keep_alive: Some(kept), ttl, ..Acquire::default() });
        let hold = Hold::For { length: SpanRange::exactly(held), or_lost: true };
        // Promises about keep-alive are judged of clients that keep all of their leases alive.
        steps.truncate(place + 1);
        steps.push(Step { hold: Some(hold), ..Step::default() });
        steps.push(Step { release: Some(Nothing {}), ..Step::default() });
        begin
    }

    /// Strikes single nodes between the two instants, some of them again and again.
    fn strikes(&mut self, client: &str, begin: Span, end: Span) {
        let nodes = self.names_of_nodes();
        let mut node = self.dice.pick(&nodes);
        let mut at = Span(begin.0 + self.dice.length(self.ttls(1), self.ttls(20)).0);
        for number in 1..=self.dice.between(1, STRIKES_MAX) {
            if self.dice.percent(70) {
                node = self.dice.pick(&nodes);
            }
            let length = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(70)));
            let kind = self.strike(client, node.clone());
            let lasts = Some(length).filter(|_| kind.descriptor().ends != Ends::Never);
            self.once(
                format!("strike-{}", FAULTS_MAX + number),
                At::Time(SpanRange::exactly(at)),
                (None, lasts),
                kind,
            );
            at.0 += self.dice.length(Span::from_ms(1), self.ttls(30)).0;
            if at > end {
                return;
            }
        }
    }

    /// Returns a fault of `node` that costs a kept lease no more than one key.
    fn strike(&mut self, client: &str, node: String) -> FaultKind {
        let host = HostNames(vec![node.clone()]);
        let may_restart = self.plan.lock.restart_guard != RestartGuard::DelayedRestart
            || self.may_break(Assumption::Memory);
        match self.dice.below(10) {
            0..3 if self.may_flush() => FaultKind::Flush(Flush { host, database: None }),
            3..6 if may_restart => {
                let after = self.dice.length(Span(10_000), self.ttls(70));
                let restart_after = Some(SpanRange::exactly(after));
                let death = Restarting { host, restart_after, ..NO_RESTART };
                let kinds = [FaultKind::Kill, FaultKind::Power, FaultKind::Shutdown];
                self.dice.pick(&kinds)(death)
            }
            6 => FaultKind::SpuriousPush(OneKey { host, resource: None }),
            7 => FaultKind::MemoryFull(OneHost { host }),
            8 => FaultKind::Stall(OneHost { host }),
            _ => {
                let lost = self.dice.pick(&[Lost::Hold, Lost::Reset, Lost::Silent]);
                let process = self.process_of(client);
                let between = [vec![process], vec![node]];
                FaultKind::Partition(Partition { between, one_way: false, lost })
            }
        }
    }
}
