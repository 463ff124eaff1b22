//! Nodes that demand TLS and a certificate of the client, which is what a server does by default.

use std::fs;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use crate::Test;
use crate::fleet::{Done, REDLOCK, finish};
use crate::server::{Server, free_port, is_simulated};

pub(crate) const TESTS: &[Test] = &[
    ("certificates_come_from_options", certificates_come_from_options),
    ("certificates_come_from_variables_and_the_file", certificates_come_from_elsewhere),
    ("a_faulty_certificate_names_its_setting", a_faulty_certificate_names_its_setting),
];

/// A server that demands TLS, and in its directory `ca.pem`, and `client.pem` and `client.key`.
struct Secured {
    server: Server,
    url: String,
}

impl Secured {
    fn start() -> Self {
        let server = Server::start(&[]);
        let authority = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Without a distinct name, OpenSSL takes the certificates that the authority has signed for
        // self-signed ones.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let write = |name: &str, text: &str| {
            fs::write(server.directory().join(name), text).unwrap();
        };
        write("ca.pem", &params.self_signed(&authority).unwrap().pem());
        let issuer = Issuer::new(params, authority);
        for (file, name) in [("server", "127.0.0.1"), ("client", "client")] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![String::from(name)]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            write(&format!("{file}.pem"), &params.signed_by(&key, &issuer).unwrap().pem());
            write(&format!("{file}.key"), &key.serialize_pem());
        }
        let port = free_port();
        server.ask::<()>(&format!(
            "CONFIG SET tls-ca-cert-file ca.pem tls-cert-file server.pem tls-key-file server.key \
             tls-auth-clients yes tls-port {port}"
        ));
        Self { server, url: format!("rediss://127.0.0.1:{port}") }
    }

    fn path(&self, name: &str) -> String {
        self.server.directory().join(name).display().to_string()
    }

    /// `redlock run`, without settings of this process.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = Command::new(REDLOCK);
        command.arg("run").args(["--fleet-max-ttl", "10s", "--node-timeout", "1s"]);
        command.args(["--restart-guard", "delayed-restart", "--wait", "0", "--nodes", &self.url]);
        command.env_remove("REDLOCK_CONFIG").env_remove("REDLOCK_NODES");
        command.args(options).args(["res", "--", "echo", "done"]);
        command
    }
}

fn certificates_come_from_options() {
    if is_simulated() {
        return; // its masters have no TLS
    }
    let secured = Secured::start();
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|it| secured.path(it));
    let done = finish(secured.run(&["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key]));
    assert_eq!((done.code, &*done.out), (Some(0), "done\n"), "{}", done.err);
    let done = finish(secured.run(&["--tls-ca", &ca]));
    assert_eq!(done.code, Some(122), "{}", done.err);
    assert!(
        done.err.contains("TLS: the server demands a certificate of the client"),
        "{}",
        done.err
    );
    let done = finish(secured.run(&[]));
    assert!(done.err.contains("TLS: invalid peer certificate: UnknownIssuer"), "{}", done.err);
}

fn certificates_come_from_elsewhere() {
    if is_simulated() {
        return;
    }
    let secured = Secured::start();
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|it| secured.path(it));
    let mut command = secured.run(&[]);
    command.env("SSL_CERT_FILE", &ca).env("REDLOCK_TLS_CA", "");
    let done = finish({
        command.env("REDLOCK_TLS_CERT", &cert).env("REDLOCK_TLS_KEY", &key);
        command
    });
    assert_eq!((done.code, &*done.out), (Some(0), "done\n"), "{}", done.err);
    let file = secured.path("redlock.toml");
    let text = format!("tls_ca = '{ca}'\ntls_cert = '/none'\ntls_key = '{key}'\n");
    fs::write(&file, text).unwrap();
    let done = finish(secured.run(&["--config", &file, "--tls-cert", &cert]));
    assert_eq!((done.code, &*done.out), (Some(0), "done\n"), "{}", done.err);
    let Done { code, err, .. } = finish(secured.run(&["--config", &file]));
    assert_eq!(code, Some(125), "{err}");
    let told = format!("redlock: {file}:2:12: /none cannot be read: No such file or directory");
    assert!(err.starts_with(&told), "{err}");
}

fn a_faulty_certificate_names_its_setting() {
    if is_simulated() {
        return;
    }
    let secured = Secured::start();
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|it| secured.path(it));
    let other_key = secured.path("server.key");
    let missing_key =
        format!("the private key of {cert} is missing (`--tls-key` or REDLOCK_TLS_KEY)");
    let missing_cert =
        format!("the certificate of {key} is missing (`--tls-cert` or REDLOCK_TLS_CERT)");
    for (options, told) in [
        (&["--tls-ca", "/none"][..], "(`--tls-ca` or REDLOCK_TLS_CA)"),
        (&["--tls-ca", &key], "no certificate in PEM (`--tls-ca` or REDLOCK_TLS_CA)"),
        (&["--tls-cert", &cert], &missing_key),
        (&["--tls-key", &key], &missing_cert),
        (&["--tls-cert", &key, "--tls-key", &key], "(`--tls-cert` or REDLOCK_TLS_CERT)"),
        (&["--tls-cert", &cert, "--tls-key", &ca], "(`--tls-key` or REDLOCK_TLS_KEY)"),
        (&["--tls-cert", &cert, "--tls-key", &other_key], "(`--tls-key` or REDLOCK_TLS_KEY)"),
    ] {
        let Done { code, err, .. } = finish(secured.run(options));
        assert_eq!(code, Some(125), "{options:?}: {err}");
        assert!(err.contains(told), "{options:?}: {err}");
    }
}
