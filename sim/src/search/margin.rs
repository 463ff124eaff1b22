//! How far a case is from another verdict, in time.
//!
//! The engine `turmoil` steps by a millisecond and rounds what falls between. A case whose verdict
//! hangs by less than that is another case there. So it is measured on the engine `event` first:
//! everything in the scenario that has a time is moved a little, one thing after the other, and all
//! of them at once at random, and every verdict and blame must stay what it was.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::engine::{Outcome, Unsupported, event};
use crate::oracle::{Blamed, Judgement};
use crate::scenario::{At, Case, Hold, Property, Scenario, Span};

/// How far things are moved: a tick for the beginning, one for the way and one for the end.
pub const MARGIN: Span = Span::from_ms(3);

/// The seeds that a verdict must not depend on.
const SEEDS: u64 = 8;

/// How often everything is moved at once.
const DRAWS: u64 = 16;

/// What a run said of every property; when it happened does not matter.
type Said = [Option<Blamed>; Property::ALL.len()];

/// Whether every verdict of `case` stays what it is, for any seed, when things happen up to
/// [`MARGIN`] earlier or later.
///
/// # Errors
///
/// If it does not: the case is finer than a tick. Or if the engine `event` cannot play it.
pub fn check(case: &Case) -> Result<(), Unsupported> {
    let said = first_said(case)?;
    let hangs = |by: &str| Unsupported { engine: "turmoil", what: format!("a verdict {by}") };
    if !is_said_always(case, &said)? {
        return Err(hangs("that depends on the seed"));
    }
    for moved in variants(case) {
        // What cannot be moved there, a fault that would end before it begins, is no neighbour.
        if let Ok(false) = is_said_always(&moved, &said) {
            return Err(hangs("that is finer than a tick"));
        }
    }
    Ok(())
}

fn said_of(outcome: &Outcome) -> Said {
    Property::ALL.map(|property| match outcome.verdicts.of(property) {
        Judgement::Violated(violation) => Some(violation.blamed),
        Judgement::Holds | Judgement::Unjudged | Judgement::Vacuous => None,
    })
}

fn first_said(case: &Case) -> Result<Said, Unsupported> {
    Ok(said_of(&event::Engine::new(case)?.run(0, None)))
}

fn is_said_always(case: &Case, said: &Said) -> Result<bool, Unsupported> {
    let mut engine = event::Engine::new(case)?;
    Ok((0..SEEDS).all(|seed| said_of(&engine.run(seed, None)) == *said))
}

/// The case with one thing moved, for each of them and both ways; then with all of them moved.
fn variants(case: &Case) -> impl Iterator<Item = Case> {
    let axes = axes(&case.scenario);
    let all = axes.clone();
    let margin_ns = MARGIN.0 as i64;
    let single = axes.into_iter().flat_map(move |axis| {
        [-margin_ns, margin_ns].map(|by_ns| moved(case, |it| if it == axis { by_ns } else { 0 }))
    });
    let together = (0..DRAWS).map(move |draw| {
        let mut rng = ChaCha8Rng::seed_from_u64(draw);
        let width = 2 * MARGIN.0 + 1;
        let shifts: Vec<i64> =
            all.iter().map(|_| (rng.next_u64() % width) as i64 - margin_ns).collect();
        moved(case, |it| all.iter().position(|axis| *axis == it).map_or(0, |at| shifts[at]))
    });
    single.chain(together)
}

/// Something that has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    /// Everything that the scenario has at this instant: what is written to be at once stays so.
    Instant(Span),
    /// The length of the network's ways.
    Network,
    /// The length of the thing with this number.
    Length(usize),
}

/// All of them. What is there from the very beginning stays there.
fn axes(scenario: &Scenario) -> Vec<Axis> {
    let (mut axes, mut scenario) = (vec![Axis::Network], scenario.clone());
    visit(&mut scenario, &mut |axis, _| axes.push(axis));
    axes.retain(|axis| *axis != Axis::Instant(Span(0)));
    axes.sort_unstable();
    axes.dedup();
    axes
}

fn moved(case: &Case, by_ns: impl Fn(Axis) -> i64) -> Case {
    let mut case = case.clone();
    let delay = &mut case.scenario.cluster.network.delay;
    // A way takes some time, and the engines' shortest one is a tick.
    let longer_ns = by_ns(Axis::Network).max(0) as u64;
    (delay.min.0, delay.max.0) = (delay.min.0 + longer_ns, delay.max.0 + longer_ns);
    visit(&mut case.scenario, &mut |axis, span| {
        span.0 = span.0.saturating_add_signed(by_ns(axis));
    });
    case
}

/// Shows every time in the scenario, and which thing's it is.
fn visit(scenario: &mut Scenario, see: &mut impl FnMut(Axis, &mut Span)) {
    let mut length = 0;
    let mut see = |is_instant: bool, span: &mut Span| {
        length += 1;
        see(if is_instant { Axis::Instant(*span) } else { Axis::Length(length) }, span);
    };
    for step in scenario.clients.iter_mut().flat_map(|client| &mut client.steps) {
        step.at.iter_mut().for_each(|at| see(true, at));
        if let Some(acquire) = &mut step.acquire {
            acquire.until.iter_mut().for_each(|until| see(true, until));
            acquire.wait.iter_mut().for_each(|wait| see(false, wait));
        }
        if let Some(Hold::For(length)) = &mut step.hold {
            see(false, length);
        }
        step.sleep.iter_mut().for_each(|length| see(false, length));
        if let Some(extend) = &mut step.extend {
            extend.every.iter_mut().for_each(|every| see(false, every));
        }
    }
    for fault in scenario.faults.iter_mut().filter(|fault| fault.enabled) {
        if let At::Time(at) = &mut fault.at {
            see(true, at);
        }
        fault.until.iter_mut().for_each(|until| see(true, until));
        fault.lasts.iter_mut().for_each(|length| see(false, length));
        if let Some(delay) = &mut fault.delay {
            see(false, &mut delay.by);
        }
        let deaths = [&mut fault.kill, &mut fault.power, &mut fault.shutdown];
        for death in deaths.into_iter().flatten() {
            death.restart_after.iter_mut().for_each(|length| see(false, length));
            death.backup_of.iter_mut().for_each(|at| see(true, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{File, Network};

    const TEXT: &str = include_str!("../scenario/testdata/clock-jump.toml");

    fn case(settings: &[&str]) -> Case {
        let overrides: Vec<_> = settings.iter().map(|it| it.parse().unwrap()).collect();
        File::parse("clock-jump.toml", TEXT).unwrap().cases(&overrides).unwrap().remove(0)
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
        let axes = axes(&case.scenario);
        assert!(axes.is_sorted() && !axes.contains(&Axis::Instant(Span(0))), "{axes:?}");
        let later = moved(&case, |axis| if axis == Axis::Network { 0 } else { 1 });
        let (mut before, mut after) = (Vec::new(), Vec::new());
        visit(&mut case.scenario.clone(), &mut |_, span| before.push(span.0));
        visit(&mut later.scenario.clone(), &mut |_, span| after.push(span.0));
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        assert!(moved.count() > 0 && before.len() == after.len());
    }
}
