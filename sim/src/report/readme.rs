//! The table of the README: which assumption is broken, and who stands it.

use crate::scenario::Property;
use crate::search::{CaseResult, Observed, PropertyResult};

/// One line of the table: an assumption and the cases in which it is broken.
#[derive(Clone, Copy, Debug)]
struct Line {
    assumption: &'static str,
    /// The scenario, for the reader to run.
    scenario: &'static str,
    /// The case with the specification to the letter.
    literal: &'static str,
    /// The case with this project's client.
    ours: &'static str,
    /// The case with a resource that checks fencing tokens.
    fenced: &'static str,
}

const LINES: [Line; 7] = [
    Line {
        assumption: "no process pauses between its check and its section (K1)",
        scenario: "kleppmann-process-pause",
        literal: "kleppmann-process-pause::literal",
        ours: "kleppmann-process-pause",
        fenced: "kleppmann-process-pause::fenced",
    },
    Line {
        assumption: "no master’s clock jumps (K2)",
        scenario: "kleppmann-clock-jump",
        literal: "kleppmann-clock-jump::literal",
        ours: "kleppmann-clock-jump",
        fenced: "kleppmann-clock-jump::fenced",
    },
    Line {
        assumption: "no master forgets what it acknowledged (K3)",
        scenario: "kleppmann-crash-restart",
        literal: "kleppmann-crash-restart::literal",
        ours: "kleppmann-crash-restart",
        fenced: "kleppmann-crash-restart::fenced",
    },
    Line {
        assumption: "no pause while the replies are under way (K5)",
        scenario: "kleppmann-pause-in-flight",
        literal: "kleppmann-pause-in-flight::literal",
        ours: "kleppmann-pause-in-flight",
        fenced: "kleppmann-pause-in-flight::fenced",
    },
    Line {
        assumption: "no write is delayed (K7)",
        scenario: "kleppmann-delayed-write",
        literal: "kleppmann-delayed-write::literal",
        ours: "kleppmann-delayed-write",
        fenced: "kleppmann-delayed-write::fenced",
    },
    Line {
        assumption: "no client’s wall clock is set back (C1)",
        scenario: "client-clock-set-back",
        literal: "client-clock-set-back::literal",
        ours: "client-clock-set-back",
        fenced: "client-clock-set-back::fenced",
    },
    Line {
        assumption: "no host sleeps uncounted (C8)",
        scenario: "client-suspend",
        literal: "client-suspend::literal",
        ours: "client-suspend",
        fenced: "client-suspend::fenced",
    },
];

/// The table in Markdown. A case that was not played shows as `–`.
#[must_use]
pub fn readme_table(results: &[CaseResult]) -> String {
    let mut table = String::from(
        "| assumption | scenario | the literal algorithm | this client | with fencing, at the resource |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for line in LINES {
        let held = [Property::MutualExclusion, Property::ExclusiveSection];
        let at_resource = [Property::NoLostUpdate, Property::FencedOrder];
        table += &format!(
            "| {} | `{}` | {} | {} | {} |\n",
            line.assumption,
            line.scenario,
            verdict(results, line.literal, &held),
            verdict(results, line.ours, &held),
            verdict(results, line.fenced, &at_resource)
        );
    }
    table
}

/// What a case found of some properties, in a few words.
fn verdict(results: &[CaseResult], name: &str, properties: &[Property]) -> String {
    let Some(result) = results.iter().find(|it| it.engine == "event" && it.name() == name) else {
        return String::from("–");
    };
    let asked: Vec<&PropertyResult> =
        result.properties.iter().filter(|it| properties.contains(&it.property)).collect();
    let bad = [Observed::Violated, Observed::Sometimes];
    let broken: Vec<String> = asked
        .iter()
        .filter(|it| bad.contains(&it.observed))
        .map(|it| format!("{} ({})", it.property.name(), it.blames.join("; ")))
        .collect();
    if !broken.is_empty() {
        return format!("✗ {}", broken.join(", "));
    }
    let tested = asked.iter().any(|it| it.observed == Observed::Holds);
    String::from(if tested { "✓ holds" } else { "–" })
}
