//! Settings from the command line, the environment and a file, in this order of precedence.

mod file;
mod tls;

use core::fmt::Display;
use core::time::Duration;
use std::collections::BTreeMap;

#[cfg(feature = "tls")]
use redlock_client::TlsError;
use redlock_client::config::parse_nodes;
use redlock_client::{BuildError, Builder, OptionError, Redlock};

use self::file::File;
pub(crate) use self::tls::TlsFiles;
use crate::arguments::Nodes;
use crate::exit::Stop;
use crate::guard::Guard;

/// TTL if none is given, unless the fleet's longest TTL is shorter.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// Settings of one call.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    nodes: Vec<String>,
    fleet_max_ttl: Option<Duration>,
    ttl: Option<Duration>,
    node_timeout: Option<Duration>,
    restart_guard: Option<Guard>,
    canary_key: Option<String>,
    tls: TlsFiles,
    /// Places in the file of the values that come from it, by their keys.
    places: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the file, if one is named, and lets `arguments` override it.
    pub(crate) fn read(arguments: &Nodes, ttl: Option<Duration>) -> Result<Self, Stop> {
        let file = match &arguments.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        Self::merge(arguments, ttl, file)
    }

    fn merge(arguments: &Nodes, ttl: Option<Duration>, file: File) -> Result<Self, Stop> {
        // An empty variable names no node.
        let lists =
            arguments.nodes.iter().map(|list| parse_nodes(list)).collect::<Result<Vec<_>, _>>();
        let lists = lists.map_err(|error| Stop::failed(by_option("nodes", &error)))?;
        let mut nodes = lists.concat();
        let mut places = file.places;
        for (key, is_overridden) in [
            ("nodes", !nodes.is_empty()),
            ("fleet_max_ttl", arguments.fleet_max_ttl.is_some()),
            ("ttl", ttl.is_some()),
            ("node_timeout", arguments.node_timeout.is_some()),
            ("canary_key", arguments.canary_key.is_some()),
            ("tls_ca", arguments.tls.ca.is_some()),
            ("tls_cert", arguments.tls.cert.is_some()),
            ("tls_key", arguments.tls.key.is_some()),
        ] {
            places.retain(|it, _| !is_overridden || it != key);
        }
        if nodes.is_empty() {
            nodes = file.nodes;
        }
        if nodes.is_empty() {
            return Err(Stop::failed(NO_NODES));
        }
        Ok(Self {
            places,
            nodes,
            fleet_max_ttl: arguments.fleet_max_ttl.or(file.fleet_max_ttl),
            ttl: ttl.or(file.ttl),
            node_timeout: arguments.node_timeout.or(file.node_timeout),
            restart_guard: arguments.restart_guard.or(file.restart_guard),
            canary_key: arguments.canary_key.clone().or(file.canary_key),
            tls: arguments.tls.clone().or(file.tls),
        })
    }

    /// Returns a client that may acquire locks, and its TTL.
    pub(crate) fn client(&self) -> Result<(Redlock, Duration), Stop> {
        let longest = self.fleet_max_ttl.ok_or_else(|| Stop::failed(NO_FLEET_MAX_TTL))?;
        let ttl = self.ttl.unwrap_or(DEFAULT_TTL.min(longest));
        Ok((self.build(ttl, longest)?, ttl))
    }

    /// Returns a client that acquires no lock. It reads keys: TTLs do not matter to it.
    pub(crate) fn reader(&self) -> Result<Redlock, Stop> {
        let longest = self.fleet_max_ttl.unwrap_or(DEFAULT_TTL);
        self.build(longest, longest)
    }

    fn build(&self, ttl: Duration, fleet_max_ttl: Duration) -> Result<Redlock, Stop> {
        let builder = self.tls.configure(self.builder(ttl, fleet_max_ttl));
        let builder = builder.map_err(|(key, text)| Stop::failed(self.located(key, &text)))?;
        builder.build().map_err(|error| match key_of(&error) {
            Some(key) => Stop::failed(self.located(key, &error)),
            None => Stop::failed(error),
        })
    }

    /// Returns the error with the source of the value of `key`.
    fn located(&self, key: &str, error: &dyn Display) -> String {
        match self.places.get(key) {
            Some(place) => format!("{place}: {error}"),
            None => by_option(key, error),
        }
    }

    fn builder(&self, ttl: Duration, fleet_max_ttl: Duration) -> Builder {
        let mut builder =
            Redlock::builder().nodes(&self.nodes).ttl(ttl).fleet_max_ttl(fleet_max_ttl);
        if let Some(timeout) = self.node_timeout {
            builder = builder.node_timeout(timeout);
        }
        if let Some(guard) = self.restart_guard {
            builder = builder.restart_guard(guard.into());
        }
        match &self.canary_key {
            Some(key) => builder.canary_key(key),
            None => builder,
        }
    }
}

/// Returns the error with the option and the variable of `key`.
fn by_option(key: &str, error: &dyn Display) -> String {
    let (option, variable) = (key.replace('_', "-"), key.to_uppercase());
    format!("{error} (`--{option}` or REDLOCK_{variable})")
}

/// Returns the key of the setting that is at fault; `None` if it is none of a single setting.
fn key_of(error: &BuildError) -> Option<&'static str> {
    Some(match error {
        BuildError::DuplicateNode { .. }
        | BuildError::Endpoint { .. }
        | BuildError::TooManyNodes(_) => "nodes",
        BuildError::Option(OptionError::CanaryIsProbe | OptionError::CanaryKey { .. }) => {
            "canary_key"
        }
        BuildError::Option(OptionError::FleetMaxTtl { .. }) => "fleet_max_ttl",
        BuildError::Option(OptionError::NodeTimeout { .. }) => "node_timeout",
        BuildError::Option(OptionError::Ttl { .. }) => "ttl",
        #[cfg(feature = "tls")]
        BuildError::Tls(TlsError::ClientCertificate(_)) => "tls_cert",
        #[cfg(feature = "tls")]
        BuildError::Tls(TlsError::ClientKey(_)) => "tls_key",
        #[cfg(feature = "tls")]
        BuildError::Tls(TlsError::Root(_)) => "tls_ca",
        _ => return None,
    })
}

const NO_NODES: &str = "\
no node is named: use `--nodes URL,…`, the variable REDLOCK_NODES, or `nodes` in the file of `--config`";

const NO_FLEET_MAX_TTL: &str = "\
the longest TTL that any client of these nodes uses, in any service, is required: use \
`--fleet-max-ttl`, the variable REDLOCK_FLEET_MAX_TTL, or `fleet_max_ttl` in the file of `--config`
  = help: only you know the other clients; if all of them are `redlock run` it is the longest `--ttl`";

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn nodes(urls: &[&str]) -> Nodes {
        Nodes { nodes: urls.iter().copied().map(String::from).collect(), ..Nodes::default() }
    }

    fn file() -> File {
        File {
            nodes: vec![String::from("redis://file")],
            fleet_max_ttl: Some(20 * SECOND),
            ttl: Some(5 * SECOND),
            ..File::default()
        }
    }

    #[test]
    fn arguments_override_the_file() {
        let settings = Settings::merge(&nodes(&["redis://flag"]), Some(SECOND), file()).unwrap();
        assert_eq!(settings.nodes, ["redis://flag"]);
        assert_eq!(settings.client().unwrap().1, SECOND);
        let settings = Settings::merge(&nodes(&[""]), None, file()).unwrap();
        assert_eq!(settings.nodes, ["redis://file"]);
        assert_eq!(settings.client().unwrap().1, 5 * SECOND);
    }

    #[test]
    fn the_ttl_follows_the_fleet() {
        let ttl = |longest| {
            let arguments = Nodes { fleet_max_ttl: Some(longest), ..nodes(&["redis://a"]) };
            let settings = Settings::merge(&arguments, None, File::default()).unwrap();
            settings.client().unwrap().1
        };
        assert_eq!(ttl(300 * SECOND), DEFAULT_TTL);
        assert_eq!(ttl(7 * SECOND), 7 * SECOND);
    }

    #[test]
    fn settings_without_a_default_are_asked_for() {
        let missing = Settings::merge(&nodes(&[]), None, File::default()).unwrap_err();
        assert!(missing.message.contains("REDLOCK_NODES"), "{missing}");
        let settings = Settings::merge(&nodes(&["redis://a"]), None, File::default()).unwrap();
        let missing = settings.client().unwrap_err();
        assert!(missing.message.contains("--fleet-max-ttl"), "{missing}");
        assert!(settings.reader().is_ok(), "it reads keys and acquires nothing");
    }

    #[test]
    fn an_invalid_value_is_named_by_its_source() {
        let mut file = File { ttl: Some(50 * SECOND), ..file() };
        file.places.insert(String::from("ttl"), String::from("a.toml:3:7"));
        let message = |arguments: &Nodes, ttl, file| {
            Settings::merge(arguments, ttl, file).unwrap().client().unwrap_err().message
        };
        let of_file = message(&nodes(&[]), None, file);
        assert!(
            of_file.starts_with("a.toml:3:7: a TTL of 50s: longer than fleet_max_ttl"),
            "{of_file}"
        );
        let of_option = message(&nodes(&[]), Some(60 * SECOND), self::file());
        assert!(of_option.ends_with("(`--ttl` or REDLOCK_TTL)"), "{of_option}");
        let arguments = Nodes { node_timeout: Some(3 * SECOND), ..nodes(&[]) };
        let of_option = message(&arguments, None, self::file());
        assert!(of_option.ends_with("(`--node-timeout` or REDLOCK_NODE_TIMEOUT)"), "{of_option}");
    }

    #[test]
    fn spaces_around_a_url_are_dropped() {
        let arguments = nodes(&["redis://a", " redis://b", " "]);
        let settings = Settings::merge(&arguments, None, File::default()).unwrap();
        assert_eq!(settings.nodes, ["redis://a", "redis://b"]);
    }

    #[test]
    fn a_comma_in_a_password_shows_no_part_of_it() {
        let error = Settings::merge(&nodes(&["redis://:12,34@a"]), None, file()).unwrap_err();
        let message = error.message.replace("%2C", "");
        assert!(message.ends_with("(`--nodes` or REDLOCK_NODES)"), "{message}");
        assert!(!message.contains("12") && !message.contains("34"), "{message}");
    }

    #[test]
    fn an_error_hides_the_password() {
        let settings = Settings::merge(&nodes(&["redis://:hush@ho st"]), None, file()).unwrap();
        let error = settings.client().unwrap_err();
        assert!(!error.message.contains("hush"), "{error}");
    }
}
