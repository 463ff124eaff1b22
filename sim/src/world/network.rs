//! Connections, the bytes in flight, and the effect of partitions on both.

use std::collections::VecDeque;

use lock_judge::ids::{ConnectionId, HostId, Id, IdVec, PerHost};

use crate::choice::{Choice, Choices, Label};

const NO_CUTS: PerHost<PerHost<u16>> = PerHost::filled(PerHost::filled(0));

/// TCP retransmits after 200 ms and doubles the delay up to two minutes.
const RETRANSMISSION_FIRST_NS: u64 = 200_000_000;
const RETRANSMISSION_LONGEST_NS: u64 = 120_000_000_000;

/// Direction along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The client waits for the server to accept.
    Dialing,
    /// Both ends may write.
    Open,
    /// The client has closed the connection, or has learnt that the server closed it.
    Closed,
}

/// An item that travels along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<P> {
    /// The server accepted (down), or the client asks it to (up).
    Handshake,
    /// The other end closed the connection.
    Closed,
    /// A message.
    Message(P),
    /// The other end refused or reset the connection: no process there holds it.
    Reset,
}

/// Fate of the data that a partition holds back on a connection whose client has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The data is lost: the client has reset the connection, or its host has no power.
    Dropped,
    /// The client's kernel sends the data again until it arrives.
    Retransmitted,
}

#[derive(Clone, Copy, Debug)]
struct Flight<P> {
    what: Arrival<P>,
    sent_ns: u64,
    arrives_ns: u64,
}

/// One direction of a connection: a FIFO that loses nothing from its middle.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    flights: VecDeque<Flight<P>>,
    last_arrival_ns: u64,
    /// The front item was blocked; it waits for the heal and the retransmission after it.
    held: bool,
    /// Nothing passes any more, and neither end is notified.
    silent: bool,
    /// No kernel is left to retransmit blocked items.
    orphaned: bool,
}

/// A connection from a client to a server. A connection is never reused in a run.
#[derive(Clone, Debug)]
pub struct Connection<P> {
    /// Host of the client.
    pub client: HostId,
    /// Host of the server.
    pub server: HostId,
    /// Number of the lane from the client to that server.
    pub lane: u16,
    /// Number of the connection on that lane.
    pub epoch: u32,
    /// State as the client sees it.
    pub state: ConnectionState,
    /// True if a server process holds the other end.
    pub served: bool,
    up: Pipe<P>,
    down: Pipe<P>,
}

/// All connections of a run, and the partitions between hosts.
#[derive(Clone, Debug)]
pub struct Network<P> {
    connections: IdVec<ConnectionId, Connection<P>>,
    live: usize,
    /// Number of cuts from each host to each other.
    cuts: PerHost<PerHost<u16>>,
    any_cut: bool,
}

impl<P> Default for Pipe<P> {
    fn default() -> Self {
        let flights = VecDeque::with_capacity(4);
        Self { flights, last_arrival_ns: 0, held: false, silent: false, orphaned: false }
    }
}

impl<P> Pipe<P> {
    fn reset(&mut self) {
        self.flights.clear();
        self.last_arrival_ns = 0;
        self.held = false;
        self.silent = false;
        self.orphaned = false;
    }
}

impl<P> Connection<P> {
    fn pipe_mut(&mut self, direction: Direction) -> &mut Pipe<P> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    fn ends(&self, direction: Direction) -> (HostId, HostId) {
        match direction {
            Direction::Down => (self.server, self.client),
            Direction::Up => (self.client, self.server),
        }
    }
}

/// Most connections of a run. 64 clients that dial nine dead nodes once a second need half an hour.
const CONNECTIONS_MAX: usize = 1 << 20;

impl<P: Copy> Default for Network<P> {
    fn default() -> Self {
        Self { connections: Vec::with_capacity(32).into(), live: 0, cuts: NO_CUTS, any_cut: false }
    }
}

impl<P: Copy> Network<P> {
    /// Removes every connection and partition, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.live = 0;
        if self.any_cut {
            self.cuts = NO_CUTS;
            self.any_cut = false;
        }
    }

    /// Creates a connection in the state `Dialing`; the caller sends the handshake.
    pub fn dial(&mut self, client: HostId, server: HostId, lane: u16, epoch: u32) -> ConnectionId {
        assert!(self.live < CONNECTIONS_MAX, "a run has at most {CONNECTIONS_MAX} connections");
        let id = ConnectionId::at(self.live);
        self.live += 1;
        if id.index() == self.connections.len() {
            let (up, down) = (Pipe::default(), Pipe::default());
            let state = ConnectionState::Dialing;
            let served = false;
            let it = Connection { client, server, lane, epoch, state, served, up, down };
            self.connections.push(it);
        } else {
            let connection = &mut self.connections[id];
            connection.up.reset();
            connection.down.reset();
            connection.state = ConnectionState::Dialing;
            connection.served = false;
            (connection.client, connection.server) = (client, server);
            (connection.lane, connection.epoch) = (lane, epoch);
        }
        id
    }

    /// Returns the connection with this number.
    #[must_use]
    pub fn connection(&self, number: ConnectionId) -> &Connection<P> {
        assert!(number.index() < self.live, "no connection {number}");
        &self.connections[number]
    }

    /// Returns the connection with this number.
    pub fn connection_mut(&mut self, number: ConnectionId) -> &mut Connection<P> {
        assert!(number.index() < self.live, "no connection {number}");
        &mut self.connections[number]
    }

    /// Returns the identities of all connections of the run.
    pub fn numbers(&self) -> impl Iterator<Item = ConnectionId> + use<P> {
        ConnectionId::first(self.live)
    }

    /// Sends an item. Returns its arrival time at the other end if nothing blocks it; the caller
    /// calls [`Network::arrive`] at that time.
    pub fn send(
        &mut self,
        number: ConnectionId,
        direction: Direction,
        what: Arrival<P>,
        now_ns: u64,
        delay_ns: u64,
    ) -> Option<u64> {
        let pipe = self.connection_mut(number).pipe_mut(direction);
        if pipe.silent {
            return None;
        }
        let arrives_ns = pipe.last_arrival_ns.max(now_ns + delay_ns);
        pipe.last_arrival_ns = arrives_ns;
        pipe.flights.push_back(Flight { what, sent_ns: now_ns, arrives_ns });
        (!pipe.held).then_some(arrives_ns)
    }

    /// Takes the front item of the pipe if it has arrived and no partition blocks it.
    pub fn arrive(
        &mut self,
        number: ConnectionId,
        direction: Direction,
        now_ns: u64,
    ) -> Option<Arrival<P>> {
        let (from, to) = self.connection(number).ends(direction);
        let cut = self.any_cut && self.is_cut(from, to);
        let pipe = self.connection_mut(number).pipe_mut(direction);
        if pipe.flights.front().is_none_or(|front| front.arrives_ns > now_ns) {
            return None;
        }
        if cut || pipe.held {
            pipe.held = true;
            if pipe.orphaned {
                pipe.flights.clear();
            }
            return None;
        }
        pipe.flights.pop_front().map(|flight| flight.what)
    }

    /// Returns true if nothing passes from `from` to `to`.
    #[must_use]
    pub fn is_cut(&self, from: HostId, to: HostId) -> bool {
        self.cuts[from][to] > 0
    }

    /// Blocks everything from `from` to `to`. Cuts are counted: [`Network::heal`] must follow as
    /// often.
    pub fn cut(&mut self, from: HostId, to: HostId) {
        self.cuts[from][to] += 1;
        self.any_cut = true;
    }

    /// Removes one cut.
    ///
    /// # Panics
    ///
    /// If there is no cut.
    pub fn heal(&mut self, from: HostId, to: HostId) {
        let cuts = &mut self.cuts[from][to];
        *cuts = cuts.checked_sub(1).expect("healed what was not cut");
    }

    /// Retransmits everything that was held on directions that are not cut now, at each sender's
    /// next retransmission after now. Calls `schedule` for each arrival.
    pub fn retransmit(
        &mut self,
        now_ns: u64,
        choices: &Choices,
        mut schedule: impl FnMut(ConnectionId, Direction, u64),
    ) {
        for number in self.numbers() {
            for direction in [Direction::Up, Direction::Down] {
                let (from, to) = self.connection(number).ends(direction);
                if self.is_cut(from, to) {
                    continue;
                }
                let pipe = self.connection_mut(number).pipe_mut(direction);
                if !core::mem::take(&mut pipe.held) {
                    continue;
                }
                let Some(front) = pipe.flights.front() else { continue };
                let choice = Choice {
                    direction: direction as u8,
                    node: to.0,
                    repeat: number.0,
                    ..Choice::of(Label::Retransmission, from.0)
                };
                let again_ns = next_retransmission(front.sent_ns, now_ns, choices, choice);
                for flight in &mut pipe.flights {
                    flight.arrives_ns = flight.arrives_ns.max(again_ns);
                    schedule(number, direction, flight.arrives_ns);
                }
                pipe.last_arrival_ns = pipe.last_arrival_ns.max(again_ns);
            }
        }
    }

    /// The network resets the connection: both ends lose what has not arrived.
    pub fn reset(&mut self, number: ConnectionId) {
        self.close(number, Unsent::Dropped);
        let up = &mut self.connection_mut(number).up;
        up.flights.clear();
        up.silent = true;
    }

    /// The client's end of the connection is gone: it receives nothing more, but what is on the wire
    /// still arrives, even behind what a later connection brings. `unsent` applies to data that a
    /// partition holds back, now or later.
    pub fn close(&mut self, number: ConnectionId, unsent: Unsent) {
        let is_dropped = unsent == Unsent::Dropped;
        let connection = self.connection_mut(number);
        connection.state = ConnectionState::Closed;
        connection.up.orphaned = is_dropped;
        if is_dropped && connection.up.held {
            connection.up.flights.clear();
        }
        connection.down.flights.clear();
        connection.down.silent = true;
    }

    /// Loses everything that crosses from `from` to `to` on the existing connections, without
    /// notice to either end.
    pub fn silence(&mut self, from: HostId, to: HostId) {
        for number in self.numbers() {
            for direction in [Direction::Up, Direction::Down] {
                if self.connection(number).ends(direction) == (from, to) {
                    let pipe = self.connection_mut(number).pipe_mut(direction);
                    pipe.flights.clear();
                    pipe.silent = true;
                }
            }
        }
    }
}

fn next_retransmission(sent_ns: u64, now_ns: u64, choices: &Choices, choice: Choice) -> u64 {
    let mut gap_ns = RETRANSMISSION_FIRST_NS;
    let mut at_ns = sent_ns + choices.below(choice, RETRANSMISSION_FIRST_NS);
    while at_ns <= now_ns {
        at_ns += gap_ns;
        gap_ns = (gap_ns * 2).min(RETRANSMISSION_LONGEST_NS);
    }
    at_ns
}

#[cfg(test)]
mod tests;
