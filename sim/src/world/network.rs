//! Connections, the bytes on their way, and what partitions do to both.

use std::collections::VecDeque;

use super::choice::{Choice, Choices, Label};

/// The most hosts a world has: nine nodes, eight clients, the probe, the protected resource, nine
/// replicas.
const HOSTS_MAX: usize = 28;

/// TCP sends again after 200 ms, and doubles that up to two minutes.
const RETRANSMISSION_FIRST_NS: u64 = 200_000_000;
const RETRANSMISSION_LONGEST_NS: u64 = 120_000_000_000;

/// Which way along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The client waits for the server to accept.
    Dialing,
    /// Both ends may write.
    Open,
    /// The client has let go of it, or has heard that the server has.
    Closed,
}

/// What travels along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<P> {
    /// The other end accepted (down), or is asked to (up).
    Handshake,
    /// The other end closed the connection.
    Closed,
    /// A message.
    Message(P),
    /// The other end refused or reset the connection: nobody there holds it.
    Reset,
}

#[derive(Clone, Copy, Debug)]
struct Flight<P> {
    what: Arrival<P>,
    sent_ns: u64,
    arrives_ns: u64,
}

/// One direction of a connection: a FIFO that loses nothing out of its middle.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    flights: VecDeque<Flight<P>>,
    last_arrival_ns: u64,
    /// The front could not pass; it waits for the heal and the retransmission after it.
    held: bool,
    /// Nothing passes any more, and nobody is told.
    silent: bool,
    /// Nobody sends again what could not pass.
    orphaned: bool,
}

/// A connection from a client to a server. Never reused in a run.
#[derive(Clone, Debug)]
pub struct Connection<P> {
    /// The client's host.
    pub client: u8,
    /// The server's host.
    pub server: u8,
    /// Which of the client's connections to that server.
    pub lane: u16,
    /// Which connection on that lane.
    pub epoch: u32,
    /// As the client sees it.
    pub state: ConnectionState,
    /// Whether a server process holds the other end.
    pub served: bool,
    up: Pipe<P>,
    down: Pipe<P>,
}

/// All connections of a run, and which hosts can reach which.
#[derive(Clone, Debug)]
pub struct Network<P> {
    connections: Vec<Connection<P>>,
    live: usize,
    cuts: [[u8; HOSTS_MAX]; HOSTS_MAX],
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

    fn ends(&self, direction: Direction) -> (u8, u8) {
        match direction {
            Direction::Down => (self.server, self.client),
            Direction::Up => (self.client, self.server),
        }
    }
}

impl<P: Copy> Default for Network<P> {
    fn default() -> Self {
        Self {
            connections: Vec::with_capacity(32),
            live: 0,
            cuts: [[0; HOSTS_MAX]; HOSTS_MAX],
            any_cut: false,
        }
    }
}

impl<P: Copy> Network<P> {
    /// Forgets every connection and partition, keeping what is allocated.
    pub fn clear(&mut self) {
        self.live = 0;
        if self.any_cut {
            self.cuts = [[0; HOSTS_MAX]; HOSTS_MAX];
            self.any_cut = false;
        }
    }

    /// A connection that is being dialled; its handshake is not on its way yet.
    pub fn dial(&mut self, client: u8, server: u8, lane: u16, epoch: u32) -> u16 {
        let place = self.live;
        self.live += 1;
        if place == self.connections.len() {
            let (up, down) = (Pipe::default(), Pipe::default());
            let state = ConnectionState::Dialing;
            let served = false;
            let it = Connection { client, server, lane, epoch, state, served, up, down };
            self.connections.push(it);
        } else {
            let connection = &mut self.connections[place];
            connection.up.reset();
            connection.down.reset();
            connection.state = ConnectionState::Dialing;
            connection.served = false;
            (connection.client, connection.server) = (client, server);
            (connection.lane, connection.epoch) = (lane, epoch);
        }
        u16::try_from(place).expect("a run has at most 65 536 connections")
    }

    /// A connection by its number.
    #[must_use]
    pub fn connection(&self, number: u16) -> &Connection<P> {
        assert!(usize::from(number) < self.live, "no connection {number}");
        &self.connections[usize::from(number)]
    }

    /// A connection by its number.
    pub fn connection_mut(&mut self, number: u16) -> &mut Connection<P> {
        assert!(usize::from(number) < self.live, "no connection {number}");
        &mut self.connections[usize::from(number)]
    }

    /// The numbers of all connections of the run.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<P> {
        0..self.live as u16
    }

    /// Puts something on its way. Returns when it will be at the other end, if nothing is in the
    /// way; the caller calls [`Network::arrive`] then.
    pub fn send(
        &mut self,
        number: u16,
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

    /// What is at the end of the pipe now, if anything is and the way is free.
    pub fn arrive(&mut self, number: u16, direction: Direction, now_ns: u64) -> Option<Arrival<P>> {
        let (from, to) = self.connection(number).ends(direction);
        let cut = self.any_cut && self.is_cut(from, to);
        let pipe = self.connection_mut(number).pipe_mut(direction);
        let front = pipe.flights.front().filter(|front| front.arrives_ns <= now_ns)?;
        if cut || pipe.held {
            pipe.held = true;
            if pipe.orphaned {
                pipe.flights.clear();
            }
            return None;
        }
        let what = front.what;
        pipe.flights.pop_front();
        Some(what)
    }

    /// Whether nothing passes from one host to another.
    #[must_use]
    pub fn is_cut(&self, from: u8, to: u8) -> bool {
        self.cuts[usize::from(from)][usize::from(to)] > 0
    }

    /// Nothing passes from one host to another any more, until [`Network::heal`] is called as often.
    pub fn cut(&mut self, from: u8, to: u8) {
        self.cuts[usize::from(from)][usize::from(to)] += 1;
        self.any_cut = true;
    }

    /// Takes one cut back.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn heal(&mut self, from: u8, to: u8) {
        let cuts = &mut self.cuts[usize::from(from)][usize::from(to)];
        *cuts = cuts.checked_sub(1).expect("healed what was not cut");
    }

    /// Everything that was held on ways that are free now is sent again: each sender's next
    /// retransmission after now. `schedule` is told of each arrival.
    pub fn retransmit(
        &mut self,
        now_ns: u64,
        choices: &Choices,
        mut schedule: impl FnMut(u16, Direction, u64),
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
                    node: to,
                    repeat: u32::from(number),
                    ..Choice::of(Label::Retransmission, from)
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

    /// The client resets the connection: what has not reached the server's kernel is gone, and no
    /// answer will be heard.
    pub fn reset(&mut self, number: u16) {
        let connection = self.connection_mut(number);
        connection.state = ConnectionState::Closed;
        connection.up.flights.clear();
        connection.up.silent = true;
        connection.down.flights.clear();
        connection.down.silent = true;
    }

    /// The client process is gone: what it wrote still arrives, and no answer will be heard. If the
    /// whole host is gone, there is no kernel either that would send anything again.
    pub fn client_gone(&mut self, number: u16, with_its_kernel: bool) {
        let connection = self.connection_mut(number);
        connection.state = ConnectionState::Closed;
        connection.up.orphaned = with_its_kernel;
        if with_its_kernel && connection.up.held {
            connection.up.flights.clear();
        }
        connection.down.flights.clear();
        connection.down.silent = true;
    }

    /// Whatever crosses from `from` to `to` on connections that exist now is lost, and no end is
    /// told.
    pub fn silence(&mut self, from: u8, to: u8) {
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
mod tests {
    use super::*;

    fn network() -> (Network<u32>, u16) {
        let mut network = Network::default();
        let number = network.dial(5, 0, 0, 1);
        (network, number)
    }

    fn message(what: u32) -> Arrival<u32> {
        Arrival::Message(what)
    }

    #[test]
    fn a_fast_message_does_not_overtake_a_slow_one() {
        let (mut network, number) = network();
        assert_eq!(network.send(number, Direction::Up, message(1), 0, 100), Some(100));
        assert_eq!(network.send(number, Direction::Up, message(2), 10, 5), Some(100));
        assert_eq!(network.arrive(number, Direction::Up, 99), None);
        assert_eq!(network.arrive(number, Direction::Up, 100), Some(message(1)));
        assert_eq!(network.arrive(number, Direction::Up, 100), Some(message(2)));
        assert_eq!(network.arrive(number, Direction::Up, 100), None);
    }

    #[test]
    fn a_partition_holds_and_the_heal_sends_again_in_order() {
        let (mut network, number) = network();
        network.cut(5, 0);
        network.send(number, Direction::Up, message(1), 0, 10);
        assert_eq!(network.arrive(number, Direction::Up, 10), None);
        assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
        network.heal(5, 0);
        let mut arrivals = Vec::new();
        network.retransmit(1_000_000_000, &Choices::new(1), |_, _, at_ns| arrivals.push(at_ns));
        assert_eq!(arrivals.len(), 2);
        assert!(arrivals[0] > 1_000_000_000 && arrivals[0] == arrivals[1]);
        assert_eq!(network.arrive(number, Direction::Up, arrivals[0]), Some(message(1)));
        assert_eq!(network.arrive(number, Direction::Up, arrivals[0]), Some(message(2)));
    }

    #[test]
    fn one_way_is_one_way() {
        let (mut network, number) = network();
        network.cut(0, 5);
        network.send(number, Direction::Up, message(1), 0, 10);
        assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
        network.send(number, Direction::Down, message(2), 10, 10);
        assert_eq!(network.arrive(number, Direction::Down, 20), None);
    }

    #[test]
    fn what_a_silent_connection_swallows_never_arrives() {
        let (mut network, number) = network();
        network.send(number, Direction::Up, message(1), 0, 10);
        network.cut(5, 0);
        assert_eq!(network.arrive(number, Direction::Up, 10), None, "held so far");
        network.silence(5, 0);
        assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
        network.heal(5, 0);
        network.retransmit(30, &Choices::new(1), |_, _, _| panic!("by whom?"));
        assert_eq!(network.arrive(number, Direction::Up, u64::MAX), None);
        let after = network.send(number, Direction::Up, message(3), 40, 10);
        assert_eq!(after, None, "it stays silent after the heal");
        network.send(number, Direction::Down, message(4), 40, 10);
        assert_eq!(network.arrive(number, Direction::Down, 50), Some(message(4)), "the other way");
    }

    #[test]
    fn a_reset_discards_what_has_not_arrived() {
        let (mut network, number) = network();
        network.send(number, Direction::Up, message(1), 0, 10);
        network.reset(number);
        assert_eq!(network.arrive(number, Direction::Up, 10), None);
        assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
    }

    #[test]
    fn the_last_words_of_a_dead_client_arrive() {
        let (mut network, number) = network();
        network.send(number, Direction::Up, message(1), 0, 10);
        network.client_gone(number, false);
        assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
    }

    #[test]
    fn what_a_host_without_power_has_sent_arrives_and_is_not_sent_again() {
        for cut_before in [true, false] {
            let (mut network, number) = network();
            network.send(number, Direction::Up, message(1), 0, 10);
            assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
            network.send(number, Direction::Up, message(2), 10, 10);
            network.cut(5, 0);
            if cut_before {
                assert_eq!(network.arrive(number, Direction::Up, 20), None);
            }
            network.client_gone(number, true);
            assert_eq!(network.arrive(number, Direction::Up, 20), None);
            network.heal(5, 0);
            network.retransmit(30, &Choices::new(1), |_, _, _| panic!("by whom?"));
            assert_eq!(network.arrive(number, Direction::Up, u64::MAX), None);
        }
        let (mut network, number) = network();
        network.send(number, Direction::Up, message(1), 0, 10);
        network.client_gone(number, true);
        assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
    }
}
