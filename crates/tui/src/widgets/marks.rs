//! The characters that charts are made of, from one mark a cell to eight.

use super::chart::LEVELS;
use crate::choice::choices;

/// What charts are drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// ASCII characters.
    Ascii,
    /// Eighths of a block, one value a column.
    #[default]
    Blocks,
    /// Braille patterns: 2×4 dots a cell.
    Braille,
    /// Sextants of Unicode 13: 2×3 a cell.
    Sextants,
    /// Octants of Unicode 16: 2×4 a cell.
    Octants,
}

choices!(Marks: Ascii "ascii" Blocks "blocks" Braille "braille" Sextants "sextants" Octants "octants");

impl Marks {
    /// By the environment, which is asked by `variable`: fonts behind terminal multiplexers often lack Braille.
    pub fn detect(is_ascii: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let is_multiplexed = set("TMUX").is_some() || term.starts_with("tmux") || term.starts_with("screen");
        match (is_ascii, is_multiplexed) {
            (true, _) => Self::Ascii,
            (_, true) => Self::Blocks,
            _ => Self::Braille,
        }
    }

    /// Values that stand side by side in a cell.
    pub(crate) const fn columns(self) -> usize {
        match self {
            Self::Ascii | Self::Blocks => 1,
            Self::Braille | Self::Sextants | Self::Octants => 2,
        }
    }

    /// Levels of a cell that is filled from below.
    const fn levels(self) -> usize {
        match self {
            Self::Blocks => 8,
            Self::Ascii | Self::Sextants => 3,
            Self::Braille | Self::Octants => 4,
        }
    }

    /// Rows of single marks in a cell.
    pub(crate) const fn rows(self) -> usize {
        match self {
            Self::Ascii => 1,
            Self::Blocks => 2,
            Self::Sextants => 3,
            Self::Braille | Self::Octants => 4,
        }
    }

    /// A cell filled from below: shares of the height of `rows` cells, one for each of its columns; the cell is `below` cells
    /// above the foot. What is more than nothing shows.
    pub(crate) fn filled(self, shares: &[f64], rows: usize, below: usize) -> char {
        let levels = self.levels();
        let here = |share: f64| {
            let filled = (share.clamp(0.0, 1.0) * (rows * levels) as f64 - 1e-9).ceil().max(0.0) as usize;
            filled.saturating_sub(below * levels).min(levels)
        };
        let first = here(shares.first().copied().unwrap_or(0.0));
        match self {
            Self::Ascii => [' ', '_', '=', '#'][first],
            Self::Blocks => LEVELS[first],
            Self::Braille | Self::Sextants | Self::Octants => {
                let second = here(shares.get(1).copied().unwrap_or(0.0));
                let bit = |level: usize, column: usize| {
                    let rows = (levels - level)..levels;
                    rows.fold(0u8, |bits, row| bits | 1 << (2 * row + column))
                };
                self.sign(bit(first, 0) | bit(second, 1))
            }
        }
    }

    /// The bit of a mark in a cell, counted from the upper left corner.
    pub(crate) const fn bit(self, row: usize, column: usize) -> u8 {
        1 << (row * self.columns() + column)
    }

    /// The character of marks in a cell.
    pub(crate) fn sign(self, bits: u8) -> char {
        match self {
            Self::Ascii => [' ', '*'][usize::from(bits & 1)],
            Self::Blocks => [' ', '▀', '▄', '█'][usize::from(bits & 3)],
            Self::Braille => braille(bits),
            Self::Sextants => sextant(bits & 63),
            Self::Octants => octant(bits),
        }
    }
}

/// Dots are numbered down the left column, then down the right one; those of the last row came later.
fn braille(bits: u8) -> char {
    const DOTS: [u32; 8] = [0, 3, 1, 4, 2, 5, 6, 7];
    let dots = (0..8).filter(|at| bits & 1 << at != 0).map(|at| 1 << DOTS[at]);
    char::from_u32(0x2800 + dots.sum::<u32>()).unwrap_or(' ')
}

fn sextant(bits: u8) -> char {
    match bits {
        0 => ' ',
        0b01_0101 => '▌',
        0b10_1010 => '▐',
        0b11_1111 => '█',
        // The block leaves out the four that were there before.
        _ => {
            let before = 1 + u32::from(bits > 0b01_0101) + u32::from(bits > 0b10_1010);
            char::from_u32(0x1FB00 + u32::from(bits) - before).unwrap_or(' ')
        }
    }
}

/// Patterns that have characters outside of the block of octants, in ascending order.
const OTHERS: [(u8, char); 26] = [
    (0x00, ' '),
    (0x01, '\u{1CEA8}'),
    (0x02, '\u{1CEAB}'),
    (0x03, '\u{1FB82}'),
    (0x05, '▘'),
    (0x0A, '▝'),
    (0x0F, '▀'),
    (0x14, '\u{1FBE6}'),
    (0x28, '\u{1FBE7}'),
    (0x3F, '\u{1FB85}'),
    (0x40, '\u{1CEA3}'),
    (0x50, '▖'),
    (0x55, '▌'),
    (0x5A, '▞'),
    (0x5F, '▛'),
    (0x80, '\u{1CEA0}'),
    (0xA0, '▗'),
    (0xA5, '▚'),
    (0xAA, '▐'),
    (0xAF, '▜'),
    (0xC0, '▂'),
    (0xF0, '▄'),
    (0xF5, '▙'),
    (0xFA, '▟'),
    (0xFC, '▆'),
    (0xFF, '█'),
];

fn octant(bits: u8) -> char {
    match OTHERS.binary_search_by_key(&bits, |known| known.0) {
        Ok(at) => OTHERS[at].1,
        Err(before) => char::from_u32(0x1CD00 + u32::from(bits) - before as u32).unwrap_or(' '),
    }
}

/// How much of a cell a character of charts fills: none of those, or 0 to 8.
pub(crate) fn weight(sign: char) -> Option<u32> {
    let code = sign as u32;
    match code {
        0x2800..=0x28FF => Some((code & 0xFF).count_ones()),
        0x1FB00..=0x1FB3B => (1..63)
            .find(|&bits| sextant(bits) == sign)
            .map(|bits| bits.count_ones() * 8 / 6),
        _ => (0..=u8::MAX).find(|&bits| octant(bits) == sign).map(u8::count_ones),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ALL: [Marks; 5] = [
        Marks::Ascii,
        Marks::Blocks,
        Marks::Braille,
        Marks::Sextants,
        Marks::Octants,
    ];

    #[test]
    fn each_pattern_has_a_character() {
        for (marks, patterns) in [(Marks::Braille, 256), (Marks::Sextants, 64), (Marks::Octants, 256)] {
            let signs: HashSet<char> = (0..patterns).map(|bits| marks.sign(bits as u8)).collect();
            assert_eq!(signs.len(), patterns, "{marks:?}");
        }
        // As the charts of Unicode have them.
        assert_eq!(octant(0b100), '\u{1CD00}', "OCTANT-3");
        assert_eq!(octant(0b110), '\u{1CD01}', "OCTANT-23");
        assert_eq!(octant(0b1_0000), '\u{1CD09}', "OCTANT-5");
        assert_eq!(octant(0xFE), '\u{1CDE5}', "OCTANT-2345678");
        assert_eq!(sextant(0b1), '\u{1FB00}', "SEXTANT-1");
        assert_eq!(sextant(0b11_1110), '\u{1FB3B}', "SEXTANT-23456");
        assert_eq!(braille(0b1000_0000), '⢀');
    }

    #[test]
    fn charts_are_filled_from_below() {
        for marks in ALL {
            let cell = |share: f64, below| marks.filled(&[share, share], 2, below);
            assert_eq!(
                (cell(0.0, 0), cell(0.5, 1)),
                (marks.sign(0), marks.sign(0)),
                "{marks:?}"
            );
            assert_eq!(cell(1.0, 1), cell(0.5, 0), "{marks:?}");
            assert_ne!(
                cell(1e-6, 0),
                marks.sign(0),
                "{marks:?}: what is more than nothing shows"
            );
        }
        assert_eq!(Marks::Braille.filled(&[0.5, 1.0], 1, 0), '⣼');
        assert_eq!(Marks::Octants.filled(&[0.5, 0.5], 1, 0), '▄');
    }

    #[test]
    fn terminals_get_what_their_fonts_have() {
        let of = |is_ascii, known: &[(&str, &str)]| {
            Marks::detect(is_ascii, |name| {
                let found = known.iter().find(|known| known.0 == name);
                found.map(|known| known.1.to_owned())
            })
        };
        assert_eq!(of(true, &[("TERM", "xterm")]), Marks::Ascii);
        assert_eq!(of(false, &[("TERM", "xterm-256color")]), Marks::Braille);
        assert_eq!(of(false, &[("TERM", "xterm"), ("TMUX", "/tmp/x")]), Marks::Blocks);
        assert_eq!(of(false, &[("TERM", "screen-256color")]), Marks::Blocks);
    }
}
