//! Makes the command's process group the foreground group of the terminal while the command runs: a
//! background group is stopped when it reads from the terminal.

use std::fs::File;
use std::io::{IsTerminal, stdin};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getpgrp;
use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that controls this process. Taken back from the command when dropped.
pub(super) struct Terminal {
    file: File,
    own: Pid,
    command: Pid,
    /// True if the command is known to use the terminal.
    pub(super) is_used: bool,
}

impl Terminal {
    /// Lends the terminal to the group `command` if standard input is one. Otherwise the command may
    /// never use it, and another process of the pipeline may be reading from it.
    pub(super) fn lend_to(command: Pid) -> Option<Self> {
        // 0 if the leader is outside of this process's PID namespace: the terminal could not be taken
        // back.
        let own = Pid::from_raw(getpgrp().as_raw())?;
        let file = File::options().read(true).write(true).open("/dev/tty").ok()?;
        // Without it, taking the terminal back would stop this process.
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        background.thread_block().ok()?;
        let terminal = Self { file, own, command, is_used: stdin().is_terminal() };
        terminal.lend();
        Some(terminal)
    }

    /// Lends the terminal if the command uses it and this process has it: in the background it does
    /// not. Returns true if the command has it now.
    pub(super) fn lend(&self) -> bool {
        self.is_used && self.pass(self.own, self.command)
    }

    /// Takes the terminal back from the command.
    pub(super) fn take_back(&self) {
        self.pass(self.command, self.own);
    }

    fn pass(&self, from: Pid, to: Pid) -> bool {
        if tcgetpgrp(&self.file) == Ok(from) {
            let _ = tcsetpgrp(&self.file, to);
        }
        tcgetpgrp(&self.file) == Ok(to)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
