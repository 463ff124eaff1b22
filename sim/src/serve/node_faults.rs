//! Link faults: the faults around one master, as its connections experience them.

use std::collections::BTreeSet;

use lock_judge::history::{ClientId, ClientIds, OpKind};
use lock_judge::ids::StrikeId;
use lock_judge::scenario::Lost;

/// State of a node's process and its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    /// The process runs.
    #[default]
    Up,
    /// The process is dead, and its kernel refuses connections.
    Killed,
    /// The host is dead and sends nothing.
    Dark,
}

/// The faults at one master.
#[derive(Debug, Default)]
pub(super) struct NodeFaults {
    pub(super) life: Life,
    /// Number of restarts of the process.
    pub(super) incarnation: u32,
    /// The oldest incarnation whose connections the host still knows. A power loss makes it forget
    /// all earlier ones.
    pub(super) oldest_known: u32,
    /// Number of active faults that stall the node.
    pub(super) stalls: u32,
    /// Number of active faults that fill the node's memory.
    pub(super) full: u32,
    /// Numbers of the connections that the server wants closed.
    pub(super) killed: BTreeSet<u64>,
    /// Each partition, with the version at which it began.
    cuts: Vec<(Cut, u64)>,
    slows: Vec<Slow>,
    /// Number of changes so far.
    version: u64,
}

/// A partition: messages that do not pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) strike: StrikeId,
    /// Clients whose requests are blocked.
    pub(super) requests: ClientIds,
    /// Clients whose replies are blocked.
    pub(super) replies: ClientIds,
    pub(super) lost: Lost,
}

/// A delay: messages that take longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) strike: StrikeId,
    pub(super) requests: ClientIds,
    pub(super) replies: ClientIds,
    pub(super) by_ns: u64,
    /// Purpose of the requests that are delayed; all requests if there is none.
    pub(super) only: Option<OpKind>,
}

/// The combined faults on one connection at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Requests wait.
    pub(super) requests_held: bool,
    /// Replies wait.
    pub(super) replies_held: bool,
    /// All further requests on this connection are lost, for good.
    pub(super) requests_lost: bool,
    /// All further replies on this connection are lost, for good.
    pub(super) replies_lost: bool,
    /// Both ends see a reset.
    pub(super) reset: bool,
    requests_by_ns: u64,
    /// Additional delay of requests that ask for the lock, extend it, or release it.
    sets_by_ns: u64,
    extensions_by_ns: u64,
    releases_by_ns: u64,
    pub(super) replies_by_ns: u64,
}

impl Link {
    /// Returns the delay of a request for the lock with the purpose `op`, or of another request.
    pub(super) fn request_by_ns(&self, op: Option<OpKind>) -> u64 {
        let more_ns = match op {
            Some(OpKind::Set) => self.sets_by_ns,
            Some(OpKind::Extend) => self.extensions_by_ns,
            Some(OpKind::Release) => self.releases_by_ns,
            _ => 0,
        };
        self.requests_by_ns + more_ns
    }
}

impl NodeFaults {
    /// Returns the number of changes so far.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Counts a change.
    pub(super) fn change(&mut self) {
        self.version += 1;
    }

    /// Notes that the `incarnation`-th process starts.
    pub(super) fn rise(&mut self, incarnation: u32) {
        if self.life == Life::Dark {
            self.oldest_known = incarnation;
        }
        self.life = Life::Up;
        self.incarnation = incarnation;
    }

    pub(super) fn cut(&mut self, cut: Cut) {
        self.cuts.push((cut, self.version));
    }

    pub(super) fn slow(&mut self, slow: Slow) {
        self.slows.push(slow);
    }

    /// Removes the partitions and delays of `strike`.
    pub(super) fn clear(&mut self, strike: StrikeId) {
        self.cuts.retain(|(cut, _)| cut.strike != strike);
        self.slows.retain(|slow| slow.strike != strike);
    }

    /// Returns the faults on a connection of `client` that opened at the version `opened`. A
    /// connection without a client is affected by the faults of every client.
    pub(super) fn link(&self, client: Option<ClientId>, opened: u64) -> Link {
        let concerns = |clients: ClientIds| match client {
            Some(client) => clients.contains(client),
            None => !clients.is_empty(),
        };
        let mut link = Link::default();
        for &(cut, begun) in &self.cuts {
            let (requests, replies) = (concerns(cut.requests), concerns(cut.replies));
            link.requests_held |= requests;
            link.replies_held |= replies;
            link.reset |= cut.lost == Lost::Reset && (requests || replies);
            // A later connection is new to the middlebox that forgot the others.
            if cut.lost == Lost::Silent && opened <= begun {
                link.requests_lost |= requests;
                link.replies_lost |= replies;
            }
        }
        for slow in &self.slows {
            let requests_by_ns = if concerns(slow.requests) { slow.by_ns } else { 0 };
            *match slow.only {
                Some(OpKind::Set) => &mut link.sets_by_ns,
                Some(OpKind::Extend) => &mut link.extensions_by_ns,
                Some(_) => &mut link.releases_by_ns,
                None => &mut link.requests_by_ns,
            } += requests_by_ns;
            link.replies_by_ns += if concerns(slow.replies) { slow.by_ns } else { 0 };
        }
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_affects_its_clients_and_unnamed_connections() {
        let mut node_faults = NodeFaults::default();
        let (strike, requests) = (StrikeId(3), ClientIds::just(ClientId(1)));
        let replies = ClientIds::EMPTY;
        node_faults.cut(Cut { strike, requests, replies, lost: Lost::Hold });
        assert!(node_faults.link(Some(ClientId(1)), 0).requests_held);
        assert!(!node_faults.link(Some(ClientId(1)), 0).replies_held);
        assert!(!node_faults.link(Some(ClientId(0)), 0).requests_held);
        assert!(node_faults.link(None, 0).requests_held);
        node_faults.clear(strike);
        assert_eq!(node_faults.link(None, 0), Link::default());
    }

    #[test]
    fn only_connections_open_at_a_silent_cut_go_dead() {
        let mut node_faults = NodeFaults::default();
        let requests = ClientIds::just(ClientId(0));
        let (strike, replies, lost) = (StrikeId(0), ClientIds::EMPTY, Lost::Silent);
        let before = node_faults.version();
        node_faults.cut(Cut { strike, requests, replies, lost });
        node_faults.change();
        let after = node_faults.version();
        // Another fault begins, and every connection looks again.
        node_faults.change();
        let link = |opened| node_faults.link(Some(ClientId(0)), opened);
        assert!(link(before).requests_lost && link(before).requests_held);
        assert!(!link(after).requests_lost && link(after).requests_held);
    }

    #[test]
    fn delays_add_up() {
        let mut node_faults = NodeFaults::default();
        let requests = ClientIds::just(ClientId(0));
        for strike in [StrikeId(0), StrikeId(1)] {
            let (replies, by_ns, only) = (requests, 7, None);
            node_faults.slow(Slow { strike, requests, replies, by_ns, only });
        }
        let (strike, replies) = (StrikeId(2), ClientIds::EMPTY);
        for (op, by_ns) in [(OpKind::Set, 1), (OpKind::Extend, 2), (OpKind::Release, 3)] {
            node_faults.slow(Slow { strike, requests, replies, by_ns, only: Some(op) });
        }
        let link = node_faults.link(Some(ClientId(0)), 0);
        let ops = [None, Some(OpKind::Set), Some(OpKind::Extend), Some(OpKind::Release)];
        assert_eq!(ops.map(|op| link.request_by_ns(op)), [14, 15, 16, 17]);
        assert_eq!(link.replies_by_ns, 14);
    }
}
