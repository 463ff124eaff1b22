//! Rules about options, one a test.

use super::*;
use crate::error::{BuildError, OptionError, TtlError};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn builder() -> Builder {
    Builder::new()
        .nodes(["redis://a", "redis://b", "redis://c"])
        .ttl(10 * SECOND)
        .fleet_max_ttl(30 * SECOND)
}

fn refused(builder: Builder) -> BuildError {
    builder.build().map(|_| ()).unwrap_err()
}

#[test]
fn the_defaults_build_without_a_runtime() {
    assert!(builder().build().is_ok());
}

#[test]
fn options_without_a_default_are_required() {
    let nodes = || Builder::new().nodes(["redis://a"]);
    assert_eq!(refused(nodes().fleet_max_ttl(SECOND)), BuildError::Missing("ttl"));
    assert_eq!(refused(nodes().ttl(SECOND)), BuildError::Missing("fleet_max_ttl"));
    assert_eq!(refused(Builder::new().ttl(SECOND).fleet_max_ttl(SECOND)), BuildError::NoNodes);
}

#[test]
fn a_ttl_that_redis_or_the_fleet_cannot_keep_is_refused() {
    for (ttl, why) in [
        (Duration::ZERO, TtlError::Zero),
        (Duration::from_micros(1_500), TtlError::SubMillisecond),
        (30 * SECOND + MS, TtlError::BeyondFleet),
        (2 * MS, TtlError::WithinDrift),
        (Duration::MAX, TtlError::Absurd),
    ] {
        assert_eq!(refused(builder().ttl(ttl)), OptionError::Ttl { ttl, why }.into());
    }
}

#[test]
fn a_fleet_max_ttl_that_no_ttl_can_have_is_refused_by_name() {
    for (fleet_max_ttl, why) in [
        (Duration::ZERO, TtlError::Zero),
        (2 * MS, TtlError::WithinDrift),
        (Duration::MAX, TtlError::Absurd),
    ] {
        let refusal = OptionError::FleetMaxTtl { fleet_max_ttl, why };
        assert_eq!(refused(builder().ttl(SECOND).fleet_max_ttl(fleet_max_ttl)), refusal.into());
        assert!(refusal.to_string().starts_with("a fleet_max_ttl of "), "{refusal}");
    }
}

#[test]
fn a_node_timeout_must_be_small_against_the_ttl() {
    let with = |node_timeout| builder().ttl(SECOND).node_timeout(node_timeout).build();
    assert!(with(249 * MS).is_ok());
    assert!(with(250 * MS).is_err());
    assert!(with(Duration::ZERO).is_err());
}

#[test]
fn a_min_validity_leaves_something_of_the_ttl_less_drift() {
    assert!(builder().min_validity(9_897 * MS).build().is_ok());
    let (min_validity, worth_at_most, ttl) = (9_898 * MS, 9_898 * MS, 10 * SECOND);
    let refusal = OptionError::MinValidity { min_validity, worth_at_most, ttl };
    assert_eq!(refused(builder().min_validity(min_validity)), refusal.into());
    assert!(builder().ttl(3 * MS).build().is_ok());
}

#[test]
fn a_canary_needs_a_name_that_a_key_can_have() {
    for bytes in [0, 4_097] {
        let refusal = OptionError::CanaryKey { bytes, most: 4_096 };
        assert_eq!(refused(builder().canary_key(vec![b'x'; bytes])), refusal.into());
    }
    let probe = builder().canary_key("redlock-client:inspect");
    assert_eq!(refused(probe), OptionError::CanaryIsProbe.into());
    assert!(builder().canary_key("mine").build().is_ok());
}

#[test]
fn one_node_twice_and_ten_nodes_are_refused() {
    let twice = builder().nodes(["redis://a", "redis://b", "redis://A:6379"]);
    let endpoint = String::from("redis://a:6379");
    let refusal = BuildError::DuplicateNode { first: 0, second: 2, endpoint };
    assert!(refusal.to_string().starts_with("nodes 0 and 2, counted from 0, are the same server"));
    assert_eq!(refused(twice), refusal);
    let ten = (0..10).map(|place| format!("redis://n{place}"));
    assert_eq!(refused(builder().nodes(ten)), BuildError::TooManyNodes(10));
}

#[test]
fn credentials_have_one_source() {
    let provided = |nodes: [&str; 3]| {
        let none = async |_: NodeName| Ok::<_, std::io::Error>(Credentials::new("me", "x"));
        builder().nodes(nodes).credentials(none)
    };
    let endpoint = String::from("redis://b:6379");
    let twice = provided(["redis://a", "redis://me:hush@b", "redis://c"]);
    assert_eq!(refused(twice), BuildError::CredentialsTwice { place: 1, endpoint });
    assert!(provided(["redis://a", "redis://b", "redis://c"]).build().is_ok());
}

#[test]
fn drift_can_be_widened_only() {
    for (share_ppm, constant) in [(9_999, 2 * MS), (10_000, MS), (0, SECOND)] {
        let refusal = OptionError::Drift { share_ppm, constant };
        assert_eq!(refused(builder().drift(share_ppm, constant)), refusal.into());
    }
    assert!(builder().drift(10_000, 2 * MS).build().is_ok());
    let (fleet_max_ttl, why) = (30 * SECOND, TtlError::WithinDrift);
    let refusal = OptionError::FleetMaxTtl { fleet_max_ttl, why };
    assert_eq!(refused(builder().drift(1_000_000, 2 * MS)), refusal.into());
    assert!(builder().drift(20_000, 2 * MS).min_validity(9_797 * MS).build().is_ok());
    assert!(builder().drift(20_000, 2 * MS).min_validity(9_798 * MS).build().is_err());
}
