//! The key under which clients keep the lock.

use bytes::Bytes;
use redis_sim::server::Touched;
use redis_sim::{Change, Content};

use crate::serve::meaning;

/// A number without a TTL is a counter's if it has fewer digits: a time in seconds has more.
const DIGITS_OF_A_TIME: usize = 10;

/// The lock's key: at first every key that its name fits. Then it is the first of these keys that a
/// client sets, in the database in which it sets it. A counter, such as that of fencing tokens, is
/// passed over: a number without a TTL, under another name than the lock's own.
#[derive(Clone, Debug, Default)]
pub(super) struct LockKey(Option<(Bytes, u8)>);

impl LockKey {
    /// Returns true once the lock's key is known.
    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if the lock's key is known and has this name.
    pub(super) fn has_name(&self, key: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|(name, _)| name == key)
    }

    /// Returns true if requests about `key` are requests about the lock on `resource`.
    pub(super) fn is_named(&self, key: &[u8], resource: &str) -> bool {
        match &self.0 {
            Some((name, _)) => name == key,
            None => meaning::is_key(key, resource.as_bytes()),
        }
    }

    /// Returns true if `key` in `database` is the key of the lock on `resource`.
    pub(super) fn is(&self, database: u8, key: &[u8], resource: &str) -> bool {
        self.0.as_ref().is_none_or(|it| it.1 == database) && self.is_named(key, resource)
    }

    /// Notes what a request did to a key. Returns true if this key is the lock's, which was not known
    /// before.
    pub(super) fn learn(&mut self, touched: &Touched, resource: &str) -> bool {
        let Touched { database, key, executed, stored } = touched;
        let effect = executed.effect;
        let expires = effect.expires_wall_ms.is_some();
        let shows = match effect.change {
            Change::Set => {
                // Under another name, these are no lock but wake or queue those who wait for it.
                let is_other = stored.as_ref().is_some_and(|it| match it {
                    Content::String(value) => is_small_number(value),
                    Content::Hash(_) => false,
                    Content::List(_) | Content::SortedSet(_) => true,
                });
                expires || !is_other || **key == *resource.as_bytes()
            }
            Change::Retimed => expires,
            Change::Deleted | Change::Nothing => false,
        };
        let is_new = shows && !self.is_known() && meaning::is_key(key, resource.as_bytes());
        if is_new {
            self.0 = Some((Bytes::copy_from_slice(key), *database));
        }
        is_new
    }
}

fn is_small_number(value: &[u8]) -> bool {
    value.len() < DIGITS_OF_A_TIME && value.iter().all(|it| it.is_ascii_digit() || *it == b'-')
}

#[cfg(test)]
mod tests {
    use redis_sim::{Effect, Executed, Reply, SmallBytes};

    use super::*;

    fn set(database: u8, key: &str, value: &str, expires_wall_ms: Option<u64>) -> Touched {
        let effect = Effect { change: Change::Set, expires_wall_ms, ..Effect::default() };
        let executed = Executed { reply: Reply::Ok, expired: None, effect, ended: None };
        let [key, value] = [key, value].map(|it| SmallBytes::new(it.as_bytes()));
        Touched { database, key, executed, stored: Some(value.into()) }
    }

    #[test]
    fn the_key_that_is_set_first_is_the_locks() {
        let mut key = LockKey::default();
        assert!(key.is(0, b"lock:res", "res") && key.is(7, b"fence:res", "res"));
        assert!(key.learn(&set(7, "lock:res", "token", None), "res"));
        assert!(!key.learn(&set(7, "fence:res", "token", None), "res"));
        assert!(key.is(7, b"lock:res", "res") && !key.is(7, b"fence:res", "res"));
        assert!(!key.is(0, b"lock:res", "res"), "it is in the database in which it was set");
    }

    #[test]
    fn a_list_of_wake_ups_is_not_the_locks_key() {
        let list = Content::List(std::sync::Arc::new([SmallBytes::new(b"1")].into()));
        let hash = Content::Hash(std::sync::Arc::default());
        for (name, stored, is_lock) in
            [("lock:res", &hash, true), ("signal:res", &list, false), ("res", &list, true)]
        {
            let touched = Touched { stored: Some(stored.clone()), ..set(0, name, "", None) };
            assert_eq!(LockKey::default().learn(&touched, "res"), is_lock, "{name}");
        }
    }

    #[test]
    fn a_number_without_a_ttl_is_a_counter() {
        for (name, value, expires_wall_ms, is_lock) in [
            ("fence:res", "17", None, false),
            ("fence:res", "-1", None, false),
            ("lock:res", "1", Some(100), true),
            ("res", "1", None, true),
            ("lock:res", "1700000000", None, true),
            ("other", "token", Some(100), false),
        ] {
            let touched = set(0, name, value, expires_wall_ms);
            assert_eq!(LockKey::default().learn(&touched, "res"), is_lock, "{name} {value}");
        }
    }
}
