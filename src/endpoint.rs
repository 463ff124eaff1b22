//! Address of a node, and the credentials for it.

mod url;

pub(crate) use self::url::{has_scheme, redacted};

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::error::Error;
#[cfg(feature = "tls")]
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::credentials::{Credentials, NodeProvider};
use crate::error::BuildError;
use crate::printable::printable;
#[cfg(feature = "tls")]
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::{Connector, Security, TlsError};
use redlock_protocol::Token;

/// Default time to open a connection, and default time for which the kernel retries to deliver
/// written bytes.
const DEFAULT_PATIENCE: Duration = Duration::from_millis(500);

/// Address of a node, and the credentials for it. Displays no user, password or query.
#[derive(Clone)]
pub struct Endpoint {
    address: Address,
    tls: bool,
    /// Credentials of the URL.
    credentials: Option<Credentials>,
    provider: Option<NodeProvider>,
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
    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// Prepares the TLS parameters, if the node uses TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn set_tls(&mut self, connector: &Connector) -> Result<(), TlsError> {
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

    /// Returns true if connections begin with credentials.
    pub(crate) fn needs_credentials(&self) -> bool {
        self.credentials.is_some() || self.provider.is_some()
    }

    /// Returns true if the URL has credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// Sets the provider of credentials, which are asked for at each connection.
    pub(crate) fn set_provider(&mut self, provider: NodeProvider) {
        self.provider = Some(provider);
    }

    /// Returns the credentials for a new connection: those of the provider, if there is one.
    pub(crate) async fn credentials(
        &self,
    ) -> Result<Option<Credentials>, Box<dyn Error + Send + Sync>> {
        match &self.provider {
            Some(provider) => provider.ask(self.to_string()).await.map(Some),
            None => Ok(self.credentials.clone()),
        }
    }

    /// Returns the server's text in printable form, without the client's user and password, and
    /// without the `token` of a command.
    pub(crate) fn printable(&self, text: &[u8], token: Option<Token>) -> Arc<str> {
        let provided = self.provider.as_ref().map(NodeProvider::recent).unwrap_or_default();
        let known = || self.credentials.iter().chain(&provided);
        let users: Vec<&[u8]> = known().filter_map(|it| it.user.as_deref()).collect();
        let passwords = known().map(|it| &*it.password);
        let secrets: Vec<&[u8]> =
            passwords.chain(token.as_ref().map(|token| &token.as_bytes()[..])).collect();
        printable(text, &users, &secrets)
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

    /// Parses a URL in the dialect of [`Builder::nodes`](crate::Builder::nodes).
    fn from_str(url: &str) -> Result<Self, BuildError> {
        url::parse(url).map_err(|why| BuildError::Endpoint { url: url::redacted(url), why })
    }
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
