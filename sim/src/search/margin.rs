//! How far a case is from another verdict, in time.
//!
//! The engine `turmoil` steps by a millisecond and rounds what falls between. A case whose verdict
//! hangs by less than that is another case there. So it is measured on the engine `event` first:
//! everything in the scenario that has a time is moved a little, one thing after the other, and all
//! of them at once at random, and every verdict and blame must stay what it was.

use core::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::engine::{Outcome, Unsupported, event};
use crate::oracle::{Blamed, Judgement};
use crate::scenario::{
    Case, Fault, Hold, Property, Scenario, Span, SpanRange, Step, Time, complaints,
};

/// How far things are moved: a tick for the beginning, one for the way and one for the end.
///
/// What a scenario has at one instant is moved together. Which of two things that happen at once
/// comes first is the same in both engines: faults, what arrives, timers, the clients in their order.
pub const MARGIN: Span = Span::from_ms(3);

/// The shortest way of the engine `turmoil`.
const TICK: Span = Span::from_ms(1);

/// The seeds that a verdict must not depend on.
const SEEDS: u64 = 8;

/// How many seeds each neighbour is played by. Every one has its own: many neighbours by many seeds
/// find what hangs by a hair.
const SEEDS_OF_NEIGHBOURS: u64 = 3;

/// How often everything is moved at once.
const DRAWS: u64 = 32;

/// What a run said of every property; when it happened does not matter.
type Said = [Finding; Property::ALL.len()];

/// A verdict as far as a case can be right or wrong about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Holds, or is vacuous: whether anything puts a property to the test may hang by a hair (an
    /// attempt is refused or just not), and no violation comes or goes with it.
    NotViolated,
    Unjudged,
    Violated(Blamed),
}

/// Whether every verdict of `case` stays what it is, for any seed, when things happen up to
/// [`MARGIN`] earlier or later.
///
/// # Errors
///
/// If it does not: the case is finer than a tick. Or if the engine `event` cannot play it.
pub fn check(case: &Case) -> Result<(), Unsupported> {
    let said = first_said(case)?;
    let hangs = |by: &str| Unsupported { engine: "turmoil", what: format!("a verdict {by}") };
    if !is_said_always(case, 0..SEEDS, &said)? {
        return Err(hangs("that depends on the seed"));
    }
    let seeds = (0..).step_by(SEEDS_OF_NEIGHBOURS as usize);
    let neighbours: Vec<(Case, u64)> = variants(case).zip(seeds).collect();
    let differs = neighbours
        .par_iter()
        .map(|(moved, first)| is_said_always(moved, *first..first + SEEDS_OF_NEIGHBOURS, &said))
        .find_first(|same| *same != Ok(true));
    match differs {
        None => Ok(()),
        Some(Ok(_)) => Err(hangs("that is finer than a tick")),
        Some(Err(unsupported)) => Err(unsupported),
    }
}

fn said_of(outcome: &Outcome) -> Said {
    Property::ALL.map(|property| match outcome.verdicts.of(property) {
        Judgement::Holds | Judgement::Vacuous => Finding::NotViolated,
        Judgement::Unjudged => Finding::Unjudged,
        Judgement::Violated(violation) => Finding::Violated(violation.blamed),
    })
}

fn first_said(case: &Case) -> Result<Said, Unsupported> {
    Ok(said_of(&event::Engine::new(case)?.run(0, None)))
}

fn is_said_always(case: &Case, mut seeds: Range<u64>, said: &Said) -> Result<bool, Unsupported> {
    let mut engine = event::Engine::new(case)?;
    Ok(seeds.all(|seed| said_of(&engine.run(seed, None)) == *said))
}

/// The case with one thing moved, for each of them, both ways, by one tick, two and so on, since what
/// a little changes more may change back; then with all of them moved.
/// What is no scenario then, because a fault would end before it begins, is no neighbour.
fn variants(case: &Case) -> impl Iterator<Item = Case> {
    let axes = axes(&case.scenario);
    let all = axes.clone();
    let margin_ns = MARGIN.0 as i64;
    let steps = (-margin_ns..=margin_ns).step_by(TICK.0 as usize).filter(|by_ns| *by_ns != 0);
    let single = axes.into_iter().flat_map(move |axis| {
        let moved = move |by_ns| moved(case, |it| if it == axis { by_ns } else { 0 });
        steps.clone().map(moved)
    });
    let together = (0..DRAWS).map(move |draw| {
        let mut rng = ChaCha8Rng::seed_from_u64(draw);
        let width = 2 * MARGIN.0 + 1;
        let shifts: Vec<i64> =
            all.iter().map(|_| (rng.next_u64() % width) as i64 - margin_ns).collect();
        moved(case, |it| all.iter().position(|axis| *axis == it).map_or(0, |at| shifts[at]))
    });
    single.chain(together).filter(|case| complaints(&case.scenario).is_empty())
}

/// Something that has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    /// Everything that the scenario has at this instant: what is written to be at once stays so.
    Instant(Span),
    /// Every key that lives for so long.
    Ttl(Span),
    /// The length of the thing with this number: of a hold, of a network's ways, of a jump.
    Length(usize),
}

/// All of them. What is there from the very beginning stays there.
fn axes(scenario: &Scenario) -> Vec<Axis> {
    let mut axes = Vec::new();
    Shifts::of(&mut |axis| {
        axes.push(axis);
        0
    })
    .shift(&mut scenario.clone());
    axes.retain(|axis| *axis != Axis::Instant(Span(0)));
    axes.sort_unstable();
    axes.dedup();
    axes
}

fn moved(case: &Case, mut by_ns: impl FnMut(Axis) -> i64) -> Case {
    let mut case = case.clone();
    Shifts::of(&mut by_ns).shift(&mut case.scenario);
    case
}

/// Moves every time in a scenario.
struct Shifts<'a> {
    by_ns: &'a mut dyn FnMut(Axis) -> i64,
    lengths: usize,
}

impl<'a> Shifts<'a> {
    fn of(by_ns: &'a mut dyn FnMut(Axis) -> i64) -> Self {
        Self { by_ns, lengths: 0 }
    }

    fn shift(&mut self, scenario: &mut Scenario) {
        let cluster = &mut scenario.cluster;
        self.way(&mut cluster.network.delay);
        cluster.links.iter_mut().for_each(|link| self.way(&mut link.delay));
        cluster.replicas.iter_mut().for_each(|replica| self.way(&mut replica.delay));
        self.way(&mut scenario.store.delay);
        cluster.disk.sync_at.iter_mut().for_each(|at| self.length(at));
        if cluster.disk.sync_takes != Span(0) {
            self.length(&mut cluster.disk.sync_takes);
        }
        for clock in cluster.clocks.values_mut() {
            clock.offset.0 += self.by_length_ns();
        }
        self.ttl(&mut scenario.lock.ttl);
        scenario.lock.fleet_max_ttl.iter_mut().for_each(|ttl| self.ttl(ttl));
        self.length(&mut scenario.lock.node_timeout);
        for client in &mut scenario.clients {
            client.ttl.iter_mut().for_each(|ttl| self.ttl(ttl));
            client.steps.iter_mut().for_each(|step| self.step(step));
        }
        scenario.faults.iter_mut().filter(|it| it.enabled).for_each(|fault| self.fault(fault));
    }

    fn step(&mut self, step: &mut Step) {
        step.at.iter_mut().for_each(|at| self.instant(at));
        if let Some(acquire) = &mut step.acquire {
            acquire.until.iter_mut().for_each(|until| self.instant(until));
            acquire.wait.iter_mut().for_each(|wait| self.length(wait));
            acquire.keep_alive.iter_mut().for_each(|length| self.length(length));
        }
        if let Some(Hold::For { length, .. }) = &mut step.hold {
            self.length(length);
        }
        step.sleep.iter_mut().for_each(|length| self.length(length));
        if let Some(extend) = &mut step.extend {
            extend.every.iter_mut().for_each(|every| self.length(every));
            extend.ttl.iter_mut().for_each(|ttl| self.ttl(ttl));
        }
    }

    fn fault(&mut self, fault: &mut Fault) {
        for time in fault.times() {
            match time {
                Time::Instant(at) => self.instant(at),
                Time::Length(length) => self.length(length),
                Time::Shift(by) => by.0 += self.by_length_ns(),
            }
        }
    }

    fn instant(&mut self, at: &mut Span) {
        let by_ns = (self.by_ns)(Axis::Instant(*at));
        at.0 = at.0.saturating_add_signed(by_ns);
    }

    fn ttl(&mut self, ttl: &mut Span) {
        let by_ns = (self.by_ns)(Axis::Ttl(*ttl));
        ttl.0 = ttl.0.saturating_add_signed(by_ns);
    }

    fn length(&mut self, length: &mut Span) {
        length.0 = length.0.saturating_add_signed(self.by_length_ns());
    }

    /// A way takes some time, and the engines' shortest one is a tick.
    fn way(&mut self, way: &mut SpanRange) {
        let by_ns = self.by_length_ns();
        for end in [&mut way.min, &mut way.max] {
            end.0 = end.0.saturating_add_signed(by_ns).max(end.0.min(TICK.0));
        }
    }

    fn by_length_ns(&mut self) -> i64 {
        self.lengths += 1;
        (self.by_ns)(Axis::Length(self.lengths))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::clock_jump;
    use super::*;
    use crate::scenario::{At, Network};

    fn case(settings: &[&str]) -> Case {
        clock_jump(settings).remove(0)
    }

    #[test]
    fn a_jump_by_much_more_than_is_needed_is_no_matter_of_milliseconds() {
        assert_eq!(check(&case(&[])), Ok(()));
    }

    #[test]
    fn a_jump_that_just_suffices_is_finer_than_a_tick() {
        // The second client asks once, at 1.1 s, for a key that lives for 10 s: catalogue K2.
        let mut case = case(&["fault.jump.clock-jump.by=8902ms"]);
        case.scenario.clients[1].steps[0].acquire.as_mut().unwrap().until = None;
        let said = check(&case);
        // With ways of 1 to 5 ms the jump suffices for some seeds only.
        assert!(said.unwrap_err().what.contains("depends on the seed"));
        case.scenario.cluster.network = Network::default();
        let said = check(&case);
        assert!(said.unwrap_err().what.contains("finer than a tick"));
    }

    #[test]
    fn what_is_written_to_be_at_once_is_moved_at_once() {
        let case = case(&[]);
        let noon = Span::from_ms(12_000);
        assert!(axes(&case.scenario).contains(&Axis::Instant(noon)));
        let later = moved(&case, |axis| i64::from(axis == Axis::Instant(noon))).scenario;
        let until = later.clients[1].steps[0].acquire.unwrap().until;
        assert_eq!(until, Some(Span(noon.0 + 1)));
        assert_eq!(later.faults[0].until, until);
        assert_eq!(later.faults[1], case.scenario.faults[1]);
    }

    #[test]
    fn ways_stay_as_long_as_a_tick_and_others_get_shorter() {
        let shifted = |ms: u64| {
            let mut way = SpanRange::exactly(Span::from_ms(ms));
            Shifts::of(&mut |_| -(MARGIN.0 as i64)).way(&mut way);
            way
        };
        assert_eq!([0, 1, 2, 5].map(|ms| shifted(ms).min), [0, 1, 1, 2].map(Span::from_ms));
    }

    #[test]
    fn a_fault_that_would_end_before_it_begins_is_no_neighbour() {
        let (from, until) = ("fault.c1-sees-abc.at=1ms", "fault.c1-sees-abc.until=2ms");
        let case = case(&[from, until]);
        let axes = axes(&case.scenario).len();
        let neighbours: Vec<Case> = variants(&case).collect();
        assert!(!neighbours.is_empty() && neighbours.len() < 6 * axes + DRAWS as usize);
        assert!(neighbours.iter().all(|it| it.scenario.faults[0].until > Some(Span(0))));
        let begins = |case: &Case| match case.scenario.faults[0].at {
            At::Time(at) => Some(at),
            At::Point(_) => None,
        };
        assert!(neighbours.iter().all(|it| begins(it) < it.scenario.faults[0].until));
    }
}
