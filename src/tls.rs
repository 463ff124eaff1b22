//! TLS for the connections to nodes with a `rediss://` URL.

use core::fmt;
use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::stream::Stream;

/// Certificate authorities that the client trusts, and its own certificate.
///
/// A node's certificate is verified on every connection, for the host of its URL: a name or an IP
/// address. No connection resumes the TLS session of an earlier one.
///
/// ```
/// # fn build(root: Vec<u8>, chain: Vec<u8>, key: Vec<u8>) {
/// use redlock_client::{Redlock, TlsConfig};
///
/// let tls = TlsConfig::new().with_root_pem(root).with_client_pem(chain, key);
/// let builder = Redlock::builder().nodes(["rediss://a", "rediss://b", "rediss://c"]).tls(tls);
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "a configuration does nothing until a builder is given it"]
pub struct TlsConfig {
    roots: Vec<Vec<u8>>,
    client: Option<ClientPem>,
}

#[derive(Clone)]
struct ClientPem {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl TlsConfig {
    /// Returns a configuration that trusts the system's authorities and presents no client
    /// certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities in `pem` instead of the system's. May be called several times.
    pub fn with_root_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Presents the certificate at the head of `chain`, whose private key is `key`, to nodes that
    /// request one. Both are PEM.
    pub fn with_client_pem(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.client = Some(ClientPem { chain: chain.into(), key: key.into() });
        self
    }

    /// Parses the configured certificates and keys.
    pub(crate) fn connector(&self) -> Result<Connector, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::other)?;
        let (roots, unread) = self.root_store()?;
        let builder = builder.with_root_certificates(roots);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(ClientPem { chain, key }) => {
                let chain = certificates(chain).map_err(TlsError::ClientCertificate)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| TlsError::ClientKey("no private key in PEM".into()))?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| TlsError::ClientKey(error.to_string()))?
            }
        };
        // A resumed session verifies no certificate: one that has expired since, or was replaced by
        // one of an unknown authority, would be accepted for as long as the server's tickets live.
        config.resumption = Resumption::disabled();
        Ok(Connector { tls: TlsConnector::from(Arc::new(config)), unread })
    }

    /// Returns the trusted authorities, and the first error of those of the system's that cannot be
    /// read.
    fn root_store(&self) -> Result<(RootCertStore, Option<Arc<str>>), TlsError> {
        let (mut store, mut unread) = (RootCertStore::empty(), None);
        if self.roots.is_empty() {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = store.add_parsable_certificates(found.certs);
            let why = found.errors.first().map(ToString::to_string);
            if added == 0 {
                return Err(TlsError::NoSystemRoots(why.unwrap_or("there are none".into())));
            }
            unread = why.map(Arc::from);
        }
        for pem in &self.roots {
            for root in certificates(pem).map_err(TlsError::Root)? {
                store.add(root).map_err(|error| TlsError::Root(error.to_string()))?;
            }
        }
        Ok((store, unread))
    }
}

/// TLS parameters that are the same for all nodes.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: TlsConnector,
    /// Reason why some of the system's authorities are not trusted.
    unread: Option<Arc<str>>,
}

/// Returns all certificates in `pem`; there must be at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("no certificate in PEM".into()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsConfig")
            .field("trusts_system", &self.roots.is_empty())
            .field("shows_certificate", &self.client.is_some())
            .finish_non_exhaustive()
    }
}

/// Fault in a [`TlsConfig`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The client's certificate cannot be read.
    #[error("the client's certificate: {0}")]
    ClientCertificate(String),
    /// The client's key cannot be read, or does not belong to its certificate.
    #[error("the client's private key: {0}")]
    ClientKey(String),
    /// None of the system's trusted authorities can be read.
    #[error("the system's trusted certificates: {0}")]
    NoSystemRoots(String),
    /// An authority's certificate cannot be read.
    #[error("the certificate of an additional authority: {0}")]
    Root(String),
    /// The host is not a valid name for a certificate.
    #[error("`{0}` is not a name that a certificate can have")]
    ServerName(String),
    /// Error of the TLS library.
    #[error("{0}")]
    Other(String),
}

impl TlsError {
    fn other(error: rustls::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// TLS parameters of one node.
#[derive(Clone)]
pub(crate) struct Security {
    connector: Connector,
    name: ServerName<'static>,
}

impl Security {
    pub(crate) fn new(connector: &Connector, host: &str) -> Result<Self, TlsError> {
        // The zone of an address has a meaning on this host alone.
        let name = host.split('%').next().unwrap_or(host);
        let name = ServerName::try_from(String::from(name));
        let name = name.map_err(|_| TlsError::ServerName(host.into()))?;
        Ok(Self { connector: connector.clone(), name })
    }

    /// Performs the TLS handshake on `stream`.
    pub(crate) async fn secure(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let Connector { tls, unread } = &self.connector;
        let error = match tls.connect(self.name.clone(), stream).await {
            Ok(secured) => return Ok(Box::new(secured)),
            Err(error) => error,
        };
        let is_of_unknown_authority = is_of_unknown_authority(&error);
        let error = explained(&error).unwrap_or_else(|| named(&error, format_args!("{error}")));
        // An authority that could not be read may be the one that is unknown.
        Err(match unread.as_ref().filter(|_| is_of_unknown_authority) {
            None => error,
            Some(why) => {
                let text = format!("{error}; not every trusted certificate is read: {why}");
                io::Error::new(error.kind(), text)
            }
        })
    }
}

/// Returns the error with the name of its layer.
fn named(error: &io::Error, text: fmt::Arguments<'_>) -> io::Error {
    io::Error::new(error.kind(), format!("TLS: {text}"))
}

fn of_library(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn is_of_unknown_authority(error: &io::Error) -> bool {
    use rustls::CertificateError::{BadSignature, UnknownIssuer};
    let Some(rustls::Error::InvalidCertificate(why)) = of_library(error) else {
        return false;
    };
    // An authority of the same name with another key makes it a bad signature.
    matches!(why, BadSignature | UnknownIssuer)
}

/// Returns an error of the TLS library with the name of its layer, and the server's alert about the
/// client's certificate in words. With TLS 1.3 such an alert comes only after the client's
/// handshake, with the first bytes that are read.
pub(crate) fn explained(error: &io::Error) -> Option<io::Error> {
    use rustls::AlertDescription as Alert;
    let library = of_library(error)?;
    let rustls::Error::AlertReceived(alert) = library else {
        return Some(named(error, format_args!("{library}")));
    };
    let what = match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            "the server demands a certificate of the client"
        }
        // A decryption error: the signature of the certificate, or that made with its key, is
        // wrong.
        Alert::AccessDenied
        | Alert::BadCertificate
        | Alert::CertificateExpired
        | Alert::CertificateRevoked
        | Alert::CertificateUnknown
        | Alert::DecryptError
        | Alert::UnknownCA
        | Alert::UnsupportedCertificate => "the server refuses the certificate of this client",
        _ => return Some(named(error, format_args!("{library}"))),
    };
    Some(named(error, format_args!("{what} ({alert:?})")))
}

#[cfg(test)]
mod tests;
