//! Rules about the faults.

mod server;

use super::{Check, SPAN_MAX, STRIKES_MAX};
use crate::ids::FAULTS_MAX;
use crate::scenario::model::{
    At, AttemptPoint, ClockBy, Descriptor, Ends, Failover, Fault, FaultKind, Hosts, WhichAttempt,
};
use crate::scenario::names;
use crate::scenario::span::Span;

impl Check<'_> {
    pub(super) fn faults(&mut self) {
        let faults = &self.scenario.faults;
        if faults.len() > FAULTS_MAX {
            let message = format!("{} faults are too many", faults.len());
            let at = format!("fault.{FAULTS_MAX}");
            self.wrong(&at, &message, &format!("expected at most {FAULTS_MAX}"));
        }
        let strikes =
            |fault: &Fault| u64::from(fault.times_max()) * fault.kind.hosts().len().max(1) as u64;
        let strikes: u64 = faults.iter().map(strikes).sum();
        if strikes > STRIKES_MAX {
            let message = format!("all faults together start {strikes} times");
            self.wrong("fault", &message, &format!("expected at most {STRIKES_MAX}"));
        }
        for (place, fault) in faults.iter().enumerate() {
            let at = format!("fault.{place}");
            let id = format!("{at}.id");
            self.name(&id, &fault.id);
            if faults[..place].iter().any(|other| other.id == fault.id) {
                let message = format!("two faults have the name `{}`", fault.id);
                self.wrong(&id, &message, "expected another name");
            }
            self.times(&at, fault);
            self.repetition(&at, fault);
            if let Some(it) = fault.kind.restarting()
                && let (Some(every), Some(after)) = (fault.every, it.restart_after)
                && after.max >= every.min
            {
                let at = format!("{at}.{}.restart-after", fault.kind.descriptor().name);
                let expected = format!("expected less than `every`, {}", every.min);
                self.wrong(&at, "the host dies again before it restarts", &expected);
            }
            self.kind(&format!("{at}.{}", fault.kind.descriptor().name), fault);
        }
    }

    fn times(&mut self, at: &str, fault: &Fault) {
        let Descriptor { name, ends, .. } = fault.kind.descriptor();
        let given = fault.until.map(|_| "until").or(fault.lasts.map(|_| "lasts"));
        match (ends, given) {
            (Ends::Never, Some(key)) => {
                let message = format!("`{name}` is instantaneous and has no end");
                self.wrong_key(&format!("{at}.{key}"), &message, "remove this key");
                return;
            }
            (Ends::Always, None) => {
                let message = format!("`{name}` needs an end");
                self.wrong_key(&format!("{at}.{name}"), &message, "add `until`");
            }
            _ => {}
        }
        if let Some(until) = fault.until {
            self.span(&format!("{at}.until"), until);
        }
        if let Some(lasts) = fault.lasts {
            self.positive(&format!("{at}.lasts"), lasts.min);
            self.range(&format!("{at}.lasts"), lasts);
        }
        match &fault.at {
            At::Time(begin) => {
                self.range(&format!("{at}.at"), *begin);
                if fault.until.is_some() && fault.lasts.is_some() {
                    let message = "`until` and `lasts` exclude each other";
                    self.wrong_key(&format!("{at}.lasts"), message, "remove one of them");
                }
                if fault.until.is_some_and(|until| until <= begin.max) {
                    let expected = format!("expected a time after {}", begin.max);
                    self.wrong(&format!("{at}.until"), "`until` is not after `at`", &expected);
                }
            }
            At::Point(point) => {
                if fault.until.is_some() {
                    let message = "`until` is for faults that begin at a time";
                    self.wrong_key(&format!("{at}.until"), message, "expected `lasts`, a duration");
                }
                self.point(&format!("{at}.at"), point);
            }
        }
    }

    /// Checks how often a fault starts, and that it is over before it starts again.
    fn repetition(&mut self, at: &str, fault: &Fault) {
        let Descriptor { name, ends, .. } = fault.kind.descriptor();
        if fault.chance.ppm() == 0 {
            let expected = "expected more than `0%`, or `enabled = false`";
            self.wrong(&format!("{at}.chance"), "the fault never happens", expected);
        }
        let (Some(every), Some(times)) = (fault.every, fault.times) else {
            let (given, missing) = match (fault.every, fault.times) {
                (Some(_), None) => ("every", "times"),
                (None, Some(_)) => ("times", "every"),
                _ => return,
            };
            let message = format!("`{given}` needs `{missing}`");
            self.wrong_key(&format!("{at}.{given}"), &message, &format!("add `{missing}`"));
            return;
        };
        self.count(&format!("{at}.times"), times);
        self.positive(&format!("{at}.every"), every.min);
        self.range(&format!("{at}.every"), every);
        if let At::Point(_) = fault.at {
            let message = "`every` is for faults that begin at a time";
            self.wrong_key(&format!("{at}.every"), message, "expected `at`, a time");
        }
        if fault.last_start().is_some_and(|last| last > SPAN_MAX) {
            let message = "the last start of the fault is too late";
            self.wrong(&format!("{at}.times"), message, "expected it within an hour");
        }
        if fault.until.is_some() {
            let message = "`until` is for faults that start once";
            self.wrong_key(&format!("{at}.until"), message, "expected `lasts`, a duration");
        } else if ends != Ends::Never && fault.lasts.is_none() {
            let message = format!("`{name}` would start again without an end");
            self.wrong_key(&format!("{at}.every"), &message, "add `lasts`");
        }
        if let Some(lasts) = fault.lasts.filter(|lasts| lasts.max >= every.min) {
            let message = format!("the fault may last {} and start again meanwhile", lasts.max);
            let expected = format!("expected less than `every`, {}", every.min);
            self.wrong(&format!("{at}.lasts"), &message, &expected);
        }
    }

    fn point(&mut self, at: &str, point: &AttemptPoint) {
        // A task makes attempts, although it is no host.
        if !self.scenario.clients.iter().any(|client| client.id == point.client) {
            self.host(&format!("{at}.client"), &point.client, Hosts::Clients);
        }
        let attempt = format!("{at}.attempt");
        match point.attempt {
            WhichAttempt::Nth(0) => {
                self.wrong(&attempt, "attempts count from 1", "expected 1 or more");
            }
            WhichAttempt::Granted if !point.before.follows_grant() => {
                let message = "an attempt that fails reaches this step, too";
                let expected = "only with `deliver`, `look`, `enter`, `extend-…` and `store-…`";
                self.wrong(&attempt, message, expected).help =
                    Some(String::from("`any` means the first attempt that reaches the step"));
            }
            WhichAttempt::Any | WhichAttempt::Granted | WhichAttempt::Nth(_) => {}
        }
        let Some(node) = &point.node else { return };
        let at = format!("{at}.node");
        self.host(&at, node, Hosts::Nodes);
        let client = self.scenario.client_named(&point.client);
        let process = client.and_then(|client| self.scenario.client(self.scenario.process(client)));
        let members = process.and_then(|client| client.nodes.as_ref());
        let names_it =
            |name: &String| self.scenario.node_listed_as(name) == self.scenario.node_named(node);
        if members.is_some_and(|members| !members.iter().any(names_it)) {
            let message = format!("`{}` does not lock on `{node}`", point.client);
            self.wrong(&at, &message, "expected one of the client's `nodes`");
        }
        if !point.before.has_node() {
            let message = "this step has no node";
            let expected =
                "only with `write`, `execute` and `reply`, also of `extend-…` and `release-…`";
            self.wrong_key(&at, message, expected);
        }
    }

    fn kind(&mut self, at: &str, fault: &Fault) {
        let host = format!("{at}.host");
        // Delays, failovers and partitions name their hosts under other keys.
        let has_host_key = !matches!(
            fault.kind,
            FaultKind::Delay(_) | FaultKind::Failover(_) | FaultKind::Partition(_)
        );
        if has_host_key {
            self.hosts(&host, &fault.kind);
        }
        match &fault.kind {
            FaultKind::Attach(it) => self.attaching(&host, &it.host),
            FaultKind::ClockJump(it) => self.clock_by(at, it),
            FaultKind::ClockRate(it) => self.rate(&format!("{at}.ppm"), it.ppm),
            FaultKind::ClockSlew(it) => {
                self.clock_by(at, it);
                self.slew(&format!("{at}.by"), fault, it);
            }
            FaultKind::Demote(it) => self.demotion(at, it),
            FaultKind::Flush(it) => self.flush(at, it),
            FaultKind::Kill(it) | FaultKind::Power(it) | FaultKind::Shutdown(it) => {
                self.restarting(at, fault, it);
            }
            FaultKind::Delay(it) => {
                self.groups(at, [&it.from, &it.to], ["from", "to"]);
                self.positive(&format!("{at}.by"), it.by.min);
                self.range(&format!("{at}.by"), it.by);
            }
            FaultKind::Failover(it) => self.failover(at, it),
            FaultKind::Partition(it) => {
                let [first, second] = &it.between;
                self.groups(&format!("{at}.between"), [first, second], ["0", "1"]);
            }
            FaultKind::Snapshot(it) if fault.enabled => self.loads_snapshots(&host, &it.host),
            FaultKind::Swap(it) => self.swap(at, it),
            FaultKind::Delete(_)
            | FaultKind::DiskStall(_)
            | FaultKind::Evict(_)
            | FaultKind::MemoryFull(_)
            | FaultKind::Pause(_)
            | FaultKind::Snapshot(_)
            | FaultKind::SpuriousPush(_)
            | FaultKind::Stall(_)
            | FaultKind::Suspend(_) => {}
        }
    }

    /// Checks that every host of the fault is known, and that none is named twice.
    fn hosts(&mut self, at: &str, kind: &FaultKind) {
        let (names, which) = (kind.hosts(), kind.descriptor().hosts);
        let place = |place: usize| match names.len() {
            1 => at.to_owned(),
            _ => format!("{at}.{place}"),
        };
        if names.is_empty() {
            self.wrong(at, "the list of hosts is empty", "expected at least one name");
        }
        for (number, name) in names.iter().enumerate() {
            self.host(&place(number), name, which);
            if names[..number].contains(name) {
                let message = format!("`{name}` is listed twice");
                self.wrong(&place(number), &message, "expected each host once");
            }
        }
    }

    fn failover(&mut self, at: &str, it: &Failover) {
        self.host(&format!("{at}.node"), &it.node, Hosts::Nodes);
        let replicas = self.scenario.cluster.replicas.iter();
        let own = replicas.filter(|replica| replica.of == it.node).map(|it| it.id.as_str());
        let candidates: Vec<&str> = own.chain([it.node.as_str()]).collect();
        if !candidates.contains(&it.to.as_str()) {
            let help = names::suggestion(&it.to, candidates);
            let message = format!("`{}` cannot replace `{}`", it.to, it.node);
            let expected = "expected a replica of the node, or the node itself";
            self.wrong(&format!("{at}.to"), &message, expected).help = help;
        }
        for (place, client) in it.told.iter().flatten().enumerate() {
            self.host(&format!("{at}.told.{place}"), client, Hosts::Clients);
        }
    }

    fn clock_by(&mut self, at: &str, it: &ClockBy) {
        let by = format!("{at}.by");
        self.shift(&by, it.by.min);
        if it.by.max != it.by.min {
            self.shift(&by, it.by.max);
        }
        if it.by.min.0 == 0 && it.by.max.0 == 0 {
            self.wrong(&by, "the clock does not move", "expected a value other than 0");
        }
    }

    /// Checks that the slew keeps the clock's rate within its limits.
    fn slew(&mut self, at: &str, fault: &Fault, it: &ClockBy) {
        let length = match fault.at {
            At::Time(begin) => fault.until.and_then(|until| until.0.checked_sub(begin.max.0)),
            At::Point(_) => None,
        };
        let length = length.or(fault.lasts.map(|lasts| lasts.min.0));
        let Some(length) = length.map(Span) else { return };
        let most = if it.by.min.0 < 0 { length.0 / 2 } else { length.0 };
        if it.by.largest_size().0 > most {
            let message = format!("{} cannot be slewed within {length}", it.by);
            self.wrong(at, &message, &format!("expected at most {}", Span(most)));
        }
    }
}
