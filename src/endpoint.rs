//! Address of a node, and the credentials for it.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::ffi::OsString;
#[cfg(feature = "tls")]
use std::io;
use std::net::Ipv6Addr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "tls")]
use tokio_rustls::TlsConnector;

use crate::error::{BuildError, EndpointError};
use crate::printable::printable;
#[cfg(feature = "tls")]
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::{Security, TlsError};
use redlock_protocol::Token;

/// Default port of Redis.
const DEFAULT_PORT: u16 = 6_379;

/// Default time to open a connection, and default time for which the kernel retries to deliver
/// written bytes.
const DEFAULT_PATIENCE: Duration = Duration::from_millis(500);

/// Address of a node, and the credentials for it. Displays no user, password or query.
#[derive(Clone)]
pub struct Endpoint {
    address: Address,
    tls: bool,
    credentials: Option<Credentials>,
    database: u32,
    connect_timeout: Duration,
    patience: Duration,
    #[cfg(feature = "tls")]
    security: Option<Security>,
}

/// Address that a connection is opened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port.
    Tcp {
        /// The host's name or address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// Path of a Unix socket on this host.
    Unix(PathBuf),
}

/// User and password of the client on a node.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// `None` for the default user.
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(…)")
    }
}

impl Endpoint {
    /// Returns the address that a connection is opened to.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the host's name or address, without brackets, and the port; `None` for a Unix
    /// socket.
    #[must_use]
    pub fn tcp(&self) -> Option<(&str, u16)> {
        match &self.address {
            Address::Tcp { host, port } => Some((host, *port)),
            Address::Unix(_) => None,
        }
    }

    /// Returns the time that written bytes may stay unacknowledged before the connection is dead.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the time that a connection may take to open.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    pub(crate) fn set_times(&mut self, connect_timeout: Duration, patience: Duration) {
        (self.connect_timeout, self.patience) = (connect_timeout, patience);
    }

    /// Returns true if the connection uses TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// Prepares the TLS parameters, if the node uses TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn set_tls(&mut self, connector: &TlsConnector) -> Result<(), TlsError> {
        if let Address::Tcp { host, .. } = &self.address
            && self.tls
        {
            self.security = Some(Security::new(connector, host)?);
        }
        Ok(())
    }

    /// Performs the TLS handshake on a connection to this node, if the node uses TLS.
    #[cfg(feature = "tls")]
    pub(crate) async fn secure(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        match &self.security {
            Some(security) => security.secure(stream).await,
            None if self.tls => Err(io::Error::other("TLS was not configured")),
            None => Ok(stream),
        }
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the server's text in printable form, without the client's user and password, and
    /// without the `token` of a command.
    pub(crate) fn printable(&self, text: &[u8], token: Option<Token>) -> Arc<str> {
        let credentials = self.credentials.as_ref();
        let user = credentials.and_then(|it| it.user.as_deref()).unwrap_or_default();
        let password = credentials.map_or(&[][..], |it| &it.password);
        let token = token.as_ref().map_or(&[][..], |token| token.as_bytes());
        printable(text, user, &[password, token])
    }

    pub(crate) fn database(&self) -> u32 {
        self.database
    }

    /// Returns true if both addresses are the same. The user and the database make no difference.
    pub(crate) fn is_same_node(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl FromStr for Endpoint {
    type Err = BuildError;

    /// Parses `redis://[user[:password]@]host[:port][/database]`, the same with `rediss://`, and
    /// `unix://[user[:password]@]/path[?db=database]`.
    fn from_str(url: &str) -> Result<Self, BuildError> {
        parse(url).map_err(|why| BuildError::Endpoint { url: redacted(url), why })
    }
}

fn parse(url: &str) -> Result<Endpoint, EndpointError> {
    let (scheme, rest) = url.split_once("://").ok_or(EndpointError::Scheme)?;
    if rest.contains('#') {
        return Err(EndpointError::Fragment);
    }
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, it)| (rest, Some(it)));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user_info, host) = match authority.rsplit_once('@') {
        Some((user_info, host)) => (Some(user_info), host),
        None => (None, authority),
    };
    let (address, tls, number) = match scheme.to_ascii_lowercase().as_str() {
        "unix" => (unix(host, path)?, false, query.map(database_option).transpose()?),
        "rediss" if cfg!(not(feature = "tls")) => return Err(EndpointError::NoTls),
        "redis" | "rediss" if query.is_some() => return Err(EndpointError::Option),
        "redis" | "rediss" => {
            let number = path.strip_prefix('/').filter(|number| !number.is_empty());
            (tcp(host)?, scheme.len() > 5, number)
        }
        _ => return Err(EndpointError::Scheme),
    };
    Ok(Endpoint {
        address,
        tls,
        credentials: user_info.map(credentials).transpose()?.flatten(),
        database: number.map_or(Ok(0), database)?,
        connect_timeout: DEFAULT_PATIENCE,
        patience: DEFAULT_PATIENCE,
        #[cfg(feature = "tls")]
        security: None,
    })
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

/// Returns the number in `db=number`, the only valid option.
fn database_option(query: &str) -> Result<&str, EndpointError> {
    query.strip_prefix("db=").ok_or(EndpointError::Option)
}

fn database(digits: &str) -> Result<u32, EndpointError> {
    let plain =
        (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().ok_or(EndpointError::Database)
}

/// Parses `user[:password]`; `None` if both are empty.
fn credentials(user_info: &str) -> Result<Option<Credentials>, EndpointError> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
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
fn redacted(url: &str) -> String {
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

/// Displays the URL of the node without its user information and query.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        match &self.address {
            Address::Tcp { host, port } if host.contains(':') => {
                write!(formatter, "{scheme}://[{host}]:{port}")?;
            }
            Address::Tcp { host, port } => write!(formatter, "{scheme}://{host}:{port}")?,
            Address::Unix(path) => write!(formatter, "unix://{}", Escaped(path))?,
        }
        match (&self.address, self.database) {
            (Address::Tcp { .. }, database @ 1..) => write!(formatter, "/{database}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Endpoint({self})")
    }
}

/// Displays a path as it is written in a URL.
struct Escaped<'a>(&'a Path);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.as_os_str().as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || b"/-_.~+,=:".contains(&byte) {
                write!(formatter, "{}", char::from(byte))?;
            } else {
                write!(formatter, "%{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
