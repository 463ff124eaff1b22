//! Execution of a connection's request, from its words to its reply.

use bytes::Bytes;

use super::call::{Call, Ending};
use super::dispatch::{names_client_subcommand, perform};
use crate::resp::Value;
use crate::server::{Answer, Replies, Server, Session, Turn};

impl Session {
    /// Executes one request.
    ///
    /// # Panics
    ///
    /// If the server's process is dead, or the request is empty.
    pub fn execute(&mut self, server: &mut Server, request: &[Bytes], turn: Turn<'_>) -> Answer {
        assert!(server.is_running(), "a dead process executes nothing");
        assert!(!request.is_empty(), "requests are not empty");
        let mut few = [[].as_slice(); 8];
        let many: Vec<&[u8]>;
        let words = if let Some(few) = few.get_mut(..request.len()) {
            few.iter_mut().zip(request).for_each(|(place, word)| *place = word);
            &*few
        } else {
            many = request.iter().map(|word| &**word).collect();
            &*many
        };
        self.execute_words(server, words, turn)
    }

    fn execute_words(&mut self, server: &mut Server, words: &[&[u8]], turn: Turn<'_>) -> Answer {
        if self.is_deaf {
            return Answer::Silence;
        }
        self.be_asked(server);
        self.be_seen(server, turn.wall_ns);
        if core::mem::take(&mut self.unwatches) {
            self.unwatch(server);
        }
        let Turn { wall_ns, writer, touched } = turn;
        let replies = self.replies;
        if replies == Replies::SkipNext {
            self.replies = Replies::On;
        }
        let (name, is_inner) = ("", false);
        server.begin_request(self.id);
        let turn = Turn { wall_ns, writer, touched: &mut *touched };
        let mut call = Call { server, session: self, words, turn, name, is_inner, ending: None };
        let mut value = perform(&mut call);
        // Replies that are messages are sent in every mode.
        let is_sent = matches!(value, Value::Sequence(_));
        if replies == Replies::On && call.ending.is_none() {
            value = call.with_own_messages(value);
        }
        let (name, ending) = (call.name, call.ending);
        let known = if name.is_empty() { None } else { Some(name) };
        self.be_known(server, known, wall_ns);
        server.end_request(self.id);
        self.serve_waiters(server, words, Turn { wall_ns, writer, touched });
        self.end_caching(server, words);
        if ending == Some(Ending::Close) {
            server.close(self.id);
        }
        if replies != Replies::On {
            server.blocked.silence(self.id);
        }
        // `CLIENT REPLY ON` is answered even if its reply was to be skipped.
        let turns_on = name == "client|reply" && value == Value::ok();
        match ending {
            Some(Ending::Close) if name == "quit" && replies != Replies::On => {
                self.is_deaf = true;
                Answer::Silence
            }
            Some(Ending::Close) => Answer::LastReply(value),
            None if is_sent => Answer::Reply(value),
            Some(Ending::Silence) => Answer::Silence,
            Some(Ending::Block { timeout_ms }) => Answer::Block { timeout_ms },
            Some(Ending::Wait { replicas, timeout_ms }) => Answer::Wait { replicas, timeout_ms },
            None if self.replies == Replies::Off => Answer::Silence,
            None if replies == Replies::SkipNext && !turns_on => Answer::Silence,
            None => Answer::Reply(value),
        }
    }

    /// Gives the elements that the request has added to lists to the connections that wait for them.
    fn serve_waiters(&mut self, server: &mut Server, words: &[&[u8]], turn: Turn<'_>) {
        if server.blocked.has_ready() {
            let (session, name, is_inner) = (self, "", true);
            Call { server, session, words, turn, name, is_inner, ending: None }.serve_waiters();
        }
    }

    /// Ends the reversal by `CLIENT CACHING`, which holds for one command or one transaction;
    /// subcommands of `CLIENT` do not count.
    fn end_caching(&self, server: &mut Server, words: &[&[u8]]) {
        let is_reversed = server.tracked.listener(self.id).is_some_and(|it| it.is_reversed);
        if is_reversed && !self.is_in_transaction() && !names_client_subcommand(words, server) {
            server.tracked.reverse(self.id, false);
        }
    }
}
