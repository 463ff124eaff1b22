//! The committed JSON Schema of the scenario format; `deploy/test_schema.py` compares it with the parser.

use std::fs;

use crate::{folder, redlock_sim};

#[test]
fn the_committed_schema_is_that_of_the_parser() {
    let output = redlock_sim(&folder("schema", &[]), &["schema"]).code(0).get_output().clone();
    let committed = fs::read_to_string("../../docs/scenario.schema.json").unwrap();
    let is_same = String::from_utf8(output.stdout).unwrap() == committed;
    assert!(is_same, "it differs: `redlock-sim schema > docs/scenario.schema.json`");
}
