//! The settings file as a JSON schema.

use crate::ui::Pane;
use crate::ui::keymap::KEYMAP;

/// A JSON schema of the file, for editors.
pub fn schema() -> serde_json::Value {
    let keys: serde_json::Map<String, serde_json::Value> = KEYMAP
        .iter()
        .map(|binding| {
            let shape = serde_json::json!({
                "type": "array", "items": { "type": "string" }, "description": binding.help,
            });
            (binding.name.to_string(), shape)
        })
        .collect();
    let columns: serde_json::Map<String, serde_json::Value> = Pane::ALL
        .into_iter()
        .map(|pane| {
            let words = crate::ui::columns::words(pane).into_iter();
            let known: Vec<&str> = words.map(|known| known.1).collect();
            let shape = serde_json::json!({ "type": "array", "minItems": 1, "items": { "enum": known } });
            (pane.word().to_string(), shape)
        })
        .collect();
    let share = || serde_json::json!({ "type": "number", "minimum": 0, "maximum": 100, "description": "per cent" });
    let time = || serde_json::json!({ "type": "string", "description": "a time with its unit, as 1ms" });
    let speed = serde_json::json!({ "type": "string", "description": "a bandwidth with its unit, as 5GB/s" });
    serde_json::json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "roctop configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "theme": { "type": "string" },
            "glyphs": { "enum": ["auto", "unicode", "ascii"] },
            "layout": { "enum": ["full", "compact"] },
            "timeline": { "type": "object", "additionalProperties": false, "properties": {
                "motion": { "enum": ["auto", "scroll", "sweep", "page"] },
                "memory": { "type": "string", "description": "a size, as 512M" },
            } },
            "charts": { "type": "object", "additionalProperties": false, "properties": {
                "marks": { "enum": ["auto", "ascii", "blocks", "braille", "sextants", "octants"] },
            } },
            "mouse": { "type": "boolean" },
            "filter": { "type": "string" },
            "throttle": { "type": "number", "minimum": 1 },
            "keys": { "type": "object", "additionalProperties": false, "properties": keys },
            "columns": { "type": "object", "additionalProperties": false, "properties": columns },
            "thresholds": { "type": "object", "additionalProperties": false, "properties": {
                "idle": share(), "gap": time(), "long_gap": time(), "sync": share(), "short": time(),
                "shorts": share(), "outlier": { "type": "number", "minimum": 1 }, "launch": share(),
                "slow_copy": speed, "hang": time(), "absent": time(), "straggler": share(), "waiting": share(),
            } },
            "alias": { "type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["kernel", "name"],
                "properties": { "kernel": { "type": "string" }, "name": { "type": "string" } },
            } },
            "presets": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::printed;

    #[test]
    fn the_schema_knows_every_setting_and_no_other() {
        let schema = schema();
        let properties = |of: &serde_json::Value| -> Vec<String> {
            let known = of["properties"].as_object().expect("it has properties");
            known.keys().cloned().collect()
        };
        let thresholds = properties(&schema["properties"]["thresholds"]);
        let printed = printed();
        // Each is in the printed file, and the printed file is read strictly.
        for name in properties(&schema).iter().chain(&thresholds) {
            let is_there = [
                format!("# {name} ="),
                format!("# [{name}]"),
                format!("# [[{name}]]"),
                format!("[{name}]"),
            ]
            .iter()
            .any(|line| printed.lines().any(|printed| printed.starts_with(line.as_str())));
            assert!(is_there, "{name} is not in the printed file");
        }
        assert_eq!(thresholds.len(), 13);
    }
}
