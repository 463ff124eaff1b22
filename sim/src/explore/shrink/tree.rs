//! A scenario as a tree of values, and the smaller trees next to it.

use lock_judge::scenario::Span;
use serde_json::Value;

/// Number of times up to which repetitions are tried.
const FEW: u64 = 3;

/// Path of a value in a tree.
pub(super) type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Item(usize),
    Key(String),
}

/// Takes everything away that names `host`.
pub(super) fn forget(tree: &mut Value, host: &str) {
    match tree {
        Value::Array(items) => {
            items.retain(|it| !is_named(it, host));
            items.iter_mut().for_each(|it| forget(it, host));
            // A group of hosts that is empty now takes its fault or its link with it.
            items.retain(|it| !has_an_empty_group(it));
        }
        Value::Object(fields) => {
            fields.remove(host);
            fields.values_mut().for_each(|it| forget(it, host));
        }
        _ => {}
    }
}

/// Makes the clients and faults of `resource` those of the first one.
pub(super) fn merge_resource(tree: &mut Value, resource: &str) {
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|it| merge_resource(it, resource)),
        Value::Object(fields) => {
            fields.retain(|key, it| key != "resource" || it.as_str() != Some(resource));
            if let Some(Value::Array(further)) = fields.get_mut("further-resources") {
                further.retain(|it| it.as_str() != Some(resource));
            }
            fields.values_mut().for_each(|it| merge_resource(it, resource));
        }
        _ => {}
    }
}

fn is_named(value: &Value, host: &str) -> bool {
    let named = |key: &str| value.get(key).and_then(Value::as_str) == Some(host);
    // A fault on this host alone, or at one of its steps, goes too.
    let is_struck = value.as_object().is_some_and(|fields| {
        fields.values().any(|it| it.get("host").and_then(Value::as_str) == Some(host))
    });
    let waits = value.get("at").is_some_and(|at| {
        ["client", "node"].iter().any(|key| at.get(key).and_then(Value::as_str) == Some(host))
    });
    value.as_str() == Some(host)
        || named("id")
        || named("of")
        || named("task-of")
        || is_struck
        || waits
}

fn has_an_empty_group(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    let is_group = |key: &str| ["host", "from", "to", "between"].contains(&key);
    let is_empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
    fields.iter().any(|(key, it)| {
        let groups = it.as_array().is_some_and(|groups| groups.iter().any(is_empty));
        is_group(key) && (is_empty(it) || groups) || has_an_empty_group(it)
    })
}

/// Lists the paths of all items and keys.
pub(super) fn collect_parts(tree: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut below = |step: Step, inner: &Value| {
        path.push(step);
        found.push(path.clone());
        collect_parts(inner, path, found);
        path.pop();
    };
    match tree {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(item, it)| below(Step::Item(item), it));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, it)| below(Step::Key(key.clone()), it));
        }
        _ => {}
    }
}

/// Lists the paths of all times.
pub(super) fn collect_times(tree: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut parts = Vec::new();
    collect_parts(tree, path, &mut parts);
    let mut tree = tree.clone();
    let is_time = |path: &Path| {
        at(&mut tree, path)
            .is_some_and(|it| it.as_str().is_some_and(|text| rounded(text, 1).is_some()))
    };
    found.extend(parts.into_iter().filter(is_time));
}

pub(super) fn at<'t>(tree: &'t mut Value, path: &[Step]) -> Option<&'t mut Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Item(item) => value.get_mut(*item),
        Step::Key(key) => value.get_mut(key),
    })
}

/// Removes the value at `path`. Returns false if there is none.
pub(super) fn remove(tree: &mut Value, path: &[Step]) -> bool {
    let Some((last, outer)) = path.split_last() else { return false };
    match (at(tree, outer), last) {
        (Some(Value::Array(items)), Step::Item(item)) if *item < items.len() => {
            items.remove(*item);
            true
        }
        (Some(Value::Object(fields)), Step::Key(key)) => fields.remove(key).is_some(),
        _ => false,
    }
}

/// Returns the trees in which the value at `path` comes less often than in `tree`, the calmest first.
pub(super) fn calmer(tree: &Value, path: &Path) -> Vec<Value> {
    let mut once = tree.clone();
    let Some(value) = at(&mut once, path) else { return Vec::new() };
    if let Value::Object(fields) = &mut *value
        && fields.contains_key("every")
        && fields.contains_key("times")
    {
        fields.retain(|key, _| !["every", "times"].contains(&&**key));
        return vec![once];
    }
    match path.as_slice() {
        [outer @ .., Step::Item(place), Step::Key(key)] if key == "repeat" => {
            let Some(Value::Array(repeated)) = value.get_mut("steps").map(Value::take) else {
                return Vec::new();
            };
            let Some(Value::Array(steps)) = at(&mut once, outer) else { return Vec::new() };
            steps.splice(*place..=*place, repeated);
            vec![once]
        }
        [.., Step::Key(key)] if key == "times" => {
            let drawn = value.as_str().and_then(|text| text.split_once("..")?.1.parse().ok());
            let most = drawn.or(value.as_u64()).unwrap_or(0);
            let fewer = (1..=FEW.min(most)).filter(|count| drawn.is_some() || *count < most);
            let with = |count: u64| {
                let mut tree = tree.clone();
                *at(&mut tree, path)? = Value::from(count);
                Some(tree)
            };
            fewer.filter_map(with).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the time `text` rounded to `digits` significant digits; `None` if `text` is no time, or
/// has no more digits than that. The bounds of a range become equal.
pub(super) fn rounded(text: &str, digits: u32) -> Option<String> {
    if let Some((min, _)) = text.split_once("..") {
        let min: Span = min.parse().ok()?;
        return Some(rounded(&min.to_string(), digits).unwrap_or_else(|| min.to_string()));
    }
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => ("-", size),
        None => ("", text),
    };
    let ns = size.parse::<Span>().ok()?.0;
    let grain = 10_u64.pow((ns.checked_ilog10()? + 1).checked_sub(digits)?);
    let round = (ns + grain / 2) / grain * grain;
    (round != ns).then(|| format!("{sign}{}", Span(round)))
}

/// Returns the time `text` divided by `divisor`; `None` if `text` is no single positive time, or one
/// of less than a millisecond.
pub(super) fn shorter(text: &str, divisor: u64) -> Option<String> {
    let ns = text.parse::<Span>().ok()?.0 / divisor;
    (ns >= 1_000_000).then(|| Span(ns).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_down_to_a_millisecond() {
        assert_eq!(shorter("10s", 100).as_deref(), Some("100ms"));
        assert_eq!(shorter("10ms", 100), None);
        assert_eq!(shorter("-10s", 2), None);
        assert_eq!(shorter("1s..2s", 2), None);
    }

    #[test]
    fn times_are_rounded_to_significant_digits() {
        assert_eq!(rounded("1234ms", 1).as_deref(), Some("1s"));
        assert_eq!(rounded("1264ms", 2).as_deref(), Some("1300ms"));
        assert_eq!(rounded("-15230us", 2).as_deref(), Some("-15ms"));
        assert_eq!(rounded("2s", 1), None);
        assert_eq!(rounded("0ns", 1), None);
        assert_eq!(rounded("c1", 1), None);
        assert_eq!(rounded("1230us..5ms", 1).as_deref(), Some("1ms"));
    }

    #[test]
    fn loops_and_faults_come_less_often() {
        let tree = serde_json::json!({
            "steps": ["a", { "repeat": { "times": "2..4", "steps": ["b", "c"] } }, "d"],
            "fault": [{ "every": "1s", "times": 2, "lasts": "1ms" }],
        });
        let mut parts = Vec::new();
        collect_parts(&tree, &mut Vec::new(), &mut parts);
        let calmer: Vec<Value> = parts.iter().flat_map(|path| calmer(&tree, path)).collect();
        let of = |name: &str| {
            let changed = calmer.iter().map(|it| it[name].clone()).filter(|it| *it != tree[name]);
            changed.map(|it| it.to_string()).collect::<Vec<_>>()
        };
        let times =
            |count| format!(r#"["a",{{"repeat":{{"steps":["b","c"],"times":{count}}}}},"d"]"#);
        let mut steps = of("steps");
        steps.sort_unstable();
        assert_eq!(steps, [r#"["a","b","c","d"]"#.to_owned(), times(1), times(2), times(3)]);
        let faults = [r#"[{"lasts":"1ms"}]"#, r#"[{"every":"1s","lasts":"1ms","times":1}]"#];
        assert_eq!(of("fault"), faults);
    }

    #[test]
    fn a_resource_becomes_the_first_one() {
        let mut tree = serde_json::json!({
            "lock": { "resource": "res", "further-resources": ["r2", "r3"] },
            "client": [{ "id": "c1", "resource": "r2" }, { "id": "c2", "resource": "r3" }],
            "fault": [{ "delete": { "host": "A", "resource": "r2" } }],
        });
        merge_resource(&mut tree, "r2");
        let expected = serde_json::json!({
            "lock": { "resource": "res", "further-resources": ["r3"] },
            "client": [{ "id": "c1" }, { "id": "c2", "resource": "r3" }],
            "fault": [{ "delete": { "host": "A" } }],
        });
        assert_eq!(tree, expected);
    }

    #[test]
    fn a_host_is_forgotten_with_everything_that_names_it() {
        let mut tree = serde_json::json!({
            "cluster": { "nodes": ["A", "B"], "clocks": { "B": { "rate-ppm": 1 } } },
            "client": [{ "id": "t1", "task-of": "B" }],
            "fault": [
                { "id": "f", "at": "1s", "kill": { "host": "B" } },
                { "id": "g", "at": "1s", "pause": { "host": ["B", "A"] } },
                { "id": "h", "at": { "client": "c1", "before": "write", "node": "B" } },
                { "id": "i", "at": "1s", "partition": { "between": [["c1"], ["B"]] } },
            ],
        });
        forget(&mut tree, "B");
        let expected = serde_json::json!({
            "cluster": { "nodes": ["A"], "clocks": {} },
            "client": [],
            "fault": [{ "id": "g", "at": "1s", "pause": { "host": ["A"] } }],
        });
        assert_eq!(tree, expected);
    }
}
