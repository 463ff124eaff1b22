//! Settings from the command line, the environment and a file, in this order of precedence.

mod file;

use core::time::Duration;

use redlock_client::{Builder, Redlock};

use self::file::File;
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
        let named = arguments.nodes.iter().filter(|url| !url.is_empty()).cloned();
        let mut nodes: Vec<String> = named.collect();
        if nodes.is_empty() {
            nodes = file.nodes;
        }
        if nodes.is_empty() {
            return Err(Stop::failed(NO_NODES));
        }
        Ok(Self {
            nodes,
            fleet_max_ttl: arguments.fleet_max_ttl.or(file.fleet_max_ttl),
            ttl: ttl.or(file.ttl),
            node_timeout: arguments.node_timeout.or(file.node_timeout),
            restart_guard: arguments.restart_guard.or(file.restart_guard),
            canary_key: arguments.canary_key.clone().or(file.canary_key),
        })
    }

    /// Returns a client that may acquire locks, and its TTL.
    pub(crate) fn client(&self) -> Result<(Redlock, Duration), Stop> {
        let longest = self.fleet_max_ttl.ok_or_else(|| Stop::failed(NO_FLEET_MAX_TTL))?;
        let ttl = self.ttl.unwrap_or(DEFAULT_TTL.min(longest));
        Ok((self.builder(ttl, longest).build()?, ttl))
    }

    /// Returns a client that acquires no lock. It reads keys: TTLs do not matter to it.
    pub(crate) fn reader(&self) -> Result<Redlock, Stop> {
        let longest = self.fleet_max_ttl.unwrap_or(DEFAULT_TTL);
        Ok(self.builder(longest, longest).build()?)
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
    fn an_error_hides_the_password() {
        let settings = Settings::merge(&nodes(&["redis://:hush@ho st"]), None, file()).unwrap();
        let error = settings.client().unwrap_err();
        assert!(!error.message.contains("hush"), "{error}");
    }
}
