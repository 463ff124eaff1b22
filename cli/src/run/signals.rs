//! Signals to this process, which it passes on to the command.

use core::future::poll_fn;
use core::task::Poll;
use std::{fs, io};

use nix::sys::signal::{SigSet, raise};
use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{self, SignalKind, signal};

/// Signals that are passed on. Each of them would end this process, and the command would run on.
const FORWARDED: [Signal; 11] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::XFSZ,
];

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caught {
    /// A child has ended or stopped.
    Child,
    /// This process was continued.
    Continued,
    /// The terminal asks this process to stop.
    Stop,
    /// A signal for the command.
    Forward(Signal),
}

/// The signals that this process handles.
pub(super) struct Signals {
    streams: Vec<(Caught, unix::Signal)>,
}

impl Signals {
    /// Handles the signals from now on. Those that this process was started to ignore, as by
    /// `nohup`, stay ignored, also by the command. Those that it was started to block are delivered: a
    /// blocked `SIGCHLD` would hide the command's end.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let child = signal(SignalKind::child())?;
        let mut streams = vec![(Caught::Child, child), (Caught::Continued, continued)];
        for forwarded in FORWARDED {
            if ignored & bit(forwarded) == 0 {
                let stream = signal(SignalKind::from_raw(forwarded.as_raw()))?;
                streams.push((Caught::Forward(forwarded), stream));
            }
        }
        if ignored & bit(Signal::TSTP) == 0 {
            let stop = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
            streams.push((Caught::Stop, stop));
        }
        SigSet::all().thread_unblock()?;
        Ok(Self { streams })
    }

    /// Stops this process until a shell continues it. Returns at once where no shell could: the system
    /// then ignores the stop.
    pub(super) fn stop(&self) {
        // SIGTSTP has a handler. The default action of SIGTTIN is the same.
        let _ = raise(nix::sys::signal::Signal::SIGTTIN);
    }

    /// Same as [`Signals::stop`], with the other processes of this one's group: a shell waits until the
    /// whole job has stopped.
    pub(super) async fn stop_job(&mut self) {
        let _ = kill_current_process_group(Signal::TSTP);
        self.stop();
        // The signal to the group came to this process, too, unless it ignores it.
        if let Some((_, own)) = self.streams.iter_mut().find(|(caught, _)| *caught == Caught::Stop)
        {
            own.recv().await;
        }
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Caught {
        poll_fn(|context| {
            for (caught, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*caught);
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

/// Returns the set of ignored signals, one bit for each; empty where the system does not show it.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    mask(&status)
}

fn mask(status: &str) -> u64 {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_a_bit_of_the_mask() {
        let status = "Name:\tredlock\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert_eq!(mask(status), 0x1001);
        assert_ne!(mask(status) & bit(Signal::HUP), 0);
        assert_eq!(mask(status) & bit(Signal::TERM), 0);
        assert_eq!(mask(""), 0);
    }
}
