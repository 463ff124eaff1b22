//! Rust versions of those scripts of the production client that no single command of the masters
//! can replace: the engine `event` executes them instead of Lua, for extensions and introductions.

mod canary;

use redis_sim::{ExpireCondition, KeyCommand, NativeKey, Reply};

pub(crate) use self::canary::{SeededCanary, introduce, succession};

/// Extends the key's time to live if it holds `value`, and never shortens it. The reply is 1 if the
/// key holds `value`, else 0.
pub(crate) fn extend(key: &mut NativeKey<'_>, value: &[u8], ttl_ms: i64) -> Reply {
    if key.value() != Some(value) {
        return Reply::Integer(0);
    }
    match key.execute(KeyCommand::Pttl) {
        Reply::Integer(left_ms) if left_ms >= ttl_ms => Reply::Integer(1),
        _ => key.execute(KeyCommand::Pexpire { ms: ttl_ms, condition: ExpireCondition::Always }),
    }
}

#[cfg(test)]
mod tests;
