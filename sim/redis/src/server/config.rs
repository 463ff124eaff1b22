//! Configuration parameters, as `CONFIG SET` and `CONFIG GET` use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Persistence;
use crate::events::Events;
use crate::glob::matches;

/// The parameters of a server by name. A parameter may also have an older name.
#[derive(Clone, Debug)]
pub struct Config {
    /// Shared by the copies of a server until one copy changes a parameter.
    values: Arc<BTreeMap<&'static str, String>>,
    /// Number of replicas required for a write. Cached because every write reads it.
    replicas_wanted: i64,
}

/// Kind of a parameter's values.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// `yes` or `no`.
    Flag,
    /// An integer between two bounds.
    Number(i64, i64),
    /// A number of bytes, with or without a unit.
    Memory,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Snapshot points: pairs of seconds and number of changes.
    Save,
    /// Classes and forms of keyspace events.
    Events,
    /// Any text.
    Text,
    /// Set at the start only.
    Fixed,
}

struct Parameter {
    name: &'static str,
    older: Option<&'static str>,
    kind: Kind,
    default: &'static str,
}

const fn parameter(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, older: None, kind, default }
}

const fn renamed(
    name: &'static str,
    older: &'static str,
    kind: Kind,
    default: &'static str,
) -> Parameter {
    Parameter { name, older: Some(older), kind, default }
}

const INT_MAX: i64 = i32::MAX as i64;

const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// The known parameters: those that clients, their test suites and people use.
const PARAMETERS: &[Parameter] = &[
    parameter("activedefrag", Kind::Flag, "no"),
    parameter("aof-load-truncated", Kind::Flag, "yes"),
    parameter("appenddirname", Kind::Fixed, "appendonlydir"),
    parameter("appendfilename", Kind::Fixed, "appendonly.aof"),
    parameter("appendfsync", Kind::Word(&["everysec", "always", "no"]), "everysec"),
    parameter("appendonly", Kind::Flag, "no"),
    parameter("auto-aof-rewrite-percentage", Kind::Number(0, INT_MAX), "100"),
    parameter("bind", Kind::Text, "* -::*"),
    renamed("busy-reply-threshold", "lua-time-limit", Kind::Number(0, i64::MAX), "5000"),
    parameter("client-query-buffer-limit", Kind::Memory, "1073741824"),
    parameter("cluster-enabled", Kind::Fixed, "no"),
    parameter("databases", Kind::Fixed, "16"),
    parameter("dbfilename", Kind::Text, "dump.rdb"),
    parameter("dir", Kind::Text, "/"),
    parameter("dynamic-hz", Kind::Flag, "yes"),
    parameter("hash-max-listpack-entries", Kind::Number(0, i64::MAX), "512"),
    parameter("hz", Kind::Number(0, INT_MAX), "10"),
    parameter("io-threads", Kind::Fixed, "1"),
    parameter("latency-tracking", Kind::Flag, "yes"),
    parameter("lazyfree-lazy-expire", Kind::Flag, "no"),
    parameter("lazyfree-lazy-user-del", Kind::Flag, "no"),
    parameter("lazyfree-lazy-user-flush", Kind::Flag, "no"),
    parameter("logfile", Kind::Fixed, ""),
    parameter("loglevel", Kind::Word(&["debug", "verbose", "notice", "warning"]), "notice"),
    parameter("maxclients", Kind::Number(1, u32::MAX as i64), "10000"),
    parameter("maxmemory", Kind::Memory, "0"),
    parameter("maxmemory-clients", Kind::Memory, "0"),
    parameter("maxmemory-eviction-tenacity", Kind::Number(0, 100), "10"),
    parameter("maxmemory-policy", Kind::Word(POLICIES), "noeviction"),
    parameter("maxmemory-samples", Kind::Number(1, INT_MAX), "5"),
    renamed("min-replicas-max-lag", "min-slaves-max-lag", Kind::Number(0, INT_MAX), "10"),
    renamed("min-replicas-to-write", "min-slaves-to-write", Kind::Number(0, INT_MAX), "0"),
    parameter("no-appendfsync-on-rewrite", Kind::Flag, "no"),
    parameter("notify-keyspace-events", Kind::Events, ""),
    parameter("port", Kind::Fixed, "6379"),
    parameter("proto-max-bulk-len", Kind::Memory, "536870912"),
    parameter("protected-mode", Kind::Flag, "yes"),
    parameter("rdbcompression", Kind::Flag, "yes"),
    parameter("repl-backlog-size", Kind::Memory, "1048576"),
    parameter("repl-diskless-sync", Kind::Flag, "yes"),
    parameter("repl-diskless-sync-delay", Kind::Number(0, INT_MAX), "5"),
    parameter("repl-timeout", Kind::Number(1, INT_MAX), "60"),
    renamed("replica-priority", "slave-priority", Kind::Number(0, INT_MAX), "100"),
    renamed("replica-read-only", "slave-read-only", Kind::Flag, "yes"),
    renamed("replica-serve-stale-data", "slave-serve-stale-data", Kind::Flag, "yes"),
    renamed("replicaof", "slaveof", Kind::Fixed, ""),
    parameter("requirepass", Kind::Text, ""),
    parameter("save", Kind::Save, ""),
    parameter("slowlog-log-slower-than", Kind::Number(-1, i64::MAX), "10000"),
    parameter("slowlog-max-len", Kind::Number(0, i64::MAX), "128"),
    parameter("stop-writes-on-bgsave-error", Kind::Flag, "yes"),
    parameter("tcp-backlog", Kind::Fixed, "511"),
    parameter("tcp-keepalive", Kind::Number(0, INT_MAX), "300"),
    parameter("tls-auth-clients", Kind::Word(&["yes", "no", "optional"]), "yes"),
    parameter("tls-ca-cert-file", Kind::Text, ""),
    parameter("tls-cert-file", Kind::Text, ""),
    parameter("tls-key-file", Kind::Text, ""),
    parameter("tls-port", Kind::Number(0, u16::MAX as i64), "0"),
    parameter("timeout", Kind::Number(0, INT_MAX), "0"),
    parameter("tracking-table-max-keys", Kind::Number(0, i64::MAX), "1000000"),
    parameter("unixsocket", Kind::Fixed, ""),
];

impl Config {
    /// Returns the configuration of a server with this persistence mode.
    #[must_use]
    pub fn new(persistence: Persistence) -> Self {
        let defaults = PARAMETERS.iter().map(|it| (it.name, it.default.to_owned()));
        let mut values: BTreeMap<_, _> = defaults.collect();
        let mut set = |name, value: &str| drop(values.insert(name, value.to_owned()));
        match persistence {
            Persistence::None => {}
            Persistence::Rdb => set("save", "3600 1 300 100 60 10000"),
            Persistence::Everysec => set("appendonly", "yes"),
            Persistence::No => {
                set("appendonly", "yes");
                set("appendfsync", "no");
            }
            Persistence::Always => {
                set("appendonly", "yes");
                set("appendfsync", "always");
            }
        }
        Self { values: Arc::new(values), replicas_wanted: 0 }
    }

    /// Returns the value of the parameter `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Returns the value of the parameter `name` as a number; 0 if it is not one.
    #[must_use]
    pub fn number(&self, name: &str) -> i64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// Returns true if the parameter `name` is `yes`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == "yes"
    }

    /// Sets a parameter, including those that can only be set at the start.
    ///
    /// # Panics
    ///
    /// If there is no such parameter.
    pub fn insist(&mut self, name: &str, value: impl Into<String>) {
        *Arc::make_mut(&mut self.values).get_mut(name).expect("a parameter") = value.into();
        self.count_replicas();
    }

    /// Returns the number of replicas required for a write.
    #[must_use]
    pub fn replicas_wanted(&self) -> i64 {
        self.replicas_wanted
    }

    fn count_replicas(&mut self) {
        let has_limit = self.number("min-replicas-max-lag") > 0;
        self.replicas_wanted = if has_limit { self.number("min-replicas-to-write") } else { 0 };
    }

    /// Returns the matching names and their values; older names come after the newer ones.
    pub(crate) fn matching(&self, pattern: &[u8]) -> Vec<(&'static str, &str)> {
        let pattern = pattern.to_ascii_lowercase();
        let names = PARAMETERS.iter().flat_map(|it| {
            [Some(it.name), it.older].into_iter().flatten().map(|name| (name, self.get(it.name)))
        });
        names.filter(|(name, _)| matches(&pattern, name.as_bytes())).collect()
    }

    /// Parses `value` for the parameter `name`; returns the parameter's current name and the value
    /// as it is read back.
    ///
    /// # Errors
    ///
    /// `None` if there is no such parameter; otherwise the reason why the value is invalid.
    pub(crate) fn parse(
        name: &[u8],
        value: &[u8],
    ) -> Result<(&'static str, String), Option<String>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let parameter = PARAMETERS.iter().find(|it| is(it.name) || it.older.is_some_and(is));
        let parameter = parameter.ok_or(None)?;
        let value = String::from_utf8_lossy(value).into_owned();
        Ok((parameter.name, parameter.kind.parse(value).map_err(Some)?))
    }

    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        Arc::make_mut(&mut self.values).insert(name, value);
        self.count_replicas();
    }
}

impl Kind {
    fn parse(self, value: String) -> Result<String, String> {
        match self {
            Self::Text => Ok(value),
            Self::Events => {
                let events = Events::parse(&value).map(Events::text);
                let letters = "Ag$lshzxeKEtmdn";
                events.ok_or_else(|| format!("Invalid event class character. Use '{letters}'."))
            }
            Self::Fixed => Err(String::from("can't set immutable config")),
            Self::Flag => {
                let lower = value.to_ascii_lowercase();
                let known = ["yes", "no"].contains(&lower.as_str());
                known.then_some(lower).ok_or_else(|| "argument must be 'yes' or 'no'".into())
            }
            Self::Word(words) => {
                let lower = value.to_ascii_lowercase();
                words.contains(&lower.as_str()).then_some(lower).ok_or_else(|| {
                    let words = words.join(", ");
                    format!("argument(s) must be one of the following: {words}")
                })
            }
            Self::Number(least, most) => {
                let number = value.parse::<i64>();
                let number = number.map_err(|_| "argument couldn't be parsed into an integer")?;
                if (least..=most).contains(&number) {
                    return Ok(number.to_string());
                }
                Err(format!("argument must be between {least} and {most} inclusive"))
            }
            Self::Memory => {
                let bytes = bytes_of(&value).ok_or("argument must be a memory value")?;
                Ok(bytes.to_string())
            }
            Self::Save => {
                let numbers: Vec<&str> = value.split(' ').filter(|it| !it.is_empty()).collect();
                let known = numbers.len().is_multiple_of(2)
                    && numbers.iter().all(|it| it.parse::<u32>().is_ok());
                known.then(|| numbers.join(" ")).ok_or_else(|| "Invalid save parameters".into())
            }
        }
    }
}

/// Parses a number of bytes with a unit: `10mb` uses powers of two, `10m` powers of ten.
fn bytes_of(value: &str) -> Option<u64> {
    let lower = value.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit: u64 = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_units_of_two_kinds() {
        for (value, bytes) in [("0", 0), ("10MB", 10 << 20), ("10m", 10_000_000), ("1k", 1_000)] {
            assert_eq!(bytes_of(value), Some(bytes), "{value}");
        }
        for value in ["", "abc", "1tb", "-1", "99999999999gb"] {
            assert_eq!(bytes_of(value), None, "{value}");
        }
    }

    #[test]
    fn kept_settings_are_shown() {
        let config = Config::new(Persistence::Always);
        assert_eq!((config.get("appendonly"), config.get("appendfsync")), ("yes", "always"));
        assert_eq!(Config::new(Persistence::None).get("appendonly"), "no");
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for it in PARAMETERS.iter().filter(|it| !matches!(it.kind, Kind::Fixed)) {
            assert_eq!(it.kind.parse(it.default.into()).as_deref(), Ok(it.default), "{}", it.name);
        }
    }
}
