//! TLS settings of a master, named as in Redis: its certificate, and the authorities that it
//! trusts.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use redis_sim::server::Config;

/// The TLS settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) port: u16,
    certificate: String,
    key: String,
    authority: String,
    /// `yes`, `no` or `optional`: controls whether clients must present a certificate.
    clients: String,
}

impl Settings {
    pub(super) fn of(config: &Config) -> Self {
        let get = |name: &str| config.get(name).to_owned();
        Self {
            port: get("tls-port").parse().unwrap_or(0),
            certificate: get("tls-cert-file"),
            key: get("tls-key-file"),
            authority: get("tls-ca-cert-file"),
            clients: get("tls-auth-clients"),
        }
    }

    /// Loads the files and builds the TLS configuration.
    ///
    /// # Errors
    ///
    /// If a file is missing or invalid.
    pub(super) fn load(&self) -> io::Result<Arc<ServerConfig>> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let builder = match self.verifier()? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let chain = certificates("tls-cert-file", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unusable("tls-key-file", &self.key, &error))?;
        let config = builder.with_single_cert(chain, key).map_err(io::Error::other)?;
        Ok(Arc::new(config))
    }

    /// Returns the verifier of client certificates; `None` if they are not checked.
    fn verifier(&self) -> io::Result<Option<Arc<dyn ClientCertVerifier>>> {
        if self.clients == "no" {
            return Ok(None);
        }
        let mut roots = RootCertStore::empty();
        for certificate in certificates("tls-ca-cert-file", &self.authority)? {
            roots.add(certificate).map_err(io::Error::other)?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match self.clients.as_str() {
            "optional" => builder.allow_unauthenticated(),
            _ => builder,
        };
        builder.build().map(Some).map_err(io::Error::other)
    }
}

fn certificates(option: &str, file: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| unusable(option, file, &error))
}

/// Returns the error for an option whose file cannot be used.
fn unusable(option: &str, file: &str, error: &pem::Error) -> io::Error {
    io::Error::other(match file {
        "" => format!("`{option}` is not given"),
        file => format!("`{option}`: {file}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_option_and_the_file() {
        let load = |certificate: &str| {
            let certificate = certificate.to_owned();
            let clients = String::from("no");
            Settings { certificate, clients, ..Settings::default() }.load().unwrap_err().to_string()
        };
        assert_eq!(load(""), "`tls-cert-file` is not given");
        assert!(load("none.crt").starts_with("`tls-cert-file`: none.crt: "));
    }
}
