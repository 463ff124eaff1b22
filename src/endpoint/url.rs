//! URLs of nodes: a superset of redis-rs' dialect, less its options that this client does not have.
//! These are rejected by name.

use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::{Address, DEFAULT_PATIENCE, Endpoint};
use crate::credentials::Credentials;
use crate::error::EndpointError;

/// Default port of Redis.
const DEFAULT_PORT: u16 = 6_379;

/// Kind of connection that a scheme stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Tcp,
    Tls,
    Unix,
}

/// Options after the `?` of a URL.
#[derive(Default)]
struct Query<'a> {
    database: Option<&'a str>,
    user: Option<&'a str>,
    password: Option<&'a str>,
}

pub(super) fn parse(url: &str) -> Result<Endpoint, EndpointError> {
    if url.trim() != url {
        return Err(EndpointError::Space);
    }
    let (name, rest) = url.split_once("://").ok_or(EndpointError::Scheme)?;
    let scheme = scheme(name)?;
    if let Some((_, fragment)) = rest.split_once('#') {
        let is_insecure = fragment == "insecure";
        return Err(if is_insecure { EndpointError::Insecure } else { EndpointError::Fragment });
    }
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, it)| (rest, Some(it)));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user_info, host) = match authority.rsplit_once('@') {
        Some((user_info, host)) => (Some(user_info), host),
        None => (None, authority),
    };
    let query = query.map(|it| options(it, scheme)).transpose()?.unwrap_or_default();
    let (address, number) = match scheme {
        Scheme::Unix => (unix(host, path)?, query.database),
        Scheme::Tcp | Scheme::Tls => {
            let number = path.strip_prefix('/').filter(|number| !number.is_empty());
            (tcp(host)?, number)
        }
    };
    let of_query = query.user.is_some() || query.password.is_some();
    let credentials = match user_info.map(credentials).transpose()?.flatten() {
        Some(_) if of_query => return Err(EndpointError::CredentialsTwice),
        None if of_query => {
            let (user, password) = (query.user.unwrap_or(""), query.password.unwrap_or(""));
            decoded_credentials(user, password)?
        }
        credentials => credentials,
    };
    Ok(Endpoint {
        address,
        tls: scheme == Scheme::Tls,
        credentials,
        provider: None,
        database: number.map_or(Ok(0), database)?,
        connect_timeout: DEFAULT_PATIENCE,
        patience: DEFAULT_PATIENCE,
        #[cfg(feature = "tls")]
        security: None,
    })
}

fn scheme(name: &str) -> Result<Scheme, EndpointError> {
    match name.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => Ok(Scheme::Tcp),
        "rediss" | "valkeys" if cfg!(feature = "tls") => Ok(Scheme::Tls),
        "rediss" | "valkeys" => Err(EndpointError::NoTls),
        "unix" | "redis+unix" | "valkey+unix" => Ok(Scheme::Unix),
        name if name.contains("sentinel") || name.contains("cluster") => Err(EndpointError::Group),
        _ => Err(EndpointError::Scheme),
    }
}

/// Returns true if the URL begins with a scheme of nodes, supported or not.
pub(crate) fn has_scheme(url: &str) -> bool {
    let name = url.split_once("://").map(|(name, _)| name);
    name.is_some_and(|name| scheme(name) != Err(EndpointError::Scheme))
}

/// Parses the options, each of which may be there once. Errors repeat none of them: a part of a
/// password may have ended up here.
fn options(query: &str, scheme: Scheme) -> Result<Query<'_>, EndpointError> {
    let (mut found, mut has_protocol) = (Query::default(), false);
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or(EndpointError::Option)?;
        let place = match (name, scheme) {
            ("protocol", _) => {
                // This client speaks version 3 with every server that does.
                if !matches!(value, "3" | "resp3") {
                    return Err(EndpointError::Protocol);
                }
                if core::mem::replace(&mut has_protocol, true) {
                    return Err(EndpointError::Option);
                }
                continue;
            }
            ("db", Scheme::Unix) => &mut found.database,
            ("user", Scheme::Unix) => &mut found.user,
            ("pass", Scheme::Unix) => &mut found.password,
            _ => return Err(EndpointError::Option),
        };
        if value.contains('+') {
            return Err(EndpointError::Plus);
        }
        if place.replace(value).is_some() {
            return Err(EndpointError::Option);
        }
    }
    Ok(found)
}

fn tcp(authority: &str) -> Result<Address, EndpointError> {
    let (host, port, bracketed) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (host, port) = inside.split_once(']').ok_or(EndpointError::Host)?;
            (host, port, true)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (host, port, false)
        }
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => digits.parse().ok().filter(|&port| port != 0),
        None => port.is_empty().then_some(DEFAULT_PORT),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let host = if bracketed {
        ipv6(host).ok_or(EndpointError::Host)?
    } else if !host.is_empty() && host.chars().all(valid) {
        host.to_ascii_lowercase()
    } else {
        return Err(EndpointError::Host);
    };
    Ok(Address::Tcp { host, port: port.ok_or(EndpointError::Port)? })
}

/// Parses an IPv6 address into its canonical form, with its zone if there is one.
fn ipv6(text: &str) -> Option<String> {
    let (address, zone) = text.split_at(text.find('%').unwrap_or(text.len()));
    let address: Ipv6Addr = address.parse().ok()?;
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_.%".contains(c);
    zone.chars().all(valid).then(|| format!("{address}{zone}"))
}

fn unix(host: &str, path: &str) -> Result<Address, EndpointError> {
    // It may be the end of a password that has a `/`. A path is shown, a password is not.
    if path.contains('@') {
        return Err(EndpointError::AtSign);
    }
    let path = decoded(path)?;
    if !host.is_empty() || path.len() < 2 || path.contains(&0) {
        return Err(EndpointError::Path);
    }
    Ok(Address::Unix(PathBuf::from(OsString::from_vec(path))))
}

fn database(digits: &str) -> Result<u32, EndpointError> {
    let plain =
        (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().ok_or(EndpointError::Database)
}

/// Parses `user[:password]`; `None` if both are empty.
fn credentials(user_info: &str) -> Result<Option<Credentials>, EndpointError> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    decoded_credentials(user, password)
}

/// Decodes a user and a password; `None` if both are empty.
fn decoded_credentials(user: &str, password: &str) -> Result<Option<Credentials>, EndpointError> {
    let (user, password) = (decoded(user)?, decoded(password)?);
    let user = Some(user).filter(|user| !user.is_empty());
    let nobody = user.is_none() && password.is_empty();
    Ok((!nobody).then_some(Credentials { user, password }))
}

/// Replaces every `%` and its two digits by the byte that they encode.
fn decoded(text: &str) -> Result<Vec<u8>, EndpointError> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or(EndpointError::Escape)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(EndpointError::Escape);
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| EndpointError::Escape)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Ok(bytes)
}

/// Returns the scheme, host, port and path of a rejected URL. Everything that may be part of a
/// user, a password or a query is replaced by `…`: an unescaped password may have ended up
/// anywhere.
pub(crate) fn redacted(url: &str) -> String {
    let is_scheme = |it: &&str| it.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let split = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
    let (scheme, rest) =
        split.map_or((String::new(), url), |(it, rest)| (format!("{it}://"), rest));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if path.contains('@') {
        return format!("{scheme}…");
    }
    let (hidden, host) = authority.rsplit_once('@').map_or(("", authority), |(_, it)| ("…@", it));
    let after_host = host.find(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match host[after_host..].find(':') {
        Some(colon) => host.split_at(after_host + colon),
        None => (host, ""),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.%:[]".contains(c);
    let host = if host.chars().all(is_host) { host } else { "…" };
    let port = if port.bytes().skip(1).all(|byte| byte.is_ascii_digit()) { port } else { ":…" };
    let (path, query) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let query = if query.is_empty() { "" } else { "…" };
    format!("{scheme}{hidden}{host}{port}{path}{query}")
}
