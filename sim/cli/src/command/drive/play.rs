//! One run: masters in this process, a worker process for each client, and their ends.

#![expect(clippy::disallowed_methods, reason = "workers run in real time")]
#![expect(clippy::disallowed_types, reason = "workers run in real time")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use lock_judge::text;
use redlock_sim::search::Played;
use redlock_sim::serve::{self, Fleet, Setup, Verdict};

use super::Job;
use super::watchdog::Watchdog;
use super::words::Words;
use super::worker::{self, End, Start, Worker};
use crate::command::exit::Stop;
use crate::command::serve::{describe, refused};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Interval of looks at the clock, at the stop flag and at the sizes of the logs.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum size of a worker's log.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Reason why a run in which nobody asked for the lock is incomplete.
const UNASKED: &str = "no worker asked for the lock: the masters' addresses are in DRIVE_NODES and \
                       `{nodes}`, the lock's name is in DRIVE_RESOURCE and `{resource}`";

/// Settings that all runs share.
pub(super) struct Drive<'a> {
    pub(super) words: Words,
    pub(super) watchdog: &'a Watchdog,
    pub(super) mark: String,
    pub(super) stop: &'a AtomicBool,
    /// Time after time 0 at which a run ends; `None` if it ends with its workers.
    pub(super) limit: Option<Duration>,
    /// A worker that runs for longer than this after the limit counts as hung.
    pub(super) patience: Duration,
    pub(super) profile: Option<&'static redis_sim::profile::Profile>,
    pub(super) out: &'a Path,
}

/// A run after its end.
pub(super) struct Driven {
    pub(super) played: Played,
    /// True if not everything could be recorded; then nothing is judged.
    pub(super) is_cut_short: bool,
    /// Remarks about workers that do not change the verdict.
    pub(super) notes: Vec<String>,
}

/// A message to the thread that supervises a run.
enum Message {
    /// The process of the worker at this place has ended.
    Ended(usize, End),
    /// The limit is reached, or the observer has received END.
    Over,
}

/// Lets the threads that wait for the fleet go on.
struct Ends<'a>(&'a Fleet);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drive<'_> {
    /// Returns the time after which a worker counts as hung.
    fn longest(&self) -> Duration {
        self.patience + self.limit.unwrap_or_default()
    }

    /// Returns the time after which a worker counts as hung, and the options that set it.
    fn longest_in_words(&self) -> String {
        let options = if self.limit.is_some() { "`--for` and `--timeout`" } else { "`--timeout`" };
        format!("{} ({options})", text::length(self.longest().as_nanos() as u64))
    }

    /// Plays one run; `None` if `drive` was stopped meanwhile.
    pub(super) fn play(&self, job: &Job) -> Result<Option<Driven>, Stop> {
        let scenario = &job.selected.case.scenario;
        let fleet = Fleet::start(&Setup {
            case: job.selected.case.clone(),
            seed: job.seed,
            base_port: 0,
            observer_port: 0,
            profile: self.profile.unwrap_or_else(|| serve::profile(scenario)),
            waits_for_start: false,
            owns_workers: true,
            describe,
            out: self.out.to_owned(),
        })
        .map_err(refused)?;
        let (sender, inbox) = mpsc::channel();
        thread::scope(|scope| {
            let _ends = Ends(&fleet);
            let mut workers = Vec::new();
            for client in &scenario.clients {
                workers.push(self.start(job, &fleet, &client.id)?);
            }
            for (place, worker) in workers.iter().enumerate() {
                let (sender, group) = (sender.clone(), worker.group());
                scope.spawn(move || {
                    let end = worker::await_end(group).unwrap_or(End::Code(-1));
                    sender.send(Message::Ended(place, end))
                });
            }
            let fleet = &fleet;
            scope.spawn(move || {
                fleet.wait(self.limit);
                sender.send(Message::Over)
            });
            Run::new(self, fleet, workers).supervise(&inbox)
        })
    }

    fn start(&self, job: &Job, fleet: &Fleet, client: &str) -> Result<Worker<'_>, Stop> {
        let case = &job.selected.case;
        let nodes: Vec<String> = fleet.addresses().iter().map(ToString::to_string).collect();
        let values = [
            ("client", "DRIVE_CLIENT", client.to_owned()),
            ("nodes", "DRIVE_NODES", nodes.join(",")),
            ("observer", "DRIVE_OBSERVER", fleet.observer().to_string()),
            ("resource", "DRIVE_RESOURCE", case.scenario.lock.resource.clone()),
            ("scenario", "DRIVE_SCENARIO", case.full_name()),
            ("seed", "DRIVE_SEED", job.seed.to_string()),
            ("ttl-ms", "DRIVE_TTL_MS", (case.scenario.lock.ttl.0 / 1_000_000).to_string()),
        ];
        let value = |name: &str| {
            let found = values.iter().find(|(known, _, _)| *known == name);
            found.map(|(_, _, value)| value.clone())
        };
        let words = self.words.filled(value).map_err(Stop::internal)?;
        let program = words[0].clone();
        let start = Start {
            client: client.to_owned(),
            words,
            environment: values.iter().map(|(_, name, value)| (*name, value.clone())).collect(),
            mark: format!("{}.{}.{client}.", self.mark, job.number),
            log: job.log_stem(self.out).with_extension(format!("{}.{client}.log", job.seed)),
        };
        let worker = Worker::start(self.watchdog, start).map_err(|error| {
            Stop::usage(format!(
                "error: the worker cannot be started: `{program}`: {error}\n  = help: `--worker` \
                 is a program that is installed or built, and its arguments; for a shell's syntax \
                 write `sh -c '…'`"
            ))
        })?;
        fleet.adopt(client, worker.group());
        Ok(worker)
    }
}

/// Progress of a run.
#[derive(Clone, Copy)]
enum Phase {
    /// A worker that still runs at this instant hangs.
    Running(Instant),
    /// Workers were asked to end; they are killed at this instant.
    Ending(Instant),
}

/// A run with its workers.
struct Run<'a> {
    drive: &'a Drive<'a>,
    fleet: &'a Fleet,
    workers: Vec<Worker<'a>>,
    phase: Phase,
    /// The verdict, if workers had to be ended after it.
    verdict: Option<Verdict>,
    incomplete: Vec<String>,
    notes: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(drive: &'a Drive<'a>, fleet: &'a Fleet, workers: Vec<Worker<'a>>) -> Self {
        let phase = Phase::Running(Instant::now() + drive.longest());
        let (incomplete, notes) = (Vec::new(), Vec::new());
        Self { drive, fleet, workers, phase, verdict: None, incomplete, notes }
    }

    /// Waits for the end of all workers, and judges.
    fn supervise(mut self, inbox: &Receiver<Message>) -> Result<Option<Driven>, Stop> {
        while !self.workers.iter().all(Worker::has_ended) {
            match inbox.recv_timeout(LOOK) {
                Ok(Message::Ended(place, end)) => self.ended(place, end),
                Ok(Message::Over) => self.terminate(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.drive.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.look();
        }
        let verdict = match self.verdict.take() {
            Some(verdict) => verdict,
            None => self.judged(),
        };
        let is_cut_short = verdict.is_cut_short;
        self.notes.extend(self.fleet.unknown_commands());
        let played = verdict.played(self.incomplete, UNASKED);
        Ok(Some(Driven { played, is_cut_short, notes: self.notes }))
    }

    /// Notes the end of a worker's process.
    fn ended(&mut self, place: usize, end: End) {
        let worker = &mut self.workers[place];
        if worker.has_ended() {
            return;
        }
        let is_asked = matches!(self.phase, Phase::Ending(_));
        let how = self.fleet.worker_ended(&worker.client, end == End::Code(0));
        let left = worker.kill();
        let client = &worker.client;
        if left > 0 && !is_asked && !how.by_fault {
            let note = format!("worker {client} left processes behind, which drive killed: {left}");
            self.notes.push(note);
        }
        if is_asked || how.by_fault {
            return;
        }
        if end != End::Code(0) {
            let said = said(worker);
            self.incomplete.push(format!("worker {client} ended {end}: {said}"));
        } else if how.was_inside {
            let why = "ended inside its section: send LEAVE first";
            self.incomplete.push(format!("worker {client} {why}"));
        }
    }

    /// Judges the run so far, and notes what has not happened.
    fn judged(&mut self) -> Verdict {
        self.incomplete.extend(self.fleet.stranger());
        self.incomplete.extend(self.fleet.unbegun_faults());
        self.fleet.verdict()
    }

    /// Judges the run, and asks the workers to end.
    fn terminate(&mut self) {
        if let Phase::Running(_) = self.phase {
            self.verdict = Some(self.judged());
            self.phase = Phase::Ending(Instant::now() + GRACE);
            self.workers.iter().filter(|it| !it.has_ended()).for_each(Worker::terminate);
        }
    }

    /// Ends workers that hang, that print without end, or that ignore SIGTERM.
    fn look(&mut self) {
        let now = Instant::now();
        let live = self.workers.iter_mut().filter(|it| !it.has_ended());
        match self.phase {
            Phase::Running(until) => {
                let mut why = Vec::new();
                for worker in live {
                    let client = &worker.client;
                    if worker.printed() > LOG_BYTES_MAX {
                        let said = said(worker);
                        why.push(format!("worker {client} printed more than 64 MiB: {said}"));
                    } else if now >= until {
                        let (after, said) = (self.drive.longest_in_words(), said(worker));
                        why.push(format!(
                            "worker {client} hangs: it still ran after {after}; {said}"
                        ));
                    }
                }
                if !why.is_empty() {
                    self.incomplete.append(&mut why);
                    self.terminate();
                }
            }
            Phase::Ending(until) if now >= until => {
                for worker in live {
                    self.fleet.worker_ended(&worker.client, false);
                    worker.kill();
                    let note =
                        format!("worker {} ignored SIGTERM, so drive killed it", worker.client);
                    self.notes.push(note);
                }
            }
            Phase::Ending(_) => {}
        }
    }
}

/// Returns a worker's last words, and the file that has the others.
fn said(worker: &Worker<'_>) -> String {
    let log: PathBuf = worker.log.clone();
    match worker.last_words() {
        Some(words) => format!("its last words are “{words}” ({})", log.display()),
        None => format!("it printed nothing ({})", log.display()),
    }
}
