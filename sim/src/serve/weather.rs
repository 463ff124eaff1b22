//! What goes wrong around one master, as its connections meet it.

use std::collections::BTreeSet;

use crate::scenario::Lost;

/// Some of the scenario's clients, bit by bit.
pub(super) type Clients = u16;

/// Whether there is a process, and a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    /// It runs.
    #[default]
    Up,
    /// The process is gone, and its kernel refuses connections.
    Killed,
    /// The host is gone: silence.
    Dark,
}

/// What is wrong at one master.
#[derive(Debug, Default)]
pub(super) struct Weather {
    pub(super) life: Life,
    /// Counts the starts of the process.
    pub(super) incarnation: u32,
    /// The host knows nothing of the connections of processes before this one: it had no power.
    pub(super) oldest_known: u32,
    /// How many faults keep it from executing.
    pub(super) stalls: u32,
    /// The connections that the server wants closed.
    pub(super) killed: BTreeSet<u64>,
    cuts: Vec<Cut>,
    slows: Vec<Slow>,
    /// Counts what has changed.
    version: u64,
}

/// Messages that do not pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Which fault it is.
    pub(super) fault: usize,
    /// Whose requests.
    pub(super) requests: Clients,
    /// The answers to whom.
    pub(super) replies: Clients,
    pub(super) lost: Lost,
}

/// Messages that take longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) fault: usize,
    pub(super) requests: Clients,
    pub(super) replies: Clients,
    pub(super) by_ns: u64,
    /// Of requests, those alone that ask for the lock.
    pub(super) sets_only: bool,
}

/// What a connection meets at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Requests wait.
    pub(super) requests_held: bool,
    /// Answers wait.
    pub(super) replies_held: bool,
    /// What came over it so far is the last that did.
    pub(super) requests_lost: bool,
    /// The same, of answers.
    pub(super) replies_lost: bool,
    /// Both ends see a reset.
    pub(super) reset: bool,
    pub(super) requests_by_ns: u64,
    /// By how much more requests that ask for the lock.
    pub(super) sets_by_ns: u64,
    pub(super) replies_by_ns: u64,
}

impl Weather {
    /// Counts what has changed.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Something is about to change.
    pub(super) fn change(&mut self) {
        self.version += 1;
    }

    /// The `incarnation`-th process begins.
    pub(super) fn rise(&mut self, incarnation: u32) {
        if self.life == Life::Dark {
            self.oldest_known = incarnation;
        }
        self.life = Life::Up;
        self.incarnation = incarnation;
    }

    pub(super) fn cut(&mut self, cut: Cut) {
        self.cuts.push(cut);
    }

    pub(super) fn slow(&mut self, slow: Slow) {
        self.slows.push(slow);
    }

    /// A cut or a delay is over.
    pub(super) fn clear(&mut self, fault: usize) {
        self.cuts.retain(|cut| cut.fault != fault);
        self.slows.retain(|slow| slow.fault != fault);
    }

    /// What a connection meets that is `client`'s; nobody's is everybody's.
    pub(super) fn link(&self, client: Option<u8>) -> Link {
        let concerns = |clients: Clients| match client {
            Some(client) => clients & (1 << client) != 0,
            None => clients != 0,
        };
        let mut link = Link::default();
        for cut in &self.cuts {
            let (requests, replies) = (concerns(cut.requests), concerns(cut.replies));
            link.requests_held |= requests;
            link.replies_held |= replies;
            link.reset |= cut.lost == Lost::Reset && (requests || replies);
            if cut.lost == Lost::Silent {
                link.requests_lost |= requests;
                link.replies_lost |= replies;
            }
        }
        for slow in &self.slows {
            let requests_by_ns = if concerns(slow.requests) { slow.by_ns } else { 0 };
            if slow.sets_only {
                link.sets_by_ns += requests_by_ns;
            } else {
                link.requests_by_ns += requests_by_ns;
            }
            link.replies_by_ns += if concerns(slow.replies) { slow.by_ns } else { 0 };
        }
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_concerns_whom_it_names_and_whoever_has_no_name() {
        let mut weather = Weather::default();
        weather.cut(Cut { fault: 3, requests: 0b10, replies: 0, lost: Lost::Hold });
        assert!(weather.link(Some(1)).requests_held);
        assert!(!weather.link(Some(1)).replies_held);
        assert!(!weather.link(Some(0)).requests_held);
        assert!(weather.link(None).requests_held);
        weather.clear(3);
        assert_eq!(weather.link(None), Link::default());
    }

    #[test]
    fn delays_add_up() {
        let mut weather = Weather::default();
        for fault in 0..2 {
            weather.slow(Slow { fault, requests: 1, replies: 1, by_ns: 7, sets_only: false });
        }
        weather.slow(Slow { fault: 2, requests: 1, replies: 0, by_ns: 5, sets_only: true });
        let link = weather.link(Some(0));
        assert_eq!((link.requests_by_ns, link.sets_by_ns, link.replies_by_ns), (14, 5, 14));
    }
}
