//! What arrives at a node, read as Redis reads it: flat arrays of bulk strings.

use bytes::Bytes;

use crate::master::{
    Command, ErrorReply, Introduction, KeyCommand, Reply, SetCondition, SetExpiry,
};

/// The one script that this node understands, written out once more: a client that sends another
/// text, one that does not compare for instance, is answered with an error.
const RELEASE_SCRIPT: &[u8] = b"if redis.call('get',KEYS[1])==ARGV[1] then \
    return redis.call('del',KEYS[1]) else return 0 end";

/// The name of that script: the hexadecimal SHA-1 of its text. This node never forgets it.
const RELEASE_SHA: &[u8] = b"b998f9dfb154cdbea8cda65ad5177aadf0e945a2";

/// The name of the script that extends.
const EXTEND_SHA: &[u8] = b"e37e0986f6d8408d85e84fd285e350d479e77b04";

/// What is asked, as far as this node understands it: scripts are known by their exact text.
pub(super) fn command(arguments: &[Bytes]) -> Option<Command<'_>> {
    let (name, arguments) = arguments.split_first()?;
    let about = |key, command| Some(Command::Key { key, command });
    match (name.to_ascii_uppercase().as_slice(), arguments) {
        (b"INFO", []) => Some(Command::Info),
        (b"EVAL", [script, keys, key, value]) if script == RELEASE_SCRIPT && *keys == b"1"[..] => {
            about(key, KeyCommand::CompareAndDelete { value })
        }
        (b"EVALSHA", [sha, keys, key, value]) if sha == RELEASE_SHA && *keys == b"1"[..] => {
            about(key, KeyCommand::CompareAndDelete { value })
        }
        (b"EVALSHA", [sha, keys, key, value, ttl_ms]) if sha == EXTEND_SHA && *keys == b"1"[..] => {
            let ttl_ms = core::str::from_utf8(ttl_ms).ok()?.parse().ok()?;
            about(key, KeyCommand::CompareAndExtend { value, ttl_ms })
        }
        (b"SET", [key, value, ifeq, _, px, ttl_ms])
            if ifeq.eq_ignore_ascii_case(b"IFEQ") && px.eq_ignore_ascii_case(b"PX") =>
        {
            let ttl_ms = core::str::from_utf8(ttl_ms).ok()?.parse().ok()?;
            about(key, KeyCommand::CompareAndRetime { value, ttl_ms })
        }
        (b"SET", [key, value, nx, px, ttl_ms])
            if nx.eq_ignore_ascii_case(b"NX") && px.eq_ignore_ascii_case(b"PX") =>
        {
            let ttl_ms = core::str::from_utf8(ttl_ms).ok()?.parse().ok()?;
            let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(ttl_ms));
            about(key, KeyCommand::Set { value, condition, expiry, get: false })
        }
        _ => None,
    }
}

/// Appends the reply as it is sent.
pub(super) fn encode(reply: &Reply, outgoing: &mut Vec<u8>) {
    match reply {
        Reply::Bulk(value) => bulk(outgoing, value),
        Reply::Error(error) => {
            outgoing.extend(format!("-{}\r\n", ErrorReply::text(*error)).bytes())
        }
        Reply::Integer(number) => outgoing.extend(format!(":{number}\r\n").bytes()),
        Reply::Introduction(introduction) => bulk(outgoing, info(introduction).as_bytes()),
        Reply::Nil => outgoing.extend(b"$-1\r\n"),
        Reply::Ok => outgoing.extend(b"+OK\r\n"),
    }
}

fn bulk(outgoing: &mut Vec<u8>, value: &[u8]) {
    outgoing.extend(format!("${}\r\n", value.len()).bytes());
    outgoing.extend_from_slice(value);
    outgoing.extend(b"\r\n");
}

fn info(introduction: &Introduction) -> String {
    let Introduction { run_id, uptime_s, is_master } = introduction;
    let run_id: String = run_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let uptime_s = (*uptime_s).max(0);
    let role = if *is_master { "master" } else { "slave" };
    format!(
        "# Server\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime_s}\r\n\
         \r\n# Replication\r\nrole:{role}\r\n"
    )
}

