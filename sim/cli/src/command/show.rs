//! `show`: prints scenarios as they are written.

use serde_json::json;

use super::arguments::Show;
use super::exit::{Exit, Stop};
use super::say::{emit, say_raw};
use super::select;

/// Prints the text of each selected scenario. One scenario is printed byte for byte; each of several
/// follows a comment with its path.
pub(super) fn show(arguments: &Show) -> Result<Exit, Stop> {
    let files = select::files(&arguments.which)?;
    if files.is_empty() {
        return Err(Stop { exit: Exit::Nothing, message: String::from("no scenario is selected") });
    }
    for (place, file) in files.iter().enumerate() {
        let scenario = file.scenario();
        emit("scenario", || {
            json!({
                "name": scenario.name,
                "title": scenario.title,
                "story": scenario.story,
                "tags": scenario.tags,
                "source": scenario.source,
                "path": file.path(),
                "text": file.text(),
            })
        });
        if files.len() > 1 {
            let gap = if place == 0 { "" } else { "\n" };
            say_raw(&format!("{gap}# {}\n", file.path()));
        }
        say_raw(file.text());
    }
    Ok(Exit::Met)
}
