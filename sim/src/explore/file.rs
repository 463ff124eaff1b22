//! The scenario file of a finding.

use lock_judge::scenario::{Bounds, Expectation, Property, Scenario, Verdict};
use toml::{Table, Value};

use super::contract::Finding;
use super::draw::unspecified;

/// Returns the text of a scenario file called `name` in which `finding` shows. Whatever else the
/// scenario violates, `explained`, may happen.
///
/// The file expects the property of the finding to hold, or the quantity to be small: it is red until the
/// defect is mended, and a test from then on.
#[must_use]
pub fn text(scenario: &Scenario, name: &str, finding: &Finding, explained: &[Property]) -> String {
    let mut scenario = scenario.clone();
    scenario.name = name.to_owned();
    scenario.title = format!("Found by exploration: {finding}");
    scenario.tags = vec![String::from("found")];
    for property in explained {
        let reason = Some(String::from("explained by an assumption that the scenario breaks"));
        let expectation = Expectation { reason, ..Expectation::bare(Verdict::Any) };
        scenario.expect.properties.insert(*property, expectation);
    }
    if let Finding::Exceeded { quantity, most } = *finding {
        scenario.expect.quantities.insert(quantity, Bounds::at_most(most));
    }
    let own = Table::try_from(&scenario).expect("a scenario is a table");
    let usual = Table::try_from(unspecified()).expect("a scenario is a table");
    let own = own.into_iter().filter_map(|(key, value)| {
        let value = match usual.get(&key) {
            Some(usual) if !["schema", "name", "title"].contains(&&*key) => without(value, usual)?,
            _ => value,
        };
        Some((key, value))
    });
    toml::to_string(&own.collect::<Table>()).expect("a table has keys of text")
}

/// Returns the parts of `value` that differ from `usual`; `None` if nothing does.
fn without(value: Value, usual: &Value) -> Option<Value> {
    match (value, usual) {
        (Value::Table(own), Value::Table(usual)) => {
            let own = own.into_iter().filter_map(|(key, value)| {
                let value = match usual.get(&key) {
                    Some(usual) => without(value, usual)?,
                    None => value,
                };
                Some((key, value))
            });
            let own: Table = own.collect();
            (!own.is_empty()).then_some(Value::Table(own))
        }
        (value, usual) => (value != *usual).then_some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Frame, plan};
    use super::*;
    use lock_judge::scenario::File;

    #[test]
    fn a_file_has_the_scenario_that_was_written_into_it() {
        let finding = Finding::Violated { property: Property::Tidy, causes: vec![] };
        for number in 0..300 {
            let plan = plan(&Frame::default(), 11, number);
            let text = text(&plan, "found", &finding, &[Property::ExclusiveSection]);
            let file = File::parse("found.toml", &text).unwrap_or_else(|it| panic!("{it}\n{text}"));
            let read = &file.cases(&[]).unwrap()[0].scenario;
            assert_eq!((&read.clients, &read.faults), (&plan.clients, &plan.faults));
            assert_eq!((&read.cluster, &read.lock), (&plan.cluster, &plan.lock));
            assert_eq!((&read.store, &read.run), (&plan.store, &plan.run));
        }
    }
}
