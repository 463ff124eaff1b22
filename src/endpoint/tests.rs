//! Rules about endpoints and their URLs, one a test.

use super::url::redacted;
use super::*;
use crate::error::EndpointError;

fn endpoint(url: &str) -> Endpoint {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn why(url: &str) -> EndpointError {
    match url.parse::<Endpoint>() {
        Err(BuildError::Endpoint { why, .. }) => why,
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn an_endpoint_reads_what_it_writes() {
    for (url, full) in [
        ("redis://a", "redis://a:6379"),
        ("REDIS://A.example:7000/", "redis://a.example:7000"),
        ("redis://10.0.0.1:1/0", "redis://10.0.0.1:1"),
        ("redis://10.0.0.1:1/15", "redis://10.0.0.1:1/15"),
        ("redis://[::1]:6380", "redis://[::1]:6380"),
        ("redis://[0:0::1]", "redis://[::1]:6379"),
        ("redis://[fe80::1%eth0]", "redis://[fe80::1%eth0]:6379"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("unix:///a%20b%25?db=3", "unix:///a%20b%25"),
        ("redis://me:secret@a/1", "redis://a:6379/1"),
        ("valkey://a/1?protocol=resp3", "redis://a:6379/1"),
        ("redis://a/?protocol=3", "redis://a:6379"),
        ("redis+unix:///run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("valkey+unix:///run/redis.sock", "unix:///run/redis.sock"),
    ] {
        let endpoint = endpoint(url);
        assert_eq!(endpoint.to_string(), full);
        assert_eq!(self::endpoint(full).to_string(), full);
    }
}

#[test]
fn a_path_is_decoded() {
    let address = Address::Unix(PathBuf::from("/tmp/a b"));
    assert_eq!(endpoint("unix:///tmp/a%20b").address, address);
}

#[test]
fn user_and_password_are_decoded() {
    for (url, user, password) in [
        ("redis://:secret@a", None, "secret"),
        ("redis://me:s%40%2fc%3Aret@a", Some("me"), "s@/c:ret"),
        ("redis://me:a:b@a", Some("me"), "a:b"),
        ("redis://me@a", Some("me"), ""),
        ("unix://m%25e:x@/s", Some("m%e"), "x"),
        ("redis+unix:///s?user=m%25e&pass=a%2Bb&db=1", Some("m%e"), "a+b"),
        ("unix:///s?pass=secret&protocol=3", None, "secret"),
    ] {
        let read = endpoint(url).credentials.unwrap();
        assert_eq!(read.user.as_deref(), user.map(str::as_bytes), "{url}");
        assert_eq!(read.password, password.as_bytes(), "{url}");
    }
    assert_eq!(endpoint("redis://:@a").credentials, None);
    assert_eq!(endpoint("redis://a").credentials, None);
}

#[test]
fn an_invalid_endpoint_is_refused_by_name() {
    for (url, expected) in [
        ("a:6379", EndpointError::Scheme),
        (" redis://a", EndpointError::Space),
        ("redis://a\n", EndpointError::Space),
        ("http://a", EndpointError::Scheme),
        ("redis+sentinel://a", EndpointError::Group),
        ("redis-cluster://a", EndpointError::Group),
        ("redis://", EndpointError::Host),
        ("redis:///1", EndpointError::Host),
        ("redis://a b", EndpointError::Host),
        ("redis://a%41", EndpointError::Host),
        ("redis://[::1", EndpointError::Host),
        ("redis://[a]", EndpointError::Host),
        ("redis://[::1]x", EndpointError::Port),
        ("redis://a:0", EndpointError::Port),
        ("redis://a:", EndpointError::Port),
        ("redis://a:65536", EndpointError::Port),
        ("redis://a/x", EndpointError::Database),
        ("redis://a/-1", EndpointError::Database),
        ("redis://a/1/", EndpointError::Database),
        ("redis://a/9999999999", EndpointError::Database),
        ("unix:///a?db=", EndpointError::Database),
        ("unix:///a?db=x", EndpointError::Database),
        ("unix:///a?database=1", EndpointError::Option),
        ("redis://a?db=1", EndpointError::Option),
        ("redis://a?protocol=resp2", EndpointError::Protocol),
        ("redis://a?protocol", EndpointError::Option),
        ("redis://a?protocol=3&protocol=3", EndpointError::Option),
        ("redis://a?user=me&pass=x", EndpointError::Option),
        ("unix:///a?db=1&db=2", EndpointError::Option),
        ("unix:///a?pass=a+b", EndpointError::Plus),
        ("unix:///a?pass=%4", EndpointError::Escape),
        ("unix://me@/a?pass=x", EndpointError::CredentialsTwice),
        ("redis://a/1#x", EndpointError::Fragment),
        ("redis://a/#insecure", EndpointError::Insecure),
        ("redis://:%4@a", EndpointError::Escape),
        ("redis://:%+4@a", EndpointError::Escape),
        ("redis://:%é@a", EndpointError::Escape),
        ("unix://a", EndpointError::Path),
        ("unix://host/a", EndpointError::Path),
        ("unix:///", EndpointError::Path),
        ("unix:///a%00", EndpointError::Path),
        ("unix:///a@b", EndpointError::AtSign),
        ("unix://user:pass@/word@/a", EndpointError::AtSign),
    ] {
        assert_eq!(why(url), expected, "{url}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_without_the_feature_is_refused_by_name() {
    assert_eq!(why("rediss://a"), EndpointError::NoTls);
    assert_eq!(why("valkeys://a"), EndpointError::NoTls);
}

#[cfg(feature = "tls")]
#[test]
fn the_scheme_says_whether_there_is_tls() {
    assert!(endpoint("rediss://a").is_tls());
    assert!(endpoint("valkeys://a").is_tls());
    assert_eq!(endpoint("rediss://a").to_string(), "rediss://a:6379");
    assert!(!endpoint("redis://a").is_tls());
}

#[test]
fn the_address_alone_says_which_node_it_is() {
    let same = |one, other| endpoint(one).is_same_node(&endpoint(other));
    assert!(same("redis://a", "redis://me:x@A:6379/3"));
    assert!(same("redis://[::1]", "redis://[0::1]"));
    assert!(same("unix:///a", "unix:///%61?db=1"));
    assert!(!same("redis://a", "redis://a:6380"));
}

#[test]
fn nothing_shows_a_password() {
    let shown = endpoint("redis://me:secret@a");
    let shown = format!("{shown} {shown:?} {:?}", shown.credentials);
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_refused_url_is_shown_without_what_may_be_secret() {
    for (url, shown) in [
        ("a:6379", "a:6379"),
        ("http://a/x", "http://a/x"),
        ("redis://[::1]:x", "redis://[::1]:…"),
        ("redis://me:secret@a:x", "redis://…@a:…"),
        ("redis://me:secret@", "redis://…@"),
        ("redis://me:sec/ret@a", "redis://…"),
        ("redis://me:sec?ret@a", "redis://…"),
        ("redis://me:sec#ret@a", "redis://…"),
        ("redis://me:sec@ret@a/x", "redis://…@a/x"),
        ("redis://me:secret", "redis://me:…"),
        ("redis://a&secret/x", "redis://…/x"),
        ("redis://a/1?password=secret", "redis://a/1…"),
        ("redis://a?password=sec@ret", "redis://…"),
        ("unix:///a?user=me&pass=sec+ret", "unix:///a…"),
        ("me:secret@a:6379", "…@a:6379"),
        ("me:sec://ret@a", "…"),
    ] {
        assert_eq!(redacted(url), shown, "{url}");
    }
}
