//! Names: their syntax, slugs of titles, and suggestions for misspelt names.

/// Maximum length of the name of a host, a fault or a resource, in bytes.
pub(super) const NAME_MAX: usize = 64;

/// Returns true if `name` can be part of a path, a blame and a diagram: a letter, then letters,
/// digits, `-` and `_`. A leading digit would be read as an index into a list.
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns `title` in lower case, with every run of other characters than letters and digits
/// replaced by a single `-`.
#[must_use]
pub fn slug(title: &str) -> String {
    let mut slug = String::with_capacity(title.len());
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Returns the name in `known` that is most similar to `given`, if one is similar enough. Of several,
/// one of the same length: `c1` for `c9`, not `C`.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes quadratic time in the length, and no valid name is this long.
    if given.len() > 4 * NAME_MAX {
        return None;
    }
    let lower = given.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let longer = |name: &str| name.len().abs_diff(given.len());
    let best = known.into_iter().map(|name| (distance(name), longer(name), name)).min()?;
    let length = given.chars().count();
    let alike = best.0 <= 1.max(length / 3) && best.0 < length;
    alike.then_some(best.2)
}

/// Returns a sentence that suggests the nearest name, or else lists all names if they are few.
pub(super) fn suggestion<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Option<String> {
    let known = known.into_iter();
    if let Some(name) = nearest(given, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
    let all: Vec<String> = known.take(21).map(|name| format!("`{name}`")).collect();
    let few = (1..=20).contains(&all.len());
    few.then(|| format!("known: {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::subject_names;

    #[test]
    fn a_slug_is_lower_case_words() {
        assert_eq!(
            slug("Five votes survive -- ONE forgetful node!"),
            "five-votes-survive-one-forgetful-node"
        );
        assert_eq!(slug("  10s.."), "10s");
        assert_eq!(slug("äöü"), "");
    }

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(nearest("redlok", subject_names()), Some("redlock"));
        assert_eq!(nearest("C1", ["c1", "c2"]), Some("c1"));
        assert_eq!(nearest("c9", ["A", "C", "c1", "c2"]), Some("c1"));
        assert_eq!(nearest("zookeeper", subject_names()), None);
        assert_eq!(nearest("F", ["A", "B"]), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn a_name_begins_with_a_letter() {
        assert!(is_name("c1") && is_name("A") && is_name("a-b_c"));
        assert!(!is_name("1a") && !is_name("") && !is_name("a.b") && !is_name("ä"));
        assert!(!is_name(&"a".repeat(NAME_MAX + 1)));
    }
}
