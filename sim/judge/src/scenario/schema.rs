//! JSON Schema of the scenario format, for editors that complete and check TOML.
//!
//! The schema knows the structure: tables, keys, words and the form of values. The parser knows more,
//! such as hosts that do not exist. What the parser takes, the schema takes.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::chance::{Chance, CountRange};
use super::expect::{Expectation, Expectations, ExpectedBlame, Property, Quantity, Verdict};
use super::model::{At, AttemptPoint, Fault, FaultKind, Hold, HostNames, Scenario, WhichAttempt};
use super::span::{SeedRange, SignedSpan, SignedSpanRange, Span, SpanRange};

/// Returns the schema, in draft 7, which editors for TOML understand.
#[must_use]
pub fn schema() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<Scenario>().to_value()
}

/// Implements the schema of types with a text form of their own.
macro_rules! schemas {
    ($($type:ident($generator:ident) => $schema:expr;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

schemas! {
    SeedRange(_generator) => text("A range of seeds such as `0..100`, the end excluded", "^[0-9]+\\.\\.[0-9]+$");
    Span(_generator) => text("A time such as `250ms`", "^[0-9]+(ns|us|ms|s|m)$");
    SignedSpan(_generator) => text("A time such as `250ms` or `-3s`", "^-?[0-9]+(ns|us|ms|s|m)$");
    SpanRange(_generator) => text(
        "A time such as `250ms`, or a range such as `5ms..3s`",
        "^[0-9]+(ns|us|ms|s|m)(\\.\\.[0-9]+(ns|us|ms|s|m))?$"
    );
    SignedSpanRange(_generator) => text(
        "A time such as `250ms`, or a range such as `-5ms..3s`",
        "^-?[0-9]+(ns|us|ms|s|m)(\\.\\.-?[0-9]+(ns|us|ms|s|m))?$"
    );
    Chance(_generator) => text("A probability such as `25%`", "^[0-9]+(\\.[0-9]+)?%$");
    CountRange(_generator) => json_schema!({
        "description": "A number, or a range such as `3..20`",
        "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9]+(\\.\\.[0-9]+)?$" },
        ],
    });
    HostNames(_generator) => json_schema!({
        "description": "The name of a host, or a list of names",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    });
    WhichAttempt(_generator) => json_schema!({
        "description": "The number of an attempt, from 1, or `any`, or `granted`",
        "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 65_535 },
            { "enum": ["any", "granted"] },
        ],
    });
    At(generator) => json_schema!({
        "description": "A time, or a step of an attempt",
        "anyOf": [
            generator.subschema_for::<SpanRange>(),
            generator.subschema_for::<AttemptPoint>(),
        ],
    });
    Hold(generator) => json_schema!({
        "description": "A time such as `2s`, `until-deadline`, or a table with `for`",
        "anyOf": [
            generator.subschema_for::<SpanRange>(),
            { "const": "until-deadline" },
            {
                "type": "object",
                "properties": {
                    "for": generator.subschema_for::<SpanRange>(),
                    "or-lost": { "type": "boolean" },
                },
                "required": ["for"],
                "additionalProperties": false,
            },
        ],
    });
    ExpectedBlame(_generator) => {
        let causes = json!({ "type": "array", "items": { "type": "string" } });
        json_schema!({
            "description": "A list of causes, or a table with `any-of`",
            "anyOf": [
                causes,
                {
                    "type": "object",
                    "properties": { "any-of": causes },
                    "required": ["any-of"],
                    "additionalProperties": false,
                },
            ],
        })
    };
    Expectation(generator) => json_schema!({
        "description": "A verdict, or a table with `verdict`",
        "anyOf": [
            generator.subschema_for::<Verdict>(),
            {
                "type": "object",
                "properties": {
                    "verdict": generator.subschema_for::<Verdict>(),
                    "blame": generator.subschema_for::<ExpectedBlame>(),
                    "overlap-at-least": generator.subschema_for::<Span>(),
                    "reason": { "type": "string" },
                },
                "required": ["verdict"],
                "additionalProperties": false,
            },
        ],
    });
    Expectations(generator) => {
        let verdict = generator.subschema_for::<Expectation>();
        let property = |it: Property| (it.name().to_owned(), json!(verdict));
        let bounds = json!({ "type": "string", "description": "Bounds such as `A..B`, `A..` or `..B`" });
        let quantity = |it: Quantity| (it.name().to_owned(), bounds.clone());
        let properties: Map<String, Value> = Property::ALL
            .into_iter()
            .map(property)
            .chain(Quantity::ALL.into_iter().map(quantity))
            .collect();
        json_schema!({
            "description": "The expected verdict of properties, and bounds of quantities",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    };
    Fault(generator) => fault(generator);
}

fn text(description: &str, pattern: &str) -> Schema {
    json_schema!({ "description": description, "type": "string", "pattern": pattern })
}

/// Returns the schema of a fault: its own keys, and exactly one kind.
fn fault(generator: &mut SchemaGenerator) -> Schema {
    let own = json!({
        "id": { "type": "string", "description": "Name of the fault" },
        "at": generator.subschema_for::<At>(),
        "until": generator.subschema_for::<Span>(),
        "lasts": generator.subschema_for::<SpanRange>(),
        "every": generator.subschema_for::<SpanRange>(),
        "times": generator.subschema_for::<CountRange>(),
        "chance": generator.subschema_for::<Chance>(),
        "enabled": { "type": "boolean", "description": "False if the fault is switched off" },
    });
    let Value::Object(mut properties) = own else { unreachable!("it is written as an object") };
    let mut one_of = Vec::new();
    let kinds = FaultKind::json_schema(generator).to_value();
    for kind in kinds["oneOf"].as_array().into_iter().flatten() {
        for (name, details) in kind["properties"].as_object().into_iter().flatten() {
            // Draft 7 ignores what stands beside `$ref`.
            let details = json!({ "description": kind["description"], "allOf": [details] });
            properties.insert(name.clone(), details);
            one_of.push(json!({ "required": [name] }));
        }
    }
    json_schema!({
        "description": "A fault: its start, its end, and exactly one kind",
        "type": "object",
        "properties": properties,
        "required": ["id", "at"],
        "oneOf": one_of,
        "additionalProperties": false,
    })
}
