//! Certificates for nodes with a `rediss://` URL, in files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use redlock_client::Builder;
#[cfg(feature = "tls")]
use redlock_client::TlsConfig;

/// Files with certificates and a key, in PEM.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    /// PEM file of the authorities trusted for `rediss://` [default: the system's, or
    /// SSL_CERT_FILE]
    #[arg(id = "tls_ca", long = "tls-ca", value_name = "FILE", env = "REDLOCK_TLS_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file of the certificate shown to nodes that demand one; needs `--tls-key`
    #[arg(id = "tls_cert", long = "tls-cert", value_name = "FILE", env = "REDLOCK_TLS_CERT")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of that certificate's private key
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", env = "REDLOCK_TLS_KEY")]
    pub(crate) key: Option<PathBuf>,
}

/// Key of the setting at fault, and what is wrong.
pub(super) type Fault = (&'static str, String);

impl TlsFiles {
    /// Returns these files; for a setting without one, that of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
        }
    }

    /// Gives the certificates to a builder.
    pub(super) fn configure(&self, builder: Builder) -> Result<Builder, Fault> {
        let ca = self.ca.as_deref().map(|path| read("tls_ca", path)).transpose()?;
        let client = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((read("tls_cert", cert)?, read("tls_key", key)?)),
            (Some(cert), None) => {
                let text = format!("the private key of {} is missing", cert.display());
                return Err(("tls_key", text));
            }
            (None, Some(key)) => {
                let text = format!("the certificate of {} is missing", key.display());
                return Err(("tls_cert", text));
            }
        };
        with(builder, ca, client)
    }
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| (setting, format!("{} cannot be read: {error}", path.display())))
}

#[cfg(feature = "tls")]
fn with(
    builder: Builder,
    ca: Option<Vec<u8>>,
    client: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Builder, Fault> {
    let mut tls = TlsConfig::new();
    if let Some(ca) = ca {
        tls = tls.with_root_pem(ca);
    }
    if let Some((cert, key)) = client {
        tls = tls.with_client_pem(cert, key);
    }
    Ok(builder.tls(tls))
}

#[cfg(not(feature = "tls"))]
fn with(
    builder: Builder,
    ca: Option<Vec<u8>>,
    client: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Builder, Fault> {
    let setting = if ca.is_some() { "tls_ca" } else { "tls_cert" };
    match (ca, client) {
        (None, None) => Ok(builder),
        _ => Err((setting, String::from("this `redlock` was built without the feature `tls`"))),
    }
}
