//! Compares the results of two engines for one case.

use super::result::{CaseResult, Observed, PropertyResult};

/// Returns a message for every property that both judge and on which `one` and `other` disagree; empty
/// if they agree. Times and counts may differ.
#[must_use]
pub fn disagreements(one: &CaseResult, other: &CaseResult) -> Vec<String> {
    let pairs = one.properties.iter().zip(&other.properties);
    let judged = pairs.filter(|(one, other)| {
        one.observed != Observed::Unjudged && other.observed != Observed::Unjudged
    });
    let differ = judged.filter(|(one, other)| said(one) != said(other));
    let told = differ.map(|(of_one, of_other)| {
        let (name, one, other) = (of_one.property.name(), one.engine, other.engine);
        format!("{name}: {one} says {}, {other} says {}", words(of_one), words(of_other))
    });
    told.collect()
}

/// Returns the part of a result that must agree: the observed verdict and the blames.
fn said(result: &PropertyResult) -> (Observed, &[String]) {
    (result.observed, &result.blames)
}

fn words(result: &PropertyResult) -> String {
    let blamed = || result.blames.join(" or ");
    match result.observed {
        Observed::Holds => String::from("holds"),
        Observed::Sometimes => format!("violated sometimes, blamed on {}", blamed()),
        Observed::Unjudged => String::from("unjudged"),
        Observed::Vacuous => String::from("vacuous"),
        Observed::Violated => format!("violated, blamed on {}", blamed()),
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicBool;

    use super::super::testing::clock_jump;
    use super::super::{Campaign, Engine};
    use super::*;
    use crate::part::Part;

    fn result(by: &str) -> CaseResult {
        let case = clock_jump(&[&format!("fault.jump.clock-jump.by={by}")]).remove(0);
        let (engine, stop) = (Engine::Event, AtomicBool::new(false));
        let campaign = Campaign {
            case: &case,
            engine,
            seeds: 0..2,
            part: Part::WHOLE,
            is_checked: false,
            stop: &stop,
            progress: &|_| {},
        };
        campaign.play().unwrap()
    }

    #[test]
    fn a_violation_that_one_engine_misses_is_reported() {
        let (violated, held) = (result("10s"), result("1ms"));
        assert_eq!(disagreements(&violated, &violated), [""; 0]);
        let told = disagreements(&violated, &held);
        assert!(told[0].contains("event says violated, blamed on clock(C), event says holds"));
    }

    #[test]
    fn an_unjudged_property_is_no_disagreement() {
        let (violated, mut held) = (result("10s"), result("1ms"));
        for property in &mut held.properties {
            property.observed = Observed::Unjudged;
        }
        assert_eq!(disagreements(&violated, &held), [""; 0]);
    }

    #[test]
    fn another_blame_for_the_same_violation_is_reported() {
        let (one, mut other) = (result("10s"), result("10s"));
        for property in &mut other.properties {
            property.blames.iter_mut().for_each(|blame| blame.push('!'));
        }
        assert!(!disagreements(&one, &other).is_empty());
    }
}
