//! Which client processes are stopped, were stopped, are dead.

use super::ground::NEVER;
use super::setting::CLIENTS_MAX;

/// One client's process.
#[derive(Clone, Copy, Debug)]
struct Process {
    /// [`NEVER`] while it runs.
    stopped_since_ns: u64,
    continued_ns: u64,
    stopped_for_ns: u64,
    killed: bool,
}

const RUNNING: Process =
    Process { stopped_since_ns: NEVER, continued_ns: 0, stopped_for_ns: 0, killed: false };

/// The processes of all clients.
#[derive(Clone, Debug)]
pub(super) struct Processes([Process; CLIENTS_MAX]);

impl Processes {
    pub(super) fn new() -> Self {
        Self([RUNNING; CLIENTS_MAX])
    }

    pub(super) fn reset(&mut self) {
        self.0 = [RUNNING; CLIENTS_MAX];
    }

    pub(super) fn stopped(&mut self, client: u8, at_ns: u64) {
        let process = &mut self.0[usize::from(client)];
        process.stopped_since_ns = process.stopped_since_ns.min(at_ns);
    }

    pub(super) fn continued(&mut self, client: u8, at_ns: u64) {
        let process = &mut self.0[usize::from(client)];
        process.stopped_for_ns += at_ns.saturating_sub(process.stopped_since_ns);
        process.stopped_since_ns = NEVER;
        process.continued_ns = at_ns;
    }

    pub(super) fn killed(&mut self, client: u8) {
        self.0[usize::from(client)].killed = true;
    }

    /// Whether the process is dead.
    pub(super) fn is_killed(&self, client: u8) -> bool {
        self.0[usize::from(client)].killed
    }

    /// Since when the process has taken steps: 0 if always, [`NEVER`] if it takes none.
    pub(super) fn runs_since_ns(&self, client: u8) -> u64 {
        let process = &self.0[usize::from(client)];
        let takes_none = process.killed || process.stopped_since_ns != NEVER;
        if takes_none { NEVER } else { process.continued_ns }
    }

    /// For how long the process has been stopped in all.
    pub(super) fn stopped_for_ns(&self, client: u8, at_ns: u64) -> u64 {
        let process = &self.0[usize::from(client)];
        process.stopped_for_ns + at_ns.saturating_sub(process.stopped_since_ns)
    }

    /// Whether the process has been stopped at any time after `at_ns`.
    pub(super) fn has_stopped_since(&self, client: u8, at_ns: u64) -> bool {
        let process = &self.0[usize::from(client)];
        process.stopped_since_ns != NEVER || process.continued_ns > at_ns
    }
}
