//! Texts compared with their golden files: all differences of a test are reported together, as one diff.

use super::driven::tests;
use std::fmt::Write as _;

/// The comparisons of one test.
#[derive(Default)]
pub(crate) struct Goldens {
    differences: Vec<String>,
}

impl Goldens {
    /// Compares a text with `golden/screens/NAME.txt`, or writes the file when `ROCTOP_GOLDEN` is set.
    pub(crate) fn compare(&mut self, name: &str, text: &str) {
        let path = tests().join("golden/screens").join(format!("{name}.txt"));
        if std::env::var_os("ROCTOP_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().expect("the test data is there")).expect("the test data is there");
            std::fs::write(&path, text).expect("the test data is there");
            return;
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        if known != text {
            self.differences.push(difference(name, &known, text));
        }
    }

    /// Fails with the diff of every text that differs.
    pub(crate) fn finish(self) {
        let count = self.differences.len();
        assert!(
            count == 0,
            "{count} screens differ; ROCTOP_GOLDEN=write writes them\n{}",
            self.differences.concat()
        );
    }
}

/// The lines that differ, each with its number: `-` in the golden file, `+` now.
fn difference(name: &str, known: &str, text: &str) -> String {
    let (known, text): (Vec<&str>, Vec<&str>) = (known.lines().collect(), text.lines().collect());
    let mut out = format!("--- golden/screens/{name}.txt\n");
    for index in 0..known.len().max(text.len()) {
        let (before, now) = (known.get(index), text.get(index));
        if before == now {
            continue;
        }
        for (sign, line) in [('-', before), ('+', now)] {
            if let Some(line) = line {
                let _ = writeln!(out, "{:4} {sign} {line}", index + 1);
            }
        }
    }
    out
}

#[test]
fn difference_has_the_changed_lines() {
    assert_eq!(
        difference("x", "a\nb\nc\n", "a\nB\nc\nd\n"),
        "--- golden/screens/x.txt\n   2 - b\n   2 + B\n   4 + d\n"
    );
}
