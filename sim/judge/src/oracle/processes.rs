//! State of the client processes: running, stopped or killed, and since when.

use super::ground::NEVER;
use crate::history::ClientId;
use crate::ids::PerClient;

/// State of one client's process.
#[derive(Clone, Copy, Debug)]
struct Process {
    /// Start of the current stop; [`NEVER`] while the process runs.
    stopped_since_ns: u64,
    /// Start of the last stop.
    last_stop_ns: u64,
    continued_ns: u64,
    stopped_for_ns: u64,
    killed: bool,
}

const RUNNING: Process = Process {
    stopped_since_ns: NEVER,
    last_stop_ns: NEVER,
    continued_ns: 0,
    stopped_for_ns: 0,
    killed: false,
};

/// State of the processes of all clients.
#[derive(Clone, Debug)]
pub(super) struct Processes(PerClient<Process>);

impl Processes {
    pub(super) fn new() -> Self {
        Self(PerClient::filled(RUNNING))
    }

    /// Resets the processes of the first `clients` clients.
    pub(super) fn reset(&mut self, clients: usize) {
        self.0.first_mut(clients).fill(RUNNING);
    }

    pub(super) fn stopped(&mut self, client: ClientId, at_ns: u64) {
        let process = &mut self.0[client];
        (process.stopped_since_ns, process.last_stop_ns) = (at_ns, at_ns);
    }

    pub(super) fn continued(&mut self, client: ClientId, at_ns: u64) {
        let process = &mut self.0[client];
        process.stopped_for_ns += at_ns.saturating_sub(process.stopped_since_ns);
        process.stopped_since_ns = NEVER;
        process.continued_ns = at_ns;
    }

    pub(super) fn killed(&mut self, client: ClientId) {
        self.0[client].killed = true;
    }

    /// Returns true if the process was killed.
    pub(super) fn is_killed(&self, client: ClientId) -> bool {
        self.0[client].killed
    }

    /// Returns since when the process has been taking steps: 0 if always, [`NEVER`] if it takes
    /// none now.
    pub(super) fn runs_since_ns(&self, client: ClientId) -> u64 {
        let process = &self.0[client];
        let takes_none = process.killed || process.stopped_since_ns != NEVER;
        if takes_none { NEVER } else { process.continued_ns }
    }

    /// Returns the start of the stop that ends at `now_ns`; [`NEVER`] if none does.
    pub(super) fn stopped_until_now_ns(&self, client: ClientId, now_ns: u64) -> u64 {
        let process = &self.0[client];
        if process.continued_ns == now_ns { process.last_stop_ns } else { NEVER }
    }

    /// Returns the total time for which the process has been stopped.
    pub(super) fn stopped_for_ns(&self, client: ClientId, at_ns: u64) -> u64 {
        let process = &self.0[client];
        process.stopped_for_ns + at_ns.saturating_sub(process.stopped_since_ns)
    }

    /// Returns the total time for which the process has not been stopped.
    pub(super) fn ran_for_ns(&self, client: ClientId, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.stopped_for_ns(client, at_ns))
    }

    /// Returns true if the process is stopped now.
    pub(super) fn is_stopped(&self, client: ClientId) -> bool {
        self.0[client].stopped_since_ns != NEVER
    }

    /// Returns true if the process has been stopped at any time after `at_ns`.
    pub(super) fn has_stopped_since(&self, client: ClientId, at_ns: u64) -> bool {
        let process = &self.0[client];
        process.stopped_since_ns != NEVER || process.continued_ns > at_ns
    }
}
