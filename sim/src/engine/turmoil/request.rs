//! What arrives at a node, read as Redis reads it: flat arrays of bulk strings.

use crate::master::{
    Command, ErrorReply, Introduction, KeyCommand, Reply, SetCondition, SetExpiry,
};

/// The one script that this node understands, written out once more: a client that sends another
/// text, one that does not compare for instance, is answered with an error.
const RELEASE_SCRIPT: &[u8] = b"if redis.call('get',KEYS[1])==ARGV[1] then \
    return redis.call('del',KEYS[1]) else return 0 end";

/// The name of that script: the hexadecimal SHA-1 of its text. This node never forgets it.
const RELEASE_SHA: &[u8] = b"b998f9dfb154cdbea8cda65ad5177aadf0e945a2";

/// The most arguments of a command, and the longest argument.
const ARGUMENTS_MAX: usize = 1_024;
const ARGUMENT_MAX: usize = 64 * 1_024;

/// What no client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Takes the first whole request out of `received`; `None` while there is none.
pub(super) fn take(received: &mut Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Malformed> {
    let mut rest = &received[..];
    let Some(count) = header(&mut rest, b'*', ARGUMENTS_MAX)? else { return Ok(None) };
    let mut arguments = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(length) = header(&mut rest, b'$', ARGUMENT_MAX)? else { return Ok(None) };
        let (Some(argument), Some(after)) = (rest.get(..length), rest.get(length + 2..)) else {
            return Ok(None);
        };
        if rest[length..length + 2] != *b"\r\n" {
            return Err(Malformed);
        }
        arguments.push(argument.to_vec());
        rest = after;
    }
    let taken = received.len() - rest.len();
    received.drain(..taken);
    Ok(Some(arguments))
}

fn header(rest: &mut &[u8], kind: u8, most: usize) -> Result<Option<usize>, Malformed> {
    let Some(&found) = rest.first() else { return Ok(None) };
    if found != kind {
        return Err(Malformed);
    }
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
        return if rest.len() > 16 { Err(Malformed) } else { Ok(None) };
    };
    let number = core::str::from_utf8(&rest[1..end]).map_err(|_| Malformed)?;
    let number: usize = number.parse().map_err(|_| Malformed)?;
    *rest = &rest[end + 2..];
    if number > most { Err(Malformed) } else { Ok(Some(number)) }
}

/// Whether `arguments` belong to the handshake, of which the history is told nothing. This node
/// knows nothing of it either: it speaks version 2 of the protocol.
pub(super) fn is_greeting(arguments: &[Vec<u8>]) -> bool {
    let greetings = ["AUTH", "CLIENT", "HELLO", "SCRIPT", "SELECT"];
    let is = |name: &&str| arguments[0].eq_ignore_ascii_case(name.as_bytes());
    !arguments.is_empty() && greetings.iter().any(is)
}

/// What is asked, as far as this node understands it: scripts are known by their exact text.
pub(super) fn command(arguments: &[Vec<u8>]) -> Option<Command<'_>> {
    let (name, arguments) = arguments.split_first()?;
    let about = |key, command| Some(Command::Key { key, command });
    match (name.to_ascii_uppercase().as_slice(), arguments) {
        (b"INFO", []) => Some(Command::Info),
        (b"EVAL", [script, keys, key, value]) if script == RELEASE_SCRIPT && keys == b"1" => {
            about(key, KeyCommand::CompareAndDelete { value })
        }
        (b"EVALSHA", [sha, keys, key, value]) if sha == RELEASE_SHA && keys == b"1" => {
            about(key, KeyCommand::CompareAndDelete { value })
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
pub(super) fn write(outgoing: &mut Vec<u8>, reply: &Reply) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[u8] =
        b"*6\r\n$3\r\nSET\r\n$3\r\nres\r\n$2\r\n\r\n\r\n$2\r\nNX\r\n$2\r\nPX\r\n$3\r\n100\r\n";

    #[test]
    fn a_request_is_taken_when_it_is_whole() {
        for end in 0..SET.len() {
            let mut received = SET[..end].to_vec();
            assert_eq!(take(&mut received), Ok(None), "{end}");
            assert_eq!(received, SET[..end], "nothing is lost");
        }
        let mut received = [SET, b"*1\r\n"].concat();
        let arguments = take(&mut received).unwrap().unwrap();
        assert_eq!(received, b"*1\r\n");
        let Some(Command::Key { key, command: KeyCommand::Set { value, expiry, .. } }) =
            command(&arguments)
        else {
            panic!("{arguments:?}");
        };
        assert_eq!((key, value, expiry), (&b"res"[..], &b"\r\n"[..], SetExpiry::Px(100)));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bytes in
            [&b"PING\r\n"[..], b"*x\r\n", b"*99999\r\n", b"*1\r\n:1\r\n", b"*1\r\n$1\r\nabc"]
        {
            assert_eq!(take(&mut bytes.to_vec()), Err(Malformed), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn another_script_is_not_understood() {
        let arguments =
            |script: &[u8]| [b"EVAL", script, b"1", b"res", b"token"].map(<[u8]>::to_vec).to_vec();
        assert!(command(&arguments(RELEASE_SCRIPT)).is_some());
        assert!(command(&arguments(b"return redis.call('del',KEYS[1])")).is_none());
    }
}
