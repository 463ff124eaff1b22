use super::super::{
    BUSY, DENY_OOM, Keys, LOADING, NO_AUTH, NO_MULTI, NO_SCRIPT, READ, SORTED, STALE, WRITE,
};
use super::*;

fn every() -> impl Iterator<Item = &'static Spec> {
    SORTED.iter().flat_map(|spec| core::iter::once(*spec).chain(spec.subcommands))
}

#[test]
fn each_command_has_a_line_and_each_line_a_command() {
    let mut names: Vec<_> = every().map(|spec| spec.name).collect();
    names.sort_unstable();
    assert!(FACTS.keys().eq(&names), "{:?}", FACTS.keys().collect::<Vec<_>>());
}

#[test]
fn every_word_of_the_table_is_read() {
    for (name, facts) in FACTS.iter() {
        assert!(facts.categories().all(|it| CATEGORIES.contains(&it)), "{name}");
        assert_eq!(facts.keys().count(), facts.keys.matches('@').count(), "{name}");
    }
}

/// `WAIT` and `BLPOP` may stand in a script on some servers; `PING` is not said to be allowed while a server
/// loads; the transaction's own commands say themselves that they do not nest.
#[test]
fn the_facts_of_a_command_are_true() {
    for spec in every() {
        let facts = Facts::of(spec);
        for (name, flag) in [
            ("allow_busy", BUSY),
            ("denyoom", DENY_OOM),
            ("loading", LOADING),
            ("no_auth", NO_AUTH),
            ("no_multi", NO_MULTI),
            ("noscript", NO_SCRIPT),
            ("stale", STALE),
            ("write", WRITE),
        ] {
            let is_exempt = match spec.name {
                "multi" | "watch" => flag == NO_MULTI,
                "blpop" | "brpop" | "wait" | "waitaof" => flag == NO_SCRIPT,
                _ => false,
            };
            let says = facts.flags().any(|it| it == name);
            assert!(says == spec.has(flag) || is_exempt, "{} {name}", spec.name);
        }
        assert_eq!(facts.keys().next().is_some(), spec.keys != Keys::None, "{}", spec.name);
        let reads = facts.flags().any(|it| it == "readonly") && !spec.name.ends_with("_ro");
        assert_eq!(reads, spec.has(READ), "{}", spec.name);
    }
}
