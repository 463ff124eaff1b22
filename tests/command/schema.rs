//! The committed JSON Schema of the scenario format; `deploy/test_schema.py` compares it with the parser.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{folder, redlock_sim};

#[test]
fn the_committed_schema_is_that_of_the_parser() {
    let output = redlock_sim(&folder("schema", &[]), &["schema"]).code(0).get_output().clone();
    let committed = fs::read_to_string("../../docs/scenario.schema.json").unwrap();
    let is_same = String::from_utf8(output.stdout).unwrap() == committed;
    assert!(is_same, "it differs: `redlock-sim schema > docs/scenario.schema.json`");
}

#[test]
fn the_guide_names_every_field_and_word_of_the_format() {
    let schema = fs::read_to_string("../../docs/scenario.schema.json").unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let guide = fs::read_to_string("../../scenarios/README.md").unwrap();
    // Every second piece between backticks is code, in lines and in blocks.
    let code = guide.split('`').skip(1).step_by(2);
    let is_of_word = |it: char| it.is_ascii_alphanumeric() || "-.".contains(it);
    let words = code.flat_map(|it| it.split(move |it| !is_of_word(it)));
    let words = words.flat_map(|it| it.split('.').chain([it]));
    let words: BTreeSet<&str> = words.collect();
    // `docs/simulator.md` explains the properties.
    let definitions = schema["definitions"].as_object().unwrap().iter();
    let definitions = definitions.filter(|it| it.0 != "Expectations").map(|it| it.1);
    let fields = definitions.clone().filter_map(|it| it["properties"].as_object());
    let fields = fields.flat_map(|it| it.keys().map(String::as_str));
    let variants = definitions.filter_map(|it| it["oneOf"].as_array()).flatten();
    let variants = variants.filter_map(|it| it["const"].as_str()).filter(|it| *it != "*");
    let missing: BTreeSet<&str> = fields.chain(variants).filter(|it| !words.contains(it)).collect();
    assert!(missing.is_empty(), "scenarios/README.md does not explain {missing:?}");
}
