//! Findings drawn from the nodes' reports.

mod words;

use core::fmt;
use core::time::Duration;

use redlock_protocol::{NodeCount, RunId, quarantine};

use super::{NodeInspection, NodeReport};
use crate::restart_guard::RestartGuard;
use crate::settings::Settings;

/// Largest clock offset that is not reported, in microseconds. A clock further off will be stepped.
const CLOCK_OFFSET_MAX_US: u64 = 500_000;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// The lock is not safe, or cannot be acquired.
    Error,
    /// The lock is safe or available only as long as some condition holds.
    Warning,
    /// Information without immediate risk.
    Note,
}

impl Severity {
    /// Returns the severity as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A problem or remark for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Places of the nodes concerned; empty if the finding concerns all of them together.
    pub places: Vec<usize>,
    /// Description of the finding, and the remedy if something is to be done, in words.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.severity.as_str(), self.text)
    }
}

/// Computes each node's clock offset from the median.
pub(super) fn offset_clocks(nodes: &mut [NodeInspection]) {
    let reports = || nodes.iter().filter_map(|node| node.report.as_ref().ok());
    let mut epochs: Vec<i64> = reports().filter_map(|report| report.epoch_us).collect();
    epochs.sort_unstable();
    let Some(&median) = epochs.get(epochs.len() / 2) else {
        return;
    };
    for report in nodes.iter_mut().filter_map(|node| node.report.as_mut().ok()) {
        report.clock_offset_us = report.epoch_us.map(|epoch| epoch - median);
    }
}

/// Returns a fingerprint of the set of server processes (FNV-1a over their sorted run ids).
pub(super) fn fingerprint(nodes: &[NodeInspection]) -> Option<u64> {
    let run_ids = nodes.iter().map(|node| run_id(node).map(|it| it.0));
    let mut run_ids = run_ids.collect::<Option<Vec<_>>>()?;
    run_ids.sort_unstable();
    let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Some(run_ids.iter().flatten().fold(0xcbf2_9ce4_8422_2325, hash))
}

fn run_id(node: &NodeInspection) -> Option<RunId> {
    node.report.as_ref().ok()?.introduction.map(|it| it.run_id)
}

/// Returns the findings, the worst first. `votes_in` has the time until each node's votes count.
pub(super) fn judge(
    nodes: &[NodeInspection],
    settings: &Settings,
    votes_in: &[Option<Duration>],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |severity, places: &[usize], text| {
        findings.push(Finding { severity, places: places.to_vec(), text });
    };
    judge_membership(nodes, &mut find);
    for node in nodes {
        match &node.report {
            Ok(report) => {
                judge_node(node, report, &mut find);
                judge_knowledge(node, report, settings, &mut find);
            }
            Err(error) => {
                find(Severity::Warning, &[node.place], words::unreachable(&node.node, error));
            }
        }
    }
    findings.sort_by_key(|finding| finding.severity);
    findings.splice(0..0, judge_quorum(settings.nodes, votes_in));
    findings
}

/// Returns the finding that no lock can be acquired, and until when; `None` if one can.
fn judge_quorum(nodes: NodeCount, votes_in: &[Option<Duration>]) -> Option<Finding> {
    let (count, quorum) = (nodes.get(), nodes.quorum());
    let mut votes_in: Vec<Duration> = votes_in.iter().flatten().copied().collect();
    votes_in.sort_unstable();
    let counting = votes_in.iter().filter(|left| left.is_zero()).count();
    let until = match votes_in.get(quorum - 1) {
        Some(left) if left.is_zero() => return None,
        Some(left) => format!("A majority can vote in {left:.1?} if nothing else happens."),
        None => String::from("This does not end by itself: see the findings below."),
    };
    let text = format!(
        "no lock can be acquired: {counting} of {count} nodes can vote, and a lock takes {quorum}. {until}"
    );
    Some(Finding { severity: Severity::Error, places: Vec::new(), text })
}

type Find<'a> = dyn FnMut(Severity, &[usize], String) + 'a;

fn judge_membership(nodes: &[NodeInspection], find: &mut Find<'_>) {
    for (place, node) in nodes.iter().enumerate() {
        let twin =
            nodes[..place].iter().find(|it| run_id(it).is_some() && run_id(it) == run_id(node));
        if let Some(twin) = twin {
            let text = format!(
                "{} and {} are the same server: its vote counts twice. Name every server once.",
                twin.node, node.node
            );
            find(Severity::Error, &[twin.place, node.place], text);
        }
    }
    let count = nodes.len();
    if count == 1 {
        let text =
            "one node: while it is away there is no lock. Use three or five where that matters.";
        find(Severity::Note, &[], text.into());
    } else if count.is_multiple_of(2) {
        let text = format!(
            "{count} nodes tolerate no more failures than {}, and split their votes more often. Use an odd \
             number.",
            count - 1
        );
        find(Severity::Warning, &[], text);
    }
}

fn judge_node(node: &NodeInspection, report: &NodeReport, find: &mut Find<'_>) {
    let (name, place) = (&node.node, [node.place]);
    if report.is_replica {
        let text =
            format!("{name} is a replica: its votes do not count. Name an independent master.");
        find(Severity::Error, &place, text);
    }
    if report.is_cluster {
        let text = format!("{name} is part of a cluster. Name independent masters.");
        find(Severity::Error, &place, text);
    }
    for (command, error) in &report.refused {
        let text = format!("{name} refused {command}: {}", words::with_remedy(error));
        find(Severity::Error, &place, text);
    }
    if let Some(policy) = report.eviction.as_deref().filter(|&policy| policy != "noeviction") {
        let text = format!(
            "{name} evicts keys when its memory is full (maxmemory-policy {policy}): locks vanish. \
             Set noeviction."
        );
        find(Severity::Error, &place, text);
    }
    judge_memory(node, report, find);
    judge_replicas(node, report, find);
    judge_clock(node, report, find);
}

/// Reports what is wrong with the node's clock.
fn judge_clock(node: &NodeInspection, report: &NodeReport, find: &mut Find<'_>) {
    let (name, place) = (&node.node, [node.place]);
    if report.is_set_back {
        let text = format!(
            "the clock of {name} was set back to before the start of its process: locks that were \
             held then live longer by that much, and a canary from before looks new to clients that \
             start under Quarantine."
        );
        find(Severity::Warning, &place, text);
    }
    if let Some(offset) =
        report.clock_offset_us.filter(|it| it.unsigned_abs() > CLOCK_OFFSET_MAX_US)
    {
        let text = format!(
            "the clock of {name} is {:+.1} s off the median node's: when it is stepped, keys expire \
             too early or too late. Slew it.",
            offset as f64 / 1e6
        );
        find(Severity::Warning, &place, text);
    }
}

/// Reports what prevents the client from noticing a data loss of the node.
fn judge_knowledge(
    node: &NodeInspection,
    report: &NodeReport,
    settings: &Settings,
    find: &mut Find<'_>,
) {
    let (name, place) = (&node.node, [node.place]);
    if report.is_replica {
        return;
    }
    if let Some(error) = &report.canary_refused {
        find(Severity::Warning, &place, words::no_canary(name, error));
    }
    if report.tells_losses == Some(false) {
        let text = format!(
            "{name} does not report lost keys, because it pushes no changes: a lease notices a loss only at its \
             first read, an extension or a new connection, and waiters poll this node. \
             Pushes need RESP3, the right to CLIENT TRACKING, a version that does not crash when tracking, \
             and no proxy that drops pushes."
        );
        find(Severity::Note, &place, text);
    }
    if let Some(error) = &report.test_refused {
        find(Severity::Note, &place, words::not_tested(name, error));
    }
    let quarantine = quarantine(settings.fleet_max_ttl, settings.drift);
    if let Some(ttl) = report.backlog_ttl.filter(|it| !it.is_zero() && *it < quarantine) {
        let text = format!(
            "{name} forgets its replication history after {ttl:?} (repl-backlog-ttl): if it is promoted \
             later, its lost keys go unnoticed. Set it to at least a quarantine ({quarantine:?}), or to 0."
        );
        find(Severity::Warning, &place, text);
    }
}

/// Reports contradictions between the node's configuration and the promise about its data, and
/// consequences of that promise.
fn judge_memory(node: &NodeInspection, report: &NodeReport, find: &mut Find<'_>) {
    let (name, place) = (&node.node, [node.place]);
    match (node.restart_guard, report.appends, report.fsync.as_deref()) {
        (RestartGuard::Durable, Some(true), Some("always")) => {}
        (RestartGuard::Durable, Some(true), None) => {
            let text = format!(
                "{name} is promised to be durable, but its appendfsync cannot be read. Grant the user \
                 `+config|get`."
            );
            find(Severity::Warning, &place, text);
        }
        (RestartGuard::Durable, ..) => {
            let text = format!(
                "{name} is promised to be durable, but is not: set appendonly yes and appendfsync \
                 always, or choose another restart guard."
            );
            find(Severity::Error, &place, text);
        }
        (RestartGuard::DelayedRestart, ..) => {
            let text = format!(
                "{name} votes as soon as it is up: nothing may restart it sooner than a quarantine \
                 (fleet_max_ttl plus drift) after it died."
            );
            find(Severity::Note, &place, text);
        }
        (RestartGuard::Quarantine, Some(false), _) => {
            let text = format!(
                "{name} forgets its keys when it restarts: it then cannot vote until a quarantine is over."
            );
            find(Severity::Note, &place, text);
        }
        (RestartGuard::Quarantine, ..) => {}
    }
}

/// Reports the replicas of a master. Nothing shows whether one of them would ever take over.
fn judge_replicas(node: &NodeInspection, report: &NodeReport, find: &mut Find<'_>) {
    let count = report.replicas.unwrap_or(0);
    if count == 0 || report.is_replica {
        return;
    }
    let severity = match node.restart_guard {
        RestartGuard::Durable | RestartGuard::DelayedRestart => Severity::Warning,
        RestartGuard::Quarantine => Severity::Note,
    };
    find(severity, &[node.place], words::replicas(&node.node, count, node.restart_guard));
}
