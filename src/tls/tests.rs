use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{HandshakeKind, ServerConfig};

use super::*;

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

struct Signed {
    chain: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, names: &[&str]) -> Signed {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().copied().map(String::from).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        Signed { chain, key: key.serialize_pem() }
    }

    fn trusting(&self) -> TlsConfig {
        TlsConfig::new().with_root_pem(self.pem.clone())
    }

    /// Returns a server with the certificate `signed`. If it `demands` one, the client needs a
    /// certificate of this authority.
    fn acceptor(&self, signed: &Signed, demands: bool) -> TlsAcceptor {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match demands {
            true => builder.with_client_cert_verifier(verifier.build().unwrap()),
            false => builder.with_no_client_auth(),
        };
        let chain = certificates(signed.chain.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
        TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
    }
}

/// Sends a greeting to a server, and reads it back.
async fn greet(tls: &TlsConfig, host: &str, acceptor: TlsAcceptor) -> io::Result<()> {
    let security = Security::new(&tls.connector().unwrap(), host).unwrap();
    greet_again(&security, acceptor).await.0
}

/// As [`greet`], with the client of an earlier connection. Returns also how much of a handshake the
/// server saw.
async fn greet_again(
    security: &Security,
    acceptor: TlsAcceptor,
) -> (io::Result<()>, Option<HandshakeKind>) {
    let (ours, theirs) = duplex(1 << 16);
    let client = async {
        let mut stream = security.secure(Box::new(ours)).await?;
        stream.write_all(b"hello").await?;
        stream.flush().await?;
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).await?;
        assert_eq!(&bytes, b"hello");
        Ok(())
    };
    let server = async {
        let mut stream = acceptor.accept(theirs).await?;
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        io::Result::Ok(stream.get_ref().1.handshake_kind())
    };
    let (outcome, kind) = tokio::join!(client, server);
    (outcome, kind.ok().flatten())
}

#[tokio::test]
async fn a_trusted_server_is_spoken_to_by_name_and_by_address() {
    let authority = Authority::new();
    let signed = authority.sign(&["node.example", "127.0.0.1", "::1"]);
    for host in ["node.example", "127.0.0.1", "::1", "::1%lo"] {
        let acceptor = authority.acceptor(&signed, false);
        greet(&authority.trusting(), host, acceptor).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_with_the_wrong_certificate_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let signed = authority.sign(&["node.example"]);
    for (tls, host, why) in [
        (authority.trusting(), "other.example", "not valid for name"),
        (authority.trusting(), "127.0.0.1", "not valid for name"),
        (other.trusting(), "node.example", "BadSignature"),
    ] {
        let acceptor = authority.acceptor(&signed, false);
        let error = greet(&tls, host, acceptor).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn every_connection_verifies_the_certificate() {
    let authority = Authority::new();
    let security = Security::new(&authority.trusting().connector().unwrap(), "a").unwrap();
    let acceptor = authority.acceptor(&authority.sign(&["a"]), false);
    for _ in 0..3 {
        let (outcome, kind) = greet_again(&security, acceptor.clone()).await;
        outcome.unwrap();
        // A resumed session shows no certificate.
        let is_full =
            matches!(kind, Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest));
        assert!(is_full, "{kind:?}");
    }
}

#[tokio::test]
async fn a_server_that_demands_a_certificate_is_shown_one() {
    let authority = Authority::new();
    let (server, client) = (authority.sign(&["a"]), authority.sign(&["client"]));
    let with = authority.trusting().with_client_pem(client.chain, client.key);
    greet(&with, "a", authority.acceptor(&server, true)).await.unwrap();
}

#[tokio::test]
async fn a_refusal_of_the_client_says_whose_certificate_it_is() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (server, client) = (authority.sign(&["a"]), other.sign(&["client"]));
    let without = authority.trusting();
    let of_other = authority.trusting().with_client_pem(client.chain, client.key);
    for (tls, expected) in [
        (without, "TLS: the server demands a certificate of the client (CertificateRequired)"),
        (of_other, "TLS: the server refuses the certificate of this client (DecryptError)"),
    ] {
        let error = greet(&tls, "a", authority.acceptor(&server, true)).await.unwrap_err();
        assert_eq!(explained(&error).unwrap().to_string(), expected);
    }
    let error = greet(&other.trusting(), "a", authority.acceptor(&server, true)).await.unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("TLS: invalid peer certificate"), "it is the server's: {told}");
}

#[tokio::test]
async fn an_authority_that_was_not_read_is_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut connector = other.trusting().connector().unwrap();
    connector.unread = Some("no such file: /ca.pem".into());
    let acceptor = || authority.acceptor(&authority.sign(&["a"]), false);
    let error = async |connector: &Connector| {
        let security = Security::new(connector, "a").unwrap();
        greet_again(&security, acceptor()).await.0.unwrap_err().to_string()
    };
    let told = error(&connector).await;
    assert!(
        told.ends_with("; not every trusted certificate is read: no such file: /ca.pem"),
        "{told}"
    );
    // A certificate for another name has nothing to do with authorities.
    connector = authority.trusting().connector().unwrap();
    connector.unread = Some("no such file: /ca.pem".into());
    let security = Security::new(&connector, "b").unwrap();
    let told = greet_again(&security, acceptor()).await.0.unwrap_err().to_string();
    assert!(!told.contains("/ca.pem"), "{told}");
}

fn refused(tls: &TlsConfig) -> TlsError {
    match tls.connector() {
        Err(error) => error,
        Ok(_) => panic!("{tls:?}"),
    }
}

#[test]
fn an_unreadable_certificate_is_refused_by_name() {
    let authority = Authority::new();
    let (one, other) = (authority.sign(&["one"]), authority.sign(&["other"]));
    let trusting = || authority.trusting();
    assert!(matches!(refused(&TlsConfig::new().with_root_pem("x")), TlsError::Root(_)));
    assert!(matches!(refused(&TlsConfig::new().with_root_pem(one.key.clone())), TlsError::Root(_)));
    let no_chain = trusting().with_client_pem("", one.key.clone());
    assert!(matches!(refused(&no_chain), TlsError::ClientCertificate(_)));
    for key in ["", &other.key] {
        let wrong_key = trusting().with_client_pem(one.chain.clone(), key);
        assert!(matches!(refused(&wrong_key), TlsError::ClientKey(_)));
    }
    let connector = trusting().connector().unwrap();
    assert!(matches!(Security::new(&connector, "-"), Err(TlsError::ServerName(_))));
}

#[test]
fn nothing_shows_a_key() {
    let tls = TlsConfig::new().with_client_pem("chain", "secret key");
    assert_eq!(
        format!("{tls:?}"),
        "TlsConfig { trusts_system: true, shows_certificate: true, .. }"
    );
    assert!(!refused(&tls).to_string().contains("secret"));
}
