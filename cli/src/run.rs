//! `run`: holds a lock while a command runs.

mod group;
mod signals;
mod supervisor;
mod terminal;

use core::time::Duration;
use std::process::Command;

use redlock_client::{Acquire, AcquireError, KeepAlive, Lease, Redlock, Released, Standing};
use tokio::time::Instant;

use self::group::{Group, adopt_orphans};
use self::signals::{Caught, Signals};
use self::supervisor::{Cause, Ending, Supervisor};
use crate::arguments::Run;
use crate::exit::{Exit, Stop};
use crate::key::holder;
use crate::runtime::block_on;
use crate::say::say;
use crate::settings::Settings;

/// Default of `--grace`, unless a third of the TTL is shorter.
const DEFAULT_GRACE: Duration = Duration::from_secs(10);
/// Time for releases that were not confirmed at once.
const CLOSE_WITHIN: Duration = Duration::from_millis(500);
/// Share of the TTL within which a lease that ends before its limit has reached it: drift is a part
/// of that.
const MARGIN: u32 = 10;

/// Acquires the lock, runs the command, releases the lock.
pub(crate) fn run(arguments: &Run) -> Result<Exit, Stop> {
    let plan = Plan::new(arguments)?;
    block_on(async {
        let exit = plan.execute().await;
        let _left_to_expire = plan.redlock.close(CLOSE_WITHIN).await;
        exit
    })?
}

/// A checked command line.
struct Plan<'a> {
    arguments: &'a Run,
    redlock: Redlock,
    ttl: Duration,
    grace: Duration,
}

impl<'a> Plan<'a> {
    fn new(arguments: &'a Run) -> Result<Self, Stop> {
        let (redlock, ttl) =
            Settings::read(&arguments.client.nodes, arguments.client.ttl)?.client()?;
        let grace = arguments.grace.unwrap_or(DEFAULT_GRACE.min(ttl / 3));
        // A fresh lease must outlast the grace, and so must one whose first extension fails.
        if grace >= ttl / 2 {
            return Err(Stop::failed(format!(
                "`--grace {grace:?}` must be less than half of `--ttl {ttl:?}`"
            )));
        }
        let limit = arguments.limit;
        if limit <= ttl {
            let message = format!("`--limit {limit:?}` must be longer than `--ttl {ttl:?}`");
            return Err(Stop::failed(message));
        }
        let wait = arguments.wait;
        if arguments.leave && wait >= ttl {
            return Err(Stop::failed(format!(
                "with `--leave`, `--wait {wait:?}` must be less than `--ttl {ttl:?}`: who waits until \
                 the lock that was left expires repeats the work"
            )));
        }
        Ok(Self { arguments, redlock, ttl, grace })
    }

    fn acquire(&self) -> Acquire<'_> {
        let key = self.arguments.key.bytes();
        let acquire = match self.arguments.wait {
            Duration::ZERO => self.redlock.try_acquire(key),
            wait => self.redlock.acquire(key).wait(wait),
        };
        let keep_alive = KeepAlive::at_most(self.arguments.limit);
        acquire.min_validity(self.ttl / 2).keep_alive(keep_alive)
    }

    async fn execute(&self) -> Result<Exit, Stop> {
        let failed = |error| Stop::failed(format!("signals cannot be handled: {error}"));
        let mut signals = Signals::listen().map_err(failed)?;
        let mut acquiring = core::pin::pin!(self.acquire().into_future());
        let lease = loop {
            tokio::select! {
                biased;
                caught = signals.next() => match caught {
                    Caught::Forward(signal) => return Ok(Exit::signaled(signal.as_raw())),
                    Caught::Stop => signals.stop(),
                    Caught::Child | Caught::Continued => {}
                },
                acquired = &mut acquiring => break acquired,
            }
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(error) => return self.not_acquired(&error),
        };
        let limit = Instant::now() + self.arguments.limit.saturating_sub(self.ttl / MARGIN);
        let name = &self.arguments.key;
        let who = holder(lease.owner().as_bytes());
        self.note(format_args!("{name} is held by this command, as {who}"));
        adopt_orphans();
        let group = self.start(&lease, &who)?;
        let supervisor = Supervisor::new(group, &lease, signals, self.grace, limit);
        let ending = supervisor.supervise().await;
        let exit = self.exit(&ending);
        self.release(lease, &ending).await;
        Ok(exit)
    }

    fn not_acquired(&self, error: &AcquireError) -> Result<Exit, Stop> {
        let stop = Stop::not_acquired(error, self.arguments.conflict_exit_code);
        // With exit code 0 a taken lock is no failure, and cron mails whatever is printed.
        if stop.exit == Exit::Taken(0) {
            self.note(format_args!("{stop}"));
            return Ok(stop.exit);
        }
        Err(stop)
    }

    /// Starts the command, unless too little of the lease is left to end it in time: this process may
    /// have been stopped since the acquisition.
    fn start(&self, lease: &Lease, who: &str) -> Result<Group, Stop> {
        lease.check(self.grace).map_err(|reason| Stop {
            exit: Exit::Lost,
            message: format!("the lease was lost before the command was started: {reason}"),
        })?;
        Group::start(self.command(who))
    }

    fn command(&self, who: &str) -> Command {
        let mut words = self.arguments.command.iter();
        let mut command = Command::new(words.next().expect("clap demands a command"));
        command.args(words).env("REDLOCK_KEY", &self.arguments.key).env("REDLOCK_OWNER", who);
        command.env("REDLOCK_TTL_MS", self.ttl.as_millis().to_string());
        command.env("REDLOCK_LIMIT_MS", self.arguments.limit.as_millis().to_string());
        command
    }

    /// Releases the lock, unless a process of the command may still be at work.
    async fn release(&self, lease: Lease, ending: &Ending) {
        let name = &self.arguments.key;
        if !ending.is_gone {
            say(format_args!("the command cannot be ended; {name} is kept until it expires"));
            lease.leave_until_expiry();
            return;
        }
        let is_done = ending.cause.is_none() && ending.status.code() == 0;
        if self.arguments.leave && is_done {
            self.note(format_args!("{name} is left until it expires"));
            lease.leave_until_expiry();
            return;
        }
        let is_lost = matches!(ending.cause, Some(Cause::Lost(_)));
        let done = if is_lost {
            format!("the remaining keys of {name} are deleted")
        } else {
            format!("{name} is released")
        };
        match lease.release().await {
            Released::Unconfirmed(nodes) => {
                for node in nodes {
                    say(format_args!("{done}, but not confirmed by {node}"));
                }
            }
            _ => self.note(format_args!("{done}")),
        }
    }

    fn exit(&self, ending: &Ending) -> Exit {
        match ending.cause {
            None => ending.status,
            Some(Cause::Limit) => {
                let limit = self.arguments.limit;
                say(format_args!("the command was ended before its limit (`--limit {limit:?}`)"));
                Exit::Limit
            }
            Some(Cause::RunningOut) => {
                let why = "too few nodes confirmed the extensions of its lease";
                say(format_args!("the command was ended: {why}{}", self.failing_nodes()));
                Exit::Lost
            }
            Some(Cause::Lost(reason)) => {
                say(format_args!("the lease was lost while the command ran: {reason}"));
                Exit::Lost
            }
        }
    }

    /// Returns the nodes that are not connected, whose votes do not count, or that had an error within
    /// the TTL, each with its error.
    fn failing_nodes(&self) -> String {
        let nodes = self.redlock.health().nodes;
        let failing = nodes.iter().filter(|node| {
            !node.connected
                || node.standing != Standing::Counts
                || node.last_error_age.is_some_and(|age| age <= self.ttl)
        });
        failing.map(|node| format!("; {node}")).collect()
    }

    fn note(&self, message: core::fmt::Arguments<'_>) {
        if self.arguments.verbose {
            say(message);
        }
    }
}
