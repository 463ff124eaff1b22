//! Restarts that a proxy hides: the clients' connections outlive the process behind the proxy.

use super::Stage;
use super::plan::Plan;
use crate::ids::{ConnectionId, ServerId};
use crate::world::ConnectionState;

impl Stage {
    /// Hides the death of the process: a proxy keeps its clients' connections. Their unanswered
    /// requests are lost.
    pub(super) fn hide_death(&mut self, server: ServerId) {
        self.servers[server].is_hidden = true;
        while let Some((connection, _)) = self.servers[server].inbox.pop_front() {
            self.lose_request(connection);
        }
    }

    /// Drops a request, because the proxy has no process to pass it to.
    pub(super) fn lose_request(&mut self, connection: ConnectionId) {
        if let Some(wire) = &mut self.wire {
            wire.end(connection).drop_request();
        }
    }

    /// Starts a new session on each connection that a proxy kept: the new process knows none of
    /// them.
    pub(super) fn renew_sessions(&mut self, plan: &Plan, server: ServerId) {
        if !core::mem::take(&mut self.servers[server].is_hidden) {
            return;
        }
        let host = plan.servers[server].host;
        for number in self.network.numbers() {
            let connection = self.network.connection(number);
            let is_open = connection.served && connection.state != ConnectionState::Closed;
            if connection.server != host || !is_open || self.is_of_replica(plan, number) {
                continue;
            }
            match &mut self.wire {
                Some(wire) => wire.renew(number),
                None => self.deaf.push(number),
            }
        }
    }
}
