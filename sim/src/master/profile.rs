//! Which server a master takes itself for: everything in which servers differ, as data.

/// A server and version.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// What `HELLO` calls the server.
    pub server: &'static str,
    /// Its version, as `HELLO` says it.
    pub version: &'static str,
    /// The version of Redis that `INFO` claims.
    pub redis_version: &'static str,
}

/// Redis 7.0, the version that Debian has.
pub const REDIS_7_0: Profile =
    Profile { name: "redis-7.0", server: "redis", version: "7.0.15", redis_version: "7.0.15" };

/// All of them.
pub const PROFILES: [&Profile; 1] = [&REDIS_7_0];

impl Profile {
    /// The profile of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }
}
