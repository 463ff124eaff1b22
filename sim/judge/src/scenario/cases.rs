//! The cases of a file: the base, its variations and its sweeps.

use core::ops::Range;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::check;
use super::file::File;
use super::model::{At, AttemptStep, Case, Scenario};
use super::names;
use super::problem::{Problem, Problems};
use super::source::{Override, Source};
use super::tree::{Tree, Value};

mod contradictions;

/// Maximum number of cases in one file.
pub const CASES_MAX: usize = 1024;

impl File {
    /// Returns every case of the file, in file order: the base, then each `[[case]]`, each with its
    /// sweeps expanded. `overrides` are applied after the settings of the case.
    ///
    /// # Errors
    ///
    /// Every problem of the base; if the base is valid, every problem of the cases.
    pub fn cases(&self, overrides: &[Override]) -> Result<Vec<Case>, Problems> {
        let source = Source::new(&self.path, &self.text, overrides);
        let tree = Tree::parse(source.text()).map_err(|error| source.toml_problem(&error))?;
        let settings = overrides.iter().map(Override::to_string).collect();
        let mut cases = Cases { source: &source, settings, named: BTreeMap::new() };
        let mut base = tree.clone();
        let sweep = base.remove("sweep");
        let zip = base.remove("zip");
        let specs = base.remove("case");
        let lists = [sweep.as_ref(), zip.as_ref()];
        cases.check_paths(&base, &[("sweep", lists[0]), ("zip", lists[1])])?;
        cases.add_variant(base.clone(), None, lists)?;
        let specs = specs.as_ref().and_then(|specs| specs.get_ref().as_array());
        let mut problems = Vec::new();
        for spec in specs.into_iter().flat_map(|specs| specs.iter()) {
            if let Err(Problems(more)) = cases.add_spec(base.clone(), spec) {
                problems.extend(more);
            }
        }
        if problems.is_empty() { Ok(cases.finish()) } else { Err(Problems(problems)) }
    }
}

/// The cases of a file found so far.
struct Cases<'s> {
    source: &'s Source<'s>,
    settings: Vec<String>,
    /// By slug; the number is the position in file order.
    named: BTreeMap<String, (usize, Case)>,
}

impl<'s> Cases<'s> {
    fn finish(self) -> Vec<Case> {
        let mut cases: Vec<(usize, Case)> = self.named.into_values().collect();
        cases.sort_by_key(|(place, _)| *place);
        cases.into_iter().map(|(_, case)| case).collect()
    }

    /// Adds the cases that one `[[case]]` describes.
    fn add_spec(&mut self, mut tree: Tree<'s>, spec: &Value<'s>) -> Result<(), Problems> {
        let no_table = || self.source.problem_here(spec.span(), "a case must be a table", None);
        let table = spec.get_ref().as_table().ok_or_else(no_table)?;
        let lists = ["set", "sweep", "zip"].map(|name| (name, table.get(name)));
        self.check_paths(&tree, &lists)?;
        tree.remove("expect");
        if let Some(expect) = table.get("expect") {
            self.put(&mut tree, "expect", expect.span(), expect.clone())?;
        }
        for (path, value) in entries(table.get("set")) {
            self.put(&mut tree, path.get_ref(), path.span(), value.clone())?;
        }
        self.add_variant(tree, table.get("name"), [table.get("sweep"), table.get("zip")])
    }

    /// Adds the base, or one case with its settings applied, under `name`.
    fn add_variant(
        &mut self,
        tree: Tree<'s>,
        name: Option<&Value<'s>>,
        [sweep, zip]: [Option<&Value<'s>>; 2],
    ) -> Result<(), Problems> {
        let span = name.map_or(tree.span("name"), Spanned::span);
        let title = name.and_then(|name| name.get_ref().as_str());
        let mut variants = vec![Variant { tree, words: Vec::new() }];
        for (path, values) in entries(sweep) {
            variants = self.swept(variants, path, values)?;
        }
        variants = self.zipped(variants, zip)?;
        for variant in &mut variants {
            for (path, path_span, value) in self.source.settings() {
                self.put(&mut variant.tree, path, path_span, value)?;
            }
        }
        let mut problems = Vec::new();
        for variant in variants {
            let added = self
                .understood(&variant.tree)
                .and_then(|scenario| self.points(variant, scenario))
                .and_then(|variants| {
                    variants.into_iter().try_for_each(|it| self.add(it, title, span.clone()))
                });
            if let Err(Problems(more)) = added {
                // The other cells of a sweep often have the same problem.
                for problem in more {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    /// Returns every variant with every one of `values` set at `path`.
    fn swept(
        &self,
        variants: Vec<Variant<'s>>,
        path: &Spanned<DeString<'s>>,
        values: &Value<'s>,
    ) -> Result<Vec<Variant<'s>>, Problems> {
        let values = self.list(path, values)?;
        if variants.len() * values.len() > CASES_MAX {
            return Err(self.too_many(path.span()));
        }
        self.check_distinct(&[(path, values)])?;
        let mut cells = Vec::with_capacity(variants.len() * values.len());
        for variant in &variants {
            for value in values.iter() {
                let mut cell = variant.clone();
                self.put(&mut cell.tree, path.get_ref(), value.span(), value.clone())?;
                cell.words.push(Word::of(path.get_ref(), value));
                cells.push(cell);
            }
        }
        Ok(cells)
    }

    /// Returns every variant with the first value of every list of `zip`, with the second, and so
    /// on.
    fn zipped(
        &self,
        variants: Vec<Variant<'s>>,
        zip: Option<&Value<'s>>,
    ) -> Result<Vec<Variant<'s>>, Problems> {
        let mut lists: Vec<List<'_, 's>> = Vec::new();
        for (path, values) in entries(zip) {
            let values = self.list(path, values)?;
            if let Some((other, first)) = lists.first()
                && first.len() != values.len()
            {
                let (own, wanted) = (values.len(), first.len());
                let message =
                    format!("the lists of `zip` have different lengths: {own}, not {wanted}");
                let help = format!("values are taken in step with those of `{}`", other.get_ref());
                return Err(self.source.problem_here(path.span(), &message, Some(&help)).into());
            }
            lists.push((path, values));
        }
        let Some(&(path, first)) = lists.first() else { return Ok(variants) };
        if variants.len() * first.len() > CASES_MAX {
            return Err(self.too_many(path.span()));
        }
        self.check_distinct(&lists)?;
        let mut cells = Vec::with_capacity(variants.len() * first.len());
        for variant in &variants {
            for place in 0..first.len() {
                let mut cell = variant.clone();
                for (path, values) in &lists {
                    let value = &values[place];
                    self.put(&mut cell.tree, path.get_ref(), value.span(), value.clone())?;
                    cell.words.push(Word::of(path.get_ref(), value));
                }
                cells.push(cell);
            }
        }
        Ok(cells)
    }

    /// Returns the values of a list in a sweep.
    fn list<'v>(
        &self,
        path: &Spanned<DeString<'s>>,
        values: &'v Value<'s>,
    ) -> Result<&'v [Value<'s>], Problems> {
        let values = values.get_ref().as_array().filter(|values| !values.is_empty());
        values.map(|values| &values[..]).ok_or_else(|| {
            let message = "a sweep needs a list of at least one value";
            self.source.problem_here(path.span(), message, None).into()
        })
    }

    /// Expands `before = "*"` into one variant per point.
    fn points(
        &self,
        variant: Variant<'s>,
        scenario: Scenario,
    ) -> Result<Vec<Variant<'s>>, Problems> {
        let mut variants = vec![variant];
        for (place, fault) in scenario.faults.iter().enumerate() {
            let At::Point(point) = &fault.at else { continue };
            if point.before != AttemptStep::Every {
                continue;
            }
            let at = format!("fault.{place}.at");
            let span = variants[0].tree.span(&format!("{at}.before"));
            let points = every_point(&scenario);
            if variants.len() * points.len() > CASES_MAX {
                return Err(self.too_many(span));
            }
            let mut cells = Vec::new();
            for variant in &variants {
                for (point, node) in &points {
                    let mut cell = variant.clone();
                    let text = |text: &str| text_at(span.clone(), text);
                    self.put(&mut cell.tree, &format!("{at}.before"), span.clone(), text(point))?;
                    let mut slug = format!("before-{point}");
                    let mut title = format!("before {point}");
                    if let Some(node) = node {
                        self.put(&mut cell.tree, &format!("{at}.node"), span.clone(), text(node))?;
                        slug = format!("{slug}-{}", names::slug(node));
                        title = format!("{title} of {node}");
                    }
                    cell.words.push(Word { slug, title });
                    cells.push(cell);
                }
            }
            variants = cells;
        }
        Ok(variants)
    }

    fn add(
        &mut self,
        variant: Variant<'s>,
        title: Option<&str>,
        span: Range<usize>,
    ) -> Result<(), Problems> {
        let Variant { tree, words } = variant;
        let scenario = self.understood(&tree)?;
        let problems = check::scenario(&scenario);
        if !problems.is_empty() {
            let at_place = |complaint| self.source.problem(&tree, complaint);
            return Err(Problems(problems.iter().map(at_place).collect()));
        }
        let is_base = title.is_none() && words.is_empty();
        let slugs =
            title.map(names::slug).into_iter().chain(words.iter().map(|it| it.slug.clone()));
        let slug = slugs.filter(|slug| !slug.is_empty()).collect::<Vec<_>>().join("-");
        if !is_base && slug.is_empty() {
            let message = "the name of a case needs a letter or a digit";
            return Err(self.source.problem_here(span, message, None).into());
        }
        if let Some((_, other)) = self.named.get(&slug) {
            let other = other.name.clone().unwrap_or_default();
            let message = format!("two cases have the name `{slug}`");
            let help = format!("the other case is `{other}`");
            return Err(self.source.problem_here(span, &message, Some(&help)).into());
        }
        if self.named.len() >= CASES_MAX {
            return Err(self.too_many(span));
        }
        let details: Vec<&str> = words.iter().map(|it| it.title.as_str()).collect();
        let name = match (title, details.is_empty()) {
            (Some(title), true) => title.to_owned(),
            (Some(title), false) => format!("{title} ({})", details.join(", ")),
            (None, _) => details.join(", "),
        };
        let case = Case {
            slug: (!is_base).then(|| slug.clone()),
            name: (!is_base).then_some(name),
            scenario,
            overrides: self.settings.clone(),
        };
        self.named.insert(slug, (self.named.len(), case));
        Ok(())
    }

    fn understood(&self, tree: &Tree<'s>) -> Result<Scenario, Problems> {
        tree.scenario().map_err(|error| self.source.toml_problem(&error).into())
    }

    fn put(
        &self,
        tree: &mut Tree<'s>,
        path: &str,
        span: Range<usize>,
        value: Value<'s>,
    ) -> Result<(), Problem> {
        let head = path.split('.').next().unwrap_or_default();
        if ["case", "sweep", "zip", "schema", "name"].contains(&head) {
            let message = format!("`{head}` cannot be set");
            return Err(self.source.problem_here(span, &message, None));
        }
        tree.put(path, span.clone(), value)
            .map_err(|error| self.source.problem_here(span, &error.message, error.help.as_deref()))
    }

    fn too_many(&self, span: Range<usize>) -> Problems {
        let message = format!("a file has at most {CASES_MAX} cases");
        self.source.problem_here(span, &message, None).into()
    }
}

/// A path and the values that it takes.
type List<'v, 's> = (&'v Spanned<DeString<'s>>, &'v [Value<'s>]);

/// One cell of a sweep.
#[derive(Clone)]
struct Variant<'t> {
    tree: Tree<'t>,
    words: Vec<Word>,
}

/// The part of a case's name that comes from a swept value.
#[derive(Clone)]
struct Word {
    slug: String,
    title: String,
}

impl Word {
    fn of(path: &str, value: &Value<'_>) -> Self {
        let text = written(value.get_ref());
        // −5 s and 5 s are two different cases.
        let sign = if text.starts_with('-') { "minus-" } else { "" };
        Self { slug: format!("{sign}{}", names::slug(&text)), title: format!("{path} = {text}") }
    }
}

/// Returns the entries of `table`; none if it is not a table.
fn entries<'a, 't>(
    table: Option<&'a Value<'t>>,
) -> impl Iterator<Item = (&'a Spanned<DeString<'t>>, &'a Value<'t>)> {
    table.and_then(|table| table.get_ref().as_table()).into_iter().flat_map(DeTable::iter)
}

/// Returns a value on one line, close to how it was written.
fn written(value: &DeValue<'_>) -> String {
    let list = |items: Vec<String>| items.join(" ");
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Array(items) => list(items.iter().map(|it| written(it.get_ref())).collect()),
        DeValue::Table(table) => {
            list(table.iter().map(|(key, it)| format!("{key} {}", written(it.get_ref()))).collect())
        }
    }
}

/// Returns every point of an attempt, with the node if the point belongs to one node.
fn every_point(scenario: &Scenario) -> Vec<(&'static str, Option<String>)> {
    let mut points = vec![("t1", None)];
    for point in ["write", "execute", "reply"] {
        points.extend(scenario.cluster.nodes.iter().map(|node| (point, Some(node.clone()))));
    }
    points.extend(["t2", "deliver", "look", "enter"].map(|point| (point, None)));
    points
}

fn text_at<'t>(span: Range<usize>, text: &str) -> Value<'t> {
    Spanned::new(span, DeValue::String(DeString::Owned(text.to_owned())))
}
