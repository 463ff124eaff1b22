//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use super::dispatch::{check_rights, execute_and_remember, look_up};
use super::{
    AT_ONCE, BUSY, Call, Keys, LOADING, NO_MULTI, NO_SCRIPT, Outcome, Refusal, STALE, Spec,
};
use crate::profile::Rights;
use crate::resp::Value;
use crate::server::Turn;

/// A user may have lost a permission since the command was queued.
const RIGHTS: Rights = Rights {
    no_command: "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
        EXEC call. This command is no longer allowed for the following reason: no permission to \
        execute the command or subcommand",
    no_key: "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
        EXEC call. This command is no longer allowed for the following reason: no permission to \
        touch the specified keys",
    no_channel: "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
        EXEC call. This command is no longer allowed for the following reason: no permission to \
        access one of the channels used as arguments",
};

const FLAGS: u16 = NO_SCRIPT | LOADING | STALE | BUSY | AT_ONCE;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("discard", 1, FLAGS, Keys::None, discard),
    Spec::new("exec", 1, NO_SCRIPT | LOADING | STALE | AT_ONCE, Keys::None, exec),
    Spec::new("multi", 1, FLAGS | NO_MULTI, Keys::None, multi),
    Spec::new("unwatch", 1, NO_SCRIPT | LOADING | STALE | BUSY, Keys::None, unwatch),
    Spec::new("watch", -2, FLAGS | NO_MULTI, Keys::All, watch),
];

fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.begin_transaction() {
        return Ok(Value::ok());
    }
    Err(Refusal::new("ERR MULTI calls can not be nested"))
}

fn discard(call: &mut Call<'_>) -> Outcome {
    call.session.end_transaction().ok_or(Refusal::new("ERR DISCARD without MULTI"))?;
    call.session.unwatch(call.server);
    Ok(Value::ok())
}

fn watch(call: &mut Call<'_>) -> Outcome {
    if call.session.is_in_transaction() {
        return Err(Refusal::new("ERR WATCH inside MULTI is not allowed"));
    }
    for key in call.arguments() {
        call.session.watch(call.server, key, call.turn.wall_ns / 1_000_000);
    }
    Ok(Value::ok())
}

fn unwatch(call: &mut Call<'_>) -> Outcome {
    call.session.unwatch(call.server);
    Ok(Value::ok())
}

/// Executes the queued commands in one step; an error in one does not stop the others.
fn exec(call: &mut Call<'_>) -> Outcome {
    let transaction = call.session.end_transaction();
    let transaction = transaction.ok_or(Refusal::new("ERR EXEC without MULTI"))?;
    let conflict = call.session.has_conflict(call.server, call.wall_ms());
    call.session.unwatch(call.server);
    if transaction.is_refused {
        return Err(Refusal::new("EXECABORT Transaction discarded because of previous errors."));
    }
    if conflict {
        return Ok(Value::NullArray);
    }
    let queued = transaction.queued.iter().map(|words| {
        let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        let spec = match look_up(&words, call.server) {
            Ok(spec) => spec,
            Err(refusal) => return (call.session.protocol(), Value::from(refusal)),
        };
        let mut inner = Call {
            server: call.server,
            session: call.session,
            words: &words,
            turn: Turn { touched: call.turn.touched, ..call.turn },
            name: spec.name,
            is_inner: true,
            ending: None,
        };
        let outcome = match check_rights(spec, &words, inner.server, inner.session, &RIGHTS) {
            Ok(()) => execute_and_remember(spec, &mut inner),
            Err(refusal) => Err(refusal),
        };
        let value = inner.with_own_messages(outcome.unwrap_or_else(Value::from));
        call.ending = call.ending.or(inner.ending);
        (call.session.protocol(), value)
    });
    let values: Vec<_> = queued.collect();
    // Each reply is encoded in the protocol version in force when its command was executed.
    let last = call.session.protocol();
    let values = values.into_iter().map(|(protocol, value)| match protocol == last {
        true => value,
        false => Value::In(protocol, Box::new(value)),
    });
    Ok(Value::Array(values.collect()))
}
