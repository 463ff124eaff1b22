//! The pre-flight check: what an operator should know of the nodes before anybody relies on them.

mod findings;
mod probe;

use core::fmt;
use core::future::{Future, poll_fn};
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

pub use self::findings::{Finding, Severity};
use self::probe::probe;
use crate::client::Redlock;
use crate::driver::Driver;
use crate::protocol::{BootInstant, Eligibility, Introduction, NodeIndex, RestartGuard, Standing};
use crate::settings::Settings;

/// What the nodes said of themselves, and what follows from it. Printed, it is a report in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The nodes, as they are configured.
    pub nodes: Vec<NodeInspection>,
    /// What is wrong or worth knowing, the worst first. While no lock can be had, the first one is
    /// that, and until when.
    pub findings: Vec<Finding>,
    /// Equal for two services that lock on the same server processes, in whatever order and under
    /// whatever names; `None` unless every node has said who it is.
    pub fingerprint: Option<u64>,
}

/// What one node said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInspection {
    /// Its place in the configured list.
    pub place: usize,
    /// Its address, without credentials.
    pub node: String,
    /// What is promised of its memory.
    pub restart_guard: RestartGuard,
    /// What it said, or why it said nothing.
    pub report: Result<NodeReport, Arc<str>>,
}

/// The answers of a node that could be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The kind of server and its version, as in `redis 7.0.15`.
    pub server: Option<String>,
    /// Whether it is a replica of another server.
    pub is_replica: bool,
    /// Whether it is part of a cluster, which may move keys elsewhere.
    pub is_cluster: bool,
    /// How long its process has run.
    pub uptime: Option<Duration>,
    /// What it does when its memory is full (`maxmemory-policy`).
    pub eviction: Option<String>,
    /// Whether it writes an append-only file.
    pub appends: Option<bool>,
    /// When that file reaches the disk (`appendfsync`).
    pub fsync: Option<String>,
    /// For how long nothing of its memory was lost, as far as its canary knows; `None` if it does not let
    /// this user have one.
    pub memory_age: Option<Duration>,
    /// Whether it says at once when its keys are gone; `None` if this user may not try.
    pub tells_losses: Option<bool>,
    /// How long it remembers its replication history without a replica (`repl-backlog-ttl`).
    pub backlog_ttl: Option<Duration>,
    /// How far its wall clock is ahead of the median node's, in microseconds; give or take half a
    /// round trip.
    pub clock_offset_us: Option<i64>,
    /// The round trip of the slowest question.
    pub round_trip: Duration,
    /// Commands of the lock that it refused, and its words.
    pub refused: Vec<(&'static str, Arc<str>)>,
    /// Why it has no canary, in its words.
    pub canary_refused: Option<Arc<str>>,
    pub(crate) introduction: Option<Introduction>,
    /// Its wall clock at the client's instant zero.
    pub(crate) epoch_us: Option<i64>,
}

impl Redlock {
    /// Asks every node what an operator should know before anybody relies on it: who it is, whether it
    /// is a master, keeps its memory as promised, evicts keys, tells the time, and lets this client do
    /// what a lock takes. Uses connections of its own, and sets a key `redlock-client:inspect` for
    /// half a second. While no lock can be had, the first finding is that, and until when.
    ///
    /// A node that has not answered everything within the connect timeout and eight node timeouts is
    /// reported as hanging: with the defaults the inspection takes 0.9 s at most.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let inspection = redlock.inspect().await;
    /// print!("{inspection}"); // in words that an operator can act on
    /// if inspection.findings.iter().any(|it| it.severity == redlock_client::Severity::Error) {
    ///     return Err("the lock is not safe, or cannot be had".into());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Inspection {
        inspect(self.driver(), self.settings()).await
    }
}

/// Asks every node at once, each on a connection of its own.
async fn inspect(driver: &Arc<Driver>, settings: &Settings) -> Inspection {
    let asked: Vec<_> = settings.nodes.iter().map(|node| ask(driver, settings, node)).collect();
    let mut nodes = Vec::with_capacity(asked.len());
    for (node, report) in settings.nodes.iter().zip(asked) {
        let report = match report {
            Ok(report) => report.await.unwrap_or_else(|_| Err(Arc::from("the runtime has ended"))),
            Err(error) => Err(Arc::from(error.to_string())),
        };
        nodes.push(NodeInspection {
            place: node.get(),
            node: driver.endpoint(node).to_string(),
            restart_guard: settings.guards[node.get()],
            report,
        });
    }
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
    /// How long it is until the node's votes count for this client, if nothing else happens to it;
    /// `None`: for ever. `standing` is what the client knew before it asked.
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
        let mut eligibility = Eligibility::new(self.restart_guard, fleet_max_ttl, drift);
        match report.introduction {
            Some(introduction) => eligibility.introduced(introduction, now),
            None => eligibility.refused(now),
        }
        eligibility.from().map(|from| from.since(now))
    }
}

type Report = Result<NodeReport, Arc<str>>;

/// Asks one node, in a task where connections can be polled.
fn ask(
    driver: &Arc<Driver>,
    settings: &Settings,
    node: NodeIndex,
) -> io::Result<oneshot::Receiver<Report>> {
    driver.environment().can_spawn()?;
    // Several questions in a row, each worth a node timeout; a node that hangs is let go.
    let patience = settings.connect_timeout.saturating_add(settings.node_timeout * 8);
    let (sender, receiver) = oneshot::channel();
    let asking = Arc::clone(driver);
    driver.environment().spawn(Box::pin(async move {
        let environment = asking.environment();
        let (mut timer, until) = (environment.timer(), environment.now().after(patience));
        let mut probe = Box::pin(probe(&asking, node));
        let report = poll_fn(|context| match probe.as_mut().poll(context) {
            Poll::Pending => {
                let late = timer.poll_until(until, context);
                late.map(|()| Err(Arc::from("no answer in time")))
            }
            ready => ready,
        });
        // Nobody is told who does not wait any more.
        let _ = sender.send(report.await);
    }));
    Ok(receiver)
}

impl fmt::Display for Inspection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            writeln!(formatter, "{node}")?;
        }
        match self.fingerprint {
            Some(it) => writeln!(formatter, "membership {it:016x}: the same for every service")?,
            None => writeln!(formatter, "membership unknown: not every node said who it is")?,
        }
        if self.findings.is_empty() {
            return writeln!(formatter, "nothing to object to");
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
        if let Some(uptime) = report.uptime {
            write!(formatter, ", up for {uptime:?}")?;
        }
        match report.clock_offset_us {
            Some(offset) => write!(formatter, ", clock {:+.1} ms", offset as f64 / 1e3),
            None => Ok(()),
        }
    }
}
