//! Commands of one connection that are written but not answered yet.
//!
//! Replies carry no identifier: a server answers in the order of the commands, and the machines
//! match replies by that order. Some commands are written more than once. If the server rejects the
//! form of a command, the command is written again in another form, after all others. If a refused
//! SET does not show the key's holder, a query for the holder is written in the same way. Replies
//! to commands written in between are held back until the final reply has arrived. So the machines
//! see one reply per command, in order; a command that was written again is only a slow one. That
//! is safe, because an owner-checked command does no harm whenever it is executed.
//!
//! A look or read that follows a command which is written again would be executed before it: it
//! would not see the change, and the change would end its registration. So it is written again,
//! too.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use redlock_protocol::{Holder, Op, Reply};

use crate::endpoint::Endpoint;
use crate::introduction;
use crate::resp::{self, Encoder, Form, Forms, Frame, Malformed, is_not_serving};

/// The unanswered commands of one connection. The link bounds their number; each is written at most
/// three times.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// The commands, oldest first.
    commands: VecDeque<Unanswered>,
    /// Number of the oldest command.
    first: u64,
    /// Numbers of the commands whose replies are under way, in the order of these replies; `None`
    /// for a reply that no caller needs.
    awaited: VecDeque<Option<u64>>,
    preferred: Forms,
    /// True if the server can push changes of keys.
    is_tracked: bool,
}

#[derive(Debug)]
struct Unanswered {
    op: Op,
    form: Form,
    /// A look or read that must follow a command written again: its reply is outdated.
    again: bool,
    /// The reply, kept back until every older command has its own. Boxed because few are kept back.
    answer: Option<Box<Answer>>,
}

/// A node's answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// Text of an error reply, in printable form. With `Reply::Nil` to a SET, that of the reply in
    /// place of the key's holder.
    pub(super) error: Option<Arc<str>>,
}

impl Default for Pipeline {
    fn default() -> Self {
        let (commands, awaited) = (VecDeque::new(), VecDeque::new());
        Self { commands, first: 0, awaited, preferred: Forms::ANYWHERE, is_tracked: false }
    }
}

impl Pipeline {
    /// Records whether the server can push changes of keys.
    pub(super) fn set_tracked(&mut self, is_tracked: bool) {
        self.is_tracked = is_tracked;
    }

    /// Appends a command to `outgoing`; `name` is the name of its key.
    pub(super) fn write(
        &mut self,
        op: Op,
        name: &[u8],
        encoder: &mut Encoder,
        outgoing: &mut BytesMut,
    ) {
        let number = self.first + self.commands.len() as u64;
        let form = self.await_reply(number, &op);
        encoder.encode(outgoing, &op, name, form);
        self.commands.push_back(Unanswered { op, form, again: false, answer: None });
    }

    /// Notes that the command `number` is about to be written. Returns its form.
    fn await_reply(&mut self, number: u64, op: &Op) -> Form {
        let mut form = self.preferred.of(op);
        if is_look(op) && self.is_tracked {
            form = Form::Caching;
            // The reply to `CLIENT CACHING` comes first.
            self.awaited.push_back(Some(number));
        }
        self.awaited.push_back(Some(number));
        form
    }

    /// Lets the looks and reads behind the command at `place`, which is written again, follow it.
    fn follow(&mut self, place: usize) {
        let resource = self.commands[place].op.resource();
        let behind = self.commands.range_mut(place + 1..);
        let looks = behind.filter(|it| is_look(&it.op) && it.op.resource() == resource);
        looks.for_each(|it| it.again = true);
    }

    /// Handles the next reply of the connection. Returns the oldest command, which is then removed,
    /// if this was its reply. `last_error` is the node's previous error: a repeated error text is
    /// shared, not copied.
    ///
    /// # Errors
    ///
    /// If there is no command that the reply fits.
    pub(super) fn receive<'a>(
        &mut self,
        frame: Frame<'_>,
        name: impl FnOnce(&Op) -> &'a [u8],
        outgoing: &mut BytesMut,
        endpoint: &Endpoint,
        last_error: &mut Option<Arc<str>>,
    ) -> Result<Option<(Op, Answer)>, Malformed> {
        let Some(number) = self.awaited.pop_front().ok_or(Malformed)? else {
            return Ok(None);
        };
        let place = (number - self.first) as usize;
        if self.commands[place].form == Form::Caching {
            return self.receive_caching(place, frame).map(|()| None);
        }
        let command = &mut self.commands[place];
        if let Some(instead) = command.form.instead(&command.op, frame) {
            self.preferred.correct(instead);
            command.form = instead;
            if command.op == Op::Introduce && instead == Form::Eval {
                // The server has just started. It will not know the other scripts either, and a
                // release that is written again comes after the next SET.
                resp::load_scripts(outgoing);
                self.awaited.extend([None; resp::LOADED]);
            }
            resp::encode(outgoing, &command.op, name(&command.op), instead);
            self.awaited.push_back(Some(number));
            if instead != Form::Get {
                self.follow(place);
            }
            return Ok(None);
        }
        if core::mem::take(&mut command.again) {
            let op = command.op;
            let form = self.await_reply(number, &op);
            self.commands[place].form = form;
            resp::encode(outgoing, &op, name(&op), form);
            return Ok(None);
        }
        let (reply, error) = match (command.op, frame) {
            (_, Frame::Error(text)) if is_not_serving(text) => (Reply::NotServing, Some(text)),
            (Op::Introduce, Frame::Text(info)) => match introduction::parse(info) {
                Ok(introduction) => {
                    let introduce = self.preferred.introduce;
                    self.preferred = Forms { introduce, ..introduction::preferred_forms(info) };
                    (Reply::Introduction(introduction), None)
                }
                Err(why) => (Reply::Error, Some(why)),
            },
            (Op::Set { .. }, _) => match (of_set(command.form, frame)?, frame) {
                (reply, Frame::Error(text)) => (reply, Some(text)),
                (reply, _) => (reply, None),
            },
            // A key of another type.
            (Op::Read { .. }, Frame::Error(text)) if text.starts_with(b"WRONGTYPE") => {
                (of_look(command.form, 0), None)
            }
            (_, Frame::Error(text)) => (Reply::Error, Some(text)),
            (Op::Read { token, .. }, Frame::Text(_) | Frame::Ok | Frame::Nil) => {
                let has_token = frame == Frame::Text(token.as_bytes());
                (of_look(command.form, i64::from(has_token)), None)
            }
            (Op::Read { .. }, _) => return Err(Malformed),
            // Reply to a `SET … IFEQ`.
            (Op::Extend { .. }, Frame::Ok) => (Reply::Integer(1), None),
            (Op::Extend { .. }, Frame::Nil) => (Reply::Integer(0), None),
            (Op::Look { .. }, Frame::Integer(left)) => (of_look(command.form, left), None),
            (_, Frame::Integer(number)) => (Reply::Integer(number), None),
            _ => return Err(Malformed),
        };
        let error = error.map(|text| {
            let same = last_error.as_ref().filter(|error| error.as_bytes() == text);
            same.cloned().unwrap_or_else(|| endpoint.printable(text, command.op.token()))
        });
        // A refusal of one key is no error of the node.
        if let Some(error) = error.as_ref().filter(|_| reply != Reply::Nil) {
            *last_error = Some(Arc::clone(error));
        }
        let answer = Answer { reply, error };
        if place > 0 {
            command.answer = Some(Box::new(answer));
            return Ok(None);
        }
        let op = command.op;
        self.remove_oldest();
        Ok(Some((op, answer)))
    }

    /// Handles the reply to the `CLIENT CACHING` of the command at `place`.
    fn receive_caching(&mut self, place: usize, frame: Frame<'_>) -> Result<(), Malformed> {
        self.commands[place].form = match frame {
            Frame::Ok => Form::Registering,
            Frame::Error(text) => {
                // A server that refuses is not asked again; one that is busy is.
                self.is_tracked &= !is_refusal(text);
                Form::Plain
            }
            _ => return Err(Malformed),
        };
        Ok(())
    }

    /// Removes and returns the oldest command, if its reply was kept back.
    pub(super) fn take(&mut self) -> Option<(Op, Answer)> {
        let oldest = self.commands.front_mut()?;
        let (op, answer) = (oldest.op, oldest.answer.take()?);
        self.remove_oldest();
        Some((op, *answer))
    }

    fn remove_oldest(&mut self) {
        self.commands.pop_front();
        self.first += 1;
    }

    /// Discards all commands: the connection is gone, and with it all replies.
    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.awaited.clear();
        (self.preferred, self.is_tracked) = (Forms::ANYWHERE, false);
    }
}

/// Returns true if the command may register its key.
fn is_look(op: &Op) -> bool {
    matches!(op, Op::Look { .. } | Op::Read { .. })
}

/// Returns true if the error means that the server does not know the command, or does not permit
/// it. Any other error may be over at the next one.
fn is_refusal(error: &[u8]) -> bool {
    error.starts_with(b"ERR") || error.starts_with(b"NOPERM")
}

/// Returns the reply to a look or a read, which may have registered the key.
fn of_look(form: Form, number: i64) -> Reply {
    if form == Form::Registering { Reply::Registered(number) } else { Reply::Integer(number) }
}

/// Interprets the reply to a SET, which depends on the form of the command.
fn of_set(form: Form, frame: Frame<'_>) -> Result<Reply, Malformed> {
    Ok(match (form, frame) {
        (Form::SetNx, Frame::Ok) | (Form::SetNxGet, Frame::Nil) => Reply::Ok,
        (Form::SetNxGet | Form::Get, Frame::Text(value)) => Reply::Held(Holder::of(value)),
        (Form::Get, Frame::Nil) => Reply::Gone,
        // The SET was refused; only the key's holder cannot be read.
        (Form::Get, Frame::Error(_)) => Reply::Nil,
        (Form::SetNxGet, Frame::Error(text)) if text.starts_with(b"WRONGTYPE") => Reply::Nil,
        (_, Frame::Error(_)) => Reply::Error,
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests;
