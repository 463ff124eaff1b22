use super::*;
use crate::oracle::{Judgement, Verdicts};
use crate::scenario::{Property, embedded};

/// The case `slug` of the scenario `name`; the base if it is empty.
fn case(name: &str, slug: &str) -> Case {
    let files = embedded().unwrap();
    let file = files.iter().find(|file| file.scenario().name == name).unwrap();
    let cases = file.cases(&[]).unwrap();
    cases.into_iter().find(|case| case.slug.as_deref().unwrap_or("") == slug).unwrap()
}

fn is_violated(verdicts: &Verdicts, property: Property) -> bool {
    matches!(verdicts.of(property), Judgement::Violated(_))
}

#[test]
fn debug() {
    for (name, text) in [
        ("canonical", "canonical"),
        ("k1", "pause-after-the-check"),
        ("k5", "pause-in-flight"),
        ("k3", "restart-without-persistence"),
    ] {
        let mut kept = Vec::new();
        let case = case(text, "");
        let outcome = run(&case, 0, Some(&mut kept)).unwrap();
        for event in &kept {
            println!("{name} {:>9.3} {:?}", event.at_ns as f64 / 1e6, event.kind);
        }
        println!("{name} {outcome:?}");
        for property in Property::ALL {
            println!("{name} {} {:?}", property.name(), outcome.verdicts.of(property));
        }
    }
}
