//! The client's reasons in the history's terms.

use lock_judge::history::{LostReason, Refusal, Settlement};
use redlock_protocol::{AttemptError, ExtendError};

/// Converts the client's reason for the end of an attempt into the history's term.
pub(crate) fn settlement(reason: AttemptError) -> Settlement {
    match reason {
        AttemptError::Cancelled => Settlement::Cancelled,
        AttemptError::Quarantined => Settlement::Quarantined,
        AttemptError::Split => Settlement::Split,
        AttemptError::Taken => Settlement::Taken,
        AttemptError::Overloaded => Settlement::Overloaded,
        AttemptError::TooFewNodes => Settlement::TooFewNodes,
        AttemptError::TooSlow => Settlement::TooSlow,
    }
}

/// Converts the client's reason for the end of a lease into the history's term.
pub(crate) fn lost(reason: redlock_client::LostReason) -> LostReason {
    use redlock_client::LostReason as Client;
    match reason {
        Client::Closed => LostReason::Closed,
        Client::DeadlinePassed => LostReason::DeadlinePassed,
        Client::KeepAliveEnded => LostReason::KeepAliveEnded,
        Client::KeepAliveFailed => LostReason::KeepAliveFailed,
        Client::KeysGone => LostReason::KeysGone,
        _ => unreachable!("no loss is reported of a lease that was released"),
    }
}

/// Converts the client's reason for refusing to begin an extension into the history's term.
pub(super) fn refusal(reason: ExtendError) -> Refusal {
    match reason {
        ExtendError::Busy => Refusal::Busy,
        ExtendError::Lost(_) => Refusal::Lost,
        ExtendError::TooLong => Refusal::TooLong,
        ExtendError::TooMany => Refusal::TooMany,
        ExtendError::WouldShorten => Refusal::WouldShorten,
        _ => unreachable!("nodes were asked: {reason:?}"),
    }
}
