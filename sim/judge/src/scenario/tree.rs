//! A parsed file whose values remember their positions in the text.
//!
//! Settings are applied to the tree before it becomes a [`Scenario`], so that an error in a setting
//! is shown at the setting.

use core::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};

use super::model::Scenario;
use super::names;

/// A value and its position.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// Maximum number of segments in a path, which also bounds the depth of the tables that a setting
/// can create.
const DEPTH_MAX: usize = 16;

/// Paths of the lists whose items are tables, and how a file begins an item.
const LISTS: [(&str, &str); 3] =
    [("client", "[[client]]"), ("cluster.replica", "[[cluster.replica]]"), ("fault", "[[fault]]")];

/// A file as a tree.
#[derive(Clone, Debug)]
pub(super) struct Tree<'t> {
    root: Value<'t>,
}

/// Reason why a setting could not be applied.
pub(super) struct NoSuchPlace {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl<'t> Tree<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, toml::de::Error> {
        let table = DeTable::parse(text)?;
        let span = table.span();
        Ok(Self { root: Spanned::new(span, DeValue::Table(table.into_inner())) })
    }

    pub(super) fn scenario(&self) -> Result<Scenario, toml::de::Error> {
        let table = Spanned::new(self.root.span(), self.table().clone());
        let mut scenario = Scenario::deserialize(Deserializer::from(table))?;
        scenario.expand_patterns();
        Ok(scenario)
    }

    /// Returns the value at `path`, if there is one.
    pub(super) fn get(&self, path: &str) -> Option<&Value<'t>> {
        let mut at = &self.root;
        for segment in path.split('.') {
            at = child(at, segment)?.1;
        }
        Some(at)
    }

    /// Returns `path` with every item of a list named by its index, as far as there is a value: two
    /// paths to one place are equal then.
    pub(super) fn place_of(&self, path: &str) -> String {
        let mut at = Some(&self.root);
        let segments = path.split('.').map(|segment| {
            let items = at.and_then(|at| at.get_ref().as_array());
            let index = items.and_then(|items| place(items, segment));
            at = at.and_then(|at| child(at, segment)).map(|(_, value)| value);
            index.map_or_else(|| segment.to_owned(), |index| index.to_string())
        });
        segments.collect::<Vec<_>>().join(".")
    }

    /// Removes a top-level key and returns its value.
    pub(super) fn remove(&mut self, key: &str) -> Option<Value<'t>> {
        self.table_mut().remove(key)
    }

    /// Returns the position of the value at `path`, or else of the nearest existing value around
    /// it.
    pub(super) fn span(&self, path: &str) -> Range<usize> {
        let mut at = &self.root;
        let mut span = 0..0;
        for segment in path.split('.') {
            let Some((_, next)) = child(at, segment) else { break };
            at = next;
            span = at.span();
        }
        span
    }

    /// Returns the position of the last key of `path`, or else the result of [`Self::span`].
    pub(super) fn key_span(&self, path: &str) -> Range<usize> {
        let (parent, key) = path.rsplit_once('.').map_or((None, path), |(p, k)| (Some(p), k));
        let at = parent.map_or(Some(&self.root), |parent| self.get(parent));
        let own = at.and_then(|at| child(at, key)).and_then(|(key, _)| key);
        own.unwrap_or_else(|| self.span(path))
    }

    /// Sets the value at `path`. Creates missing tables on the way; their position is `span`.
    pub(super) fn put(
        &mut self,
        path: &str,
        span: Range<usize>,
        value: Value<'t>,
    ) -> Result<(), NoSuchPlace> {
        if path.split('.').count() > DEPTH_MAX {
            return Err(no_place(format!("a path has at most {DEPTH_MAX} segments")));
        }
        let (parents, last) = path.rsplit_once('.').map_or(("", path), |split| split);
        let mut at = &mut self.root;
        let mut walked = String::new();
        for segment in parents.split('.').filter(|_| !parents.is_empty()) {
            at = enter(at, segment, &walked, span.clone())?;
            if !walked.is_empty() {
                walked.push('.');
            }
            walked.push_str(segment);
        }
        match at.get_mut() {
            DeValue::Table(table) => {
                // An insert over the old key would keep the position of that key in the text.
                table.remove(last);
                table.insert(key(last, span), value);
            }
            DeValue::Array(_) => *item_mut(at, last, &walked)? = value,
            _ => return Err(no_place(format!("`{walked}` is not a table"))),
        }
        Ok(())
    }

    fn table(&self) -> &DeTable<'t> {
        self.root.get_ref().as_table().expect("the root is a table")
    }

    fn table_mut(&mut self) -> &mut DeTable<'t> {
        match self.root.get_mut() {
            DeValue::Table(table) => table,
            _ => unreachable!("the root is a table"),
        }
    }
}

fn key<'t>(name: &str, span: Range<usize>) -> Spanned<DeString<'t>> {
    Spanned::new(span, DeString::Owned(name.to_owned()))
}

/// Returns the child called `segment`, and the position of its key if it has one.
fn child<'a, 't>(
    at: &'a Value<'t>,
    segment: &str,
) -> Option<(Option<Range<usize>>, &'a Value<'t>)> {
    match at.get_ref() {
        DeValue::Table(table) => {
            let (key, value) = table.get_key_value(segment)?;
            Some((Some(key.span()), value))
        }
        DeValue::Array(items) => Some((None, items.get(place(items, segment)?)?)),
        _ => None,
    }
}

fn enter<'a, 't>(
    at: &'a mut Value<'t>,
    segment: &str,
    walked: &str,
    span: Range<usize>,
) -> Result<&'a mut Value<'t>, NoSuchPlace> {
    if matches!(at.get_ref(), DeValue::Array(_)) {
        return item_mut(at, segment, walked);
    }
    match at.get_mut() {
        DeValue::Table(table) => {
            let path = if walked.is_empty() { segment } else { &format!("{walked}.{segment}") };
            if let Some((_, item)) = LISTS.iter().find(|(list, _)| *list == path)
                && !table.contains_key(segment)
            {
                let message = format!("the scenario has no `{path}`");
                let help = Some(format!("`{item}` in the file adds one"));
                return Err(NoSuchPlace { message, help });
            }
            let blank = || Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            Ok(table.entry(key(segment, span.clone())).or_insert_with(blank))
        }
        _ => Err(no_place(format!("`{walked}` is not a table"))),
    }
}

fn item_mut<'a, 't>(
    at: &'a mut Value<'t>,
    segment: &str,
    walked: &str,
) -> Result<&'a mut Value<'t>, NoSuchPlace> {
    let DeValue::Array(items) = at.get_mut() else {
        return Err(no_place(format!("`{walked}` is not a list")));
    };
    let Some(place) = place(items, segment) else {
        return Err(NoSuchPlace {
            message: format!("`{walked}` has no `{segment}`"),
            help: names::suggestion(segment, items.iter().filter_map(id)),
        });
    };
    Ok(items.get_mut(place).expect("the place of an item"))
}

/// Returns the index of the item whose `id` is `segment`, or else `segment` read as an index from
/// 0.
fn place(items: &[Value<'_>], segment: &str) -> Option<usize> {
    let named = items.iter().position(|item| id(item) == Some(segment));
    named.or_else(|| segment.parse().ok().filter(|&place| place < items.len()))
}

fn id<'a>(item: &'a Value<'_>) -> Option<&'a str> {
    item.get_ref().as_table()?.get("id")?.get_ref().as_str()
}

fn no_place(message: String) -> NoSuchPlace {
    NoSuchPlace { message, help: None }
}
