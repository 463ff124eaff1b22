//! Parts of a campaign on the command line and in the environment.

use std::env;
use std::path::PathBuf;

use clap::Args;
use redlock_sim::part::Part;

use super::{Amount, Messages, Out};
use crate::command::exit::Stop;

#[derive(Args, Clone, Debug, Default)]
pub(in crate::command) struct Shard {
    /// Play part K of N alone, and store its sums for `merge`
    #[arg(long, value_name = "K/N")]
    shard: Option<Part>,
    /// Like `--shard`, from SHARD and SHARDS, a Kubernetes Indexed Job or a Slurm array
    #[arg(long, conflicts_with = "shard")]
    shard_from_env: bool,
}

impl Shard {
    /// Returns the part to play; `None` for everything.
    pub(in crate::command) fn part(&self) -> Result<Option<Part>, Stop> {
        if !self.shard_from_env {
            return Ok(self.shard);
        }
        from_env(|name| env::var(name).ok()).map(Some).map_err(|what| {
            let help = "set SHARD and SHARDS, or JOB_COMPLETION_INDEX and SHARDS, or run in a \
                        Slurm array";
            Stop::usage(format!("error: --shard-from-env: {what}\n  = help: {help}"))
        })
    }
}

/// Returns the part that the environment names: by SHARD, counted from 1, and SHARDS; by the
/// JOB_COMPLETION_INDEX of an Indexed Job, counted from 0, and SHARDS; or by a Slurm array.
fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Part, String> {
    let number = |name: &str| match variable(name) {
        None => Err(format!("{name} is not set")),
        Some(text) => text.parse::<u32>().map_err(|_| format!("{name} is not a number: `{text}`")),
    };
    let (number, of) = if variable("SHARD").is_some() {
        (number("SHARD")?, number("SHARDS")?)
    } else if variable("JOB_COMPLETION_INDEX").is_some() {
        (number("JOB_COMPLETION_INDEX")?.saturating_add(1), number("SHARDS")?)
    } else if variable("SLURM_ARRAY_TASK_ID").is_some() {
        let first = number("SLURM_ARRAY_TASK_MIN")?;
        let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
        let before = number("SLURM_ARRAY_TASK_ID")?.saturating_sub(first) / step;
        (before.saturating_add(1), number("SLURM_ARRAY_TASK_COUNT")?)
    } else {
        return Err(String::from("the environment names no shard"));
    };
    Part::new(number, of).map_err(|error| format!("{number} of {of}: {error}"))
}

#[derive(Args, Debug)]
pub(in crate::command) struct Merge {
    /// Shards, or directories that have some
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(in crate::command) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::command) out: Out,
    /// Write `results.json` alone: no pages, no histories
    #[arg(long)]
    pub(in crate::command) results_only: bool,
    #[command(flatten)]
    pub(in crate::command) amount: Amount,
    #[command(flatten)]
    pub(in crate::command) messages: Messages,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<String, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        from_env(value).map(|part| part.to_string())
    }

    #[test]
    fn a_shard_is_named_by_the_environment() {
        let plain = [("SHARD", "3"), ("SHARDS", "4"), ("JOB_COMPLETION_INDEX", "0")];
        assert_eq!(read(&plain).unwrap(), "3/4");
        assert_eq!(read(&[("JOB_COMPLETION_INDEX", "3"), ("SHARDS", "4")]).unwrap(), "4/4");
        let slurm = |id| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", "10"),
                ("SLURM_ARRAY_TASK_STEP", "5"),
                ("SLURM_ARRAY_TASK_COUNT", "3"),
            ]
        };
        assert_eq!(read(&slurm("10")).unwrap(), "1/3");
        assert_eq!(read(&slurm("20")).unwrap(), "3/3");
    }

    #[test]
    fn a_wrong_variable_of_the_environment_is_named() {
        let wrong = |variables: &[(&str, &str)]| read(variables).unwrap_err();
        assert_eq!(wrong(&[]), "the environment names no shard");
        assert_eq!(wrong(&[("SHARD", "1")]), "SHARDS is not set");
        assert_eq!(wrong(&[("SHARD", "x"), ("SHARDS", "4")]), "SHARD is not a number: `x`");
        assert!(wrong(&[("SHARD", "5"), ("SHARDS", "4")]).starts_with("5 of 4: expected K/N"));
        let beyond = [("JOB_COMPLETION_INDEX", "4294967295"), ("SHARDS", "4")];
        assert!(wrong(&beyond).contains("expected K/N"));
    }
}
