//! Queries about a node's data set: its canary, and its reports of lost keys.

use core::time::Duration;
use std::sync::Arc;

use super::{Answer, PROBE_KEY, PROBE_TTL, ProbeConnection};
use crate::dial::{DialError, value_of};
use crate::inspect::NodeReport;
use crate::introduction;
use crate::resp::{self, Form};

/// Reads the canary and the backlog TTL, and tries whether the server pushes changes of keys.
pub(super) async fn ask(
    interview: &mut ProbeConnection<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    ask_canary(interview, report).await?;
    ask_backlog(interview, report).await?;
    match hears_changes(interview).await? {
        Ok(hears) => report.tells_losses = Some(hears),
        Err(refused) => report.test_refused = Some(refused),
    }
    Ok(())
}

/// Reads the canary, and writes a missing one, as the client does when it connects.
async fn ask_canary(
    interview: &mut ProbeConnection<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    let key = interview.canary_key();
    let introduce = redlock_protocol::Op::Introduce;
    let question =
        |outgoing: &mut bytes::BytesMut| resp::encode(outgoing, &introduce, key, Form::Eval);
    match interview.ask(question).await?.0 {
        Answer::Text(said) => {
            if let Ok(introduction) = introduction::parse(&said) {
                report.introduction = Some(introduction);
                report.memory_age = introduction.canary.map(|it| it.age);
            }
            let refused = introduction::field(&said, b"canary_refused");
            report.canary_refused = refused.map(|text| interview.printable(text));
        }
        Answer::Error(text) => report.canary_refused = Some(text),
        _ => report.canary_refused = Some(Arc::from("no answer to the script")),
    }
    Ok(())
}

async fn ask_backlog(
    interview: &mut ProbeConnection<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    let config: [&[u8]; 3] = [b"CONFIG", b"GET", b"repl-backlog-ttl"];
    if let Answer::Text(bytes) = interview.ask(|out| resp::write(out, &config)).await?.0 {
        let value = value_of(&bytes, b"repl-backlog-ttl");
        let seconds = value.and_then(|it| core::str::from_utf8(it).ok()?.parse().ok());
        report.backlog_ttl = seconds.map(Duration::from_secs);
    }
    Ok(())
}

/// Returns true if the server pushes a message to this connection when another connection changes a
/// key that was read here. A proxy may accept the command that requests such pushes, and still pass
/// none on. The inner error is that of the server to a command on the key: the user may not run it,
/// or the server cannot write.
async fn hears_changes(
    interview: &mut ProbeConnection<'_>,
) -> Result<Result<bool, Arc<str>>, DialError> {
    let ttl_ms = PROBE_TTL.as_millis().to_string();
    let caching: [&[u8]; 3] = [b"CLIENT", b"CACHING", b"YES"];
    let answer = interview.ask(|outgoing| resp::write(outgoing, &caching)).await?.0;
    if matches!(answer, Answer::Error(text) if text.starts_with("NOPERM")) {
        return Ok(Ok(false));
    }
    let get: [&[u8]; 2] = [b"GET", PROBE_KEY];
    if let Answer::Error(text) = interview.ask(|outgoing| resp::write(outgoing, &get)).await?.0 {
        return Ok(Err(text));
    }
    let before = interview.pushes();
    let mut other = interview.another().await?;
    let set: [&[u8]; 6] = [b"SET", PROBE_KEY, b"listening", b"NX", b"PX", ttl_ms.as_bytes()];
    for question in [&set[..], &[b"DEL", PROBE_KEY]] {
        if let Answer::Error(text) = other.ask(|outgoing| resp::write(outgoing, question)).await?.0
        {
            return Ok(Err(text));
        }
    }
    // The reply to this command arrives after the push, if there is one.
    interview.ask(|outgoing| resp::write(outgoing, &get)).await?;
    Ok(Ok(interview.pushes() > before))
}
