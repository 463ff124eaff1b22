//! The pre-flight check finds the faults of real servers, and reports none on sound ones.

use redlock_client::{Inspection, RestartGuard, Severity};

use crate::fleet::{Fleet, SOON, patient};
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(servers_in_order_are_not_objected_to),
    on_tokio!(one_server_under_two_names_is_found),
    on_tokio!(settings_that_make_keys_vanish_are_found),
    on_tokio!(masters_with_replicas_are_found),
    on_tokio!(missing_rights_are_named),
    on_tokio!(full_memory_is_named_as_the_cause),
    on_tokio!(a_missing_password_is_named),
    on_tokio!(a_server_that_is_away_or_hangs_is_named),
    on_tokio!(services_on_the_same_servers_have_the_same_fingerprint),
];

/// Returns the findings of at least this severity.
fn worst(inspection: &Inspection, severity: Severity) -> Vec<&str> {
    let found = inspection.findings.iter().filter(|it| it.severity <= severity);
    found.map(|it| it.text.as_str()).collect()
}

async fn servers_in_order_are_not_objected_to() {
    let fleet = Fleet::of(5);
    let builder = fleet.builder().restart_guard(RestartGuard::Quarantine);
    let inspection = builder.build().unwrap().inspect().await;
    let found = worst(&inspection, Severity::Warning);
    assert_eq!(found.len(), 1, "{inspection}");
    assert!(found[0].starts_with("no lock can be acquired: 0 of 5 nodes can vote"), "{inspection}");
    assert!(found[0].contains("A majority can vote in "), "they are young: {inspection}");
    assert_eq!(inspection.findings.len(), 6, "each forgets when it restarts: {inspection}");
    for node in &inspection.nodes {
        let report = node.report.as_ref().unwrap();
        let server = report.server.as_deref().and_then(|it| it.split(' ').next());
        assert!(matches!(server, Some("redis" | "valkey")), "{inspection}");
        assert!(report.clock_offset_us.unwrap().unsigned_abs() < 500_000, "{inspection}");
    }
    fleet.empties(SOON).await;
}

async fn one_server_under_two_names_is_found() {
    let fleet = Fleet::of(2);
    let mut urls = fleet.urls();
    urls.push(urls[0].replace("127.0.0.1", "localhost"));
    let inspection = patient(urls).build().unwrap().inspect().await;
    let found = worst(&inspection, Severity::Error);
    assert!(found.iter().any(|it| it.contains("are the same server")), "{inspection}");
    assert_eq!(inspection.findings[0].places, [0, 2]);
}

async fn settings_that_make_keys_vanish_are_found() {
    let fleet = Fleet::of(4);
    fleet[0].ask::<()>("CONFIG SET maxmemory-policy allkeys-lru");
    let master = fleet[1].port();
    fleet[2].ask::<()>(&format!("REPLICAOF 127.0.0.1 {master}"));
    let builder = fleet.builder().restart_guard_of(3, RestartGuard::Durable);
    let inspection = builder.build().unwrap().inspect().await;
    let found = worst(&inspection, Severity::Warning).join("\n");
    for part in
        ["evicts keys", "is a replica", "promised to be durable, but is not", "4 nodes tolerate"]
    {
        assert!(found.contains(part), "{part}: {inspection}");
    }
    fleet[3].ask::<()>("CONFIG SET appendfsync always");
    fleet[3].ask::<()>("CONFIG SET appendonly yes");
    let inspection = fleet.builder().restart_guard_of(3, RestartGuard::Durable);
    let inspection = inspection.build().unwrap().inspect().await;
    assert!(!inspection.to_string().contains("but is not: set"), "{inspection}");
}

async fn masters_with_replicas_are_found() {
    let (masters, replica) = (Fleet::of(3), Fleet::of(1));
    replica[0].ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", masters[1].port()));
    let connected = || masters[1].ask::<String>("INFO replication").contains("connected_slaves:1");
    eventually("the replica is connected", SOON, connected).await;
    for (guard, severity, part) in [
        (RestartGuard::Durable, Severity::Warning, "may lack acknowledged writes"),
        (RestartGuard::DelayedRestart, Severity::Warning, "must not take over sooner than"),
        (RestartGuard::Quarantine, Severity::Note, "cannot vote until a quarantine is over"),
    ] {
        let builder = masters.builder().restart_guard(guard);
        let inspection = builder.build().unwrap().inspect().await;
        let found = inspection.findings.iter().filter(|it| it.text.contains("1 connected replica"));
        let found: Vec<_> = found.map(|it| (it.severity, &it.places[..], &*it.text)).collect();
        assert!(
            matches!(found[..], [(it, [1], text)] if it == severity && text.contains(part)),
            "{inspection}"
        );
    }
}

async fn missing_rights_are_named() {
    let fleet = Fleet::of(1);
    fleet[0].ask::<()>("ACL SETUSER weak on >secret ~* +info +hello +client +set");
    let url = fleet[0].url().replace("redis://", "redis://weak:secret@");
    let inspection = patient(vec![url]).build().unwrap().inspect().await;
    let found = worst(&inspection, Severity::Error);
    assert!(found.iter().any(|it| it.contains("refused EVALSHA")), "{inspection}");
    assert!(!found.iter().any(|it| it.contains("refused SET")), "{inspection}");
    assert!(!inspection.to_string().contains("secret"));
    fleet[0].ask::<()>("ACL SETUSER keymaster on >secret ~* +info +hello +client");
    let url = fleet[0].url().replace("redis://", "redis://keymaster:secret@");
    let inspection = patient(vec![url]).build().unwrap().inspect().await;
    let found = worst(&inspection, Severity::Error);
    assert!(found[0].contains("This does not end by itself"), "{inspection}");
    assert!(found.iter().any(|it| it.contains("refused SET: NOPERM")), "{inspection}");
}

async fn full_memory_is_named_as_the_cause() {
    let fleet = Fleet::of(1);
    fleet[0].ask::<()>("CONFIG SET maxmemory-policy noeviction");
    fleet[0].ask::<()>("CONFIG SET maxmemory 1");
    let inspection = fleet.client().inspect().await;
    let found = inspection.to_string();
    for part in ["refused SET: OOM", "cannot write a canary (OOM", "was not tested for pushes: OOM"]
    {
        assert!(found.contains(part), "{part}: {inspection}");
    }
    assert!(!found.contains("rights") && !found.contains("RESP3"), "{inspection}");
}

async fn a_missing_password_is_named() {
    let fleet = Fleet::of(1);
    fleet[0].ask::<()>("CONFIG SET requirepass secret");
    let inspection = fleet.client().inspect().await;
    let found = worst(&inspection, Severity::Warning).join("\n");
    assert!(found.contains("refused the connection: it requires a password"), "{inspection}");
}

async fn a_server_that_is_away_or_hangs_is_named() {
    let mut fleet = Fleet::of(3);
    fleet[0].stop();
    fleet[1].kill();
    let inspection = fleet.client().inspect().await;
    fleet[0].cont();
    let found = worst(&inspection, Severity::Warning).join("\n");
    assert!(found.starts_with("no lock can be acquired: 1 of 3 nodes can vote"), "{inspection}");
    assert!(found.contains("does not end by itself"), "{inspection}");
    assert!(found.contains("no answer in time"), "{inspection}");
    assert_eq!(inspection.fingerprint, None);
}

async fn services_on_the_same_servers_have_the_same_fingerprint() {
    let (fleet, other) = (Fleet::of(2), Fleet::of(1));
    let one = fleet.client().inspect().await.fingerprint;
    let mut urls = fleet.urls();
    urls.reverse();
    assert!(one.is_some());
    assert_eq!(patient(urls).build().unwrap().inspect().await.fingerprint, one);
    let urls = [fleet.urls(), other.urls()].concat();
    assert_ne!(patient(urls).build().unwrap().inspect().await.fingerprint, one);
}
