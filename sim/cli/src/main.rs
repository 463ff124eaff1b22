//! Entry point of the command `redlock-sim`.

use std::env::args_os;
use std::panic::catch_unwind;
use std::process::ExitCode;

use redlock_sim_cli::command::{self, Exit};

fn main() -> ExitCode {
    catch_unwind(|| command::main(args_os())).unwrap_or(Exit::Internal).into()
}
