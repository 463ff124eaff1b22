//! The table of the README: which assumption is broken, and who stands it.

use crate::scenario::Property;
use crate::search::{CaseResult, Observed, PropertyResult};

/// One line of the table: an assumption and the cases in which it is broken.
#[derive(Clone, Copy, Debug)]
struct Line {
    assumption: &'static str,
    /// The scenario, for the reader to run.
    scenario: &'static str,
    /// What follows the scenario's name in that of the case with the specification to the letter.
    literal: Option<&'static str>,
    /// The same of the case with this project's client.
    ours: Option<&'static str>,
    /// The same of the case with a resource that checks fencing tokens.
    fenced: Option<&'static str>,
}

const LINES: [Line; 8] = [
    Line {
        assumption: "no process pauses between its check and its section (K1)",
        scenario: "pause-after-the-check",
        literal: Some("::the-literal-algorithm"),
        ours: Some(""),
        fenced: Some("::fencing-tokens-save-the-resource"),
    },
    Line {
        assumption: "no master’s clock jumps (K2)",
        scenario: "node-clock-jump",
        literal: Some("::the-literal-algorithm"),
        ours: Some(""),
        fenced: Some("::fencing-tokens-save-the-resource"),
    },
    Line {
        assumption: "no master forgets what it acknowledged (K3)",
        scenario: "restart-without-persistence",
        literal: Some("::the-literal-algorithm"),
        ours: Some("::quarantine"),
        fenced: Some("::fencing-tokens-save-the-resource"),
    },
    Line {
        assumption: "no process pauses while the replies are under way (K5)",
        scenario: "pause-in-flight",
        literal: Some("::the-literal-algorithm"),
        ours: Some(""),
        fenced: None,
    },
    Line {
        assumption: "no write to the resource is late (K7)",
        scenario: "delayed-write",
        literal: Some("::the-literal-algorithm"),
        ours: Some(""),
        fenced: Some("::fencing-tokens-save-the-resource"),
    },
    Line {
        assumption: "no client’s wall clock is set back (C1)",
        scenario: "client-wall-clock-set-back",
        literal: Some(""),
        ours: Some("::ours"),
        fenced: None,
    },
    Line {
        assumption: "no host sleeps while it asks for the lock (C8)",
        scenario: "suspend-defeats-step-3",
        literal: Some(""),
        ours: Some("::ours"),
        fenced: None,
    },
    Line {
        assumption: "the lock server is perfect, the process pauses (K10)",
        scenario: "ideal-lease-service",
        literal: Some(""),
        ours: None,
        fenced: Some("::fencing-tokens-save-the-resource-here-too"),
    },
];

/// The table in Markdown. A case that was not played shows as `–`.
#[must_use]
pub fn readme_table(results: &[CaseResult]) -> String {
    let mut table = String::from(
        "| assumption | scenario | the literal algorithm | this client | with fencing, at the resource |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let at_resource = [Property::NoLostUpdate, Property::FencedOrder];
    let anywhere = [
        Property::MutualExclusion,
        Property::ExclusiveSection,
        Property::NoLostUpdate,
        Property::FencedOrder,
    ];
    for line in LINES {
        let cell = |case: Option<&str>, properties: &[Property]| {
            let name = case.map(|case| format!("{}{case}", line.scenario));
            name.map_or(String::from("–"), |name| verdict(results, &name, properties))
        };
        table += &format!(
            "| {} | `{}` | {} | {} | {} |\n",
            line.assumption,
            line.scenario,
            cell(line.literal, &anywhere),
            cell(line.ours, &anywhere),
            cell(line.fenced, &at_resource)
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
    let broken = asked.iter().filter(|it| bad.contains(&it.observed));
    let names: Vec<&str> = broken.clone().map(|it| it.property.name()).collect();
    if !names.is_empty() {
        let mut blames: Vec<&str> = broken.flat_map(|it| &it.blames).map(String::as_str).collect();
        blames.sort_unstable();
        blames.dedup();
        return format!("✗ {} (blame: {})", names.join(", "), blames.join("; "));
    }
    let tested = asked.iter().any(|it| it.observed == Observed::Holds);
    String::from(if tested { "✓ holds" } else { "–" })
}
