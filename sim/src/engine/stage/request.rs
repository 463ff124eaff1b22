//! The scripts of the lock, known by their names, while servers execute none.

use bytes::Bytes;

use crate::master::{Command, KeyCommand};

/// The script that releases.
const RELEASE_SHA: &[u8] = b"b998f9dfb154cdbea8cda65ad5177aadf0e945a2";

/// The script that extends.
const EXTEND_SHA: &[u8] = b"e37e0986f6d8408d85e84fd285e350d479e77b04";

/// What a script of the lock does.
pub(super) fn known_script(request: &[Bytes]) -> Option<Command<'_>> {
    let (name, arguments) = request.split_first()?;
    let (key, command) = match arguments {
        [sha, _, key, value] if name == "EVALSHA" && sha == RELEASE_SHA => {
            (key, KeyCommand::CompareAndDelete { value })
        }
        [sha, _, key, value, ttl_ms] if name == "EVALSHA" && sha == EXTEND_SHA => {
            let ttl_ms = core::str::from_utf8(ttl_ms).ok()?.parse().ok()?;
            (key, KeyCommand::CompareAndExtend { value, ttl_ms })
        }
        _ => return None,
    };
    Some(Command::Key { key, command })
}
