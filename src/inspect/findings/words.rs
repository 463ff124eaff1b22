//! Texts of findings about errors and replicas of a server, with the remedies.

use crate::inspect::probe::is_of_key;
use crate::restart_guard::RestartGuard;

/// Returns the text about a node without a report.
pub(super) fn unreachable(name: &str, error: &str) -> String {
    if error.starts_with("NOAUTH") {
        format!(
            "{name} refused the connection: it requires a password. Put user and password into the URL."
        )
    } else if error.starts_with("WRONGPASS") {
        format!("{name} refused the connection: {}. Correct user and password.", bare(error))
    } else if is_of_server(error) {
        format!("{name} refused the connection: {}", with_remedy(error))
    } else {
        format!(
            "{name} cannot be reached: {}. Check the node, the network and the URL.",
            bare(error)
        )
    }
}

/// Returns the text about a master with `count` replicas.
pub(super) fn replicas(name: &str, count: u64, guard: RestartGuard) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let has = format!("{name} has {count} connected replica{plural}");
    let remedy = "Turn automatic failover off, or choose the restart guard quarantine.";
    match guard {
        RestartGuard::Durable => format!(
            "{has}, and is promised to be durable: a replica that takes over may lack \
             acknowledged writes, and its votes count at once. {remedy}"
        ),
        RestartGuard::DelayedRestart => format!(
            "{has}, and votes as soon as it is up: a replica may lack keys, and must not take \
             over sooner than a quarantine after its master died. {remedy}"
        ),
        RestartGuard::Quarantine => {
            format!("{has}: if one takes over, this node cannot vote until a quarantine is over.")
        }
    }
}

/// Returns the text about a node that has no canary.
pub(super) fn no_canary(name: &str, error: &str) -> String {
    let effect = "keys that are lost without a restart, by FLUSHALL or a failover, go unnoticed";
    if is_unable(error) {
        let why = bare(error);
        return format!("{name} cannot write a canary ({why}): {effect}. {}", remedy(error));
    }
    format!(
        "{name} does not let this user keep a canary ({error}): {effect}. Grant the user the rights of \
         docs/operations.md."
    )
}

/// Returns the text about a node that refused a command of the test of its pushes.
pub(super) fn not_tested(name: &str, error: &str) -> String {
    if is_of_key(error) {
        return format!(
            "{name} was not tested for pushes, full memory and a disk that cannot be written, because this user \
             may not use the key redlock-client:inspect. Grant the user the rights of docs/operations.md."
        );
    }
    format!("{name} was not tested for pushes: {}", with_remedy(error))
}

/// Returns the error of a server, and the remedy.
pub(super) fn with_remedy(error: &str) -> String {
    format!("{}. {}", bare(error), remedy(error))
}

fn remedy(error: &str) -> &'static str {
    match error.split(' ').next() {
        Some("MISCONF") => "Mend the disk that the server cannot write.",
        Some("NOPERM") => GRANT,
        Some("NOREPLICAS") => {
            "Connect the replicas that the server waits for, or set min-replicas-to-write 0."
        }
        Some("OOM") => "Give the server more memory (maxmemory), or use it for locks alone.",
        _ if is_of_script(error) => GRANT,
        _ => "Remove the cause of this error.",
    }
}

/// Returns true if a script may not call one of its commands, as of version 7.2 on, and before.
fn is_of_script(error: &str) -> bool {
    error.contains("ACL failure in script") || error.contains("can't run this command")
}

const GRANT: &str = "Grant the user the rights of docs/operations.md.";

/// Returns true if the server cannot write, whoever asks.
fn is_unable(error: &str) -> bool {
    ["OOM", "MISCONF", "NOREPLICAS"].iter().any(|it| error.starts_with(it))
}

/// Returns true if the text begins like an error of a server, with a word in capitals.
fn is_of_server(error: &str) -> bool {
    let word = error.split(' ').next().unwrap_or_default();
    word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Returns the text without a period at its end.
fn bare(error: &str) -> &str {
    error.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_is_not_called_unreachable() {
        let text = unreachable("a", "NOAUTH HELLO must be called with the client already …");
        assert!(text.starts_with("a refused the connection: it requires a password."), "{text}");
        let text = unreachable("a", "ERR max number of clients reached");
        assert!(text.starts_with("a refused the connection: ERR max number"), "{text}");
        let text = unreachable("a", "Connection refused (os error 111)");
        assert!(text.starts_with("a cannot be reached: Connection refused"), "{text}");
    }

    #[test]
    fn the_text_about_replicas_fits_the_promise() {
        let text = |guard| replicas("a", 2, guard);
        for guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
            let text = text(guard);
            assert!(text.ends_with("or choose the restart guard quarantine."), "{text}");
        }
        assert_eq!(
            text(RestartGuard::Quarantine),
            "a has 2 connected replicas: if one takes over, this node cannot vote until a \
             quarantine is over."
        );
        let one = replicas("a", 1, RestartGuard::Durable);
        assert!(
            one.starts_with("a has 1 connected replica, and is promised to be durable"),
            "{one}"
        );
    }

    #[test]
    fn the_remedy_fits_the_error() {
        let full = "OOM command not allowed when used memory > 'maxmemory'.";
        for text in [no_canary("a", full), not_tested("a", full), with_remedy(full)] {
            assert!(
                text.ends_with(
                    " Give the server more memory (maxmemory), or use it for locks alone."
                )
            );
            assert!(!text.contains(".."), "{text}");
        }
        for text in
            [no_canary("a", "NOPERM x"), not_tested("a", "NOPERM x"), with_remedy("NOPERM x")]
        {
            assert!(text.ends_with(" Grant the user the rights of docs/operations.md."), "{text}");
        }
        for in_script in [
            "ERR ACL failure in script: User x has no permissions to run the 'get' command",
            "ERR The user executing the script can't run this command or subcommand",
        ] {
            assert!(with_remedy(in_script).ends_with(GRANT));
        }
    }

    #[test]
    fn a_server_without_its_replicas_is_unable_whoever_asks() {
        let error = "NOREPLICAS Not enough good replicas to write.";
        for text in [no_canary("a", error), not_tested("a", error), with_remedy(error)] {
            assert!(text.ends_with(" or set min-replicas-to-write 0."), "{text}");
            assert!(!text.contains("this user") && !text.contains(".."), "{text}");
        }
    }

    #[test]
    fn a_missing_right_to_a_command_is_no_missing_right_to_the_key() {
        let of_command = "NOPERM this user has no permissions to run the 'del' command";
        assert!(not_tested("a", of_command).contains("run the 'del' command"));
        for of_key in [
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            "NOPERM No permissions to access a key",
        ] {
            assert!(not_tested("a", of_key).contains("may not use the key"));
        }
    }
}
