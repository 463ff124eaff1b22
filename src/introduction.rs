//! Parses a node's introduction: its reply to `INFO`, followed by the content of its canary.

use core::time::Duration;

use redlock_protocol::{Canary, Digest, Introduction, RunId};

use crate::resp::{Form, Forms};

/// First versions with `DELIFEQ` (Valkey), `DELEX` (Redis), and `SET … NX … GET` (both).
const DELIFEQ_SINCE: Version = (9, 0);
const DELEX_SINCE: Version = (8, 4);
const NX_GET_SINCE: Version = (7, 0);

/// Version fields of `INFO` that do not reveal another server.
const OWN_VERSIONS: [&[u8]; 3] = [b"redis_version", b"valkey_version", b"gcc_version"];

/// First two numbers of a version.
type Version = (u32, u32);

/// Returns the best forms for the server's version. The server may still not accept them.
pub(crate) fn preferred_forms(info: &[u8]) -> Forms {
    // Valkey also reports the version of Redis that it is compatible with.
    let (valkey, redis) = (version(info, b"valkey_version"), version(info, b"redis_version"));
    let compare = match (valkey, redis) {
        (Some(version), _) if version >= DELIFEQ_SINCE => Form::Delifeq,
        (None, Some(version)) if version >= DELEX_SINCE => Form::Delex,
        _ => Form::EvalSha,
    };
    let is_recent = valkey.or(redis).is_some_and(|version| version >= NX_GET_SINCE);
    let set = if is_recent && !is_imitation(info) { Form::SetNxGet } else { Form::SetNx };
    Forms { compare, set, ..Forms::ANYWHERE }
}

/// Returns true if the server is not Redis or Valkey but reports the version of Redis that it
/// imitates. [`Form::SetNxGet`] reverses the meaning of a null. A server that accepts this command
/// but ignores its last word would seem to grant a lock that is held. Unknown servers are therefore
/// not sent it.
fn is_imitation(info: &[u8]) -> bool {
    let names = info.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some(&line[..colon])
    });
    let mut versions = names.filter(|name| name.ends_with(b"_version"));
    versions.any(|name| !OWN_VERSIONS.contains(&name))
}

fn version(info: &[u8], name: &[u8]) -> Option<Version> {
    let mut numbers = core::str::from_utf8(field(info, name)?).ok()?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// Parses the relevant fields of `info`.
///
/// # Errors
///
/// The reason why there is no introduction: a field is missing or invalid, or the canary could not
/// be written for now.
pub(crate) fn parse(info: &[u8]) -> Result<Introduction, &[u8]> {
    let refused = field(info, b"canary_refused");
    if let Some(why) = refused.filter(|&why| !is_refused_for_good(why)) {
        return Err(why);
    }
    fields(info).ok_or(b"INFO without run_id, uptime_in_seconds and role")
}

fn fields(info: &[u8]) -> Option<Introduction> {
    let run_id = RunId(hex(field(info, b"run_id")?)?);
    let uptime = uptime(info)?.unwrap_or_default();
    let is_master = match field(info, b"role")? {
        b"master" => true,
        b"slave" => false,
        _ => return None,
    };
    let second = field(info, b"second_repl_offset").filter(|&offset| offset != b"-1");
    let succession = second.and(field(info, b"master_replid")).map(Digest::of);
    let canary = match field(info, b"canary") {
        Some(canary) => Some(parse_canary(canary)?),
        None => None,
    };
    Some(Introduction { run_id, uptime, is_master, succession, canary })
}

/// Returns the uptime of the server's process in `info`: `Some(None)` if the server's clock reads an
/// earlier time than at the start of the process, because it was set back.
pub(crate) fn uptime(info: &[u8]) -> Option<Option<Duration>> {
    let digits = core::str::from_utf8(field(info, b"uptime_in_seconds")?).ok()?;
    let uptime_s = digits.parse::<i64>().ok()?;
    Some(u64::try_from(uptime_s).ok().map(Duration::from_secs))
}

/// Returns true if no later request for the canary can succeed: the user has no permission, or the
/// key belongs to somebody else. A full disk or full memory, in contrast, may be temporary.
fn is_refused_for_good(why: &[u8]) -> bool {
    let is_for_good = |part: &[u8]| why.windows(part.len()).any(|it| it == part);
    [&b"NOPERM"[..], b"WRONGTYPE", b"somebody else"].iter().any(|part| is_for_good(part))
}

fn parse_canary(text: &[u8]) -> Option<Canary> {
    let mut words = text.split(|&byte| byte == b' ');
    let (history, memory) = (Digest::of(words.next()?), Digest::of(words.next()?));
    let age = Duration::from_micros(number(words.next()?)?);
    words.next().is_none().then_some(Canary { memory, history, age })
}

fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the value of the first line `name:value`.
pub(crate) fn field<'a>(info: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    info.split(|&byte| byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(b":")?;
        Some(value.strip_suffix(b"\r").unwrap_or(value))
    })
}

fn hex(text: &[u8]) -> Option<[u8; 20]> {
    let digits: &[u8; 40] = text.try_into().ok()?;
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.2.4\r\n\
        run_id:00112233445566778899aabbccddeeff01234567\r\nuptime_in_seconds:86400\r\n\
        \r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";

    #[test]
    fn the_three_fields_are_found() {
        let introduction = parse(INFO.as_bytes()).unwrap();
        assert_eq!(introduction.uptime, Duration::from_secs(86_400));
        assert!(introduction.is_master);
        assert_eq!(introduction.run_id.0[..3], [0x00, 0x11, 0x22]);
        assert_eq!(introduction.run_id.0[19], 0x67);
        let replica = INFO.replace("role:master", "role:slave");
        assert!(!parse(replica.as_bytes()).unwrap().is_master);
    }

    #[test]
    fn a_server_that_took_over_says_whose_history_it_continues() {
        let with = |second: &str| {
            let lines = format!("master_replid:8371\r\nsecond_repl_offset:{second}\r\n");
            parse(format!("{INFO}{lines}").as_bytes()).unwrap().succession
        };
        assert_eq!(parse(INFO.as_bytes()).unwrap().succession, None, "older than Redis 4");
        assert_eq!(with("-1"), None);
        assert_eq!(with("1523"), Some(Digest::of(b"8371")));
    }

    #[test]
    fn a_missing_or_senseless_field_is_no_introduction() {
        for (from, to) in [
            ("run_id", "run"),
            ("0011", "00"),
            ("0011", "zz11"),
            ("uptime_in_seconds:86400", "uptime_in_seconds:"),
            ("uptime_in_seconds:86400", "uptime_in_seconds:1s"),
            ("role:master", "role:sentinel"),
            ("role:master", "rule:master"),
        ] {
            let info = INFO.replacen(from, to, 1);
            assert!(parse(info.as_bytes()).is_err(), "{from} -> {to}");
        }
        assert!(parse(b"").is_err());
    }

    #[test]
    fn a_server_whose_clock_was_set_back_has_just_started() {
        let info = INFO.replace("uptime_in_seconds:86400", "uptime_in_seconds:-3600");
        assert_eq!(parse(info.as_bytes()).unwrap().uptime, Duration::ZERO);
    }

    #[test]
    fn a_canary_has_a_history_a_name_and_an_age() {
        let read = |line: &str| {
            parse(format!("{INFO}{line}\r\n").as_bytes()).map(|it| it.canary).map_err(drop)
        };
        let (history, memory) = (Digest::of(b"abc"), Digest::of(b"def-7"));
        let age = Duration::from_millis(1_500);
        assert_eq!(read("canary:abc def-7 1500000"), Ok(Some(Canary { memory, history, age })));
        assert_eq!(read(""), Ok(None));
        for senseless in ["", "abc", "abc def-7", "abc def-7 -1", "abc def-7 1 2"] {
            assert!(read(&format!("canary:{senseless}")).is_err(), "{senseless}");
        }
    }

    #[test]
    fn canary_refused_for_good_is_skipped_refused_for_now_is_not() {
        let read = |why: &str| parse(format!("{INFO}canary_refused:{why}\r\n").as_bytes()).ok();
        for why in ["NOPERM this user", "ERR Error running script: -NOPERM", "WRONGTYPE Operation"]
        {
            assert_eq!(read(why).unwrap().canary, None, "{why}");
        }
        for why in ["OOM command not allowed", "MISCONF Redis is configured", ""] {
            assert_eq!(read(why), None, "{why}");
        }
    }

    #[test]
    fn native_commands_are_used_from_the_version_on_that_has_them() {
        for (info, form) in [
            ("redis_version:8.4.0\r\n", Form::Delex),
            ("redis_version:8.10.1\r\n", Form::Delex),
            ("redis_version:9.0-rc1\r\n", Form::EvalSha),
            ("redis_version:8.3.9\r\n", Form::EvalSha),
            ("redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n", Form::Delifeq),
            ("redis_version:7.2.4\r\nvalkey_version:8.1.3\r\n", Form::EvalSha),
            ("redis_version:9.0.0\r\nvalkey_version:8.1.3\r\n", Form::EvalSha),
            ("redis_version:x\r\n", Form::EvalSha),
            ("", Form::EvalSha),
        ] {
            assert_eq!(preferred_forms(info.as_bytes()).compare, form, "{info}");
        }
    }

    #[test]
    fn only_known_servers_get_set_with_get() {
        for (info, form) in [
            ("redis_version:7.0.0\r\ngcc_version:12.2.0\r\n", Form::SetNxGet),
            ("redis_version:8.4.0\r\n", Form::SetNxGet),
            ("redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n", Form::SetNxGet),
            ("redis_version:6.2.14\r\n", Form::SetNx),
            ("redis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\n", Form::SetNx),
            ("redis_version:7.2.5\r\ngarnet_version:1.0.50\r\n", Form::SetNx),
            ("redis_version:x\r\n", Form::SetNx),
            ("", Form::SetNx),
        ] {
            assert_eq!(preferred_forms(info.as_bytes()).set, form, "{info}");
        }
    }
}
