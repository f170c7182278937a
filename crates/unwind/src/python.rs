//! Lines of Python code, from the tables that CPython's compiler writes, 3.9 to 3.15.

/// Bytes of a code unit, from 3.10 on.
const UNIT: u64 = 2;

/// Line of the instruction at this position of Python code, bytes. `first_line` is that of the code's definition, `table`
/// its table of lines, which may be cut; CPython's version is 3.`minor`. None if the instruction has no line.
pub fn line_of_python(minor: u8, first_line: u32, table: &[u8], instruction: u64) -> Option<u32> {
    let line = match minor {
        ..=9 => Some(by_pairs_of_steps(first_line, table, instruction)),
        10 => by_ranges(first_line, table, instruction),
        _ => by_locations(first_line, table, instruction),
    };
    line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0)
}

/// Up to 3.9 (`co_lnotab`): pairs of steps, in bytes of code and in lines.
fn by_pairs_of_steps(first_line: u32, table: &[u8], instruction: u64) -> i64 {
    let (mut line, mut address) = (i64::from(first_line), 0);
    for [code, lines] in table.as_chunks().0 {
        address += u64::from(*code);
        if address > instruction {
            break;
        }
        line += i64::from(lines.cast_signed());
    }
    line
}

/// 3.10 (`co_linetable`): pairs of the length of a range and a step in lines.
fn by_ranges(first_line: u32, table: &[u8], instruction: u64) -> Option<i64> {
    /// The range has no line.
    const NONE: i8 = -128;
    let (mut line, mut end) = (i64::from(first_line), 0);
    for [length, step] in table.as_chunks().0 {
        end += u64::from(*length);
        let step = step.cast_signed();
        if step != NONE {
            line += i64::from(step);
        }
        if instruction < end {
            return (step != NONE).then_some(line);
        }
    }
    None
}

/// From 3.11 on: entries of several forms. Only the first byte of each has its highest bit set.
fn by_locations(first_line: u32, table: &[u8], instruction: u64) -> Option<i64> {
    let (mut line, mut end) = (i64::from(first_line), 0);
    let mut rest = table;
    while let [head, tail @ ..] = rest {
        let length = tail.iter().take_while(|byte| **byte & 0x80 == 0).count();
        let (operands, after) = tail.split_at_checked(length)?;
        rest = after;
        end += (u64::from(head & 7) + 1) * UNIT;
        let form = head >> 3 & 15;
        match form {
            10..=12 => line += i64::from(form - 10),
            13 | 14 => line = line.checked_add(signed(operands))?,
            _ => {}
        }
        if instruction < end {
            return (form != 15).then_some(line);
        }
    }
    None
}

/// The signed number at the start of these bytes: six bits in each, the lowest first; bit 6 says that more follow.
fn signed(bytes: &[u8]) -> i64 {
    let (mut value, mut shift) = (0u64, 0);
    for byte in bytes.iter().take(8) {
        value |= u64::from(byte & 0x3f) << shift;
        shift += 6;
        if byte & 0x40 == 0 {
            break;
        }
    }
    let size = (value >> 1).cast_signed();
    if value & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython itself says of the same code: `co_lines()`, or `dis.findlinestarts` before 3.10.
    fn compare(minor: u8, first_line: u32, table: &[u8], expected: &[(u64, Option<u32>)]) {
        for (instruction, line) in expected {
            let found = line_of_python(minor, first_line, table, *instruction);
            assert_eq!(found, *line, "instruction {instruction} of 3.{minor}");
        }
    }

    #[test]
    fn steps_of_3_9_are_added() {
        // A step of more than 255 bytes and one of more than 127 lines have several pairs.
        let table = [0, 1, 8, 1, 255, 0, 5, 127, 0, 73, 4, 0xfe];
        let expected = [(0, 11), (6, 11), (8, 12), (262, 12), (268, 212), (270, 212), (272, 210)];
        compare(9, 10, &table, &expected.map(|(at, line)| (at, Some(line))));
    }

    #[test]
    fn ranges_of_3_10_may_have_no_line() {
        let table = [4, 1, 6, 0x80, 8, 2, 2, 0xff];
        let expected = [
            (0, Some(11)),
            (2, Some(11)),
            (4, None),
            (10, Some(13)),
            (18, Some(12)),
            (20, None),
        ];
        compare(10, 10, &table, &expected);
    }

    #[test]
    fn all_forms_of_locations_are_read() {
        let table = [
            0xf0, 0x03, 0x01, 0x01, 0x01, // long: one line back, one unit
            0x80, 0x11, // short: the same line
            0xdb, 0x05, 0x06, // one line on, four units
            0xe1, 0x10, 0x18, // two lines on, two units
            0xf9, // no line, two units
            0xe8, 0x48, 0x01, // no columns: 36 lines on, one unit
        ];
        let expected = [
            (0, Some(9)),
            (2, Some(9)),
            (4, Some(10)),
            (11, Some(10)),
            (12, Some(12)),
            (16, None),
            (20, Some(48)),
            (22, None),
            (u64::MAX, None),
        ];
        compare(11, 10, &table, &expected);
    }

    #[test]
    fn any_bytes_are_a_table() {
        let mut bytes = Vec::new();
        let mut state = 7u32;
        for length in 0..300 {
            state = state.wrapping_mul(0x9e37_79b1).rotate_left(9);
            bytes.push((state >> 8) as u8);
            for minor in 8..16 {
                for instruction in [0, 2, length, u64::MAX] {
                    let _ = line_of_python(minor, state, &bytes, instruction);
                }
            }
        }
    }
}
