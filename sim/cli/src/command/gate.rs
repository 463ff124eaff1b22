//! `gate`: compares the results of a run with a baseline.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use toml::value::{Date, Datetime};

use super::arguments::{Gate, GateFormat};
use super::exit::{Exit, Stop};
use super::say::say;
use crate::gate::{Baseline, Change, Departure, Known, compare, departures, failing, formats};
use crate::report::{Results, Staged};

/// Prints every difference, and lets pass what is known.
pub(super) fn gate(arguments: &Gate) -> Result<Exit, Stop> {
    let results = read_results(&arguments.results)?;
    if results.cases.is_empty() {
        return Err(Stop { exit: Exit::Nothing, message: String::from("no case was played") });
    }
    let (cases, found) = departures(&results);
    let baseline = match &arguments.baseline {
        Some(path) => read(path, arguments.bless)?,
        None => Baseline { cases: cases.clone(), ..Baseline::default() },
    };
    let changes = compare(&baseline, &cases, &found);
    if let Some(path) = &arguments.junit {
        write(path, &formats::junit(&results, &changes))?;
    }
    match arguments.format {
        GateFormat::Text => changes.iter().for_each(say),
        GateFormat::Json => say(formats::json(&changes)),
        GateFormat::Markdown => say(formats::markdown(&changes, &found, cases.len()).trim_end()),
        GateFormat::Github => {
            say(formats::github(&changes).trim_end());
            append_summary(&formats::markdown(&changes, &found, cases.len()))?;
        }
    }
    if let (true, Some(path)) = (arguments.bless, &arguments.baseline) {
        return bless(path, arguments.reason.as_deref(), &baseline, cases, &found);
    }
    let red = changes.iter().filter(|change| change.is_red()).count();
    if arguments.format == GateFormat::Text {
        let of_results = |it: &&Change| matches!(it, Change::New(_) | Change::Changed(..));
        let known = found.len() - changes.iter().filter(of_results).count();
        say(format_args!("{}, {}", formats::counts(cases.len(), known), failing(red)));
    }
    Ok(if red > 0 { Exit::Failed } else { Exit::Met })
}

fn read_results(path: &Path) -> Result<Results, Stop> {
    Results::read(path).map_err(|error| {
        let (name, help) =
            (path.display(), "  = help: `redlock-sim run` writes `reports/results.json`");
        Stop::usage(match error.kind() {
            io::ErrorKind::NotFound => format!("error: there is no file {name}\n{help}"),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                format!("error: {name} is no file of results: {error}\n{help}")
            }
            io::ErrorKind::IsADirectory => {
                let file = path.join("results.json");
                format!(
                    "error: {name} is a directory\n  = help: name its file `{}`",
                    file.display()
                )
            }
            _ => format!("error: {name} cannot be read: {error}"),
        })
    })
}

fn read(path: &Path, may_be_missing: bool) -> Result<Baseline, Stop> {
    match Baseline::read(path) {
        Err(missing) if missing.is_missing() && may_be_missing => Ok(Baseline::default()),
        Err(missing) if missing.is_missing() => {
            let help = "  = help: `--bless --reason TEXT` creates it from these results";
            Err(Stop::usage(format!("error: {missing}\n{help}")))
        }
        read => read.map_err(|error| Stop::usage(format!("error: {error}"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    Staged::write_one(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::usage(format!("error: {} cannot be written: {error}", path.display()))
}

/// Appends `text` to the summary of a GitHub workflow's step, where there is one.
fn append_summary(text: &str) -> Result<(), Stop> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| unwritable(Path::new(&path), &error))
}

/// Writes the baseline that these results meet.
fn bless(
    path: &Path,
    reason: Option<&str>,
    baseline: &Baseline,
    cases: Vec<String>,
    found: &[Departure],
) -> Result<Exit, Stop> {
    if std::env::var("CI").is_ok_and(|it| !it.is_empty() && it != "false") {
        return Err(Stop::usage("error: `--bless` is refused where the variable CI is set"));
    }
    let accepted = |departure: &Departure| {
        let before = baseline.known.iter().find(|known| known.departure == *departure);
        let new = |reason: &str| Known {
            departure: departure.clone(),
            reason: reason.to_owned(),
            since: today(),
        };
        before.cloned().or_else(|| reason.map(new)).ok_or_else(|| {
            let help = "  = help: `--reason TEXT` accepts it";
            Stop::usage(format!("error: not known: {departure}\n{help}"))
        })
    };
    let known = found.iter().map(accepted).collect::<Result<Vec<_>, _>>()?;
    let blessed = Baseline { cases, known };
    write(path, &blessed.text())?;
    let counts = formats::counts(blessed.cases.len(), blessed.known.len());
    say(format_args!("{}: {counts}", path.display()));
    Ok(Exit::Met)
}

/// Returns today's date (UTC).
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the day on which somebody accepts a departure"
)]
fn today() -> Datetime {
    use std::time::{SystemTime, UNIX_EPOCH};

    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Datetime { date: Some(date(since_1970.as_secs() / 86_400)), time: None, offset: None }
}

/// Returns the date `days` after 1 January 1970.
fn date(days: u64) -> Date {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    Date { year: year as u16, month, day: left as u8 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_answered_with_its_file() {
        let stop = read_results(Path::new("src")).expect_err("it is a directory");
        let help = "error: src is a directory\n  = help: name its file `src/results.json`";
        assert_eq!(stop.message, help);
    }

    #[test]
    fn days_are_dates() {
        let text = |days| date(days).to_string();
        assert_eq!(
            [0, 58, 59, 365].map(text),
            ["1970-01-01", "1970-02-28", "1970-03-01", "1971-01-01"]
        );
        assert_eq!([11_016, 11_017, 20_780].map(text), ["2000-02-29", "2000-03-01", "2026-11-23"]);
    }
}
