//! Checks of the configuration, and the client that is built from it.

use core::time::Duration;
use std::sync::Arc;

use super::Builder;
use crate::client::Redlock;
use crate::credentials::NodeProvider;
use crate::driver::Driver;
use crate::environment::{Endpoint, TokioEnvironment};
use crate::error::{BuildError, OptionError};
use crate::inspect::PROBE_KEY;
use crate::observe::{self, Observers};
use crate::restart_guard::RestartGuard;
use crate::settings::Settings;
use redlock_protocol::{Drift, LinkConfig, MAX_NODES, NodeCount, NodeIndex};

impl Builder {
    /// Builds the client. It opens no connection and starts no task before its first use.
    ///
    /// # Errors
    ///
    /// If a required setting is missing, or a setting cannot be met safely.
    pub fn build(self) -> Result<Redlock, BuildError> {
        let mut endpoints = self.endpoints()?;
        let nodes = match NodeCount::new(endpoints.len()) {
            Some(nodes) => nodes,
            None if endpoints.is_empty() => return Err(BuildError::NoNodes),
            None => return Err(BuildError::TooManyNodes(endpoints.len())),
        };
        let ttl = self.ttl.ok_or(BuildError::Missing("ttl"))?;
        let fleet_max_ttl = self.fleet_max_ttl.ok_or(BuildError::Missing("fleet_max_ttl"))?;
        let drift = self.allowance()?;
        let settings = Settings {
            nodes,
            ttl,
            fleet_max_ttl,
            node_timeout: self.node_timeout.unwrap_or(DEFAULT_NODE_TIMEOUT.min(ttl / 10)),
            wait: self.wait,
            min_validity: self.min_validity,
            drift,
            retry: self.retry,
            extensions_max: self.extensions_max,
            connect_timeout: self.connect_timeout,
            guards: self.guards(nodes)?,
        };
        settings.validate_fleet_max_ttl()?;
        settings.validate(ttl, settings.min_validity(ttl))?;
        let connect_timeout = self.connect_timeout;
        if !(CONNECT_TIMEOUT_MIN..=CONNECT_TIMEOUT_MAX).contains(&connect_timeout) {
            return Err(OptionError::ConnectTimeout { connect_timeout }.into());
        }
        let (bytes, most) = (self.canary_key.len(), CANARY_KEY_BYTES_MAX);
        if !(1..=most).contains(&bytes) {
            return Err(OptionError::CanaryKey { bytes, most }.into());
        }
        if self.canary_key == PROBE_KEY {
            return Err(OptionError::CanaryIsProbe.into());
        }
        let link = |node: NodeIndex| LinkConfig {
            node_timeout: settings.node_timeout,
            connect_timeout,
            restart_guard: settings.guards[node.get()].into(),
            fleet_max_ttl,
            drift,
            introduction_max_age: self.introduction_max_age,
            window: self.window,
        };
        let links: Vec<LinkConfig> = nodes.iter().map(link).collect();
        #[cfg(feature = "tls")]
        if endpoints.iter().any(Endpoint::is_tls) {
            let connector = self.tls.connector()?;
            endpoints.iter_mut().try_for_each(|endpoint| endpoint.set_tls(&connector))?;
        }
        for (endpoint, link) in endpoints.iter_mut().zip(&links) {
            endpoint.set_times(link.connect_timeout, link.patience());
        }
        observe::warn_of(nodes, fleet_max_ttl);
        let observers = Observers::new(self.observers, &endpoints);
        let canary_key = self.canary_key.into_boxed_slice();
        let environment = self.environment.unwrap_or_else(|| Arc::new(TokioEnvironment::default()));
        let driver = Driver::new(environment, observers, endpoints, canary_key, &links);
        Ok(Redlock::new(driver, settings))
    }

    /// Returns the promise about each node's data set, by place.
    fn guards(&self, nodes: NodeCount) -> Result<[RestartGuard; MAX_NODES], BuildError> {
        let mut guards = [self.restart_guard; MAX_NODES];
        for &(place, guard) in &self.guards {
            if place >= nodes.get() {
                return Err(BuildError::GuardWithoutNode { place, nodes: nodes.get() });
            }
            guards[place] = guard;
        }
        Ok(guards)
    }

    /// Returns the allowance for drift, which is never narrower than the default, except in
    /// simulators.
    fn allowance(&self) -> Result<Drift, OptionError> {
        let least = Drift::default();
        match self.widened {
            Some(Drift { share_ppm, constant })
                if share_ppm < least.share_ppm || constant < least.constant =>
            {
                Err(OptionError::Drift { share_ppm, constant })
            }
            widened => Ok(widened.unwrap_or(self.drift)),
        }
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, BuildError> {
        if self.nodes.len() > MAX_NODES {
            return Err(BuildError::TooManyNodes(self.nodes.len()));
        }
        let mut endpoints: Vec<Endpoint> = Vec::with_capacity(self.nodes.len());
        for (place, url) in self.nodes.iter().enumerate() {
            let mut endpoint: Endpoint = url.parse()?;
            if let Some(first) = endpoints.iter().position(|other| other.is_same_node(&endpoint)) {
                let endpoint = endpoint.to_string();
                return Err(BuildError::DuplicateNode { first, second: place, endpoint });
            }
            if let Some(provider) = &self.credentials {
                if endpoint.has_credentials() {
                    let endpoint = endpoint.to_string();
                    return Err(BuildError::CredentialsTwice { place, endpoint });
                }
                endpoint.set_provider(NodeProvider::new(place, provider));
            }
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}

const DEFAULT_NODE_TIMEOUT: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT_MIN: Duration = Duration::from_millis(1);
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Longest name of a canary, in bytes: every introduction carries it.
const CANARY_KEY_BYTES_MAX: usize = 4_096;
