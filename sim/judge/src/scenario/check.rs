//! The rules that a scenario must satisfy beyond its types.
//!
//! Every broken rule is reported with its place, the expected value, and help.

mod client;
mod cluster;
mod expect;
mod fault;
mod hosts;
mod resources;
mod task;

use super::chance::CountRange;
use super::model::{Client, Scenario, Step};
use super::names::{self, NAME_MAX};
use super::span::{Span, SpanRange};

/// Maximum number of times that one fault starts, and that one loop is taken.
const TIMES_MAX: u32 = 1_000;
/// Maximum number of times that all faults of a scenario start, counted at each of their hosts.
const STRIKES_MAX: u64 = 20_000;
/// Maximum number of steps of a client.
pub const STEPS_MAX: usize = 64;
/// Maximum number of steps that a client takes, with those that its loops repeat.
const STEPS_TAKEN_MAX: u64 = 10_000;
/// Longest duration, and latest time within a run: one hour.
pub const SPAN_MAX: Span = Span(60 * 60 * 1_000_000_000);
/// Maximum uptime of the masters, and maximum offset of a clock: one year. Sums of all of them stay
/// within 64 bits.
pub const SHIFT_MAX: Span = Span(365 * 24 * 60 * 60 * 1_000_000_000);
/// Maximum number of waits between the attempts of one acquisition. A run is finite and counts its
/// attempts in 16 bits, which must suffice even if clocks run twice as fast.
const RETRIES_MAX: u64 = 5_000;
/// Rates of the fastest and the slowest clock, in parts per million: twice as fast, and half as
/// fast. Either makes a time measured on such a clock at most twice as long.
const PPM_MAX: i32 = 1_000_000;
const PPM_MIN: i32 = -500_000;

/// A rule that a scenario breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Path of the value, in the syntax of `set`, with items of lists as numbers from 0.
    pub place: String,
    /// True if the complaint is about the key rather than about its value.
    pub on_key: bool,
    /// Description of the problem.
    pub message: String,
    /// The expected value.
    pub expected: String,
    /// Advice for fixing it.
    pub help: Option<String>,
}

/// Returns every problem of `scenario`; empty if it can run.
#[must_use]
pub fn scenario(scenario: &Scenario) -> Vec<Complaint> {
    let mut check = Check { scenario, found: Vec::new() };
    check.head();
    check.cluster();
    check.lock();
    check.resources();
    check.clients();
    check.faults();
    check.expectations();
    check.found
}

/// Returns the problem with the scenario name `name` in a file with the stem `stem`, if any.
pub(super) fn file_name(name: &str, stem: &str) -> Option<Complaint> {
    let wrong = |message: String, expected: String| Complaint {
        place: String::from("name"),
        on_key: false,
        message,
        expected,
        help: None,
    };
    if names::slug(name) != name || name.is_empty() {
        let expected = "expected lower case letters, digits and single `-`";
        return Some(wrong(format!("`{name}` is not a valid scenario name"), expected.to_owned()));
    }
    if name == "index" {
        let expected = "expected another name: a report's first page is `index.html`";
        return Some(wrong(format!("the name `{name}` is reserved"), expected.to_owned()));
    }
    let message = format!("the scenario is named `{name}`, but its file `{stem}`");
    (name != stem).then(|| Complaint {
        help: Some(String::from("use one name for both")),
        ..wrong(message, format!("expected `{stem}`"))
    })
}

/// Returns the steps of the client at `at`, those of loops included, each with its place.
fn placed_steps<'s>(at: &str, client: &'s Client) -> Vec<(String, &'s Step)> {
    let mut placed = Vec::new();
    for (number, step) in client.steps.iter().enumerate() {
        let at = format!("{at}.steps.{number}");
        for (inner, repeated) in step.repeat.iter().flat_map(|it| &it.steps).enumerate() {
            placed.push((format!("{at}.repeat.steps.{inner}"), repeated));
        }
        placed.push((at, step));
    }
    placed
}

/// The checker: a scenario and the complaints found so far.
struct Check<'s> {
    scenario: &'s Scenario,
    found: Vec<Complaint>,
}

impl Check<'_> {
    /// Reports a problem with the value at `place`. The caller may add help.
    fn wrong(&mut self, place: &str, message: &str, expected: &str) -> &mut Complaint {
        let complaint = Complaint {
            place: place.to_owned(),
            on_key: false,
            message: message.to_owned(),
            expected: expected.to_owned(),
            help: None,
        };
        self.found.push(complaint);
        self.found.last_mut().expect("it was just pushed")
    }

    /// Reports that the key at `place` should not be there, or lacks a companion.
    fn wrong_key(&mut self, place: &str, message: &str, expected: &str) -> &mut Complaint {
        let complaint = self.wrong(place, message, expected);
        complaint.on_key = true;
        complaint
    }

    fn head(&mut self) {
        if self.scenario.schema != 1 {
            let message = format!("schema {} is unknown", self.scenario.schema);
            self.wrong("schema", &message, "expected 1");
        }
        if self.scenario.title.trim().is_empty() {
            self.wrong("title", "the title is empty", "expected one line that says what happens");
        }
        if let Some(duration) = self.scenario.run.duration {
            self.positive("run.duration", duration);
        }
    }

    fn lock(&mut self) {
        let lock = &self.scenario.lock;
        self.ttl("lock.ttl", lock.ttl);
        self.positive("lock.node-timeout", lock.node_timeout);
        self.span("lock.min-validity", lock.min_validity);
        self.span("lock.drift.constant", lock.drift.constant);
        if lock.drift.share_ppm > PPM_MAX as u32 {
            let message = "the drift allowance exceeds the whole TTL";
            self.wrong("lock.drift.share-ppm", message, "expected at most 1000000");
        }
        self.positive("lock.retry.first", lock.retry.first);
        self.span("lock.retry.longest", lock.retry.longest);
        if lock.retry.longest < lock.retry.first {
            let expected = format!("expected at least {}", lock.retry.first);
            self.wrong("lock.retry.longest", "shorter than `retry.first`", &expected);
        }
        if lock.plain_extensions && !self.scenario.cluster.server.extends_plainly() {
            let message = "the masters have no owner-checked SET (`IFEQ`)";
            let expected = "expected `cluster.server` to be `redis-8.4` or `valkey-9`";
            self.wrong_key("lock.plain-extensions", message, expected);
        }
        let Some(fleet) = lock.fleet_max_ttl else { return };
        self.ttl("lock.fleet-max-ttl", fleet);
        let clients = self.scenario.clients.iter().enumerate();
        let own = clients.flat_map(|(place, it)| {
            let at = format!("client.{place}");
            let steps = placed_steps(&at, it).into_iter();
            let of_steps = steps.flat_map(|(at, step)| {
                step.ttls().map(move |(field, ttl)| (format!("{at}.{field}"), ttl))
            });
            it.ttl.map(|ttl| (format!("client.{place}.ttl"), ttl)).into_iter().chain(of_steps)
        });
        let all: Vec<_> = own.chain([(String::from("lock.ttl"), lock.ttl)]).collect();
        for (place, ttl) in all {
            if ttl > fleet {
                let message = format!("{ttl} is longer than `lock.fleet-max-ttl`");
                self.wrong(&place, &message, &format!("expected at most {fleet}"));
            }
        }
    }

    fn ttl(&mut self, place: &str, ttl: Span) {
        self.positive(place, ttl);
        // A competing client may have to try for as long as the TTL.
        self.tries(place, ttl);
        if !ttl.0.is_multiple_of(1_000_000) {
            let message = format!("a TTL of {ttl} is not a whole number of milliseconds");
            self.wrong(place, &message, "Redis counts whole milliseconds");
        }
    }

    fn positive(&mut self, place: &str, span: Span) {
        if span.0 == 0 {
            self.wrong(place, "the duration is zero", "expected more than 0");
        }
        self.span(place, span);
    }

    fn span(&mut self, place: &str, span: Span) {
        if span > SPAN_MAX {
            let message = format!("{span} is too long");
            self.wrong(place, &message, "expected at most an hour");
        }
    }

    /// Rejects a duration of trying that could take more attempts than a run can count.
    fn tries(&mut self, place: &str, length: Span) {
        let longest = self.scenario.lock.retry.longest;
        let most = Span(longest.0.saturating_mul(RETRIES_MAX));
        if length > most {
            let message =
                format!("{length} of retries allows too many attempts, at most {longest} apart");
            let help = "or increase `lock.retry.longest`";
            self.wrong(place, &message, &format!("expected at most {most}")).help =
                Some(help.to_owned());
        }
    }

    /// Checks a count of repetitions.
    fn count(&mut self, place: &str, count: CountRange) {
        if count.min == 0 || count.max > TIMES_MAX {
            let expected = format!("expected 1 to {TIMES_MAX}");
            self.wrong(place, "the number of times is out of range", &expected);
        }
    }

    fn range(&mut self, place: &str, range: SpanRange) {
        self.span(place, range.max);
    }

    fn name(&mut self, place: &str, name: &str) {
        if !names::is_name(name) {
            let message = format!("`{name}` is not a valid name");
            let expected =
                format!("expected a letter, then letters, digits, `-` and `_`, at most {NAME_MAX}");
            self.wrong(place, &message, &expected);
        } else if ["store", "probe"].contains(&name) {
            let message = format!("the name `{name}` is reserved");
            self.wrong(place, &message, "`store` and `probe` are hosts in every scenario");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_has_the_name_of_its_file_and_not_that_of_a_page() {
        let told = |name: &str, stem: &str| file_name(name, stem).map(|it| it.message);
        assert_eq!(told("jump", "jump"), None);
        assert_eq!(told("index", "index").unwrap(), "the name `index` is reserved");
        assert_eq!(told("Jump", "Jump").unwrap(), "`Jump` is not a valid scenario name");
        assert!(told("jump", "leap").unwrap().ends_with("but its file `leap`"));
    }
}
