//! Makes the command's process group the foreground group of the terminal while the command runs: a
//! background group is stopped when it reads from the terminal.

use std::io::{IsTerminal, stdin};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getpgrp;
use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input. Taken back from the command when dropped.
pub(super) struct Terminal {
    own: Pid,
    command: Pid,
}

impl Terminal {
    /// Lends the terminal to the group `command`, if standard input is one.
    pub(super) fn lend_to(command: Pid) -> Option<Self> {
        if !stdin().is_terminal() {
            return None;
        }
        // 0 if the leader is outside of this process's PID namespace: the terminal could not be taken
        // back.
        let own = Pid::from_raw(getpgrp().as_raw())?;
        // Without it, taking the terminal back would stop this process.
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        background.thread_block().ok()?;
        let terminal = Self { own, command };
        terminal.lend();
        Some(terminal)
    }

    /// Lends the terminal if this process has it: in the background it does not. Returns true if
    /// the command has it now.
    pub(super) fn lend(&self) -> bool {
        self.pass(self.own, self.command)
    }

    /// Takes the terminal back from the command.
    pub(super) fn take_back(&self) {
        self.pass(self.command, self.own);
    }

    fn pass(&self, from: Pid, to: Pid) -> bool {
        if tcgetpgrp(stdin()) == Ok(from) {
            let _ = tcsetpgrp(stdin(), to);
        }
        tcgetpgrp(stdin()) == Ok(to)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
