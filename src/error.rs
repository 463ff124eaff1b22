//! Errors, and reasons for the end of a lease.

mod acquire;
mod build;
mod extend;
mod lease;
mod node;
mod resource;

pub use self::acquire::{AcquireError, AcquireErrorKind, WithError};
pub use self::build::{BuildError, EndpointError, OptionError, TtlError};
pub use self::extend::{ExtendError, ExtendErrorKind};
pub use self::lease::{CheckError, Closed, LostReason, Released};
pub(crate) use self::node::{NO_ANSWER, NO_CONNECTION, NO_TLS_ANSWER};
pub use self::node::{NodeAnswer, NodeVerdict};
pub use self::resource::ResourceError;

#[cfg(test)]
mod tests {
    use core::fmt::Debug;

    use super::*;
    use crate::observe::{AttemptError, Operation};

    /// Checks that each word is the variant's name in snake case.
    fn check<T: Debug + Copy>(all: &[T], word: impl Fn(T) -> &'static str) {
        for &it in all {
            let name = format!("{it:?}");
            let name = name.split('(').next().unwrap_or_default();
            let parts = name.split_inclusive(|_: char| true).map(|letter| {
                if letter.chars().all(char::is_uppercase) {
                    format!("_{letter}")
                } else {
                    letter.into()
                }
            });
            let expected = parts.collect::<String>().to_lowercase();
            assert_eq!(word(it), expected.trim_start_matches('_'));
        }
    }

    #[test]
    fn a_word_is_the_name_of_its_variant() {
        use AcquireErrorKind as Kind;
        let kinds =
            [Kind::Closed, Kind::Invalid, Kind::NoEntropy, Kind::NoRuntime, Kind::Overloaded];
        check(&kinds, Kind::as_str);
        let kinds = [Kind::Quarantined, Kind::Split, Kind::Taken, Kind::TooFewNodes, Kind::TooSlow];
        check(&kinds, Kind::as_str);
        use ExtendErrorKind as Extend;
        check(&[Extend::Invalid, Extend::Lost(LostReason::KeysGone)], Extend::as_str);
        check(&[Extend::TooMany, Extend::TooSlow, Extend::WouldShorten], Extend::as_str);
        check(&[LostReason::DeadlinePassed, LostReason::KeepAliveEnded], LostReason::as_str);
        check(&[LostReason::KeepAliveFailed, LostReason::Released], LostReason::as_str);
        check(&[NodeVerdict::NotAsked, NodeVerdict::NotCounted], NodeVerdict::as_str);
        check(&[AttemptError::TooFewNodes, AttemptError::Cancelled], AttemptError::as_str);
        check(&[Operation::TimeLeft, Operation::Introduce], Operation::as_str);
    }
}
