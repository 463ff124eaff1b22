//! Names of a client's metrics. They must not change: dashboards and alerts rely on them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use crate::node::Habit;
use crate::world::{SECOND, TTL, World};

/// Recorded metrics by name and labels.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<BTreeMap<String, Entry>>>);

/// Kind of a metric, and its value: the sum of a counter, the last value of a gauge, the number of
/// samples of a histogram.
struct Entry {
    kind: &'static str,
    value: f64,
}

struct Column {
    ledger: Ledger,
    key: String,
}

impl Ledger {
    fn column(&self, kind: &'static str, key: &Key) -> Arc<Column> {
        let mut name = String::from(key.name());
        let mut labels: Vec<_> = key.labels().map(|it| (it.key(), it.value())).collect();
        labels.sort_unstable();
        for (label, value) in labels {
            write!(name, " {label}={value}").unwrap();
        }
        self.0.lock().unwrap().entry(name.clone()).or_insert(Entry { kind, value: 0.0 });
        Arc::new(Column { ledger: self.clone(), key: name })
    }

    /// Formats every series that is not zero.
    fn told(&self) -> String {
        let entries = self.0.lock().unwrap();
        let told = entries.iter().filter(|(_, entry)| entry.value != 0.0);
        told.fold(String::new(), |mut text, (key, entry)| {
            writeln!(text, "{key}: {}", entry.value).unwrap();
            text
        })
    }

    /// Returns every name, with its kind and its labels.
    fn names(&self) -> BTreeSet<String> {
        let entries = self.0.lock().unwrap();
        let describe = |(key, entry): (&String, &Entry)| {
            let mut words = key.split(' ');
            let name = words.next().unwrap();
            let labels: Vec<&str> = words.map(|it| it.split('=').next().unwrap()).collect();
            format!("{name} | {} | {}", entry.kind, labels.join(", "))
        };
        entries.iter().map(describe).collect()
    }
}

impl Column {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut entries = self.ledger.0.lock().unwrap();
        let entry = entries.get_mut(&self.key).unwrap();
        entry.value = change(entry.value);
    }
}

impl CounterFn for Column {
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }

    fn absolute(&self, _: u64) {
        unreachable!("counters are incremented");
    }
}

impl GaugeFn for Column {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Column {
    fn record(&self, _: f64) {
        self.change(|count| count + 1.0);
    }
}

impl Recorder for Ledger {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.column("counter", key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.column("gauge", key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.column("histogram", key))
    }
}

/// Records the metrics of a client that acquires, extends, loses, leaves, is refused and is closed.
fn course() -> Ledger {
    let ledger = Ledger::default();
    metrics::with_local_recorder(&ledger, || {
        let world = World::new();
        world.node("c", |node| node.uptime_s = 1);
        world.node("e", |node| node.habit = Habit::Refuses);
        let redlock = world.client();
        let lease = world.block_on(redlock.acquire("released")).unwrap();
        world.pass(SECOND);
        world.block_on(lease.extend(TTL)).unwrap();
        world.block_on(lease.release());
        let lease = world.block_on(redlock.acquire("lost")).unwrap();
        world.block_on(lease.lost());
        drop(lease);
        world.block_on(redlock.acquire("left")).unwrap().leave_until_expiry();
        let taken = world.block_on(redlock.try_acquire("left")).map(drop);
        assert!(taken.is_err());
        let _lease = world.block_on(redlock.acquire("closed")).unwrap();
        let mut waiting = crate::acquiring(&redlock, "closed");
        assert!(world.poll(&mut waiting).is_none());
        drop(waiting);
        world.node("b", |node| node.habit = Habit::Mute);
        let _closed = world.block_on(redlock.close(SECOND));
    });
    ledger
}

#[test]
fn a_course_is_counted() {
    insta::assert_snapshot!(course().told());
}

#[test]
fn names_and_labels_are_frozen() {
    let names: Vec<String> = course().names().into_iter().collect();
    insta::assert_snapshot!(names.join("\n"));
}

#[test]
fn every_metric_is_documented_and_nothing_else() {
    let table = include_str!("../../docs/metrics.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `redlock_"));
    let documented: BTreeSet<String> = rows
        .map(|row| {
            let mut cells = row.split('|').map(|cell| cell.replace('`', "").trim().to_owned());
            let mut cell = || cells.next().unwrap_or_default();
            let (name, kind) = (cell(), cell());
            // The text in parentheses lists the values of a label.
            let labels = cell();
            let labels = labels.split(';').map(|it| it.split('(').next().unwrap_or_default());
            let mut labels: Vec<&str> = labels.map(str::trim).collect();
            labels.sort_unstable();
            format!("redlock_{name} | {kind} | {}", labels.join(", "))
        })
        .collect();
    assert_eq!(documented, course().names());
}

#[test]
fn alerts_speak_of_metrics_that_there_are() {
    let alerts = include_str!("../../docs/alerts.yml");
    let ledger = course();
    let names = ledger.names();
    let names: BTreeSet<&str> = names.iter().map(|it| it.split(' ').next().unwrap()).collect();
    let mut used = 0;
    for (at, _) in alerts.match_indices("redlock_") {
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let word = alerts[at..].split(|it| !is_part(it)).next().unwrap();
        let base = ["_count", "_sum", "_bucket"].iter().find_map(|it| word.strip_suffix(it));
        assert!(names.contains(base.unwrap_or(word)), "`{word}` is no metric");
        used += 1;
    }
    assert!(used >= alerts.matches("- alert:").count(), "every alert looks at a metric");
}
