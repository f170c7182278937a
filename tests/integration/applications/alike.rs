//! What a program writes, but for what differs between two runs of it without roctop.

use std::collections::BTreeMap;

/// The lines of a program's output by what they look like without their numbers, and the texts they had.
type Shapes = BTreeMap<String, Vec<String>>;

/// A line without its numbers, and without the blanks and minus signs that depend on how wide they are.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        let is_blank = c.is_whitespace() || c == '-';
        let is_same = shape.ends_with('#') && (c == '#' || c == '.') || is_blank && shape.ends_with(' ');
        if !is_same {
            shape.push(if is_blank { ' ' } else { c });
        }
    }
    shape.trim().to_owned()
}

/// Lines in any order: threads of a program write between each other.
fn shapes(output: &[u8]) -> Shapes {
    let mut shapes = Shapes::new();
    // Progress is written over itself.
    for line in String::from_utf8_lossy(output).split(['\n', '\r']) {
        let lines = shapes.entry(shape(line)).or_default();
        lines.push(line.trim_end().to_owned());
    }
    shapes.remove("");
    for lines in shapes.values_mut() {
        lines.sort();
    }
    shapes
}

/// Where an output differs from those without roctop in what these have in common.
pub(crate) fn difference(recorded: &[u8], plain: &[&[u8]]) -> Option<String> {
    let (recorded, plain) = (
        shapes(recorded),
        plain.iter().map(|one| shapes(one)).collect::<Vec<_>>(),
    );
    for (shape, lines) in &recorded {
        if !plain.iter().any(|one| one.contains_key(shape)) {
            return Some(format!("only when recorded: {lines:?}"));
        }
    }
    let (first, others) = plain.split_first()?;
    for (shape, lines) in first {
        let Some(found) = recorded.get(shape) else {
            if others.iter().all(|one| one.contains_key(shape)) {
                return Some(format!("not when recorded: {lines:?}"));
            }
            continue;
        };
        let is_count_alike = others
            .iter()
            .all(|one| one.get(shape).map(Vec::len) == Some(lines.len()));
        if is_count_alike && found.len() != lines.len() {
            return Some(format!(
                "{} lines like {:?}, {} when recorded",
                lines.len(),
                lines[0],
                found.len()
            ));
        }
        if others.iter().all(|one| one.get(shape) == Some(lines)) && found != lines {
            return Some(format!("{lines:?}, when recorded {found:?}"));
        }
    }
    None
}

#[test]
fn only_what_varies_alone_may_differ() {
    let plain: [&[u8]; 2] = [b"ran 3 in 5.1 ms\nsum 7\n", b"ran 3 in 12.0 ms\nsum 7\n"];
    assert_eq!(difference(b"sum 7\nran 3 in 1.9 ms\n", &plain), None);
    for other in [
        &b"ran 3 in 5.1 ms\nsum 8\n"[..],
        b"ran 3 in 5.1 ms\n",
        b"ran 3 in 5.1 ms\nsum 7\nsum 7\n",
        b"ran 3 in 5.1 ms\nsum 7\nerror\n",
    ] {
        assert!(
            difference(other, &plain).is_some(),
            "{}",
            String::from_utf8_lossy(other)
        );
    }
}
