//! Settings of one case that contradict each other, or that make two cases of one name.

use std::collections::BTreeSet;

use super::{Cases, List, Problem, Tree, Value, Word, entries};

impl<'s> Cases<'s> {
    /// Rejects a path of `tables`, in the order in which they are applied, whose values replace those
    /// of an earlier path: the name of a case would tell a value that it does not have.
    pub(super) fn check_paths(
        &self,
        tree: &Tree<'s>,
        tables: &[(&str, Option<&Value<'s>>)],
    ) -> Result<(), Problem> {
        let mut earlier: Vec<(String, &str, &str)> = Vec::new();
        for &(table, values) in tables {
            for (path, _) in entries(values) {
                let place = tree.place_of(path.get_ref());
                let replaces = |other: &str| {
                    let rest = other.strip_prefix(place.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                if let Some((_, there, other)) = earlier.iter().find(|it| replaces(&it.0)) {
                    let message = format!(
                        "`{}` in `{table}` replaces `{other}` in `{there}`",
                        path.get_ref()
                    );
                    let help = Some("give each value of a case once");
                    return Err(self.source.problem_here(path.span(), &message, help));
                }
                earlier.push((place, table, path.get_ref()));
            }
        }
        Ok(())
    }

    /// Rejects lists, taken in step, that give two cases one name.
    pub(super) fn check_distinct(&self, lists: &[List<'_, 's>]) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for place in 0..lists.first().map_or(0, |(_, values)| values.len()) {
            let words = lists.iter().map(|(path, values)| Word::of(path.get_ref(), &values[place]));
            let name = words.map(|word| word.slug).collect::<Vec<_>>().join("-");
            let message = format!("two values give a case the name `{name}`");
            if !seen.insert(name) {
                let span = lists[0].1[place].span();
                return Err(self.source.problem_here(span, &message, Some("remove one of them")));
            }
        }
        Ok(())
    }
}
