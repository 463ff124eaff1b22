//! What can be known of a node's memory: whether it has a canary, and says when its keys are gone.

use core::time::Duration;
use std::sync::Arc;

use super::{Answer, Interview, PROBE_KEY, PROBE_TTL};
use crate::dial::DialError;
use crate::inspect::NodeReport;
use crate::introduction;
use crate::resp::{self, Form};

/// Asks what the canary says, and tries whether a change reaches who listens.
pub(super) async fn ask(
    interview: &mut Interview<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    ask_canary(interview, report).await?;
    ask_backlog(interview, report).await?;
    report.tells_losses = hears_changes(interview).await?;
    Ok(())
}

/// As the client does when it connects: a canary that is not there is written.
async fn ask_canary(
    interview: &mut Interview<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    let key = interview.canary_key();
    let introduce = crate::protocol::Op::Introduce;
    let question =
        |outgoing: &mut bytes::BytesMut| resp::encode(outgoing, &introduce, key, Form::Text);
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
        Answer::Other => report.canary_refused = Some(Arc::from("no answer to the script")),
    }
    Ok(())
}

async fn ask_backlog(
    interview: &mut Interview<'_>,
    report: &mut NodeReport,
) -> Result<(), DialError> {
    let config: [&[u8]; 3] = [b"CONFIG", b"GET", b"repl-backlog-ttl"];
    if let Answer::Text(bytes) = interview.ask(|out| resp::write(out, &config)).await?.0 {
        let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let value = lines.find(|line| *line == b"repl-backlog-ttl").and_then(|_| lines.nth(1));
        let seconds = value.and_then(|it| core::str::from_utf8(it).ok()?.parse().ok());
        report.backlog_ttl = seconds.map(Duration::from_secs);
    }
    Ok(())
}

/// Whether the change of a key that was read on this connection, made on another one, is pushed to
/// it: a proxy may take the command that asks for it, and pass no push on. `None` if this user may not
/// try.
async fn hears_changes(interview: &mut Interview<'_>) -> Result<Option<bool>, DialError> {
    let is_forbidden =
        |answer: &Answer| matches!(answer, Answer::Error(text) if text.starts_with("NOPERM"));
    let ttl_ms = PROBE_TTL.as_millis().to_string();
    let read: [&[&[u8]]; 2] = [&[b"CLIENT", b"CACHING", b"YES"], &[b"GET", PROBE_KEY]];
    for question in read {
        if is_forbidden(&interview.ask(|outgoing| resp::write(outgoing, question)).await?.0) {
            return Ok(None);
        }
    }
    let before = interview.pushes();
    let mut other = interview.another().await?;
    let set: [&[u8]; 6] = [b"SET", PROBE_KEY, b"listening", b"NX", b"PX", ttl_ms.as_bytes()];
    for question in [&set[..], &[b"DEL", PROBE_KEY]] {
        if is_forbidden(&other.ask(|outgoing| resp::write(outgoing, question)).await?.0) {
            return Ok(None);
        }
    }
    // An answer behind the push, if there is one.
    interview.ask(|outgoing| resp::write(outgoing, &[b"GET", PROBE_KEY])).await?;
    Ok(Some(interview.pushes() > before))
}
