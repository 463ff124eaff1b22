//! The client processes, as the rest of the world sees them.

use std::collections::VecDeque;

use lock_judge::history::{ClientId, ClientIds, CommandId};
use lock_judge::ids::{ConnectionId, IdVec, ResourceId};

use crate::subject::Reply;

/// An input that a client's kernel passes to its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The server's notice that the key of this resource has changed.
    Changed(ConnectionId, ResourceId),
    Closed(ConnectionId),
    Connected(ConnectionId),
    /// The server's notice that its keys are gone.
    Forgot(ConnectionId),
    Reset(ConnectionId),
    Reply(ConnectionId, Reply),
    StoreServed(ClientId),
    StoreVersion(ClientId, u32),
}

/// One client process.
#[derive(Clone, Debug, Default)]
struct Client {
    is_dead: bool,
    /// Number of faults that keep the process from running.
    stops: u16,
    inbox: VecDeque<Input>,
}

/// All client processes, the probe's included.
#[derive(Debug)]
pub(crate) struct Clients {
    clients: IdVec<ClientId, Client>,
    /// Clients that have something to do now.
    to_run: ClientIds,
    /// Number of commands written so far.
    commands: u32,
}

impl Clients {
    pub(super) fn new(count: usize) -> Self {
        let clients = IdVec::filled(count, Client::default());
        Self { clients, to_run: ClientIds::EMPTY, commands: 0 }
    }

    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        self.to_run = ClientIds::EMPTY;
        self.commands = 0;
        for client in self.clients.values_mut() {
            (client.is_dead, client.stops) = (false, 0);
            client.inbox.clear();
        }
    }

    /// Returns all clients.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = ClientId> + use<> {
        self.clients.ids()
    }

    /// Returns true if the process can take steps.
    #[inline]
    pub(crate) fn can_run(&self, client: ClientId) -> bool {
        let Client { is_dead, stops, .. } = &self.clients[client];
        !is_dead && *stops == 0
    }

    pub(crate) fn is_dead(&self, client: ClientId) -> bool {
        self.clients[client].is_dead
    }

    /// Queues an input for a process and wakes it; the process runs as soon as it can.
    #[inline]
    pub(super) fn give(&mut self, client: ClientId, input: Input) {
        let it = &mut self.clients[client];
        if it.is_dead {
            return;
        }
        it.inbox.push_back(input);
        self.wake(client);
    }

    /// Returns the oldest input that the process has not taken.
    #[inline]
    pub(crate) fn first_input(&self, client: ClientId) -> Option<Input> {
        self.clients[client].inbox.front().copied()
    }

    /// Takes the oldest input.
    pub(crate) fn take_input(&mut self, client: ClientId) -> Option<Input> {
        self.clients[client].inbox.pop_front()
    }

    #[inline]
    pub(crate) fn wake(&mut self, client: ClientId) {
        self.to_run.insert(client);
    }

    pub(super) fn wake_all(&mut self) {
        self.clients.ids().for_each(|client| self.wake(client));
    }

    /// Takes the first client that has something to do.
    #[inline]
    pub(crate) fn next_to_run(&mut self) -> Option<ClientId> {
        self.to_run.pop_first()
    }

    /// Keeps the process from running until [`Clients::resume`] is called as often.
    pub(super) fn stop(&mut self, client: ClientId) {
        self.clients[client].stops += 1;
    }

    /// Removes one stop; returns true if the process runs again.
    pub(super) fn resume(&mut self, client: ClientId) -> bool {
        self.clients[client].stops -= 1;
        self.can_run(client)
    }

    /// Ends a process; returns false if it was dead.
    pub(super) fn kill(&mut self, client: ClientId) -> bool {
        let client = &mut self.clients[client];
        client.inbox.clear();
        !core::mem::replace(&mut client.is_dead, true)
    }

    /// Numbers the next command.
    pub(crate) fn number_command(&mut self) -> CommandId {
        self.commands += 1;
        CommandId(self.commands - 1)
    }
}
