//! `who` and `break`: the holder of a lock, and its end.

use std::io::{self, BufRead, IsTerminal, Write};

use redlock_client::{Holding, LockInspection, Redlock};

use crate::arguments::{Break, Who};
use crate::exit::{Exit, Stop};
use crate::key::{Key, holder, time_left};
use crate::runtime::block_on;
use crate::say::{print, say};
use crate::settings::Settings;

/// Prints who holds a lock.
pub(crate) fn who(arguments: &Who) -> Result<Exit, Stop> {
    let redlock = Settings::read(&arguments.nodes, None)?.reader()?;
    let seen = block_on(redlock.inspect_lock(arguments.key.bytes()))?;
    show(&arguments.key, &seen)?;
    Ok(match seen.holding() {
        Holding::Held { .. } => Exit::Yes,
        Holding::Free => Exit::No,
        _ => Exit::TooFewNodes,
    })
}

/// Deletes the keys of a lock, after it has shown them and asked.
pub(crate) fn break_lock(arguments: &Break) -> Result<Exit, Stop> {
    let redlock = Settings::read(&arguments.nodes, None)?.reader()?;
    block_on(show_and_break(&redlock, arguments))?
}

async fn show_and_break(redlock: &Redlock, arguments: &Break) -> Result<Exit, Stop> {
    let seen = redlock.inspect_lock(arguments.key.bytes()).await;
    show(&arguments.key, &seen)?;
    if seen.keys().next().is_none() {
        return Ok(match seen.holding() {
            Holding::Free => Exit::No,
            _ => Exit::TooFewNodes,
        });
    }
    print(format_args!("{WARNING}"))?;
    if !arguments.yes && !is_confirmed()? {
        say(format_args!("nothing was deleted"));
        return Ok(Exit::No);
    }
    let after = redlock.break_lock(&seen).await;
    show(&arguments.key, &after)?;
    Ok(match after.holding() {
        Holding::Free => Exit::Yes,
        // Somebody else has got the lock since.
        Holding::Held { value, .. } if !is_in(value, &seen) => Exit::Yes,
        _ => Exit::TooFewNodes,
    })
}

const WARNING: &str = "
Breaking deletes these keys, each only if it still has this value. The holder is not asked:
- If its client hears of lost keys, it ends its work; otherwise it goes on until its lease is over.
- Until then another holder can work at the same time.
- Keys on nodes that do not answer stay until they expire.
Without it the lock is free when the time above is over, unless the holder extends it.";

fn is_in(value: &[u8], seen: &LockInspection) -> bool {
    seen.keys().any(|key| key.value == value)
}

fn is_confirmed() -> Result<bool, Stop> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() {
        return Err(Stop::failed("there is no terminal to ask on: use `--yes`"));
    }
    let _ = write!(stderr, "Break the lock? [y/N] ");
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.map_err(|error| Stop::failed(format!("the answer cannot be read: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn show(name: &Key, seen: &LockInspection) -> Result<(), Stop> {
    let all = seen.nodes.len();
    match seen.holding() {
        Holding::Held { value, nodes, remaining } => {
            let (who, left) = (holder(value), time_left(remaining));
            print(format_args!("{name}: held by {who} on {nodes} of {all} nodes, for {left}"))?;
        }
        Holding::Free => print(format_args!("{name}: free"))?,
        _ => print(format_args!("{name}: unknown, too few nodes answered"))?,
    }
    for node in &seen.nodes {
        match &node.key {
            Ok(Some(key)) => {
                let (who, left) = (holder(&key.value), time_left(key.remaining));
                print(format_args!("  {}: {who}, for {left}", node.node))?;
            }
            Ok(None) => print(format_args!("  {}: no key", node.node))?,
            Err(error) => print(format_args!("  {}: {error}", node.node))?,
        }
    }
    Ok(())
}
