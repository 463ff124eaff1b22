//! The table of the README: what happens against an assumption, and the verdicts of the literal
//! algorithm, of this client, and with fencing tokens.

use lock_judge::scenario::Property;

use redlock_sim::search::{CaseResult, Observed, PropertyResult};

/// One line of the table: an event that an assumption excludes, and the cases in which it happens.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Event that the assumption excludes.
    event: &'static str,
    /// Name of the scenario, so that the reader can run it.
    scenario: &'static str,
    /// Slug of the case with the literal algorithm. Here and below, "" is the base case and "-" is
    /// no case.
    literal: &'static str,
    /// Slug of the case with this project's client.
    ours: &'static str,
    /// Slug of the case with a resource that checks fencing tokens.
    fenced: &'static str,
}

const LINES: [Line; 15] = [
    Line {
        event: "a process stops after its last check of the lease (K1)",
        scenario: "pause-after-the-check",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "fencing-tokens-save-the-resource",
    },
    Line {
        event: "a process stops while the replies are on their way (K5)",
        scenario: "pause-in-flight",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "-",
    },
    Line {
        event: "a process stops between the grant and its delivery (K6)",
        scenario: "relative-validity",
        literal: "a-deadline-that-is-not-checked",
        ours: "a-deadline-that-is-checked",
        fenced: "-",
    },
    Line {
        event: "a master's clock jumps (K2) †",
        scenario: "node-clock-jump",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "fencing-tokens-save-the-resource",
    },
    Line {
        event: "a master's clock runs ten per cent fast (K8) †",
        scenario: "ten-percent",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "-",
    },
    Line {
        event: "a master restarts without its keys (K3) † ‡",
        scenario: "restart-without-persistence",
        literal: "",
        ours: "quarantine",
        fenced: "fencing-tokens-save-the-resource",
    },
    Line {
        event: "a master that syncs once a second loses power (D2) †",
        scenario: "appendfsync-everysec",
        literal: "the-literal-algorithm",
        ours: "quarantine",
        fenced: "-",
    },
    Line {
        event: "a replica that lacks the key replaces a master (D12) †",
        scenario: "replica-within-redlock",
        literal: "the-literal-algorithm",
        ours: "quarantine-and-clients-that-meet-the-replica-first",
        fenced: "-",
    },
    Line {
        event: "a master evicts the lock's key (D13) †",
        scenario: "eviction",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "fencing-tokens-save-the-resource",
    },
    Line {
        event: "an operator deletes one of three keys of the lock (D14) †",
        scenario: "operator-deletes",
        literal: "one-key-deleted-by-hand-and-the-literal-algorithm",
        ours: "one-key-deleted-by-hand",
        fenced: "one-key-deleted-by-hand-and-fencing-tokens",
    },
    Line {
        event: "an operator deletes three of five keys of the lock (D14) ¶",
        scenario: "exposed-by-an-operator",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "-",
    },
    Line {
        event: "a write arrives after its lease (K7)",
        scenario: "delayed-write",
        literal: "the-literal-algorithm",
        ours: "",
        fenced: "fencing-tokens-save-the-resource",
    },
    Line {
        event: "a client's wall clock is set back (C1) §",
        scenario: "client-wall-clock-set-back",
        literal: "the-literal-algorithm-on-a-clock-that-cannot-be-set",
        ours: "this-client",
        fenced: "-",
    },
    Line {
        event: "a client's host sleeps (C8) §",
        scenario: "suspend-defeats-step-3",
        literal: "the-literal-algorithm-on-a-clock-that-counts-sleep",
        ours: "this-client",
        fenced: "-",
    },
    Line {
        event: "a process stops, with one perfect lock server in place of five masters (K10) ‖",
        scenario: "ideal-lease-service",
        literal: "",
        ours: "-",
        fenced: "fencing-tokens-save-the-resource-here-too",
    },
];

/// Aspects that a cell reports separately, with the properties of each.
const ASPECTS: [(&str, &[Property]); 3] = [
    ("beliefs", &[Property::MutualExclusion]),
    ("sections", &[Property::ExclusiveSection]),
    ("resource", &[Property::NoLostUpdate, Property::FencedOrder]),
];

/// Renders the table in Markdown. A cell that has no case shows `–`, one whose case was not played says
/// so.
#[must_use]
pub fn readme_table(results: &[CaseResult]) -> String {
    let mut table = String::from(
        "| what happens | scenario | the literal algorithm | this client | with fencing tokens |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for line in LINES {
        let cell = |slug: &str| {
            let name = match slug {
                "-" => return String::from("–"),
                "" => String::from(line.scenario),
                slug => format!("{}::{slug}", line.scenario),
            };
            verdict(results, &name)
        };
        table += &format!(
            "| {} | `{}` | {} | {} | {} |\n",
            line.event,
            line.scenario,
            cell(line.literal),
            cell(line.ours),
            cell(line.fenced),
        );
    }
    table
}

/// Summarises the verdicts of a case in a few words.
fn verdict(results: &[CaseResult], name: &str) -> String {
    let Some(result) = results.iter().find(|it| it.engine == "event" && it.name() == name) else {
        return String::from("not played");
    };
    let told = ASPECTS.iter().filter_map(|(aspect, properties)| {
        let about = |it: &&PropertyResult| properties.contains(&it.property);
        let asked: Vec<&PropertyResult> = result.properties.iter().filter(about).collect();
        let bad = [Observed::Violated, Observed::Sometimes];
        if let Some(broken) = asked.iter().find(|it| bad.contains(&it.observed)) {
            return Some(format!("{aspect} ✗ {}", broken.blames.join("; ")));
        }
        let tested = asked.iter().any(|it| it.observed == Observed::Holds);
        tested.then(|| format!("{aspect} ✓"))
    });
    told.collect::<Vec<_>>().join("<br>")
}
