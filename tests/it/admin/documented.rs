//! Validates responses against `openapi.json`, with the part of JSON Schema that openapi.json uses.

use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../src/admin/http/openapi.json")).expect("the file is JSON")
});

/// Asserts that openapi.json describes this response.
#[track_caller]
pub fn check(path: &str, method: &str, status: u16, media_type: &str, answer: &Value) {
    let responses = &DOCUMENT["paths"][path][method]["responses"];
    let response = responses.get(status.to_string()).unwrap_or(&responses["default"]);
    let response = resolved(response);
    let schema = &response["content"][media_type]["schema"];
    assert!(
        schema.is_object(),
        "{method} {path} {status} {media_type} is not documented"
    );
    if let Err(error) = fits(schema, answer) {
        panic!("{method} {path} {status}: {error}\n{answer:#}");
    }
}

fn resolved(schema: &'static Value) -> &'static Value {
    let Some(name) = schema["$ref"].as_str() else {
        return schema;
    };
    let pointer = name.strip_prefix('#').expect("of this file");
    DOCUMENT
        .pointer(pointer)
        .unwrap_or_else(|| panic!("{name} is not there"))
}

fn fits(schema: &'static Value, value: &Value) -> Result<(), String> {
    let schema = resolved(schema);
    for keyword in schema.as_object().expect("a schema").keys() {
        assert!(KNOWN.contains(&&**keyword), "{keyword} is not checked here");
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let errors: Vec<_> = choices.iter().filter_map(|choice| fits(choice, value).err()).collect();
        return match choices.len() - errors.len() {
            1 => Ok(()),
            fitting => Err(format!("{fitting} of several fit: {errors:?}")),
        };
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().collect(),
        one => vec![one],
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types.iter().any(|known| **known == kind) {
        return Err(format!("{value} is not one of {types:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{value} is not one of {words:?}"));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_u64(), value.as_i64())
        && number < least as i64
    {
        return Err(format!("{number} is less than {least}"));
    }
    if schema["format"] == "date-time"
        && let Some(text) = value.as_str()
    {
        time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339)
            .map_err(|error| format!("{text}: {error}"))?;
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(&schema["items"], item).map_err(|error| format!("[{number}] {error}"))?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if value.get(name).is_none() {
            return Err(format!("{name} is missing"));
        }
    }
    for (name, item) in value.as_object().into_iter().flatten() {
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => fits(schema, item).map_err(|error| format!(".{name} {error}"))?,
            (None, Value::Bool(false)) => return Err(format!("{name} is not documented")),
            (None, Value::Null) => {}
            (None, schema) => fits(schema, item).map_err(|error| format!(".{name} {error}"))?,
        }
    }
    Ok(())
}

const KNOWN: [&str; 13] = [
    "description",
    "type",
    "enum",
    "minimum",
    "maximum",
    "maxItems",
    "format",
    "items",
    "required",
    "properties",
    "additionalProperties",
    "oneOf",
    "$ref",
];

#[test]
fn a_value_that_does_not_match_the_schema_is_found() {
    let schema = &DOCUMENT["components"]["schemas"]["Config"];
    for (text, fitting) in [
        (r#"{"generation":1,"file":null,"settings":{}}"#, true),
        (r#"{"generation":1,"file":"f","settings":{"a.b":"c"}}"#, true),
        (r#"{"generation":1,"file":null,"settings":{"a.b":1}}"#, false),
        (r#"{"generation":-1,"file":null,"settings":{}}"#, false),
        (r#"{"generation":1,"settings":{}}"#, false),
        (r#"{"generation":1,"file":null,"settings":{},"more":1}"#, false),
    ] {
        let value = serde_json::from_str(text).unwrap();
        assert_eq!(fits(schema, &value).is_ok(), fitting, "{text}");
    }
}
