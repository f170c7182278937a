//! Two schemas of `results.json`: of the seed's manual, and of rocprofiler-sdk 1.0.0.
//!
//! A schema is an outline: `name:type` with `!` when it must be there, its content two blanks deeper, `*` for each
//! item of a list.

use serde_json::Value;

/// A line of an outline with its content.
struct Part<'a> {
    name: &'a str,
    kind: &'a str,
    is_required: bool,
    parts: Vec<Part<'a>>,
}

/// The seed's manual: what it requires is there; more may be.
pub(crate) const SEED: &str = include_str!("schema-seed.txt");
/// rocprofiler-sdk 1.0.0, with its later fields of graphs: nothing else is there.
pub(crate) const NEW: &str = include_str!("schema-new.txt");

fn parse<'a>(lines: &mut std::iter::Peekable<std::str::Lines<'a>>, depth: usize) -> Vec<Part<'a>> {
    let indent = |line: &str| (line.len() - line.trim_start().len()) / 2;
    let mut parts = Vec::new();
    while let Some(line) = lines.next_if(|line| indent(line) == depth) {
        let (name, kind) = line.trim_start().split_once(':').unwrap();
        parts.push(Part {
            name,
            kind: kind.trim_end_matches('!'),
            is_required: kind.ends_with('!'),
            parts: parse(lines, depth + 1),
        });
    }
    parts
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("the outline has a type '{kind}'"),
    }
}

fn check(parts: &[Part<'_>], value: &Value, is_exact: bool, at: &str, wrong: &mut Vec<String>) {
    for part in parts {
        let found: Vec<&Value> = match (part.name, value) {
            ("*", Value::Array(items)) => items.iter().collect(),
            (name, _) => value.get(name).into_iter().collect(),
        };
        if part.is_required && found.is_empty() {
            wrong.push(format!("{at} has no {}", part.name));
        }
        for found in found {
            let at = format!("{at}/{}", part.name);
            if is_of(part.kind, found) {
                check(&part.parts, found, is_exact, &at, wrong);
            } else {
                wrong.push(format!("{at} is no {}: {found}", part.kind));
            }
        }
    }
    // An object of which the outline says nothing more may hold anything.
    if let (true, false, Value::Object(fields)) = (is_exact, parts.is_empty(), value) {
        let unknown = fields.keys().filter(|key| !parts.iter().any(|part| part.name == *key));
        wrong.extend(unknown.map(|key| format!("{at} has a key {key}")));
    }
}

/// What is wrong with a document by a schema; each kind of fault once.
pub(crate) fn faults(schema: &str, document: &Value) -> Vec<String> {
    let parts = parse(&mut schema.lines().peekable(), 0);
    assert!(!parts.is_empty());
    let mut wrong = Vec::new();
    check(&parts, document, schema == NEW, "", &mut wrong);
    wrong.sort();
    wrong.dedup();
    wrong
}
