//! What was written on one connection and is not answered.
//!
//! Replies have no names: a server answers in the order in which it was asked, and the machines
//! match answers by that order. A command that the server did not take in the form that it was
//! given is written once more in another form, behind everything else; the answers of what was
//! written after it are kept back until its own has come. So the machines see every command
//! answered once, in their order. To them a command that was written twice is one that was slow:
//! an owner-checked command may be executed at any time without harm.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;

use crate::introduction;
use crate::printable::printable;
use crate::protocol::{Op, Reply};
use crate::resp::{self, Encoder, Form, Frame, Malformed};

/// The unanswered commands of one connection. The link bounds how many there are; each is written
/// at most three times.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// Oldest first.
    commands: VecDeque<Unanswered>,
    /// The number of the oldest.
    first: u64,
    /// The numbers of those whose answers are under way, in the order in which they will come.
    awaited: VecDeque<u64>,
    /// The form that the server takes, as far as we know.
    preferred: Form,
}

#[derive(Debug)]
struct Unanswered {
    op: Op,
    form: Option<Form>,
    /// It has come, but that of an older command has not.
    answer: Option<Answer>,
}

/// What a node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// What it said if it was an error, fit to be shown.
    pub(super) error: Option<Arc<str>>,
}

impl Default for Pipeline {
    fn default() -> Self {
        let (commands, awaited) = (VecDeque::new(), VecDeque::new());
        Self { commands, first: 0, awaited, preferred: Form::Named }
    }
}

impl Pipeline {
    /// Appends a command to `outgoing`; `name` is the key's.
    pub(super) fn write(
        &mut self,
        op: Op,
        name: &[u8],
        encoder: &mut Encoder,
        outgoing: &mut BytesMut,
    ) {
        let form = encoder.encode(outgoing, &op, name, self.preferred);
        self.awaited.push_back(self.first + self.commands.len() as u64);
        self.commands.push_back(Unanswered { op, form, answer: None });
    }

    /// Takes the next reply of the connection. `last_error` is the error that the node answered
    /// last: a node repeats itself.
    ///
    /// # Errors
    ///
    /// If nothing was asked that could be answered so.
    pub(super) fn receive<'a>(
        &mut self,
        frame: Frame<'_>,
        name: impl FnOnce(&Op) -> &'a [u8],
        outgoing: &mut BytesMut,
        last_error: &mut Option<Arc<str>>,
    ) -> Result<(), Malformed> {
        let number = self.awaited.pop_front().ok_or(Malformed)?;
        let place = (number - self.first) as usize;
        let command = &mut self.commands[place];
        if let (Frame::Error(text), Some(form)) = (frame, command.form)
            && let Some(instead) = form.instead(text)
        {
            if instead == Form::Named {
                self.preferred = instead;
            }
            command.form = resp::encode(outgoing, &command.op, name(&command.op), instead);
            self.awaited.push_back(number);
            return Ok(());
        }
        let mut answer = |reply, text: &[u8]| {
            let same = last_error.as_ref().filter(|error| error.as_bytes() == text);
            let error = same.cloned().unwrap_or_else(|| {
                let owner = command.op.token();
                printable(text, owner.as_ref().map_or(&[][..], |owner| owner.as_bytes()))
            });
            *last_error = Some(Arc::clone(&error));
            Answer { reply, error: Some(error) }
        };
        command.answer = Some(match (command.op, frame) {
            (_, Frame::Error(text)) => answer(Reply::Error, text),
            (Op::Introduce, Frame::Text(info)) => match introduction::parse(info) {
                Some(introduction) => {
                    self.preferred = introduction::preferred_form(info);
                    Answer { reply: Reply::Introduction(introduction), error: None }
                }
                None => answer(Reply::Error, b"INFO without run_id, uptime_in_seconds and role"),
            },
            // A `SET … IFEQ`.
            (Op::Extend { .. }, Frame::Ok) => Answer { reply: Reply::Integer(1), error: None },
            (Op::Extend { .. }, Frame::Nil) => Answer { reply: Reply::Integer(0), error: None },
            (_, Frame::Integer(number)) => Answer { reply: Reply::Integer(number), error: None },
            (_, Frame::Nil) => Answer { reply: Reply::Nil, error: None },
            (_, Frame::Ok) => Answer { reply: Reply::Ok, error: None },
            (_, Frame::Many(_) | Frame::Text(_) | Frame::Other) => return Err(Malformed),
        });
        Ok(())
    }

    /// The oldest command, if it has its answer.
    pub(super) fn take(&mut self) -> Option<(Op, Answer)> {
        let answer = self.commands.front_mut()?.answer.take()?;
        let command = self.commands.pop_front()?;
        self.first += 1;
        Some((command.op, answer))
    }

    /// The connection is gone, and with it all answers.
    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.awaited.clear();
        self.preferred = Form::Named;
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::protocol::{ResourceId, Token};

    const RESOURCE: ResourceId = ResourceId(0);
    const NOSCRIPT: Frame<'_> = Frame::Error(b"NOSCRIPT No matching script.");

    /// A pipeline and its two ends.
    #[derive(Default)]
    struct Bench {
        pipeline: Pipeline,
        encoder: Encoder,
        outgoing: BytesMut,
        last_error: Option<Arc<str>>,
    }

    impl Bench {
        fn write(&mut self, op: Op) -> String {
            self.pipeline.write(op, b"name", &mut self.encoder, &mut self.outgoing);
            self.written()
        }

        /// The names of the commands written since the last look.
        fn written(&mut self) -> String {
            let written = self.outgoing.split().escape_ascii().to_string();
            let commands = ["DELEX", "DELIFEQ", "EVALSHA", "EVAL", "INFO", "SET"];
            let words = written.split(r"\r\n");
            words.filter(|word| commands.contains(word)).collect::<Vec<_>>().join(" ")
        }

        fn receive(&mut self, frame: Frame<'_>) -> Result<Vec<Reply>, Malformed> {
            let Self { pipeline, outgoing, last_error, .. } = self;
            pipeline.receive(frame, |_| b"name", outgoing, last_error)?;
            Ok(core::iter::from_fn(|| pipeline.take()).map(|(_, answer)| answer.reply).collect())
        }

        fn introduce(&mut self, version: &str) {
            self.write(Op::Introduce);
            let run_id = "0a".repeat(20);
            let info =
                format!("{version}\r\nrun_id:{run_id}\r\nuptime_in_seconds:7\r\nrole:master\r\n");
            let replies = self.receive(Frame::Text(info.as_bytes())).unwrap();
            assert!(matches!(replies[..], [Reply::Introduction(it)] if it.uptime.as_secs() == 7));
        }
    }

    fn token(byte: u8) -> Token {
        Token::from_bytes([byte; 20])
    }

    fn set() -> Op {
        Op::Set { resource: RESOURCE, token: token(1), ttl: Duration::from_secs(1) }
    }

    fn release() -> Op {
        Op::Release { resource: RESOURCE, token: token(1) }
    }

    fn extend() -> Op {
        Op::Extend {
            resource: RESOURCE,
            token: token(1),
            ttl: Duration::from_secs(1),
            plain: false,
        }
    }

    #[test]
    fn answers_are_handed_on_as_they_come() {
        let mut bench = Bench::default();
        assert_eq!(bench.write(set()), "SET");
        assert_eq!(bench.write(release()), "EVALSHA");
        assert_eq!(bench.receive(Frame::Ok), Ok(vec![Reply::Ok]));
        assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![Reply::Integer(1)]));
        assert_eq!(bench.receive(Frame::Ok), Err(Malformed), "nothing was asked");
    }

    #[test]
    fn a_script_that_the_server_forgot_is_sent_in_full_and_answered_in_its_place() {
        let mut bench = Bench::default();
        bench.write(release());
        bench.write(set());
        bench.write(extend());
        assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
        assert_eq!(bench.written(), "EVAL");
        bench.write(set());
        assert_eq!(bench.receive(Frame::Nil), Ok(vec![]), "the first SET's, kept back");
        assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
        assert_eq!(bench.written(), "EVAL");
        let replies = bench.receive(Frame::Integer(1));
        assert_eq!(replies, Ok(vec![Reply::Integer(1), Reply::Nil]), "the release's and the SET's");
        assert_eq!(bench.receive(Frame::Ok), Ok(vec![]), "the second SET's");
        assert_eq!(bench.receive(Frame::Integer(0)), Ok(vec![Reply::Integer(0), Reply::Ok]));
        assert!(bench.last_error.is_none(), "nothing went wrong");
        assert_eq!(bench.write(release()), "EVALSHA", "the server knows it now");
    }

    #[test]
    fn a_script_that_is_refused_in_full_is_an_error() {
        let mut bench = Bench::default();
        bench.write(release());
        assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
        assert_eq!(bench.receive(NOSCRIPT), Ok(vec![Reply::Error]));
    }

    #[test]
    fn a_native_command_that_is_refused_gives_way_to_scripts() {
        for (version, native) in
            [("redis_version:8.4.0", "DELEX"), ("valkey_version:9.0.0", "DELIFEQ")]
        {
            let mut bench = Bench::default();
            bench.introduce(version);
            assert_eq!(bench.write(release()), native);
            assert_eq!(bench.write(extend()), "EVALSHA");
            assert_eq!(bench.receive(Frame::Error(b"NOPERM no")), Ok(vec![]));
            assert_eq!(bench.written(), "EVALSHA");
            assert_eq!(bench.receive(Frame::Integer(1)), Ok(vec![]), "the extension's");
            assert_eq!(bench.receive(NOSCRIPT), Ok(vec![]));
            assert_eq!(bench.written(), "EVAL");
            let replies = bench.receive(Frame::Integer(0));
            assert_eq!(replies, Ok(vec![Reply::Integer(0), Reply::Integer(1)]));
            assert_eq!(bench.write(release()), "EVALSHA", "it is not tried again");
            bench.pipeline.clear();
            bench.introduce(version);
            assert_eq!(bench.write(release()), native, "but on the next connection");
        }
    }

    #[test]
    fn a_plain_extension_is_answered_like_any_other() {
        let mut bench = Bench::default();
        bench.introduce("redis_version:8.4.0");
        let op = Op::Extend {
            resource: RESOURCE,
            token: token(1),
            ttl: Duration::from_secs(1),
            plain: true,
        };
        for (frame, number) in [(Frame::Ok, 1), (Frame::Nil, 0)] {
            assert_eq!(bench.write(op), "SET");
            assert_eq!(bench.receive(frame), Ok(vec![Reply::Integer(number)]));
        }
        bench.write(op);
        assert_eq!(bench.receive(Frame::Error(b"ERR syntax error")), Ok(vec![]));
        assert_eq!(bench.written(), "EVALSHA");
    }

    #[test]
    fn an_error_is_kept_without_the_token() {
        let mut bench = Bench::default();
        bench.write(set());
        let text = [b"ERR \n", &token(1).as_bytes()[..]].concat();
        assert_eq!(bench.receive(Frame::Error(&text)), Ok(vec![Reply::Error]));
        assert_eq!(bench.last_error.as_deref(), Some("ERR \\n…"));
    }

    #[test]
    fn an_error_that_repeats_itself_is_kept_once() {
        let mut bench = Bench::default();
        let mut errors = Vec::new();
        for _ in 0..2 {
            bench.write(set());
            bench.receive(Frame::Error(b"LOADING the dataset")).unwrap();
            errors.push(bench.last_error.clone().unwrap());
        }
        assert!(Arc::ptr_eq(&errors[0], &errors[1]));
    }

    #[test]
    fn an_introduction_that_says_nothing_is_a_refusal() {
        let mut bench = Bench::default();
        bench.write(Op::Introduce);
        assert_eq!(bench.receive(Frame::Text(b"hello")), Ok(vec![Reply::Error]));
        assert!(bench.last_error.unwrap().contains("run_id"));
    }

    #[test]
    fn what_nobody_asked_for_is_malformed() {
        for frame in [Frame::Text(b"QUEUED"), Frame::Other] {
            let mut bench = Bench::default();
            bench.write(set());
            assert_eq!(bench.receive(frame), Err(Malformed));
        }
    }
}
