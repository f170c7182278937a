//! YAML as it comes from users: loaded once it is known how deep it goes, since the library follows it by recursion, and how
//! much its aliases make of it.

use anyhow::{Result, anyhow, bail};
use std::collections::HashMap;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// The most values of a text, those of aliases counted each time they stand for them: a few lines can mean billions.
const MAX_VALUES: u64 = 1 << 20;
/// The most lists and mappings within each other.
const DEEPEST: usize = 100;

/// The documents of a text.
///
/// Errors: it is no YAML, is nested too deeply, or its aliases make too much of it.
pub fn documents(text: &str) -> Result<Vec<Yaml>> {
    let no_yaml = |error| anyhow!("it is no YAML: {error}");
    let mut weight = Weight::default();
    // Event by event: `Parser::load` would go down by recursion, to the end of the stack.
    let mut parser = Parser::new_from_str(text);
    loop {
        let (event, place) = parser.next_token().map_err(no_yaml)?;
        if event == Event::StreamEnd {
            break;
        }
        weight.on_event(&event);
        if weight.open.len() > DEEPEST {
            bail!("line {}: it is nested more than {DEEPEST} deep", place.line());
        }
    }
    if weight.values > MAX_VALUES {
        bail!("its aliases (*NAME) stand for more than {MAX_VALUES} values");
    }
    YamlLoader::load_from_str(text).map_err(no_yaml)
}

/// How many values there are when each alias is written out.
#[derive(Default)]
struct Weight {
    values: u64,
    /// Lists and mappings that are open: their anchors, and how many values came before them.
    open: Vec<(usize, u64)>,
    /// Values by anchor.
    anchored: HashMap<usize, u64>,
}

impl Weight {
    fn add(&mut self, anchor: usize, values: u64) {
        self.values = self.values.saturating_add(values);
        self.anchored.insert(anchor, values);
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Scalar(_, _, anchor, _) => self.add(*anchor, 1),
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                self.open.push((*anchor, self.values));
                self.values = self.values.saturating_add(1);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = self.open.pop() {
                    self.anchored.insert(anchor, self.values - before);
                }
            }
            Event::Alias(anchor) => {
                let values = self.anchored.get(anchor).copied().unwrap_or(1);
                self.values = self.values.saturating_add(values);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_written_out_unless_they_make_too_much_of_a_text() {
        let few = documents("a: &a [x, y]\nb: [*a, *a]\n").unwrap();
        assert_eq!(few[0]["b"][1][1].as_str(), Some("y"));
        let eight = |word: String| vec![word; 8].join(", ");
        let levels = (1..9).map(|level| format!("l{level}: &l{level} [{}]\n", eight(format!("*l{}", level - 1))));
        let many = format!("l0: &l0 [{}]\n", eight("x".into())) + &levels.collect::<String>();
        assert!(documents(&many).unwrap_err().to_string().contains("aliases"));
        assert!(documents("a: [").unwrap_err().to_string().contains("no YAML"));
    }

    #[test]
    fn what_is_nested_too_deeply_is_told_with_its_line() {
        for deep in ["- ", "? "] {
            let error = documents(&format!("---\n{}", deep.repeat(100_000))).unwrap_err();
            assert_eq!(error.to_string(), "line 2: it is nested more than 100 deep");
        }
        assert!(documents(&("- ".repeat(99) + "1")).is_ok());
    }
}
