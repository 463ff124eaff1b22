//! Ends the command before its lease ends.
//!
//! | event | to the command's group |
//! | --- | --- |
//! | a signal to this process | the same signal |
//! | the lease has only the grace left | SIGTERM, and SIGKILL when the lease is over |
//! | the lease is lost without warning | SIGTERM, and SIGKILL after the grace |
//! | the command has ended, and left processes behind | SIGTERM, and SIGKILL after the grace |

#![expect(clippy::disallowed_methods, reason = "a command runs in real time")]

use core::time::Duration;

use redlock_client::{Lease, LostReason};
use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use super::group::{Change, Group};
use super::signals::{Caught, Signals};
use super::terminal::Terminal;
use crate::exit::Exit;
use crate::say::say;

/// Time for the system to end a process after SIGKILL.
const KILL_WITHIN: Duration = Duration::from_secs(10);
/// Interval of checks of a group without a parent, if the system does not report the ends of its
/// processes.
const GLANCE: Duration = Duration::from_millis(50);

/// Reason why the command did not run to its end under the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The limit of the lease is reached.
    Limit,
    /// The lease is about to end: too few nodes confirm its extensions.
    RunningOut,
    /// The lease was over before the command was.
    Lost(LostReason),
}

impl Cause {
    fn of(reason: LostReason) -> Self {
        match reason {
            LostReason::KeepAliveEnded => Self::Limit,
            LostReason::KeepAliveFailed => Self::RunningOut,
            _ => Self::Lost(reason),
        }
    }
}

/// End of the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Exit code for the command's own end.
    pub(super) status: Exit,
    /// `None` if the command ran to its end under the lease.
    pub(super) cause: Option<Cause>,
    /// False if a process of the command may still be at work.
    pub(super) is_gone: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing was sent.
    Running,
    /// SIGTERM was sent; SIGKILL follows at this instant, or when the lease is over.
    Terminating(Instant),
    /// SIGKILL was sent; the rest is not waited for beyond this instant.
    Killed(Instant),
}

pub(super) struct Supervisor<'a> {
    group: Group,
    lease: &'a Lease,
    signals: Signals,
    grace: Duration,
    /// A lease that ends after this instant has reached its limit.
    limit: Instant,
    terminal: Option<Terminal>,
    phase: Phase,
    /// The group was sent a signal that may end it.
    has_signalled: bool,
    status: Option<Exit>,
    cause: Option<Cause>,
}

impl<'a> Supervisor<'a> {
    /// Supervises a command that was just started. A lease that ends after `limit` has reached its
    /// limit.
    pub(super) fn new(
        group: Group,
        lease: &'a Lease,
        signals: Signals,
        grace: Duration,
        limit: Instant,
    ) -> Self {
        let terminal = Terminal::lend_to(group.id());
        let (phase, has_signalled) = (Phase::Running, false);
        let (status, cause) = (None, None);
        Self { group, lease, signals, grace, limit, terminal, phase, has_signalled, status, cause }
    }

    /// Waits until no process of the group is left.
    pub(super) async fn supervise(mut self) -> Ending {
        let (mut lost, mut is_lost) = (self.lease.lost(), false);
        loop {
            self.look_at_command().await;
            let is_gone = self.status.is_some() && !self.group.is_alive();
            let is_hopeless = matches!(self.phase, Phase::Killed(end) if end <= Instant::now());
            if is_gone || is_hopeless {
                return self.ending(is_gone);
            }
            self.look_at_clock();
            let next_look = self.next_look();
            tokio::select! {
                biased;
                reason = &mut lost, if !is_lost => {
                    is_lost = true;
                    self.lost(reason);
                }
                caught = self.signals.next() => match caught {
                    Caught::Child => {}
                    Caught::Continued => self.go_on(),
                    Caught::Stop => self.stop(),
                    Caught::Forward(signal) => self.forward(signal),
                },
                () = sleep_until(next_look) => {}
            }
        }
    }

    /// Takes note of the command's own end, and of stops.
    async fn look_at_command(&mut self) {
        while let Some(change) = self.group.reap() {
            match change {
                Change::Ended(status) => {
                    self.status = Some(status);
                    self.terminal = None;
                    if matches!(self.phase, Phase::Running) && self.group.is_alive() {
                        // After a signal to the group, they may just be ending.
                        if !self.has_signalled {
                            say(format_args!(
                                "the command has left processes behind: they are ended"
                            ));
                        }
                        self.terminate();
                    }
                }
                Change::Stopped(signal) => self.stopped(signal).await,
            }
        }
    }

    /// Stops with the command after a stop from the terminal: the shell must get the terminal back,
    /// and know of the stop. Any other stop is deliberate, and the lease is kept alive.
    async fn stopped(&mut self, signal: i32) {
        let Some(terminal) = &mut self.terminal else { return };
        let is_use = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw).contains(&signal);
        terminal.is_used |= is_use;
        let is_asked = signal == Signal::TSTP.as_raw() && terminal.is_used;
        if !is_asked && !is_use {
            return;
        }
        if is_asked || !terminal.lend() {
            terminal.take_back();
            self.signals.stop_job().await;
        }
        // A command that reads in the background would be stopped again at once.
        if is_asked || self.terminal.as_ref().is_some_and(Terminal::lend) {
            self.go_on();
        }
    }

    /// Stops the command, and then this process, until a shell continues it: the terminal has not
    /// been lent, so its stop has not reached the command.
    fn stop(&mut self) {
        self.group.signal(Signal::STOP);
        self.signals.stop();
        self.go_on();
    }

    /// Continues the command, unless the lease is over: it is continued to be ended then, because a
    /// process that is stopped takes no SIGTERM.
    fn go_on(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.lend();
        }
        if self.lease.is_valid() {
            self.group.signal(Signal::CONT);
        }
    }

    /// Does what is due.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.lease.is_valid() && self.lease.remaining() <= self.grace => {
                let is_limit = now + self.lease.remaining() >= self.limit;
                self.cause = Some(if is_limit { Cause::Limit } else { Cause::RunningOut });
                self.terminate();
            }
            Phase::Terminating(end) if end <= now => self.kill(),
            _ => {}
        }
    }

    fn lost(&mut self, reason: LostReason) {
        match self.phase {
            Phase::Running => {
                self.cause = Some(Cause::of(reason));
                self.terminate();
            }
            Phase::Terminating(_) => {
                self.cause = self.cause.or(Some(Cause::of(reason)));
                self.kill();
            }
            Phase::Killed(_) => {}
        }
    }

    fn forward(&mut self, signal: Signal) {
        self.group.signal(signal);
        // A stopped process takes no signal that ends it until it goes on.
        if ![Signal::USR1, Signal::USR2].contains(&signal) {
            self.has_signalled = true;
            self.group.signal(Signal::CONT);
        }
    }

    fn terminate(&mut self) {
        self.phase = Phase::Terminating(Instant::now() + self.grace);
        self.forward(Signal::TERM);
    }

    fn kill(&mut self) {
        self.phase = Phase::Killed(Instant::now() + KILL_WITHIN);
        self.group.signal(Signal::KILL);
    }

    /// Instant at which something may be due, if nothing happens until then.
    fn next_look(&self) -> Instant {
        let now = Instant::now();
        let due = match self.phase {
            Phase::Running => now + self.lease.remaining().saturating_sub(self.grace) + ROUNDING,
            Phase::Terminating(end) | Phase::Killed(end) => end,
        };
        // No signal reports the end of a process that is not a child.
        if self.status.is_some() { due.min(now + GLANCE) } else { due }
    }

    fn ending(self, is_gone: bool) -> Ending {
        // SIGKILL ended it if it has no status.
        let status = self.status.unwrap_or(Exit::signaled(Signal::KILL.as_raw()));
        // A command that ends when its lease is over has not been alone to the end.
        let over = || self.lease.check(Duration::ZERO).err().map(Cause::of);
        Ending { status, cause: self.cause.or_else(over), is_gone }
    }
}

/// Resolution of the runtime's timers.
const ROUNDING: Duration = Duration::from_millis(1);
