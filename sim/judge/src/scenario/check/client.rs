//! Rules about the clients and their steps.

use super::{Check, STEPS_MAX, STEPS_TAKEN_MAX, placed_steps};
use crate::ids::{CLIENTS_MAX, NODES_MAX};
use crate::scenario::model::{Acquire, Client, Extend, Hold, Hosts, Repeat, Step};
use crate::scenario::names;
use crate::scenario::span::Span;
use crate::scenario::subjects::{self, WORKER};

/// Maximum number of attempts of one acquisition.
const ATTEMPTS_MAX: u32 = 1_000;

/// Maximum number of extensions of one step.
const EXTENSIONS_MAX: u32 = 1_000;

/// Maximum time for which a lease may be kept alive, in TTLs.
const KEPT_TTLS_MAX: u64 = 1_000;

/// Maximum number of attempts that all times of a loop's acquisition may take.
const REPEATED_ATTEMPTS_MAX: u64 = 10_000;

/// State of a client's steps so far, as far as their order matters.
#[derive(Clone, Copy)]
struct Course {
    has_acquired: bool,
    is_inside: bool,
    /// Number of times that the present step is taken, at most.
    times: u64,
    /// True within a loop.
    is_repeated: bool,
}

impl Course {
    const START: Self =
        Self { has_acquired: false, is_inside: false, times: 1, is_repeated: false };
}

impl Check<'_> {
    pub(super) fn clients(&mut self) {
        let clients = &self.scenario.clients;
        if clients.is_empty() {
            let expected = "expected at least one `[[client]]`";
            self.wrong("client", "the scenario has no client", expected);
        }
        if clients.len() > CLIENTS_MAX {
            let message = format!("{} clients are too many", clients.len());
            let at = format!("client.{CLIENTS_MAX}");
            self.wrong(&at, &message, &format!("expected at most {CLIENTS_MAX}"));
        }
        for (place, client) in clients.iter().enumerate() {
            let at = format!("client.{place}");
            let id = format!("{at}.id");
            self.name(&id, &client.id);
            let taken = clients[..place].iter().any(|other| other.id == client.id);
            if taken || self.scenario.cluster.nodes.contains(&client.id) {
                let message = format!("two hosts have the name `{}`", client.id);
                self.wrong(&id, &message, "expected another name");
            }
            self.subject(&at, client);
            self.members(&at, client);
            self.copy(&at, client);
            self.task(&at, place, client);
            if let Some(ttl) = client.ttl {
                self.ttl(&format!("{at}.ttl"), ttl);
            }
            // A worker's steps are unknown here; a misspelt subject may mean a worker.
            if subjects::subject(&client.subject).is_some() || !client.steps.is_empty() {
                self.steps(&at, &client.steps);
            }
            self.keep_alive(&at, client);
            self.acquired_ttls(&at, client);
            self.at_once(&at, client);
        }
    }

    fn subject(&mut self, at: &str, client: &Client) {
        let subject = subjects::subject(&client.subject);
        if client.subject != WORKER && subject.is_none() {
            let message = format!("unknown subject `{}`", client.subject);
            let table = "the table of subjects in `scenarios/README.md` has the names";
            let known = subjects::subject_names().chain([WORKER]);
            let help = names::suggestion(&client.subject, known);
            let (at, help) = (format!("{at}.subject"), help.or(Some(table.to_owned())));
            self.wrong(&at, &message, "expected the name of a lock client").help = help;
        }
        if subject.is_some_and(|it| it.owns_connections) && client.connections.is_some() {
            let message = format!("`{}` manages its own connections", client.subject);
            let expected = "`connections` is for the other subjects";
            self.wrong_key(&format!("{at}.connections"), &message, expected);
        }
        if client.deaf && !client.is_ours() {
            let message = format!("`{}` does not listen for pushes", client.subject);
            self.wrong_key(&format!("{at}.deaf"), &message, "`deaf` is for `redlock`");
        }
    }

    /// Checks the client's own list of nodes.
    fn members(&mut self, at: &str, client: &Client) {
        let Some(nodes) = &client.nodes else { return };
        let at = format!("{at}.nodes");
        if nodes.is_empty() {
            self.wrong(&at, "the list of nodes is empty", "expected at least one node");
        }
        if nodes.len() > NODES_MAX {
            let message = format!("{} names are too many", nodes.len());
            self.wrong(&at, &message, &format!("expected at most {NODES_MAX}"));
        }
        for (place, node) in nodes.iter().enumerate() {
            let at = format!("{at}.{place}");
            if !self.scenario.cluster.aliases.contains_key(node) {
                self.host(&at, node, Hosts::Nodes);
            }
            if nodes[..place].contains(node) {
                let message = format!("`{node}` is listed twice");
                self.wrong(&at, &message, "expected each node once");
            }
        }
    }

    /// Checks the client whose random numbers this one draws, too: an original that runs the same
    /// program.
    fn copy(&mut self, at: &str, client: &Client) {
        let Some(name) = &client.copy_of else { return };
        let at = format!("{at}.copy-of");
        self.host(&at, name, Hosts::Clients);
        let original = self.scenario.clients.iter().find(|it| it.id == *name);
        let Some(original) = original else { return };
        let has_tasks =
            |name| self.scenario.clients.iter().any(|it| it.task_of.as_ref() == Some(name));
        if has_tasks(name) {
            let message = format!("`{name}` has several tasks");
            self.wrong(&at, &message, "expected a client with one task");
        } else if original.copy_of.is_some() {
            let message = format!("`{name}` is a copy itself");
            self.wrong(&at, &message, "expected the original, or another client");
        } else if original.subject != client.subject {
            let message = format!("`{name}` runs another subject, `{}`", original.subject);
            self.wrong(&at, &message, "expected a client with the same `subject`");
        }
    }

    fn keep_alive(&mut self, at: &str, client: &Client) {
        for (at, step) in placed_steps(at, client) {
            let Some(at_most) = step.acquire.and_then(|acquire| acquire.keep_alive) else {
                continue;
            };
            let at = format!("{at}.acquire.keep-alive");
            self.positive(&at, at_most);
            let own = step.acquire.and_then(|acquire| acquire.ttl);
            let ttl = own.unwrap_or_else(|| self.scenario.ttl_of(client));
            if at_most <= ttl {
                let message = format!("a keep-alive of {at_most} ends before the lease");
                self.wrong(&at, &message, &format!("expected more than the TTL, {ttl}"));
            }
            if at_most.0 / KEPT_TTLS_MAX > ttl.0 {
                let message =
                    format!("a keep-alive of {at_most} exceeds {KEPT_TTLS_MAX} times the TTL");
                self.wrong(&at, &message, "a run counts extensions in 16 bits: use a longer TTL");
            }
            if !client.is_ours() {
                let message = format!("`{}` has no keep-alive", client.subject);
                self.wrong_key(&at, &message, "only for `redlock`; use `extend` steps");
            }
        }
    }

    fn acquired_ttls(&mut self, at: &str, client: &Client) {
        for (at, step) in placed_steps(at, client) {
            let Some(ttl) = step.acquire.and_then(|acquire| acquire.ttl) else { continue };
            let at = format!("{at}.acquire.ttl");
            self.ttl(&at, ttl);
            if !client.is_ours() {
                let message = format!("`{}` has one TTL for all acquisitions", client.subject);
                self.wrong_key(&at, &message, "only for `redlock`; use the client's `ttl`");
            }
        }
    }

    fn at_once(&mut self, at: &str, client: &Client) {
        let is_asked = |step: &Step| step.acquire.is_some_and(|acquire| acquire.at_once);
        let asking = placed_steps(at, client).into_iter().find(|(_, step)| is_asked(step));
        if let Some((at, _)) = asking
            && !client.is_ours()
        {
            let message = format!("`{}` does not detect split votes", client.subject);
            let at = format!("{at}.acquire.at-once");
            self.wrong_key(&at, &message, "only for `redlock`; use `attempts`");
        }
    }

    fn steps(&mut self, at: &str, steps: &[Step]) {
        if steps.is_empty() {
            let (at, expected) = (format!("{at}.steps"), "expected at least one step");
            let help = "`subject = \"worker\"` leaves the steps to a process of your own";
            self.wrong(&at, "the client has no steps", expected).help = Some(help.to_owned());
        }
        let taken = steps.iter().map(steps_taken).fold(0, u64::saturating_add);
        if taken > STEPS_TAKEN_MAX {
            let message = format!("loops make {taken} steps out of these");
            let expected = format!("expected at most {STEPS_TAKEN_MAX}");
            self.wrong(&format!("{at}.steps"), &message, &expected);
        }
        if steps.len() > STEPS_MAX {
            let message = format!("{} steps are too many", steps.len());
            let expected = format!("expected at most {STEPS_MAX}");
            self.wrong(&format!("{at}.steps.{STEPS_MAX}"), &message, &expected);
        }
        let mut course = Course::START;
        for (place, step) in steps.iter().enumerate() {
            self.step(&format!("{at}.steps.{place}"), step, &mut course);
        }
    }

    fn step(&mut self, at: &str, step: &Step, course: &mut Course) {
        let kinds = kinds(step);
        let [kind] = kinds[..] else {
            let message = match kinds.len() {
                0 => String::from("the step is empty"),
                _ => format!("the step has several actions: {}", joined(&kinds)),
            };
            let expected = "expected exactly one of `acquire`, `look`, `enter`, `read`, `write`, \
                            `extend`, `leave`, `hold`, `release`, `sleep`, `repeat`";
            self.wrong(at, &message, expected);
            return;
        };
        if let Some(begin) = step.at {
            self.range(&format!("{at}.at"), begin);
        }
        if let Some(pause) = step.sleep {
            self.range(&format!("{at}.sleep"), pause);
        }
        if let Some(Hold::For { length, .. }) = step.hold {
            self.range(&format!("{at}.hold"), length);
        }
        if let Some(acquire) = &step.acquire {
            self.acquire(at, step, (acquire, course.times));
        }
        if let Some(repeat) = &step.repeat {
            return self.repeat(at, repeat, course);
        }
        if let Some(extend) = &step.extend {
            self.extend(&format!("{at}.extend"), extend);
        }
        self.order(at, kind, course);
    }

    /// Checks a loop: its steps must make sense the first time, and after themselves.
    fn repeat(&mut self, at: &str, repeat: &Repeat, course: &mut Course) {
        let at = format!("{at}.repeat");
        if course.is_repeated {
            let message = "a loop within a loop";
            self.wrong_key(&at, message, "list its steps here, or multiply `times`");
            return;
        }
        self.count(&format!("{at}.times"), repeat.times);
        let place = format!("{at}.steps");
        match repeat.steps.len() {
            0 => {
                self.wrong(&place, "the loop has no steps", "expected at least one step");
            }
            1..=STEPS_MAX => {}
            many => {
                let expected = format!("expected at most {STEPS_MAX}");
                self.wrong(&place, &format!("{many} steps are too many"), &expected);
            }
        }
        let before = self.found.len();
        for _ in 0..repeat.times.max.min(2) {
            *course = Course { times: repeat.times.max.into(), is_repeated: true, ..*course };
            for (number, step) in repeat.steps.iter().enumerate() {
                self.step(&format!("{place}.{number}"), step, course);
            }
            if self.found.len() > before {
                break;
            }
        }
        *course = Course { times: 1, is_repeated: false, ..*course };
    }

    fn extend(&mut self, at: &str, extend: &Extend) {
        if let Some(ttl) = extend.ttl {
            self.ttl(&format!("{at}.ttl"), ttl);
        }
        if let Some(every) = extend.every {
            self.range(&format!("{at}.every"), every);
        }
        if extend.times.is_some_and(|times| !(1..=EXTENSIONS_MAX).contains(&times)) {
            let expected = format!("expected 1 to {EXTENSIONS_MAX}");
            self.wrong(
                &format!("{at}.times"),
                "the number of extensions is out of range",
                &expected,
            );
        }
    }

    fn acquire(&mut self, at: &str, step: &Step, (acquire, times): (&Acquire, u64)) {
        let at = format!("{at}.acquire");
        let limits = [
            acquire.until.map(|_| "until"),
            acquire.wait.map(|_| "wait"),
            acquire.attempts.map(|_| "attempts"),
            acquire.at_once.then_some("at-once"),
        ];
        let limits: Vec<&str> = limits.into_iter().flatten().collect();
        if limits.len() > 1 {
            let message = format!("{} exclude each other", joined(&limits));
            let expected = "expected at most one of `until`, `wait`, `attempts`, `at-once`";
            self.wrong_key(&format!("{at}.{}", limits[1]), &message, expected);
        }
        if let Some(until) = acquire.until {
            let at = format!("{at}.until");
            self.span(&at, until);
            self.tries(&at, until);
            if let Some(begin) = step.at.map(|at| at.max).filter(|&begin| until <= begin) {
                let message = "`until` is not after `at`";
                self.wrong(&at, message, &format!("expected a time after {begin}"));
            }
        }
        if let Some(wait) = acquire.wait {
            self.range(&format!("{at}.wait"), wait);
            self.tries(&format!("{at}.wait"), Span(wait.max.0.saturating_mul(times)));
        }
        if acquire.attempts.is_some_and(|it| u64::from(it) * times > REPEATED_ATTEMPTS_MAX) {
            let message = format!("{times} times as many attempts are too many");
            let expected = format!("expected at most {} each time", REPEATED_ATTEMPTS_MAX / times);
            self.wrong(&format!("{at}.attempts"), &message, &expected);
        }
        if acquire.attempts.is_some_and(|attempts| !(1..=ATTEMPTS_MAX).contains(&attempts)) {
            let expected = format!("expected 1 to {ATTEMPTS_MAX}");
            self.wrong(
                &format!("{at}.attempts"),
                "the number of attempts is out of range",
                &expected,
            );
        }
    }

    /// Checks the order of steps: a lease before a section, and one section at a time.
    fn order(&mut self, at: &str, kind: &str, course: &mut Course) {
        let needs_lease = !["acquire", "sleep"].contains(&kind);
        if needs_lease && !course.has_acquired {
            let message = format!("`{kind}` before the first `acquire`");
            self.wrong(at, &message, "acquire the lock first");
        }
        match kind {
            "acquire" | "enter" | "hold" if course.is_inside => {
                let message = format!("`{kind}` within a section");
                self.wrong(at, &message, "add `leave` before it");
            }
            "leave" if !course.is_inside => {
                self.wrong(at, "`leave` outside a section", "add `enter` before it");
            }
            _ => {}
        }
        match kind {
            "acquire" => {
                *course = Course { has_acquired: true, is_inside: false, ..*course };
            }
            "enter" => course.is_inside = true,
            "leave" => course.is_inside = false,
            _ => {}
        }
    }
}

/// Returns the largest number of steps that a step stands for: those of a loop, each time, with every
/// extension on its own.
fn steps_taken(step: &Step) -> u64 {
    let Some(repeat) = &step.repeat else { return 1 };
    let extensions = |step: &Step| step.extend.and_then(|it| it.times).unwrap_or(1);
    let once: u64 = repeat.steps.iter().map(|step| u64::from(extensions(step))).sum();
    once.saturating_mul(repeat.times.max.into())
}

/// Returns the kinds that a step gives. A valid step gives exactly one.
fn kinds(step: &Step) -> Vec<&'static str> {
    let given = [
        ("acquire", step.acquire.is_some()),
        ("look", step.check.is_some()),
        ("enter", step.enter.is_some()),
        ("read", step.read.is_some()),
        ("write", step.write.is_some()),
        ("extend", step.extend.is_some()),
        ("leave", step.leave.is_some()),
        ("release", step.release.is_some()),
        ("sleep", step.sleep.is_some()),
        ("hold", step.hold.is_some()),
        ("repeat", step.repeat.is_some()),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(kind, _)| kind).collect()
}

/// Returns `a` and `b`, each in backquotes.
pub(super) fn joined(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(" and ")
}
