//! Queries to one node.

mod memory;

use core::time::Duration;
use std::sync::Arc;

use bytes::BytesMut;
use redlock_protocol::{BootInstant, NodeIndex, Op, ResourceId, Token};
use tokio::io::AsyncWriteExt;

use super::NodeReport;
use crate::dial::{DialError, Dialed, dial, read_reply, value_of};
use crate::driver::Driver;
use crate::introduction::{self, field};
use crate::resp::{self, Form, Frame};

/// Key on which the commands of the lock are tried. It lives for [`PROBE_TTL`]. Neither a lock nor a
/// canary can have this name: each inspection deletes the key.
pub(crate) const PROBE_KEY: &[u8] = b"redlock-client:inspect";
pub(super) const PROBE_TTL: Duration = Duration::from_millis(500);

/// An owned reply.
pub(super) enum Answer {
    Error(Arc<str>),
    Integer(i64),
    Nil,
    Text(Vec<u8>),
    Other,
}

/// A connection for one query after another.
pub(super) struct ProbeConnection<'a> {
    driver: &'a Driver,
    node: NodeIndex,
    dialed: Dialed,
    round_trip: Duration,
}

impl<'a> ProbeConnection<'a> {
    /// Opens a new connection to `node`.
    pub(super) async fn of(driver: &'a Driver, node: NodeIndex) -> Result<Self, DialError> {
        let dialed = dial(&**driver.environment(), driver.endpoint(node)).await?;
        Ok(Self { driver, node, dialed, round_trip: Duration::ZERO })
    }

    /// Opens another connection to the same node.
    pub(super) fn another(&self) -> impl Future<Output = Result<Self, DialError>> + use<'a> {
        Self::of(self.driver, self.node)
    }

    pub(super) fn canary_key(&self) -> &'a [u8] {
        self.driver.canary_key()
    }

    /// Returns the server's text in printable form.
    pub(super) fn printable(&self, text: &[u8]) -> Arc<str> {
        self.driver.endpoint(self.node).printable(text, None)
    }

    /// Returns the number of pushes received.
    pub(super) fn pushes(&self) -> u64 {
        self.dialed.decoder.pushes()
    }

    /// Returns true if the last answer is only the beginning of a text.
    pub(super) fn is_cut(&self) -> bool {
        self.dialed.decoder.is_cut()
    }

    /// Sends a query and reads its reply. Also returns the two instants between which the server
    /// replied.
    pub(super) async fn ask(
        &mut self,
        question: impl FnOnce(&mut BytesMut),
    ) -> Result<(Answer, BootInstant, BootInstant), DialError> {
        let mut outgoing = BytesMut::new();
        question(&mut outgoing);
        let asked = self.driver.environment().now();
        self.dialed.stream.write_all(&outgoing).await?;
        self.dialed.stream.flush().await?;
        let answer = self.read().await?;
        let answered = self.driver.environment().now();
        self.round_trip = self.round_trip.max(answered.since(asked));
        Ok((answer, asked, answered))
    }

    async fn read(&mut self) -> Result<Answer, DialError> {
        let endpoint = self.driver.endpoint(self.node);
        let Dialed { stream, decoder, .. } = &mut self.dialed;
        let answer = read_reply(stream, decoder, |reply| match reply {
            Frame::Error(text) => Answer::Error(endpoint.printable(text, None)),
            Frame::Text(text) => Answer::Text(text.to_vec()),
            Frame::Integer(number) => Answer::Integer(number),
            Frame::Nil => Answer::Nil,
            Frame::Many(bytes) => Answer::Text(bytes.to_vec()),
            _ => Answer::Other,
        });
        answer.await
    }
}

/// Returns the report of `node`.
pub(super) async fn probe(driver: &Driver, node: NodeIndex) -> Result<NodeReport, Arc<str>> {
    interview(driver, node).await.map_err(|error| error.text())
}

async fn interview(driver: &Driver, node: NodeIndex) -> Result<NodeReport, DialError> {
    let mut interview = ProbeConnection::of(driver, node).await?;
    let mut report = NodeReport::default();
    let (answer, asked, answered) =
        interview.ask(|outgoing| resp::write(outgoing, &[b"INFO"])).await?;
    let form = match &answer {
        Answer::Text(info) => {
            read_info(&mut report, info, asked, answered);
            introduction::preferred_forms(info).compare
        }
        Answer::Error(text) => {
            report.refused.push(("INFO", Arc::clone(text)));
            Form::EvalSha
        }
        _ => Form::EvalSha,
    };
    let config: [&[u8]; 3] = [b"CONFIG", b"GET", b"appendfsync"];
    let (answer, ..) = interview.ask(|outgoing| resp::write(outgoing, &config)).await?;
    if let Answer::Text(bytes) = answer {
        let value = value_of(&bytes, b"appendfsync");
        report.fsync = value.map(|value| String::from_utf8_lossy(value).into_owned());
    }
    memory::ask(&mut interview, &mut report).await?;
    try_commands(&mut interview, &mut report, form).await?;
    report.round_trip = interview.round_trip;
    Ok(report)
}

/// Tries the commands that the lock needs, and those that its scripts call.
///
/// The scripts do nothing unless the key has the value of this inspection, which another one may
/// have replaced. The commands that they call are therefore tried by themselves: the rights to a
/// command do not depend on the key's value.
async fn try_commands(
    interview: &mut ProbeConnection<'_>,
    report: &mut NodeReport,
    form: Form,
) -> Result<(), DialError> {
    let mut bytes = [0; Token::LENGTH];
    if interview.driver.environment().fill_random(&mut bytes).is_err() {
        return Ok(());
    }
    let (resource, token) = (ResourceId(0), Token::from_bytes(bytes));
    let extend = Op::Extend { resource, token, ttl: PROBE_TTL, plain: false };
    let tried = [
        ("SET", Op::Set { resource, token, ttl: PROBE_TTL }, Form::SetNx),
        ("EVAL", extend, Form::Eval),
        ("EVALSHA", extend, Form::EvalSha),
    ];
    for (name, op, form) in tried {
        try_command(interview, report, name, |out| resp::encode(out, &op, PROBE_KEY, form)).await?;
    }
    let ttl_ms = PROBE_TTL.as_millis().to_string();
    let called: [(_, &[&[u8]]); 3] = [
        ("GET", &[b"GET", PROBE_KEY]),
        ("PTTL", &[b"PTTL", PROBE_KEY]),
        ("PEXPIRE", &[b"PEXPIRE", PROBE_KEY, ttl_ms.as_bytes()]),
    ];
    for (name, question) in called {
        try_command(interview, report, name, |out| resp::write(out, question)).await?;
    }
    let release = Op::Release { resource, token };
    // The command of newer servers is optional: a script can replace it.
    let is_native = matches!(form, Form::Delex | Form::Delifeq);
    if is_native {
        let native = |out: &mut BytesMut| resp::encode(out, &release, PROBE_KEY, form);
        if !matches!(interview.ask(native).await?.0, Answer::Error(_)) {
            return Ok(());
        }
    }
    // A server that was never asked to release does not know this script by its hash.
    let script = |out: &mut BytesMut| resp::encode(out, &release, PROBE_KEY, Form::Eval);
    try_command(interview, report, "the release", script).await?;
    try_command(interview, report, "DEL", |out| resp::write(out, &[b"DEL", PROBE_KEY])).await
}

/// Reports an error of the server to a command, each text once.
async fn try_command(
    interview: &mut ProbeConnection<'_>,
    report: &mut NodeReport,
    name: &'static str,
    question: impl FnOnce(&mut BytesMut),
) -> Result<(), DialError> {
    if let (Answer::Error(text), ..) = interview.ask(question).await? {
        // The user may run the command on other keys than the probe key.
        let is_known = report.refused.iter().any(|(_, known)| *known == text);
        if !is_of_key(&text) && !is_known {
            report.refused.push((name, text));
        }
    }
    Ok(())
}

/// Returns true if the user may not use the key of the refused command, whatever the command.
pub(super) fn is_of_key(error: &str) -> bool {
    error.starts_with("NOPERM") && error.contains("permissions to access")
}

fn read_info(report: &mut NodeReport, info: &[u8], asked: BootInstant, answered: BootInstant) {
    let text = |name: &str| {
        let value = field(info, name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    report.server = match (text("valkey_version"), text("redis_version")) {
        (Some(version), _) => Some(format!("valkey {version}")),
        (None, Some(version)) => Some(format!("redis {version}")),
        (None, None) => None,
    };
    report.introduction = introduction::parse(info).ok();
    report.is_replica = text("role").is_some_and(|role| role != "master");
    report.replicas = number("connected_slaves");
    report.is_cluster = number("cluster_enabled") == Some(1);
    let uptime = introduction::uptime(info);
    (report.uptime, report.is_set_back) = (uptime.flatten(), uptime == Some(None));
    report.eviction = text("maxmemory_policy");
    report.appends = number("aof_enabled").map(|enabled| enabled == 1);
    // The server read its clock somewhere between the two instants.
    let middle = asked.after(answered.since(asked) / 2).as_nanos() / 1_000;
    let server_us = number("server_time_usec").and_then(|it| i64::try_from(it).ok());
    report.epoch_us = server_us.zip(i64::try_from(middle).ok()).map(|(at, now)| at - now);
}
