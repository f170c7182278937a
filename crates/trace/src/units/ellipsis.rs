//! Shortens names and keeps the parts in which they differ.

use super::{elide, width};

/// A name of parts joined by `_`, cut to `columns`: its first part stays, then the tile (`MT128x128x32`), then the parts
/// that the most others with the same first part lack, then as many of the rest as there is room for. None if it has too few
/// parts for that.
pub fn elide_parts<'a>(name: &str, columns: usize, others: impl Iterator<Item = &'a str>) -> Option<String> {
    let parts: Vec<&str> = name.split('_').collect();
    if parts.len() < MIN_PARTS || name.contains(['<', ' ']) || !name.is_ascii() || columns < MIN_COLUMNS {
        return None;
    }
    if name.len() <= columns {
        return Some(name.into());
    }
    let family = others.filter(|other| *other != name && other.split('_').next() == Some(parts[0]));
    let family: Vec<Vec<&str>> = family.map(|other| other.split('_').collect()).collect();
    // The class of a part, and how many others have it.
    let rank = |(at, part): (usize, &&str)| match part {
        _ if at == 0 => (0, 0),
        part if is_tile(part) => (1, 0),
        part => (2, family.iter().filter(|other| other.contains(part)).count()),
    };
    let mut order: Vec<((u8, usize), usize)> = parts.iter().enumerate().map(|part| (rank(part), part.0)).collect();
    order.sort_unstable();
    let mut is_kept = vec![false; parts.len()];
    for (_, at) in order {
        is_kept[at] = true;
        if joined(&parts, &is_kept).len() > columns + joined(&parts, &is_kept).matches('…').count() * ELLIPSIS_EXTRA {
            is_kept[at] = false;
        }
    }
    let text = joined(&parts, &is_kept);
    Some(if width(&text) <= columns {
        text
    } else {
        elide(&text, columns)
    })
}

/// Names of fewer parts have no parts to spare.
const MIN_PARTS: usize = 4;
/// In less room no part is whole.
const MIN_COLUMNS: usize = 9;
/// Bytes of `…` beyond its one column.
const ELLIPSIS_EXTRA: usize = '…'.len_utf8() - 1;

/// The size of a tile, as rocBLAS and hipBLASLt name it.
fn is_tile(part: &str) -> bool {
    let digits = part.strip_prefix("MT").unwrap_or_default();
    digits.contains('x') && digits.chars().all(|c| c.is_ascii_digit() || c == 'x')
}

/// The parts that are kept, with `…` for those between them.
fn joined(parts: &[&str], is_kept: &[bool]) -> String {
    let mut text = String::new();
    let mut was_kept = true;
    for (part, kept) in parts.iter().zip(is_kept) {
        if *kept {
            if !text.is_empty() {
                text.push(if was_kept { '_' } else { '…' });
            }
            text += part;
        }
        was_kept = *kept;
    }
    if !was_kept {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_and_differing_parts_of_names_stay() {
        let names = [
            "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE_1LDSB1_APM1_AF0EM1",
            "Cijk_Alik_Bljk_HHS_BH_MT256x128x64_MI32x32x8x1_SE_1LDSB0_APM1_AF0EM1",
        ];
        let cut = |columns| names.map(|name| elide_parts(name, columns, names.into_iter()).unwrap());
        assert_eq!(
            cut(34),
            [
                "Cijk_Ailk…HHS…MT128x128x32…1LDSB1…",
                "Cijk_Alik…HHS…MT256x128x64…1LDSB0…"
            ]
        );
        assert_eq!(cut(18), ["Cijk…MT128x128x32…", "Cijk…MT256x128x64…"]);
        for columns in 9..90 {
            for text in cut(columns) {
                assert!(width(&text) <= columns, "{text} in {columns}");
            }
        }
        let alone = elide_parts(names[0], 30, std::iter::empty()).unwrap();
        assert!(alone.contains("MT128x128x32") && width(&alone) <= 30, "{alone}");
        let counters = [
            "SQ_INSTS_VALU_ADD_F32",
            "SQ_INSTS_VALU_MUL_F32",
            "SQ_INSTS_VALU_ADD_F16",
            "SQ_LDS_BANK_CONFLICT",
        ];
        let short = counters.map(|name| elide_parts(name, 10, counters.into_iter()).unwrap());
        assert_eq!(short, ["SQ…ADD_F32", "SQ…MUL_F32", "SQ…ADD_F16", "SQ_LDS…"]);
        assert_eq!(elide_parts("a_b", 20, std::iter::empty()), None);
        assert_eq!(elide_parts("fwd_kernel<a_b_c, d_e_f>", 14, std::iter::empty()), None);
    }
}
