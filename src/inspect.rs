//! The pre-flight check: reports problems of the nodes before anything relies on them.

mod findings;
mod lock;
mod probe;

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use redlock_protocol::{BootInstant, Eligibility, Introduction, NodeIndex};
use tokio::sync::oneshot;

pub use self::findings::{Finding, Severity};
pub use self::lock::{Holding, LockInspection, NodeLock, StoredKey};
pub(crate) use self::probe::PROBE_KEY;
use self::probe::probe;
use crate::client::Redlock;
use crate::driver::Driver;
use crate::error::{NO_ANSWER, NO_TLS_ANSWER};
use crate::health::Standing;
use crate::restart_guard::RestartGuard;
use crate::settings::Settings;

/// Reports of the nodes, and findings drawn from them. `Display` prints a report in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The nodes, in the configured order.
    pub nodes: Vec<NodeInspection>,
    /// Problems and remarks, the worst first. If no lock can be acquired, the first finding says
    /// so, and for how long.
    pub findings: Vec<Finding>,
    /// Fingerprint of the set of server processes. Two services that lock on the same processes get
    /// the same fingerprint, whatever order and names they use. `None` unless every node has
    /// identified itself.
    pub fingerprint: Option<u64>,
}

/// Report of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInspection {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
    /// Promise about the node's data.
    pub restart_guard: RestartGuard,
    /// The node's answers, or why there are none.
    pub report: Result<NodeReport, Arc<str>>,
}

/// Answers of a node that could be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// Kind of server and its version, as in `redis 7.0.15`.
    pub server: Option<String>,
    /// True if the server is a replica of another server.
    pub is_replica: bool,
    /// Number of replicas connected to the server.
    pub replicas: Option<u64>,
    /// True if the server is part of a cluster, which may move keys elsewhere.
    pub is_cluster: bool,
    /// Time since the server's process started.
    pub uptime: Option<Duration>,
    /// True if the server's clock reads an earlier time than at the start of its process.
    pub is_set_back: bool,
    /// Eviction policy of the server (`maxmemory-policy`).
    pub eviction: Option<String>,
    /// True if the server writes an append-only file.
    pub appends: Option<bool>,
    /// When the server syncs that file to the disk (`appendfsync`).
    pub fsync: Option<String>,
    /// Time for which the node has certainly lost no data, according to its canary; `None` if the
    /// server does not let this user have a canary.
    pub memory_age: Option<Duration>,
    /// True if the server reports a loss of keys at once; `None` if it refused a command of the test.
    pub tells_losses: Option<bool>,
    /// Time for which the server keeps its replication backlog without a replica
    /// (`repl-backlog-ttl`).
    pub backlog_ttl: Option<Duration>,
    /// Lead of the node's wall clock over the median node's, in microseconds; accurate to half a
    /// round trip.
    pub clock_offset_us: Option<i64>,
    /// Round trip of the slowest query.
    pub round_trip: Duration,
    /// Commands of the lock that the server refused, each with the server's error; of commands with
    /// the same error the first.
    pub refused: Vec<(&'static str, Arc<str>)>,
    /// Error of the server, if it has no canary.
    pub canary_refused: Option<Arc<str>>,
    /// Error of the server if `tells_losses` is `None`.
    pub(crate) test_refused: Option<Arc<str>>,
    pub(crate) introduction: Option<Introduction>,
    /// The node's wall clock at the client's instant zero.
    pub(crate) epoch_us: Option<i64>,
}

impl Redlock {
    /// Checks every node before an application relies on it: that it is a different server from the
    /// others and a master without replicas, keeps its data as promised, does not evict keys, has a
    /// correct clock, and permits the commands that a lock needs. Uses connections of its own, and
    /// sets a key `redlock-client:inspect` for half a second. If no lock can be acquired, the first
    /// finding says so, and for how long.
    ///
    /// A node that has not answered everything within the connect timeout and eight node timeouts
    /// is reported as hanging: with the defaults the inspection takes 0.9 s at most.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let inspection = redlock.inspect().await;
    /// print!("{inspection}"); // in words that an operator can act on
    /// if inspection.findings.iter().any(|it| it.severity == redlock_client::Severity::Error) {
    ///     return Err("the lock is not safe, or cannot be acquired".into());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Inspection {
        inspect(self.driver(), self.settings()).await
    }
}

/// Queries all nodes, and draws findings from their reports.
async fn inspect(driver: &Arc<Driver>, settings: &Settings) -> Inspection {
    let probe = |driver: Arc<Driver>, node| async move { probe(&driver, node).await };
    let reports = ask_all(driver, settings, probe).await;
    let inspected = settings.nodes.iter().zip(reports).map(|(node, report)| NodeInspection {
        place: node.get(),
        node: driver.endpoint(node).to_string(),
        restart_guard: settings.guards[node.get()],
        report,
    });
    let mut nodes: Vec<NodeInspection> = inspected.collect();
    findings::offset_clocks(&mut nodes);
    let (health, now) = (driver.health(), driver.environment().now());
    let votes = nodes.iter().map(|node| {
        let standing = health.nodes[node.place].standing;
        node.votes_in(standing, settings, now)
    });
    let findings = findings::judge(&nodes, settings, &votes.collect::<Vec<_>>());
    let fingerprint = findings::fingerprint(&nodes);
    Inspection { nodes, findings, fingerprint }
}

impl NodeInspection {
    /// Returns the time until the node's votes count for this client, if nothing else happens to
    /// the node; `None` if they never will. `standing` is the client's knowledge before the query.
    fn votes_in(
        &self,
        standing: Standing,
        settings: &Settings,
        now: BootInstant,
    ) -> Option<Duration> {
        let report = self.report.as_ref().ok()?;
        if report.is_replica || report.refused.iter().any(|(command, _)| *command == "SET") {
            return None;
        }
        match standing {
            Standing::Counts => return Some(Duration::ZERO),
            Standing::Quarantined(left) => return Some(left),
            Standing::NotKnown => {}
        }
        let Settings { fleet_max_ttl, drift, .. } = *settings;
        let mut eligibility = Eligibility::new(self.restart_guard.into(), fleet_max_ttl, drift);
        match report.introduction {
            Some(introduction) => eligibility.introduced(introduction, now),
            None => eligibility.refused(now),
        }
        eligibility.from().map(|from| from.since(now))
    }
}

/// Puts `question` to all nodes at once. Returns the answers in the configured order.
async fn ask_all<T, F>(
    driver: &Arc<Driver>,
    settings: &Settings,
    question: impl Fn(Arc<Driver>, NodeIndex) -> F,
) -> Vec<Result<T, Arc<str>>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Arc<str>>> + Send + 'static,
{
    let ask = |node| {
        let silence = if driver.endpoint(node).is_tls() { NO_TLS_ANSWER } else { NO_ANSWER };
        ask(driver, settings, silence, question(Arc::clone(driver), node))
    };
    let asked: Vec<_> = settings.nodes.iter().map(ask).collect();
    let mut answers = Vec::with_capacity(asked.len());
    for answer in asked {
        answers.push(match answer {
            Ok(answer) => answer.await.unwrap_or_else(|_| Err(Arc::from("the runtime has ended"))),
            Err(error) => Err(Arc::from(error.to_string())),
        });
    }
    answers
}

/// Puts a question to one node, in a task where connections can be polled. `silence` says that no
/// answer came.
fn ask<T: Send + 'static>(
    driver: &Arc<Driver>,
    settings: &Settings,
    silence: &'static str,
    question: impl Future<Output = Result<T, Arc<str>>> + Send + 'static,
) -> io::Result<oneshot::Receiver<Result<T, Arc<str>>>> {
    driver.environment().can_spawn()?;
    // Several queries in a row, each with a node timeout of its own; a node that hangs is
    // abandoned.
    let patience = settings.connect_timeout.saturating_add(settings.node_timeout * 8);
    let (sender, receiver) = oneshot::channel();
    let asking = Arc::clone(driver);
    driver.environment().spawn(Box::pin(async move {
        let environment = asking.environment();
        let (mut timer, until) = (environment.timer(), environment.now().after(patience));
        let mut question = pin!(question);
        let answer = poll_fn(|context| match question.as_mut().poll(context) {
            Poll::Pending => {
                let late = timer.poll_until(until, context);
                late.map(|()| Err(Arc::from(silence)))
            }
            ready => ready,
        });
        // The receiver may be gone; the answer is then dropped.
        let _ = sender.send(answer.await);
    }));
    Ok(receiver)
}

impl fmt::Display for Inspection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            writeln!(formatter, "{node}")?;
        }
        match self.fingerprint {
            Some(it) => {
                writeln!(formatter, "membership {it:016x}: must be equal in every service")?
            }
            None => {
                writeln!(formatter, "membership unknown: not every node has introduced itself")?
            }
        }
        if self.findings.is_empty() {
            return writeln!(formatter, "no findings");
        }
        self.findings.iter().try_for_each(|finding| writeln!(formatter, "{finding}"))
    }
}

impl fmt::Display for NodeInspection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = match &self.report {
            Ok(report) => report,
            Err(error) => return write!(formatter, "{}: {error}", self.node),
        };
        let server = report.server.as_deref().unwrap_or("unknown server");
        write!(formatter, "{}: {server}, {:.1?} a round trip", self.node, report.round_trip)?;
        match report.uptime {
            // Servers count whole seconds.
            Some(Duration::ZERO) => write!(formatter, ", up for less than a second")?,
            Some(uptime) => write!(formatter, ", up for {uptime:?}")?,
            None => {}
        }
        match report.clock_offset_us {
            Some(offset) => write!(formatter, ", clock {:+.1} ms", offset as f64 / 1e3),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_the_first_second_is_not_up_for_nothing() {
        let of = |uptime_s| {
            let uptime = Some(Duration::from_secs(uptime_s));
            let report = Ok(NodeReport { uptime, ..NodeReport::default() });
            let (node, restart_guard) = (String::from("a"), RestartGuard::Quarantine);
            NodeInspection { place: 0, node, restart_guard, report }.to_string()
        };
        assert_eq!(of(0), "a: unknown server, 0.0ns a round trip, up for less than a second");
        assert_eq!(of(1), "a: unknown server, 0.0ns a round trip, up for 1s");
    }
}
