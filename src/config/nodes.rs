//! Lists of nodes in one text.

use crate::endpoint::has_scheme;

/// Reason why a text is no list of URLs. Never contains a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "URL {place} of the list, counted from 0, does not begin with `redis://` or another scheme; a \
     comma in a password is written `%2C`"
)]
pub struct NodesError {
    place: usize,
}

/// Splits a text into the URLs of nodes: at commas, without the spaces around them and without
/// empty entries.
///
/// # Errors
///
/// If an entry does not begin with a scheme. It may then be the rest of a password with a comma, and
/// the entry before it the beginning, so that neither must be shown.
pub fn parse_nodes(text: &str) -> Result<Vec<String>, NodesError> {
    let urls: Vec<&str> = text.split(',').map(str::trim).filter(|url| !url.is_empty()).collect();
    match urls.iter().position(|url| !has_scheme(url)) {
        Some(place) => Err(NodesError { place }),
        None => Ok(urls.into_iter().map(String::from).collect()),
    }
}
