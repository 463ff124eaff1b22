//! Settings from variables and files.

use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::error::BuildError;

const SECOND: Duration = Duration::from_secs(1);

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::from_variables(|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn full() -> Config {
    Config {
        nodes: vec![String::from("redis://a"), String::from("redis://:hush@b")],
        fleet_max_ttl: Some(30 * SECOND),
        ttl: Some(10 * SECOND),
        wait: Some(5 * SECOND),
        node_timeout: Some(SECOND / 10),
        connect_timeout: Some(SECOND),
        min_validity: Some(2 * SECOND),
        restart_guard: Some(RestartGuard::DelayedRestart),
        canary_key: Some(String::from("c")),
    }
}

#[test]
fn variables_are_read() {
    let config = read(&[
        ("REDLOCK_NODES", "redis://a, redis://:hush@b,"),
        ("REDLOCK_FLEET_MAX_TTL", "30s"),
        ("REDLOCK_TTL", "10s"),
        ("REDLOCK_WAIT", "5s"),
        ("REDLOCK_NODE_TIMEOUT", "100ms"),
        ("REDLOCK_CONNECT_TIMEOUT", "1s"),
        ("REDLOCK_MIN_VALIDITY", "2s"),
        ("REDLOCK_RESTART_GUARD", "delayed-restart"),
        ("REDLOCK_CANARY_KEY", "c"),
        ("REDLOCK_CONFIG", "/not/read"),
    ]);
    assert_eq!(config, Ok(full()));
    assert!(Builder::from(full()).build().is_ok());
    assert_eq!(read(&[("REDLOCK_TTL", "")]), Ok(Config::default()));
}

#[test]
fn an_invalid_variable_is_named_without_its_value() {
    for variable in ["REDLOCK_TTL", "REDLOCK_RESTART_GUARD"] {
        let error = read(&[(variable, "hush")]).unwrap_err();
        assert_eq!(error.variable(), variable);
        let said = format!("{error} {error:?}");
        assert!(said.contains(variable) && !said.contains("hush"), "{said}");
    }
    let latin = |_: &str| Some(OsString::from_vec(vec![0xff]));
    assert_eq!(Config::from_variables(latin).unwrap_err().why, ValueError::Text);
}

#[test]
fn a_comma_in_a_password_shows_no_part_of_it() {
    for nodes in [
        "redis://:12,34@a",
        "redis://me:12,34@a,redis://b",
        "redis://b,redis://me,34:12@a",
        "redis://:12,x://34@a",
    ] {
        let error = read(&[("REDLOCK_NODES", nodes)]).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains("a comma in a password is written `%2C`"), "{said}");
        assert!(
            !["12", "34", "me:"].iter().any(|part| said.replace("%2C", "").contains(part)),
            "{said}"
        );
    }
    let config = read(&[("REDLOCK_NODES", "redis://:12%2C34@a,redis-sentinel://b")]);
    assert_eq!(config.unwrap().nodes, ["redis://:12%2C34@a", "redis-sentinel://b"]);
}

#[test]
fn a_missing_variable_is_a_missing_setting() {
    let nodes = ("REDLOCK_NODES", "redis://a");
    let refused = |variables| Builder::from(read(variables).unwrap()).build().map(drop);
    assert_eq!(refused(&[]), Err(BuildError::NoNodes));
    assert_eq!(refused(&[nodes]), Err(BuildError::Missing("ttl")));
    let ttl = BuildError::Missing("ttl").to_string();
    assert_eq!(ttl, "`ttl` is required (`Builder::ttl`, or `REDLOCK_TTL`)");
    assert!(BuildError::NoNodes.to_string().ends_with("`Builder::nodes`, or set `REDLOCK_NODES`"));
}

#[test]
fn settings_show_no_password() {
    let shown = format!("{:?}", full());
    assert!(shown.contains("…@b") && !shown.contains("hush"), "{shown}");
}

#[cfg(feature = "serde")]
#[test]
fn a_file_has_every_setting() {
    let text = "nodes = [\"redis://a\", \"redis://:hush@b\"]\nfleet_max_ttl = \"30s\"\nttl = \"10s\"\n\
        wait = \"5s\"\nnode_timeout = \"100ms\"\nconnect_timeout = \"1s\"\nmin_validity = \"2s\"\n\
        restart_guard = \"delayed-restart\"\ncanary_key = \"c\"\n";
    assert_eq!(toml::from_str(text), Ok(full()));
    let nodes: Config = toml::from_str("nodes = \"redis://a,redis://b\"").unwrap();
    assert_eq!(nodes.nodes, ["redis://a", "redis://b"]);
}

#[cfg(feature = "serde")]
#[test]
fn a_mistake_in_a_file_has_its_key_and_no_password() {
    let said = |text: &str| toml::from_str::<Config>(text).unwrap_err().message().to_owned();
    assert!(said("ttl = \"hush\"").starts_with("`ttl`: expected a number with a unit"));
    assert_eq!(
        said("ttl = 10"),
        "invalid type: integer `10`, expected a text for `ttl`, as in \"30s\""
    );
    assert!(
        said("restart_guard = \"never\"").starts_with("`restart_guard`: expected `quarantine`")
    );
    assert!(said("node = []").starts_with("unknown field `node`, expected one of `nodes`"));
    let error = toml::from_str::<Config>("ttl = \"1s\"\nwait = \"x\"").unwrap_err();
    assert_eq!(error.span(), Some(18..21), "the place is that of the value");
    for text in ["nodes = { url = \"redis://:hush@a\" }", "nodes = [[\"redis://:hush@a\"]]"] {
        assert!(!said(text).contains("hush"), "{}", said(text));
    }
}
