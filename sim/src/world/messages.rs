//! Messages: their departure, and their effect on arrival.

use lock_judge::history::EventKind;
use lock_judge::ids::{ConnectionId, ServerId};
use lock_judge::scenario::AttemptStep;

use super::World;
use super::clients::Input;
use super::network::{Arrival, ConnectionState, Direction};
use super::packet::{Packet, meaning};
use crate::choice::{Choice, Label};
use crate::resource::{Served, StoreRequest};

impl World {
    /// Sends an item along a connection.
    pub(crate) fn send(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        what: Arrival<Packet>,
    ) {
        let it = self.network.connection(connection);
        let (client, server) = (it.client, it.server);
        let (repeat, (from, to)) = (
            u32::from(it.lane) << 16 | it.epoch,
            match direction {
                Direction::Down => (server, client),
                Direction::Up => (client, server),
            },
        );
        let (shortest, longest) = self.plan.delays[from][to];
        let (attempt, operation) = meaning(&what);
        let choice = Choice {
            label: Label::Delay,
            host: client.0,
            attempt: attempt.number,
            operation,
            node: server.0,
            direction: direction as u8,
            repeat,
        };
        let delay_ns =
            self.choices.between(choice, shortest, longest) + self.delays.added_ns(from, to, &what);
        let now_ns = self.now_ns();
        let arrival = self.network.send(connection, direction, what, now_ns, delay_ns);
        if let Some(at_ns) = arrival {
            self.agenda.schedule_arrival(connection, direction, at_ns);
        }
    }

    /// Retransmits everything that was held on directions that are not cut now.
    pub(super) fn retransmit(&mut self) {
        let Self { network, agenda, choices, .. } = self;
        network.retransmit(agenda.now_ns(), choices, |connection, direction, at_ns| {
            agenda.schedule_arrival(connection, direction, at_ns);
        });
    }

    /// Handles the item at the end of a connection, if one has arrived.
    pub(super) fn arrive(&mut self, connection: ConnectionId, direction: Direction) {
        self.agenda.arrived();
        let now_ns = self.now_ns();
        let Some(what) = self.network.arrive(connection, direction, now_ns) else { return };
        match direction {
            Direction::Up => self.arrive_up(connection, what),
            Direction::Down => self.arrive_down(connection, what),
        }
    }

    fn arrive_down(&mut self, connection: ConnectionId, what: Arrival<Packet>) {
        let host = self.network.connection(connection).client;
        if let Some(replica) = self.plan.server_at(host) {
            return self.replica_hears(replica, connection, what);
        }
        let input = match what {
            Arrival::Handshake => Input::Connected(connection),
            Arrival::Closed => Input::Closed(connection),
            Arrival::Reset => Input::Reset(connection),
            Arrival::Message(Packet::Reply(reply)) => Input::Reply(connection, reply),
            Arrival::Message(Packet::Changed(resource)) => Input::Changed(connection, resource),
            Arrival::Message(Packet::Forgot) => Input::Forgot(connection),
            Arrival::Message(Packet::StoreServed(client)) => Input::StoreServed(client),
            Arrival::Message(Packet::StoreVersion(client, version)) => {
                Input::StoreVersion(client, version)
            }
            Arrival::Message(_) => unreachable!("requests travel up"),
        };
        self.clients.give(self.plan.client_at(host), input);
    }

    fn arrive_up(&mut self, connection: ConnectionId, what: Arrival<Packet>) {
        let host = self.network.connection(connection).server;
        if let Arrival::Message(Packet::StoreRequest(request)) = what {
            return self.serve_store(connection, request);
        }
        // The end of a connection to the protected resource has no effect.
        let Some(server) = self.plan.server_at(host) else { return };
        let it = &self.cluster[server];
        let running = it.redis.is_running();
        match what {
            Arrival::Message(Packet::Request(_))
                if it.is_hidden && self.network.connection(connection).served =>
            {
                self.lose_request(connection);
            }
            // A host without power is silent; a kernel without the process refuses.
            _ if it.dark => {}
            Arrival::Handshake if running && self.is_of_replica(connection) => {
                self.accept_replica(server, connection);
            }
            Arrival::Message(Packet::Acknowledged { to }) => {
                self.acknowledge(server, connection, to);
                self.end_turn(server);
            }
            Arrival::Handshake if running => {
                self.network.connection_mut(connection).served = true;
                self.send(connection, Direction::Down, Arrival::Handshake);
            }
            Arrival::Message(Packet::Request(request))
                if running && self.network.connection(connection).served =>
            {
                let it = &mut self.cluster[server];
                if it.replication.is_waiting(connection) {
                    it.replication.wait_behind(connection, request);
                } else if it.is_blocked() {
                    it.inbox.push_back((connection, request));
                } else {
                    self.execute(connection, request);
                    self.end_turn(server);
                }
            }
            Arrival::Handshake | Arrival::Message(_) => {
                self.send(connection, Direction::Down, Arrival::Reset);
            }
            Arrival::Closed | Arrival::Reset => {}
        }
    }

    fn serve_store(&mut self, connection: ConnectionId, request: StoreRequest) {
        if let StoreRequest::Write { attempt, .. } = request {
            self.reach(attempt, AttemptStep::StoreExecute, None);
        }
        let resource = self.plan.scenario.resource_of(request.attempt().client);
        let served = self.resource.serve(resource, request);
        let answer = match (request, served) {
            (StoreRequest::Read { attempt, .. }, Served::Read { version }) => {
                Packet::StoreVersion(attempt.client, version)
            }
            (
                StoreRequest::Write { attempt, write, based_on, fencing_token },
                Served::Applied { version },
            ) => {
                let kind =
                    EventKind::WriteApplied { attempt, write, based_on, version, fencing_token };
                self.record(kind);
                Packet::StoreServed(attempt.client)
            }
            (StoreRequest::Write { attempt, write, .. }, Served::Rejected(why)) => {
                self.record(EventKind::WriteRejected { attempt, write, why });
                Packet::StoreServed(attempt.client)
            }
            (StoreRequest::Read { .. }, _) | (_, Served::Read { .. }) => {
                unreachable!("a read, and nothing else, is answered by a version")
            }
        };
        self.send(connection, Direction::Down, Arrival::Message(answer));
    }

    /// Returns true if the connection is a replica's to its master.
    pub(super) fn is_of_replica(&self, connection: ConnectionId) -> bool {
        self.plan.server_at(self.network.connection(connection).client).is_some()
    }

    /// Ends the service on all connections of `server`, except those that a proxy keeps; with
    /// `says_goodbye` the other ends are notified.
    pub(super) fn drop_connections(&mut self, server: ServerId, says_goodbye: bool) {
        let host = self.plan.servers[server].host;
        let is_hidden = self.cluster[server].is_hidden;
        for number in self.network.numbers() {
            let connection = self.network.connection_mut(number);
            let is_kept = is_hidden && self.plan.server_at(connection.client).is_none();
            if connection.server != host || !connection.served || is_kept {
                continue;
            }
            connection.served = false;
            if says_goodbye && connection.state != ConnectionState::Closed {
                self.send(number, Direction::Down, Arrival::Closed);
            }
        }
    }
}
