//! Steps of attempts and leases that a command reaches, and for which faults can wait.

use lock_judge::history::OpKind;
use lock_judge::scenario::AttemptStep;

/// Returns the step in which a command leaves its client.
pub(crate) const fn written(op: OpKind) -> Option<AttemptStep> {
    match op {
        OpKind::Set => Some(AttemptStep::Write),
        OpKind::Extend | OpKind::Expire => Some(AttemptStep::ExtendWrite),
        OpKind::Release | OpKind::Delete => Some(AttemptStep::ReleaseWrite),
        _ => None,
    }
}

/// Returns the step in which a node executes a command.
pub(crate) const fn executed(op: OpKind) -> Option<AttemptStep> {
    match written(op) {
        Some(AttemptStep::Write) => Some(AttemptStep::Execute),
        Some(AttemptStep::ExtendWrite) => Some(AttemptStep::ExtendExecute),
        Some(AttemptStep::ReleaseWrite) => Some(AttemptStep::ReleaseExecute),
        _ => None,
    }
}

/// Returns the step in which the client receives the reply to a command.
pub(crate) const fn replied(op: OpKind) -> Option<AttemptStep> {
    match written(op) {
        Some(AttemptStep::Write) => Some(AttemptStep::Reply),
        Some(AttemptStep::ExtendWrite) => Some(AttemptStep::ExtendReply),
        Some(AttemptStep::ReleaseWrite) => Some(AttemptStep::ReleaseReply),
        _ => None,
    }
}

/// Returns true if the engine `turmoil` sees the step: the production client's extensions and releases
/// are bytes on a socket, which it recognises when a node executes them.
pub(crate) const fn is_seen_by_turmoil(step: AttemptStep) -> bool {
    !matches!(
        step,
        AttemptStep::ExtendWrite
            | AttemptStep::ExtendReply
            | AttemptStep::ReleaseWrite
            | AttemptStep::ReleaseReply
    )
}
