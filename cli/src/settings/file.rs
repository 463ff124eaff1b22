//! The TOML file. A message has file, line and column, but never a part of the text, because URLs
//! can contain passwords.

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::ValueEnum;
use redlock_client::config::{parse_duration, parse_nodes};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::TlsFiles;
use crate::exit::Stop;
use crate::guard::Guard;

/// Content of the file; everything is optional.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) nodes: Vec<String>,
    pub(super) fleet_max_ttl: Option<Duration>,
    pub(super) ttl: Option<Duration>,
    pub(super) node_timeout: Option<Duration>,
    pub(super) restart_guard: Option<Guard>,
    pub(super) canary_key: Option<String>,
    pub(super) tls: TlsFiles,
    /// Place of each value, as in `/etc/redlock.toml:2:7`, by its key.
    pub(super) places: BTreeMap<String, String>,
}

/// A mistake in the file, and the bytes where it is.
#[derive(Debug)]
struct Mistake {
    at: Range<usize>,
    message: String,
}

impl Mistake {
    fn new(at: Range<usize>, message: impl fmt::Display) -> Self {
        Self { at, message: message.to_string() }
    }
}

impl File {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Stop> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Stop::failed(format!("{shown} cannot be read: {error}")))?;
        let mut file = parse(&text).map_err(|Mistake { at, message }| {
            Stop::failed(format!("{shown}:{}: {message}", place(&text, at.start)))
        })?;
        file.places.values_mut().for_each(|place| place.insert_str(0, &format!("{shown}:")));
        Ok(file)
    }
}

fn parse(text: &str) -> Result<File, Mistake> {
    let table = DeTable::parse(text).map_err(|error| {
        // The first line of the message names what was expected; more would repeat the text.
        let message = error.message().lines().next().unwrap_or_default();
        Mistake::new(error.span().unwrap_or_default(), format_args!("invalid TOML: {message}"))
    })?;
    let mut file = File::default();
    for (key, value) in table.get_ref() {
        match &**key.get_ref() {
            "nodes" => file.nodes = nodes(value)?,
            "fleet_max_ttl" => file.fleet_max_ttl = Some(duration(value)?),
            "ttl" => file.ttl = Some(duration(value)?),
            "node_timeout" => file.node_timeout = Some(duration(value)?),
            "restart_guard" => file.restart_guard = Some(guard(value)?),
            "tls_ca" => file.tls.ca = Some(string(value)?.into()),
            "tls_cert" => file.tls.cert = Some(string(value)?.into()),
            "tls_key" => file.tls.key = Some(string(value)?.into()),
            "canary_key" => file.canary_key = Some(String::from(string(value)?)),
            // Keys of a service's file (`redlock_client::Config`) that do not concern the command.
            "wait" | "connect_timeout" | "min_validity" => drop(duration(value)?),
            unknown => {
                let message = format!("unknown key `{unknown}`; the keys are {KEYS}");
                return Err(Mistake::new(key.span(), message));
            }
        }
        file.places.insert(String::from(&**key.get_ref()), place(text, value.span().start));
    }
    Ok(file)
}

const KEYS: &str = "`nodes`, `fleet_max_ttl`, `ttl`, `node_timeout`, `restart_guard`, `canary_key`, `tls_ca`, \
    `tls_cert`, `tls_key`, and those of services: `wait`, `connect_timeout`, `min_validity`";

type Value<'a> = Spanned<DeValue<'a>>;

fn nodes(value: &Value<'_>) -> Result<Vec<String>, Mistake> {
    match value.get_ref() {
        DeValue::Array(list) => list.iter().map(|url| string(url).map(String::from)).collect(),
        DeValue::String(text) => {
            parse_nodes(text).map_err(|error| Mistake::new(value.span(), error))
        }
        _ => {
            let message =
                "expected a list of URLs, as in [\"redis://a:6379\"], or a string with commas";
            Err(Mistake::new(value.span(), message))
        }
    }
}

fn string<'a>(value: &'a Value<'_>) -> Result<&'a str, Mistake> {
    let found = value.get_ref().type_str();
    let mistake = || Mistake::new(value.span(), format_args!("expected a string, found {found}"));
    value.get_ref().as_str().ok_or_else(mistake)
}

fn duration(value: &Value<'_>) -> Result<Duration, Mistake> {
    let text = value.get_ref().as_str().unwrap_or_default();
    parse_duration(text).map_err(|error| Mistake::new(value.span(), error))
}

fn guard(value: &Value<'_>) -> Result<Guard, Mistake> {
    let message = "expected \"quarantine\", \"durable\" or \"delayed-restart\"";
    Guard::from_str(string(value)?, false).map_err(|_| Mistake::new(value.span(), message))
}

/// Returns line and column of the byte `at`, as in `2:7`, both counted from 1, the column in
/// characters.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    format!("{}:{}", before.matches('\n').count() + 1, line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        let Mistake { at, message } = parse(text).unwrap_err();
        format!("{}: {message}", place(text, at.start))
    }

    #[test]
    fn a_file_has_every_setting() {
        let file = parse(
            "nodes = [\"redis://a\", \"redis://b\"]\nfleet_max_ttl = \"30s\"\nttl = \"10s\"\n\
             node_timeout = \"80ms\"\nrestart_guard = \"delayed-restart\"\ncanary_key = \"c\"\n\
             tls_ca = \"/ca.pem\"\ntls_cert = \"/it.pem\"\ntls_key = \"/it.key\"\n",
        );
        let file = file.unwrap();
        assert_eq!(file.nodes, ["redis://a", "redis://b"]);
        assert_eq!(file.fleet_max_ttl, Some(Duration::from_secs(30)));
        assert_eq!(file.ttl, Some(Duration::from_secs(10)));
        assert_eq!(file.node_timeout, Some(Duration::from_millis(80)));
        assert_eq!(file.restart_guard, Some(Guard::DelayedRestart));
        assert_eq!(file.canary_key.as_deref(), Some("c"));
        let TlsFiles { ca, cert, key } = file.tls;
        let tls = [ca, cert, key].map(|path| path.unwrap().into_os_string());
        assert_eq!(tls, ["/ca.pem", "/it.pem", "/it.key"]);
        assert_eq!(file.places["ttl"], "3:7");
        let file = parse("nodes = \"redis://a, redis://b,\"").unwrap();
        assert_eq!(file.nodes, ["redis://a", "redis://b"]);
    }

    #[test]
    fn the_file_may_be_that_of_a_service() {
        let service =
            "ttl = \"10s\"\nwait = \"5s\"\nconnect_timeout = \"1s\"\nmin_validity = \"2s\"\n";
        assert_eq!(parse(service).unwrap().ttl, Some(Duration::from_secs(10)));
        assert!(mistake("wait = 5").starts_with("1:8: expected a number with a unit"));
    }

    #[test]
    fn a_mistake_has_line_and_column() {
        let unknown = mistake("ttl = \"10s\"\n  node = []\n");
        assert!(unknown.starts_with("2:3: unknown key `node`; the keys are `nodes`"), "{unknown}");
        assert!(unknown.contains("`min_validity`"), "{unknown}");
        assert!(mistake("ttl = 10\n").starts_with("1:7: expected a number with a unit"));
        assert!(mistake("nodes = [\"redis://a\", 7]").starts_with("1:23: expected a string"));
        assert!(mistake("restart_guard = \"never\"").starts_with("1:17: expected \"quarantine\""));
        assert!(mistake("nodes = 7").starts_with("1:9: expected a list of URLs"));
    }

    #[test]
    fn a_mistake_shows_no_password() {
        for text in [
            "nodes = [\"redis://:hush@a\"",
            "nodes = [\"redis://:hush@a]",
            "nodes = { url = \"redis://:hush@a\" }",
            "nodes = [redis://:hush@a]",
            "nodes = [\"redis://:hush@a\"] hush",
            "ttl = \"hush\"",
        ] {
            let said = mistake(text);
            assert!(!said.contains("hush"), "{said}");
        }
    }
}
