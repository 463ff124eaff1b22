//! Access to a server: passwords, users, rights, databases, sockets.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, Inspection, Redlock, Released, Severity};

use crate::fleet::{Fleet, SOON, TTL, patient};
use crate::server::Server;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_password_opens_a_server),
    on_tokio!(a_wrong_password_is_named_and_not_shown),
    on_tokio!(the_rights_that_the_manual_asks_for_are_enough),
    on_tokio!(each_of_the_rights_that_the_manual_asks_for_is_needed),
    on_tokio!(inspection_names_each_missing_right),
    on_tokio!(concurrent_inspections_name_a_missing_right),
    on_tokio!(inspection_names_the_tests_that_it_has_no_right_to),
    on_tokio!(a_name_outside_of_the_users_keys_is_refused),
    on_tokio!(a_database_keeps_the_keys),
    on_tokio!(a_socket_with_a_path_is_as_good_as_a_port),
    on_tokio!(a_server_without_the_newer_commands_will_do),
];

/// Rights that a user of the client needs, besides `on >password ~prefix*`.
const RIGHTS: &str = "resetchannels ~redlock-client:canary ~redlock-client:inspect -@all +info +set +get +del \
     +pttl +pexpire +eval +evalsha +time +client|tracking +client|caching +script|load +client|setname";

const PASSWORD: &str = "p@ss:w/rd?";
const PASSWORD_IN_A_URL: &str = "p%40ss%3Aw%2Frd%3F";

fn client(url: String) -> Redlock {
    patient(vec![url]).build().unwrap()
}

/// Returns the server's URL for `user`, which is `name:password`.
fn url_of(server: &Server, user: &str) -> String {
    format!("redis://{user}@127.0.0.1:{}", server.port())
}

/// Does everything that the client ever does with a server.
async fn works(url: String, server: &Server) -> Result<(), String> {
    let redlock = client(url);
    for _ in 0..2 {
        let lease = redlock.try_acquire("lock:res").ttl(TTL / 2).await;
        let lease = lease.map_err(|error| error.to_string())?;
        lease.extend(TTL).await.map_err(|error| error.to_string())?;
        match lease.release().await {
            Released::Confirmed => {}
            released => return Err(format!("{released:?}")),
        }
        // Makes the client send its scripts as text the next time.
        server.ask::<()>("SCRIPT FLUSH");
    }
    let inspection = redlock.inspect().await;
    let report = inspection.nodes[0].report.as_ref().map_err(|error| error.to_string())?;
    if report.refused.is_empty() { Ok(()) } else { Err(inspection.to_string()) }
}

async fn a_password_opens_a_server() {
    let server = Server::start(&[]);
    server.ask::<()>(&format!("ACL SETUSER locker on >{PASSWORD} ~* +@all"));
    works(url_of(&server, &format!("locker:{PASSWORD_IN_A_URL}")), &server).await.unwrap();
    server.ask::<()>(&format!("CONFIG SET requirepass {PASSWORD}"));
    for user in ["", "default"] {
        let redlock = client(url_of(&server, &format!("{user}:{PASSWORD_IN_A_URL}")));
        let lease = redlock.try_acquire("res").await.unwrap();
        assert_eq!(lease.release().await, Released::Confirmed);
    }
}

async fn a_wrong_password_is_named_and_not_shown() {
    let server = Server::start(&[]);
    server.ask::<()>("ACL SETUSER locker on >right ~* +@all");
    server.ask::<()>("CONFIG SET requirepass right");
    let urls = [url_of(&server, "locker:hunter2"), url_of(&server, ":hunter2"), server.url()];
    for (url, words) in urls.into_iter().zip(["WRONGPASS", "WRONGPASS", "NOAUTH"]) {
        let redlock = client(url);
        let error = redlock.acquire("res").wait(Duration::from_millis(300)).await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
        let inspection = redlock.inspect().await;
        let shown = format!("{error} {error:?} {inspection} {redlock:?} {:?}", redlock.health());
        assert!(error.to_string().contains(words), "{error}");
        assert!(!shown.contains("hunter2") && !shown.contains("locker"), "{shown}");
    }
}

async fn the_rights_that_the_manual_asks_for_are_enough() {
    let server = Server::start(&[]);
    server.ask::<()>(&format!("ACL SETUSER locker on >secret ~lock:* {RIGHTS}"));
    works(url_of(&server, "locker:secret"), &server).await.unwrap();
    // Where the user may not run the server's own compare-and-delete, the probe key expires.
    eventually("only the canary is left", SOON, || server.names() == ["redlock-client:canary"])
        .await;
}

async fn inspection_names_the_tests_that_it_has_no_right_to() {
    let server = Server::start(&[]);
    let without = RIGHTS.replace("~redlock-client:inspect ", "");
    for (rights, is_tested) in [(RIGHTS, true), (without.as_str(), false)] {
        server.ask::<()>(&format!("ACL SETUSER locker reset on >secret ~lock:* {rights}"));
        let inspection = client(url_of(&server, "locker:secret")).inspect().await;
        let note = "was not tested for pushes, full memory and a disk that cannot be written";
        assert_eq!(!inspection.to_string().contains(note), is_tested, "{inspection}");
    }
}

/// Returns the rights of the manual without `right`.
fn rights_without(right: &str) -> String {
    let others = RIGHTS.split_whitespace().filter(|&it| it != right);
    others.collect::<Vec<_>>().join(" ")
}

/// Returns the commands that an inspection reports as refused, as errors.
fn refused(inspection: &Inspection) -> Vec<&str> {
    let errors = inspection.findings.iter().filter(|it| it.severity == Severity::Error);
    errors.map(|it| it.text.as_str()).filter(|text| text.contains(" refused ")).collect()
}

async fn inspection_names_each_missing_right() {
    let server = Server::start(&[]);
    for right in ["set", "get", "del", "pttl", "pexpire", "eval", "evalsha"] {
        let rights = rights_without(&format!("+{right}"));
        server.ask::<()>(&format!("ACL SETUSER locker reset on >secret ~lock:* {rights}"));
        let inspection = client(url_of(&server, "locker:secret")).inspect().await;
        let errors = refused(&inspection);
        let named = format!("'{right}' command");
        assert!(errors.iter().any(|it| it.contains(&named)), "without {right}: {errors:?}");
        let remedy = "Grant the user the rights of docs/operations.md.";
        assert!(errors.iter().all(|it| it.ends_with(remedy)), "without {right}: {errors:?}");
    }
}

/// The key of the tests is the same for all inspections.
async fn concurrent_inspections_name_a_missing_right() {
    let server = Server::start(&[]);
    for right in ["del", "pexpire"] {
        let rights = rights_without(&format!("+{right}"));
        server.ask::<()>(&format!("ACL SETUSER locker reset on >secret ~lock:* {rights}"));
        let clients: Vec<_> = (0..8).map(|_| client(url_of(&server, "locker:secret"))).collect();
        let inspect = |redlock: Redlock| async move { redlock.inspect().await };
        let inspecting: Vec<_> = clients.into_iter().map(|it| tokio::spawn(inspect(it))).collect();
        for inspection in inspecting {
            let inspection = inspection.await.unwrap();
            let named = format!("'{right}' command");
            let is_named = refused(&inspection).iter().any(|it| it.contains(&named));
            assert!(is_named, "without {right}: {inspection}");
        }
    }
}

async fn each_of_the_rights_that_the_manual_asks_for_is_needed() {
    let server = Server::start(&[]);
    // The client works without these rights, but with less: it knows less about the data set, sends
    // scripts twice, and has no name.
    let comforts =
        ["+time", "+client|tracking", "+client|caching", "+script|load", "+client|setname"];
    let rights = RIGHTS.split(' ').filter(|right| right.starts_with('+'));
    for right in rights {
        let others = rights_without(right);
        server.ask::<()>(&format!("ACL SETUSER locker reset on >secret ~lock:* {others}"));
        server.ask::<()>("SCRIPT FLUSH");
        server.ask::<()>("FLUSHALL");
        let outcome = works(url_of(&server, "locker:secret"), &server).await;
        assert_eq!(outcome.is_ok(), comforts.contains(&right), "without {right}: {outcome:?}");
    }
}

async fn a_name_outside_of_the_users_keys_is_refused() {
    let server = Server::start(&[]);
    server.ask::<()>(&format!("ACL SETUSER locker on >secret ~lock:* {RIGHTS}"));
    let redlock = client(url_of(&server, "locker:secret"));
    let error = redlock.try_acquire("res").await.unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "{error}");
    redlock.try_acquire("lock:res").await.unwrap().release().await;
}

async fn a_database_keeps_the_keys() {
    let fleet = Fleet::of(3);
    let urls = |database: u32| fleet.urls().into_iter().map(move |url| format!("{url}/{database}"));
    let (three, four) = (patient(urls(3).collect()), patient(urls(4).collect()));
    let (three, four) = (three.build().unwrap(), four.build().unwrap());
    let lease = three.acquire("res").await.unwrap();
    let other = four.acquire("res").await.unwrap();
    eventually("the key is in its database", SOON, || {
        fleet[0].ask::<String>("INFO keyspace").contains("db3:keys=2")
    })
    .await;
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(other.release().await, Released::Confirmed);
    // After a reconnection the client uses the same database.
    fleet[0].ask::<()>("CLIENT KILL TYPE normal SKIPME yes");
    eventually("both are back", SOON, || fleet[0].connections().len() == 2).await;
    let lease = three.acquire("res").wait(SOON).await.unwrap();
    assert_eq!(four.acquire("res").await.unwrap().release().await, Released::Confirmed);
    assert_eq!(lease.release().await, Released::Confirmed);
    let too_high = patient(urls(99).collect()).build().unwrap();
    let error = too_high.try_acquire("res").await.unwrap_err();
    assert!(error.to_string().contains("out of range"), "{error}");
    fleet.empties(SOON).await;
}

async fn a_socket_with_a_path_is_as_good_as_a_port() {
    let mut fleet = Fleet::with(3, &["--unixsocket", "redis.sock"]);
    let socket = |server: &Server| format!("unix://{}/redis.sock", server.directory().display());
    let redlock = patient(fleet.iter().map(socket).collect()).build().unwrap();
    fleet.connect(&redlock).await;
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    lease.extend(TTL).await.unwrap();
    assert_eq!(lease.release().await, Released::Confirmed);
    fleet[0].restart();
    redlock.acquire("res").wait(SOON).await.unwrap().release().await;
    fleet.empties(SOON).await;
}

/// Like many proxies, and like servers older than version 6.
async fn a_server_without_the_newer_commands_will_do() {
    let without = |command| ["--rename-command", command, ""];
    let options = [without("HELLO"), without("CLIENT"), without("SCRIPT")].concat();
    let fleet = Fleet::with(3, &options);
    let redlock = fleet.client();
    for _ in 0..2 {
        let lease = redlock.acquire("res").await.unwrap();
        fleet.all_hold("res", &lease).await;
        lease.extend(TTL).await.unwrap();
        assert_eq!(lease.release().await, Released::Confirmed);
    }
    assert_eq!(fleet.keys(), [0; 3]);
}
