//! Files of figures: what the plans of an exploration cost, to be compared with another build.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lock_judge::text;
use redlock_sim::explore::{BLOCK, Change, Cost, Figures};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::exit::Stop;
use super::super::say::say;
use super::Plan;
use crate::report::Staged;

/// Version of the format.
const SCHEMA: u32 = 1;

/// A file that another build wrote: its plans and their costs.
#[derive(Debug)]
pub(super) struct Baseline {
    path: PathBuf,
    pub(super) plan: Plan,
    figures: Figures,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    schema: u32,
    plan: Plan,
    costs: Vec<String>,
    blocks: Figures,
}

impl Baseline {
    /// Reads the file `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Stop> {
        let unusable = |why: &dyn core::fmt::Display| {
            Stop::usage(format!("error: no figures can be read from {}: {why}", path.display()))
        };
        let text = fs::read_to_string(path).map_err(|error| unusable(&error))?;
        let content: Content = serde_json::from_str(&text).map_err(|error| unusable(&error))?;
        let Content { schema, plan, costs, blocks } = content;
        if schema != SCHEMA {
            return Err(unusable(&format!(
                "schema {schema} is not known; this build knows {SCHEMA}"
            )));
        }
        if costs != names() {
            return Err(unusable(&format!("the costs are not {}", names().join(", "))));
        }
        if plan.plans.is_empty() {
            return Err(unusable(&"it has no plans"));
        }
        super::check(&plan.frame)?;
        Ok(Self { path: path.to_owned(), plan, figures: blocks })
    }

    /// Returns how the costs `now` differ from those of the file.
    pub(super) fn changes(&self, now: &Figures) -> Vec<Change> {
        now.compared_with(&self.figures)
    }

    /// Prints the changes.
    pub(super) fn tell(&self, changes: &[Change]) {
        let path = self.path.display();
        say(format_args!("\ncompared with {path}, in blocks of {BLOCK} plans:"));
        say("cost                         before           now    change    dearer   cheaper");
        for change in changes {
            let Change { cost, dearer, cheaper, .. } = change;
            let (before, now) = (amount(*cost, change.before), amount(*cost, change.now));
            let name = cost.name();
            let by = percent(change);
            let verdict = verdict(change);
            say(format_args!(
                "{name:23} {before:>11} {now:>13} {by:>9} {dearer:9} {cheaper:9}{verdict}"
            ));
        }
    }
}

/// Writes the costs of `plan` to the file `path`, a block in each line.
pub(super) fn write(path: &Path, plan: &Plan, figures: &Figures) -> Result<(), Stop> {
    let blocks = figures.blocks().map(|(first, sums)| format!("\"{first}\":{}", json!(sums)));
    let blocks = blocks.collect::<Vec<_>>().join(",\n");
    let (plan, costs) = (json!(plan), json!(names()));
    let text = format!(
        "{{\"schema\":{SCHEMA},\n\"plan\":{plan},\n\"costs\":{costs},\n\"blocks\":{{\n{blocks}\n}}}}\n"
    );
    Staged::write_one(path, &text).map_err(|error: io::Error| {
        Stop::usage(format!("error: figures cannot be written to {}: {error}", path.display()))
    })
}

/// Returns the changes as JSON.
pub(super) fn json(changes: &[Change]) -> Value {
    let change = |it: &Change| {
        json!({
            "cost": it.cost.name(),
            "before": it.before as u64,
            "now": it.now as u64,
            "dearer-blocks": it.dearer,
            "cheaper-blocks": it.cheaper,
            "is-dearer": it.is_dearer(),
        })
    };
    changes.iter().map(change).collect()
}

fn names() -> Vec<&'static str> {
    Cost::ALL.into_iter().map(Cost::name).collect()
}

/// Formats a sum for readers.
fn amount(cost: Cost, sum: u128) -> String {
    let sum = u64::try_from(sum).unwrap_or(u64::MAX);
    match cost {
        Cost::Quantity(quantity) => quantity.words(sum),
        Cost::Duration => text::length(sum),
    }
}

fn percent(change: &Change) -> String {
    let (before, now) = (change.before as f64, change.now as f64);
    match (change.before, change.now) {
        (before, now) if before == now => String::from("equal"),
        (0, _) => String::from("new"),
        _ => format!("{:+.2} %", (now / before - 1.0) * 100.0),
    }
}

fn verdict(change: &Change) -> String {
    match change.worst {
        Some((first, _)) if change.is_dearer() => {
            format!("  DEARER, most in plans {first}..{}", first.saturating_add(BLOCK))
        }
        _ => String::new(),
    }
}
