//! What changed from one buffer to the next, in few bytes.
//!
//! A change of colour costs more than a move of the cursor, so cells are also tried in order of style; the shorter of the
//! orders is sent. The pen stays as it is from frame to frame; each frame begins with an absolute move.

use std::io::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::shift::shift;
use crate::widgets::marks;

use roctop_trace::units::width;

/// As many blanks as this are erased rather than written.
const ERASED: usize = 6;
/// What shows on a blank.
const SHOWS: Modifier = Modifier::UNDERLINED.union(Modifier::REVERSED);
/// What is sent; the themes know no more.
const SENT: Modifier = SHOWS.union(Modifier::BOLD).union(Modifier::DIM);

/// A cell's attributes as they are sent. Some terminals have one weight and others two: what is bold is not dim.
pub fn attributes(cell: &Cell) -> Modifier {
    let sent = cell.modifier.intersection(SENT);
    if sent.contains(Modifier::BOLD) {
        sent.difference(Modifier::DIM)
    } else {
        sent
    }
}

/// Colours and attributes of what is written next.
#[derive(Clone, Copy, PartialEq)]
struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Pen {
    /// Whether a cell can be written as it is. What is blank has no colour of letters.
    fn fits(&self, cell: &Cell) -> bool {
        let is_blank = cell.symbol() == " " && !self.modifier.union(attributes(cell)).intersects(SHOWS);
        self.bg == cell.bg && (is_blank || (self.modifier == attributes(cell) && self.fg == cell.fg))
    }
}

/// A terminal's pen, and the way from buffer to buffer.
#[derive(Clone, Copy)]
pub(crate) struct Encoder {
    pen: Pen,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            pen: Pen {
                fg: Color::Reset,
                bg: Color::Reset,
                modifier: Modifier::empty(),
            },
        }
    }
}

/// A cell that is to be written.
type Change<'a> = (u16, u16, &'a Cell);

impl Encoder {
    /// Adds the bytes that turn what is shown into what is next.
    pub(crate) fn encode(&mut self, shown: &Buffer, next: &Buffer, ascii: bool, out: &mut Vec<u8>) {
        let moved = shift(shown, next, out);
        if moved.is_some() {
            self.pen = Self::default().pen;
        }
        let shown = moved.as_ref().unwrap_or(shown);
        let changes = changes(shown, next);
        if changes.is_empty() {
            return;
        }
        let (pen, bytes) = self.write(next, &changes, ascii);
        let mut best = (pen, bytes);
        // Of glyphs two columns wide, one half may not be written before the other is gone.
        let old = |change: &Change<'_>| shown.cell((change.0, change.1)).map_or(1, |cell| width(cell.symbol()));
        if changes
            .iter()
            .all(|change| width(change.2.symbol()) == 1 && old(change) == 1)
        {
            let other = self.by_style(next, &changes, ascii);
            if other.1.len() < best.1.len() {
                best = other;
            }
        }
        self.pen = best.0;
        out.extend_from_slice(&best.1);
    }

    /// Writes style by style: first what the pen fits, then the style of the first cell that is left, and so on.
    fn by_style(self, next: &Buffer, changes: &[Change<'_>], ascii: bool) -> (Pen, Vec<u8>) {
        let mut pen = self.pen;
        let mut order = Vec::with_capacity(changes.len());
        let mut left = changes.to_vec();
        while let Some(&first) = left.first() {
            let (now, later): (Vec<_>, Vec<_>) = left.iter().partition(|change| pen.fits(change.2));
            order.extend(now);
            left = later;
            let cell = left.first().unwrap_or(&first).2;
            (pen.fg, pen.bg, pen.modifier) = (cell.fg, cell.bg, attributes(cell));
        }
        self.write(next, &order, ascii)
    }

    /// Writes cells in the order given.
    fn write(self, next: &Buffer, changes: &[Change<'_>], ascii: bool) -> (Pen, Vec<u8>) {
        let mut pen = self.pen;
        let mut out = Vec::new();
        let mut at = None;
        let mut skip = 0;
        for (i, &(x, y, cell)) in changes.iter().enumerate() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            walk(at, (x, y), next, &pen, ascii, &mut out);
            style(&mut pen, cell, &mut out);
            let blanks = blanks(&changes[i..], &pen);
            if blanks >= ERASED {
                if is_blank_from(next, x, y) {
                    out.extend_from_slice(b"\x1b[K");
                } else {
                    let _ = write!(out, "\x1b[{blanks}X");
                }
                skip = blanks - 1;
                at = Some((x, y));
                continue;
            }
            let columns = put(cell.symbol(), ascii, &mut out);
            // At the right edge terminals differ in where the cursor is.
            at = Some((x + columns, y)).filter(|at| at.0 < next.area.width);
        }
        (pen, out)
    }
}

/// Whether two cells look the same; what is blank has no colour of letters.
pub(super) fn is_same(old: &Cell, new: &Cell) -> bool {
    let modifier = attributes(new);
    let is_blank = new.symbol() == " " && !modifier.union(attributes(old)).intersects(SHOWS);
    let letters = |cell: &Cell| (cell.fg, attributes(cell));
    old.symbol() == new.symbol() && old.bg == new.bg && (is_blank || letters(old) == letters(new))
}

/// The cells that look different now. Where a glyph two columns wide is written over, terminals differ in what is left of
/// it: its other half is written too.
fn changes<'a>(shown: &Buffer, next: &'a Buffer) -> Vec<Change<'a>> {
    let mut out = Vec::new();
    if shown.area != next.area || next.area.is_empty() {
        return out;
    }
    let columns = next.area.width as usize;
    let rows = shown.content.chunks(columns).zip(next.content.chunks(columns));
    for (y, (old_row, new_row)) in rows.enumerate() {
        // Columns from here on: of the next glyph, of what is written, of old glyphs of which a part is written over.
        let (mut hidden, mut over, mut bared) = (0usize, 0usize, 0usize);
        for (x, (old, new)) in old_row.iter().zip(new_row).enumerate() {
            if hidden == 0 {
                hidden = width(new.symbol()).max(1);
                if bared > 0 || !is_same(old, new) {
                    out.push((x as u16, y as u16, new));
                    over = hidden;
                }
            }
            if over > 0 {
                bared = bared.max(width(old.symbol()));
            }
            (hidden, over, bared) = (hidden - 1, over.saturating_sub(1), bared.saturating_sub(1));
        }
    }
    out
}

/// How many cells from the first on are blank, side by side and in no colour, when the pen has none.
fn blanks(changes: &[Change<'_>], pen: &Pen) -> usize {
    if pen.bg != Color::Reset || pen.modifier.intersects(SHOWS) {
        return 0;
    }
    let Some(&(x, y, _)) = changes.first() else { return 0 };
    let run = changes
        .iter()
        .zip(x..)
        .take_while(|(change, x)| (change.0, change.1) == (*x, y) && is_blank(change.2));
    run.count()
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(SHOWS)
}

/// Whether nothing is to be seen from a cell to the end of its row.
fn is_blank_from(next: &Buffer, x: u16, y: u16) -> bool {
    (x..next.area.width).all(|x| next.cell((x, y)).is_some_and(is_blank))
}

/// Writes a glyph; the columns it takes.
fn put(symbol: &str, ascii: bool, out: &mut Vec<u8>) -> u16 {
    let columns = width(symbol).max(1);
    if ascii {
        out.extend(symbol.chars().map(|c| plain(c) as u8));
        out.extend(std::iter::repeat_n(
            b' ',
            columns.saturating_sub(symbol.chars().count()),
        ));
    } else {
        out.extend_from_slice(symbol.as_bytes());
    }
    columns as u16
}

/// Moves the cursor by the shortest way: absolute, relative, or over cells that are right already.
fn walk(from: Option<(u16, u16)>, to: (u16, u16), next: &Buffer, pen: &Pen, ascii: bool, out: &mut Vec<u8>) {
    let (x, y) = to;
    if from == Some(to) {
        return;
    }
    let absolute = match (x, y) {
        (0, 0) => "\x1b[H".into(),
        (0, _) => format!("\x1b[{}H", y + 1),
        _ => format!("\x1b[{};{}H", y + 1, x + 1),
    };
    let mut best = absolute.into_bytes();
    let mut offer = |way: Vec<u8>| {
        if way.len() < best.len() {
            best = way;
        }
    };
    let step = |count: u16, letter: char| match count {
        0 => String::new(),
        1 => format!("\x1b[{letter}"),
        _ => format!("\x1b[{count}{letter}"),
    };
    if let Some((old, row)) = from
        && row <= y
    {
        let down = if y - row < 4 {
            "\n".repeat((y - row).into())
        } else {
            step(y - row, 'B')
        };
        let across = if x >= old {
            step(x - old, 'C')
        } else if old - x < 4 {
            "\x08".repeat((old - x).into())
        } else {
            step(old - x, 'D')
        };
        offer((down.clone() + &across).into_bytes());
        offer((down + "\r" + &step(x, 'C')).into_bytes());
        if row == y && x > old && x - old <= 4 {
            let cells = (old..x).map(|x| next.cell((x, y)));
            let plain = |cell: &&Cell| pen.fits(cell) && width(cell.symbol()) == 1;
            let cells: Option<Vec<&Cell>> = cells.map(|cell| cell.filter(plain)).collect();
            if let Some(cells) = cells {
                let mut over = Vec::new();
                for cell in cells {
                    put(cell.symbol(), ascii, &mut over);
                }
                offer(over);
            }
        }
    }
    out.extend_from_slice(&best);
}

/// All rows of a buffer as lines of text with escape sequences; none ends in blanks.
pub fn ansi_rows(buffer: &Buffer) -> Vec<u8> {
    let mut out = Vec::new();
    let columns = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks(columns) {
        let end = row.iter().rposition(|cell| !is_blank(cell)).map_or(0, |last| last + 1);
        let mut pen = Encoder::default().pen;
        let mut hidden = 0;
        for cell in &row[..end] {
            if hidden == 0 {
                style(&mut pen, cell, &mut out);
                hidden = put(cell.symbol(), false, &mut out);
            }
            hidden -= 1;
        }
        if pen != Encoder::default().pen {
            out.extend_from_slice(b"\x1b[m");
        }
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Changes the pen to a cell's style.
fn style(pen: &mut Pen, cell: &Cell, out: &mut Vec<u8>) {
    if pen.fits(cell) {
        return;
    }
    let mut codes = String::new();
    let add = |codes: &mut String, code: &str| {
        if !codes.is_empty() {
            codes.push(';');
        }
        codes.push_str(code);
    };
    let (mut fg, mut bg, mut modifier) = (pen.fg, pen.bg, pen.modifier);
    let wanted = attributes(cell);
    if (cell.fg, cell.bg) == (Color::Reset, Color::Reset) && wanted.is_empty() {
        add(&mut codes, "");
        (fg, bg, modifier) = (Color::Reset, Color::Reset, Modifier::empty());
    }
    let taken = modifier.difference(wanted);
    let weights = Modifier::BOLD | Modifier::DIM;
    if taken.intersects(weights) {
        add(&mut codes, "22");
        modifier.remove(weights);
    }
    for (flag, code) in [(Modifier::UNDERLINED, "24"), (Modifier::REVERSED, "27")] {
        if taken.contains(flag) {
            add(&mut codes, code);
        }
    }
    let given = wanted.difference(modifier);
    for (flag, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
    ] {
        if given.contains(flag) {
            add(&mut codes, code);
        }
    }
    if fg != cell.fg {
        add(&mut codes, &color(cell.fg, 30));
    }
    if bg != cell.bg {
        add(&mut codes, &color(cell.bg, 40));
    }
    let _ = write!(out, "\x1b[{codes}m");
    (pen.fg, pen.bg, pen.modifier) = (cell.fg, cell.bg, wanted);
}

fn color(color: Color, base: u8) -> String {
    match color {
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
        Color::Indexed(n @ 0..=7) => (base + n).to_string(),
        Color::Indexed(n @ 8..=15) => (base + 52 + n).to_string(),
        Color::Indexed(n) => format!("{};5;{n}", base + 8),
        _ => (base + 9).to_string(),
    }
}

/// The nearest ASCII character.
#[expect(clippy::match_same_arms, reason = "a table, in the order in which it is read")]
fn plain(c: char) -> char {
    match c {
        ' '..='~' => c,
        '─' | '┄' | '–' | '—' => '-',
        '│' | '┤' | '├' | '╷' | '╵' | '▏' | '▌' | '▎' | '▍' => '|',
        '┌' | '┐' | '└' | '┘' | '╭' | '╰' | '╫' => '+',
        '·' => '.',
        '▁' | '▂' => '_',
        '▃' | '▄' => '=',
        '▅' | '▆' | '▇' | '█' | '▊' | '▉' | '▋' => '#',
        '▒' | '░' => ':',
        '▓' => '%',
        '▖' => ',',
        '▚' => '~',
        '▀' => '%',
        '●' => '*',
        '❚' => '|',
        '■' => '#',
        '↺' => '<',
        '▲' | '↑' => '^',
        '✕' => 'x',
        '▼' | '▾' | '↓' => 'v',
        '▸' | '→' => '>',
        '←' | '◂' => '<',
        '⇄' | '↔' => '=',
        '≤' => '<',
        '≥' => '>',
        '≈' => '~',
        '×' => 'x',
        'µ' => 'u',
        '±' => '~',
        '…' => '~',
        '⁹' => '9',
        '°' => 'o',
        _ => match marks::weight(c) {
            Some(0) => ' ',
            Some(1..=2) => '.',
            Some(3..=5) => ':',
            Some(_) => '#',
            None => '?',
        },
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn bytes(shown: &Buffer, next: &Buffer, ascii: bool) -> String {
        let mut out = Vec::new();
        Encoder::default().encode(shown, next, ascii, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_of_the_timeline_differ_in_ascii_too() {
        let mut signs: Vec<char> = "▁▄█▀▚▖░·".chars().map(plain).collect();
        signs.sort_unstable();
        signs.dedup();
        assert!(signs.len() == 8 && !signs.contains(&'?'), "{signs:?}");
    }

    #[test]
    fn only_what_changed_is_sent() {
        let area = Rect::new(0, 0, 20, 2);
        let shown = Buffer::empty(area);
        let mut next = Buffer::empty(area);
        assert_eq!(bytes(&shown, &next, false), "");
        next.set_string(3, 1, "ab", Style::default());
        let bold = Style::default().fg(Color::Indexed(9)).add_modifier(Modifier::BOLD);
        next.set_string(6, 1, "c", bold);
        assert_eq!(bytes(&shown, &next, false), "\x1b[2;4Hab \x1b[1;91mc");
        next.set_string(0, 0, "µ→", Style::default().bg(Color::Rgb(1, 2, 3)));
        assert!(bytes(&shown, &next, true).contains("\x1b[48;2;1;2;3mu>"));
    }
}
