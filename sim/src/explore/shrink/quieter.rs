//! Changes after which a run may need fewer events to show the same: clients that poll make most of
//! the events of a run, and say little.

use lock_judge::history::{AttemptId, ClientId, Event, EventKind, Id};
use lock_judge::oracle::Violation;
use lock_judge::scenario::{Scenario, Span};
use serde_json::{Map, Value, json};

use super::tree::{Path, Step, at, collect_parts};

/// Numbers of attempts in place of a patience.
const FEW_ATTEMPTS: [u64; 3] = [1, 2, 3];

/// Number of TTLs that clients wait at most between two attempts, in place of a shorter bound.
const PATIENT_TTLS: [u64; 2] = [1, 4];

/// A change of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// The acquisition at this path makes so many attempts, however long they take.
    Attempts(Path, u64),
    /// A client begins with this step, and at this time; without `alone`, the steps before it stay.
    Begin { client: usize, step: usize, at: Span, alone: bool },
    /// Clients wait for this long at most between two attempts.
    Retry(Span),
}

/// Returns the changes that may make the run of `scenario` with these events quieter.
pub(super) fn changes(
    tree: &Value,
    scenario: &Scenario,
    violation: Option<&Violation>,
    events: &[Event],
) -> Vec<Change> {
    let mut changes = Vec::new();
    for attempt in violation.into_iter().flat_map(|it| [Some(it.first), it.second]).flatten() {
        if let Some(at) = beginning(events, attempt) {
            changes.extend(in_time(scenario, attempt.client, at));
        }
    }
    let mut parts = Vec::new();
    collect_parts(tree, &mut Vec::new(), &mut parts);
    let is_acquire = |path: &Path| matches!(path.last(), Some(Step::Key(key)) if key == "acquire");
    for path in parts.into_iter().filter(is_acquire) {
        changes.extend(FEW_ATTEMPTS.map(|count| Change::Attempts(path.clone(), count)));
    }
    let ttl = scenario.lock.ttl;
    changes.extend(PATIENT_TTLS.map(|times| Change::Retry(Span(times * ttl.0))));
    changes
}

/// Returns the beginning of an attempt.
fn beginning(events: &[Event], wanted: AttemptId) -> Option<Span> {
    let began = events.iter().find(
        |event| matches!(event.kind, EventKind::AttemptBegan { attempt, .. } if attempt == wanted),
    );
    began.map(|event| Span(event.at_ns))
}

/// Returns the changes after which a client begins one of its acquisitions at `at`.
fn in_time(scenario: &Scenario, client: ClientId, at: Span) -> Vec<Change> {
    let steps = scenario.client(client).map_or(&[][..], |client| &client.steps);
    let acquiring = steps.iter().enumerate().filter(|(_, step)| step.acquire.is_some());
    let client = client.index();
    acquiring
        .rev()
        .flat_map(|(step, _)| [true, false].map(|alone| Change::Begin { client, step, at, alone }))
        .collect()
}

impl Change {
    /// Returns `tree` with the change; `None` if it has no place for it any more.
    pub(super) fn of(&self, tree: &Value) -> Option<Value> {
        let mut tree = tree.clone();
        match self {
            Self::Attempts(path, count) => {
                let acquire = at(&mut tree, path)?.as_object_mut()?;
                forget_patience(acquire);
                if *count > 1 {
                    acquire.insert(String::from("attempts"), json!(count));
                }
            }
            Self::Begin { client, step, at, alone } => {
                let steps = tree.get_mut("client")?.get_mut(client)?.get_mut("steps")?;
                let steps = steps.as_array_mut()?;
                let first = steps.get_mut(*step)?.as_object_mut()?;
                let acquire = first.get_mut("acquire")?.as_object_mut()?;
                forget_patience(acquire);
                first.insert(String::from("at"), json!(at));
                if *alone {
                    steps.drain(..*step);
                }
            }
            Self::Retry(longest) => {
                let retry = json!({ "first": longest, "longest": longest });
                tree.get_mut("lock")?.as_object_mut()?.insert(String::from("retry"), retry);
            }
        }
        Some(tree)
    }
}

/// Removes all keys by which an acquisition waits for longer than one attempt.
fn forget_patience(acquire: &mut Map<String, Value>) {
    acquire.retain(|key, _| !["attempts", "until", "wait"].contains(&&**key));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Value {
        json!({
            "lock": { "ttl": "1s" },
            "client": [{ "id": "c1", "steps": [
                { "at": "5ms", "acquire": { "until": "9s" } },
                { "sleep": "1s" },
                { "acquire": { "wait": "1s..2s", "keep-alive": "3s" } },
                { "hold": "1s" },
            ] }],
        })
    }

    fn steps(change: &Change) -> Value {
        change.of(&tree()).unwrap()["client"][0]["steps"].take()
    }

    #[test]
    fn a_client_begins_in_time_instead_of_polling() {
        let begin = |alone| Change::Begin { client: 0, step: 2, at: Span::from_ms(7), alone };
        let acquire = json!({ "acquire": { "keep-alive": "3s" }, "at": "7ms" });
        assert_eq!(steps(&begin(true)), json!([acquire, { "hold": "1s" }]));
        let all = steps(&begin(false));
        assert_eq!(
            (all[0].clone(), all[2].clone()),
            (tree()["client"][0]["steps"][0].clone(), acquire)
        );
        let (client, step, at) = (0, 1, Span(0));
        assert_eq!(Change::Begin { client, step, at, alone: true }.of(&tree()), None);
    }

    #[test]
    fn patience_becomes_a_number_of_attempts() {
        let acquires = |count| {
            let path = ["client", "0", "steps", "0", "acquire"].map(|step| match step.parse() {
                Ok(item) => Step::Item(item),
                Err(_) => Step::Key(String::from(step)),
            });
            steps(&Change::Attempts(path.to_vec(), count))[0]["acquire"].take()
        };
        assert_eq!((acquires(1), acquires(3)), (json!({}), json!({ "attempts": 3 })));
    }

    #[test]
    fn clients_wait_longer_between_attempts() {
        let tree = Change::Retry(Span::from_ms(1_000)).of(&tree()).unwrap();
        assert_eq!(tree["lock"]["retry"], json!({ "first": "1s", "longest": "1s" }));
    }
}
