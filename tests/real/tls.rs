//! Connections over TLS, with certificates on both sides.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use redlock_client::{AcquireErrorKind, Redlock, Released, TlsConfig};

use crate::fleet::{Fleet, SOON, TTL, patient};
use crate::server::{Server, free_port};
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(certificates_on_both_sides_open_the_servers),
    on_tokio!(a_server_of_an_unknown_authority_is_not_spoken_to),
    on_tokio!(a_server_under_another_name_is_not_spoken_to),
    on_tokio!(a_client_without_a_certificate_is_refused),
    on_tokio!(a_client_of_an_unknown_authority_is_told_so),
    on_tokio!(a_url_without_tls_for_a_port_with_it_is_recognised),
];

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its private key, in PEM.
struct Identity {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Without a distinct name, OpenSSL takes the certificates that the authority has signed for
        // self-signed ones.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn identity(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![String::from(name)]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    fn trusted(&self) -> TlsConfig {
        TlsConfig::new().with_root_pem(self.pem.clone())
    }

    /// Configuration of a client that trusts this authority and has a certificate signed by it.
    fn known(&self) -> TlsConfig {
        let Identity { certificate, key } = self.identity("client");
        self.trusted().with_client_pem(certificate, key)
    }

    /// Makes `server` listen with a certificate for `name` and require client certificates of this
    /// authority. Returns the URL.
    fn secure(&self, server: &Server, name: &str) -> String {
        let Identity { certificate, key } = self.identity(name);
        let files =
            [("authority.pem", &self.pem), ("certificate.pem", &certificate), ("key.pem", &key)];
        for (file, text) in files {
            std::fs::write(server.directory().join(file), text).unwrap();
        }
        let port = free_port();
        server.ask::<()>(&format!(
            "CONFIG SET tls-ca-cert-file authority.pem tls-cert-file certificate.pem \
             tls-key-file key.pem tls-auth-clients yes tls-port {port}"
        ));
        format!("rediss://127.0.0.1:{port}")
    }
}

fn client(urls: Vec<String>, tls: TlsConfig) -> Redlock {
    patient(urls).tls(tls).build().unwrap()
}

/// Returns the text of the error when no node can be reached.
async fn refused(redlock: &Redlock) -> String {
    let error = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    error.to_string()
}

async fn certificates_on_both_sides_open_the_servers() {
    let (fleet, authority) = (Fleet::of(5), Authority::new());
    let urls = fleet.iter().map(|server| authority.secure(server, "127.0.0.1")).collect();
    let redlock = client(urls, authority.known());
    fleet.connect(&redlock).await;
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    lease.extend(TTL).await.unwrap();
    assert_eq!(lease.release().await, Released::Confirmed);
    drop(redlock.acquire("res").await.unwrap());
    fleet.empties(SOON).await;
    let inspection = redlock.inspect().await;
    assert!(inspection.fingerprint.is_some(), "{inspection}");
}

async fn a_server_of_an_unknown_authority_is_not_spoken_to() {
    let (server, authority) = (Server::start(&[]), Authority::new());
    let urls = vec![authority.secure(&server, "127.0.0.1")];
    let others = Authority::new();
    let error = refused(&client(urls.clone(), others.known())).await;
    assert!(error.contains("UnknownIssuer") || error.contains("certificate"), "{error}");
    assert_eq!(server.calls("hello"), 0);
    client(urls, authority.known()).try_acquire("res").await.unwrap().release().await;
}

async fn a_server_under_another_name_is_not_spoken_to() {
    let (server, authority) = (Server::start(&[]), Authority::new());
    let urls = vec![authority.secure(&server, "elsewhere.example")];
    let error = refused(&client(urls, authority.known())).await;
    assert!(error.contains("certificate"), "{error}");
    assert_eq!(server.calls("hello"), 0);
}

async fn a_client_without_a_certificate_is_refused() {
    let (server, authority) = (Server::start(&[]), Authority::new());
    let urls = vec![authority.secure(&server, "127.0.0.1")];
    let error = refused(&client(urls, authority.trusted())).await;
    assert!(error.contains("TLS: the server demands a certificate of the client"), "{error}");
    assert_eq!(server.keys(), 0);
}

async fn a_client_of_an_unknown_authority_is_told_so() {
    let (server, authority) = (Server::start(&[]), Authority::new());
    let urls = vec![authority.secure(&server, "127.0.0.1")];
    let Identity { certificate, key } = Authority::new().identity("client");
    let tls = authority.trusted().with_client_pem(certificate, key);
    let error = refused(&client(urls, tls)).await;
    assert!(error.contains("TLS: the server refuses the certificate of this client"), "{error}");
}

async fn a_url_without_tls_for_a_port_with_it_is_recognised() {
    let (server, authority) = (Server::start(&[]), Authority::new());
    let url = authority.secure(&server, "127.0.0.1").replace("rediss", "redis");
    let error = refused(&client(vec![url], authority.known())).await;
    assert!(error.contains("does the server expect TLS (`rediss://`)?"), "{error}");
}
