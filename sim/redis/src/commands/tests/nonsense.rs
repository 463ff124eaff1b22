//! Every command with arbitrary arguments: no panic, and a reply that is complete.

use proptest::prelude::*;

use super::*;
use crate::commands::SORTED;

fn word() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "0",
        "1",
        "-1",
        "2",
        "9223372036854775807",
        "-9223372036854775808",
        "k",
        "",
        "NX",
        "XX",
        "GT",
        "PX",
        "EX",
        "GET",
        "IFEQ",
        "IFDEQ",
        "b6acb9d84a38ff74",
        "ON",
        "3",
        "return redis.call(unpack(ARGV))",
        "default",
        "maxmemory",
        "*",
        "MATCH",
        "COUNT",
        "TYPE",
        "ID",
        "LADDR",
        "REPLACE",
        "DB",
        "ASYNC",
        "SETNAME",
        "AUTH",
        "SKIPME",
        "[a-",
    ];
    prop_oneof![
        6 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn request() -> impl Strategy<Value = Vec<Bytes>> {
    let names = SORTED.iter().flat_map(|spec| {
        let subcommands = spec.subcommands.iter().map(|it| it.name.split('|').collect());
        core::iter::once(vec![spec.name]).chain(subcommands)
    });
    let names: Vec<Vec<&str>> = names.collect();
    (prop::sample::select(names), prop::collection::vec(word(), 0..6)).prop_map(|(name, words)| {
        let name = name.into_iter().map(|it| Bytes::from_static(it.as_bytes()));
        name.chain(words.into_iter().map(Bytes::from)).collect()
    })
}

proptest! {
    #[test]
    fn no_request_is_too_bad(
        requests in prop::collection::vec((0..2_usize, request()), 1..12),
        profile in prop::sample::select(PROFILES.to_vec()),
    ) {
        let mut bench = Bench::new(profile);
        for (place, request) in requests {
            let out = bench.bytes(place, &request);
            prop_assert!(out.is_empty() || out.ends_with(b"\r\n"), "{request:?}: {out:?}");
        }
    }
}
