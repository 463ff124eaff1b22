//! Configuration as data: from environment variables or, with the feature `serde`, from a file.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use redlock_client::Builder;
//!
//! let redlock = Builder::from_env()?.build()?; // REDLOCK_NODES, REDLOCK_TTL, REDLOCK_FLEET_MAX_TTL, …
//! # Ok(())
//! # }
//! ```

mod duration;
mod nodes;
#[cfg(feature = "serde")]
mod serde;

use core::fmt;
use core::time::Duration;
use std::env;
use std::ffi::OsString;

pub use self::duration::{DurationError, parse_duration};
pub use self::nodes::{NodesError, parse_nodes};
use crate::builder::Builder;
use crate::client::Redlock;
use crate::endpoint::redacted;
use crate::restart_guard::RestartGuard;

/// Settings that an operator chooses. `Builder::from` turns them into a [`Builder`], which has the
/// defaults and takes what only code can give.
///
/// | field, and key of a file | variable | value |
/// | --- | --- | --- |
/// | `nodes` | `REDLOCK_NODES` | URLs; in one string, separated by commas ([`parse_nodes`]) |
/// | `fleet_max_ttl` | `REDLOCK_FLEET_MAX_TTL` | duration |
/// | `ttl` | `REDLOCK_TTL` | duration |
/// | `wait` | `REDLOCK_WAIT` | duration |
/// | `node_timeout` | `REDLOCK_NODE_TIMEOUT` | duration |
/// | `connect_timeout` | `REDLOCK_CONNECT_TIMEOUT` | duration |
/// | `min_validity` | `REDLOCK_MIN_VALIDITY` | duration |
/// | `restart_guard` | `REDLOCK_RESTART_GUARD` | `quarantine`, `durable` or `delayed-restart` |
/// | `canary_key` | `REDLOCK_CANARY_KEY` | text |
///
/// The command `redlock` reads these variables, too, apart from those of `wait`, `connect_timeout`
/// and `min_validity`. A duration is one or more whole numbers with units, as in `500ms`, `30s` or
/// `1h30m` ([`parse_duration`]). An empty variable counts as absent.
///
/// With the feature `serde` the settings can be deserialized from self-describing formats such as
/// TOML, JSON and YAML. Unknown keys are rejected. An error names the key, and never shows a text
/// value: URLs may contain passwords. `Debug` shows URLs without users and passwords.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field has the meaning of the builder's method of that name")]
pub struct Config {
    pub nodes: Vec<String>,
    pub fleet_max_ttl: Option<Duration>,
    pub ttl: Option<Duration>,
    pub wait: Option<Duration>,
    pub node_timeout: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub min_validity: Option<Duration>,
    pub restart_guard: Option<RestartGuard>,
    pub canary_key: Option<String>,
}

/// Reason why the value of an environment variable is invalid. Never contains that value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable `{variable}`: {why}")]
pub struct ConfigError {
    variable: &'static str,
    why: ValueError,
}

impl ConfigError {
    /// Returns the name of the variable.
    #[must_use]
    pub fn variable(&self) -> &'static str {
        self.variable
    }
}

/// Reason why a text is not a valid value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum ValueError {
    #[error(transparent)]
    Duration(#[from] DurationError),
    #[error("expected `quarantine`, `durable` or `delayed-restart`")]
    Guard,
    #[error(transparent)]
    Nodes(#[from] NodesError),
    #[error("expected valid UTF-8")]
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Nodes,
    FleetMaxTtl,
    Ttl,
    Wait,
    NodeTimeout,
    ConnectTimeout,
    MinValidity,
    RestartGuard,
    CanaryKey,
}

/// All fields, with their keys and variables.
const FIELDS: [(Field, &str, &str); 9] = [
    (Field::Nodes, "nodes", "REDLOCK_NODES"),
    (Field::FleetMaxTtl, "fleet_max_ttl", "REDLOCK_FLEET_MAX_TTL"),
    (Field::Ttl, "ttl", "REDLOCK_TTL"),
    (Field::Wait, "wait", "REDLOCK_WAIT"),
    (Field::NodeTimeout, "node_timeout", "REDLOCK_NODE_TIMEOUT"),
    (Field::ConnectTimeout, "connect_timeout", "REDLOCK_CONNECT_TIMEOUT"),
    (Field::MinValidity, "min_validity", "REDLOCK_MIN_VALIDITY"),
    (Field::RestartGuard, "restart_guard", "REDLOCK_RESTART_GUARD"),
    (Field::CanaryKey, "canary_key", "REDLOCK_CANARY_KEY"),
];

/// Returns the variable of the setting `key`.
pub(crate) fn variable_of(key: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(_, name, _)| *name == key).map(|&(_, _, variable)| variable)
}

impl Config {
    /// Reads the settings from the environment variables of this process.
    ///
    /// # Errors
    ///
    /// The first variable whose value is not valid.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| env::var_os(name))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (field, _, variable) in FIELDS {
            let Some(value) = value(variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let text = value.to_str().ok_or(ValueError::Text);
            let set = text.and_then(|text| config.set(field, text));
            set.map_err(|why| ConfigError { variable, why })?;
        }
        Ok(config)
    }

    fn set(&mut self, field: Field, text: &str) -> Result<(), ValueError> {
        let duration = || parse_duration(text).map(Some);
        match field {
            Field::Nodes => self.nodes = parse_nodes(text)?,
            Field::FleetMaxTtl => self.fleet_max_ttl = duration()?,
            Field::Ttl => self.ttl = duration()?,
            Field::Wait => self.wait = duration()?,
            Field::NodeTimeout => self.node_timeout = duration()?,
            Field::ConnectTimeout => self.connect_timeout = duration()?,
            Field::MinValidity => self.min_validity = duration()?,
            Field::RestartGuard => {
                self.restart_guard = Some(RestartGuard::of(text).ok_or(ValueError::Guard)?);
            }
            Field::CanaryKey => self.canary_key = Some(text.into()),
        }
        Ok(())
    }
}

impl Builder {
    /// Configures a client from environment variables, those of [`Config`]. Code can override them:
    /// each later call of a method does.
    ///
    /// The variables are not read again later. If one of them is missing that has no default,
    /// [`Builder::build`] says so.
    ///
    /// # Errors
    ///
    /// The first variable whose value is not valid.
    pub fn from_env() -> Result<Self, ConfigError> {
        Config::from_env().map(Self::from)
    }
}

impl From<Config> for Builder {
    fn from(config: Config) -> Self {
        fn set<T>(builder: Builder, value: Option<T>, set: fn(Builder, T) -> Builder) -> Builder {
            match value {
                Some(value) => set(builder, value),
                None => builder,
            }
        }
        let mut builder = Redlock::builder().nodes(config.nodes);
        builder = set(builder, config.fleet_max_ttl, Self::fleet_max_ttl);
        builder = set(builder, config.ttl, Self::ttl);
        builder = set(builder, config.wait, Self::wait);
        builder = set(builder, config.node_timeout, Self::node_timeout);
        builder = set(builder, config.connect_timeout, Self::connect_timeout);
        builder = set(builder, config.min_validity, Self::min_validity);
        builder = set(builder, config.restart_guard, Self::restart_guard);
        set(builder, config.canary_key, Self::canary_key)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self.nodes.iter().map(|url| redacted(url)).collect();
        formatter
            .debug_struct("Config")
            .field("nodes", &nodes)
            .field("fleet_max_ttl", &self.fleet_max_ttl)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("node_timeout", &self.node_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("min_validity", &self.min_validity)
            .field("restart_guard", &self.restart_guard)
            .field("canary_key", &self.canary_key)
            .finish()
    }
}

#[cfg(test)]
mod tests;
