//! The progress bar of a long command.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar on standard error; hidden if `is_quiet`, or if that is no terminal. `template` is
/// in the syntax of `indicatif`.
pub(super) fn bar(total: Option<u64>, is_quiet: bool, template: &str) -> ProgressBar {
    let target = if io::stderr().is_terminal() && !is_quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(total, target);
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
