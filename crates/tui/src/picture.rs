//! A screen as a picture: SVG, a text with escape sequences, a plain text. Pure.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::screen::ansi_rows;
use roctop_trace::units::width;

/// Width and height of a cell, pixels.
pub const CELL: (f32, f32) = (8.4, 18.0);

/// What a terminal's own colours are in a picture.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    paper: &'static str,
    ink: &'static str,
}

/// Of themes for dark terminals.
pub const DARK: Sheet = Sheet {
    paper: "#14161a",
    ink: "#d8dade",
};
/// Of themes for light ones.
pub const LIGHT: Sheet = Sheet {
    paper: "#fcfcfa",
    ink: "#1c1e22",
};

/// Plain text, a line a row.
pub fn text(buffer: &Buffer) -> String {
    let columns = usize::from(buffer.area.width).max(1);
    let rows = buffer.content().chunks(columns).map(|row| {
        let mut line = String::new();
        let mut hidden = 0;
        for cell in row {
            if hidden == 0 {
                line.push_str(cell.symbol());
                hidden = width(cell.symbol()).max(1);
            }
            hidden -= 1;
        }
        line.trim_end().to_string() + "\n"
    });
    rows.collect()
}

/// Text with the escape sequences of its colours, a line a row: `cat` shows it.
pub fn ansi(buffer: &Buffer) -> Vec<u8> {
    ansi_rows(buffer)
}

/// The beginning of an SVG of this many cells.
pub fn svg_head(columns: u16, rows: u16, sheet: Sheet) -> String {
    let (width, height) = (f32::from(columns) * CELL.0, f32::from(rows) * CELL.1);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-size=\"14\">\n\
         <style>text{{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        sheet.paper
    )
}

/// The cells of a screen as elements of an SVG.
pub fn svg_cells(buffer: &Buffer, sheet: Sheet) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let look = Look::of(&buffer[(x, y)], sheet);
            let from = x;
            let mut text = String::new();
            while x < buffer.area.width && Look::of(&buffer[(x, y)], sheet) == look {
                let symbol = buffer[(x, y)].symbol();
                text.push_str(symbol);
                x += width(symbol).max(1) as u16;
            }
            run(&mut out, (from, x.min(buffer.area.width), y), &look, &text, sheet);
        }
    }
    out
}

/// A whole SVG.
pub fn svg(buffer: &Buffer, sheet: Sheet) -> String {
    svg_head(buffer.area.width, buffer.area.height, sheet) + &svg_cells(buffer, sheet) + "</svg>\n"
}

#[derive(PartialEq)]
struct Look {
    ink: String,
    paper: String,
    is_bold: bool,
    is_underlined: bool,
}

impl Look {
    fn of(cell: &Cell, sheet: Sheet) -> Self {
        let (mut ink, mut paper) = (paint(cell.fg, sheet.ink), paint(cell.bg, sheet.paper));
        if cell.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut ink, &mut paper);
        }
        Self {
            ink,
            paper,
            is_bold: cell.modifier.contains(Modifier::BOLD),
            is_underlined: cell.modifier.contains(Modifier::UNDERLINED),
        }
    }
}

fn paint(color: Color, otherwise: &str) -> String {
    // xterm's own 16 colours, its cube of 6×6×6 and its greys.
    const SIXTEEN: [u32; 16] = [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5, 0x7f_7f7f, 0xff_0000,
        0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ];
    let step = |n: u8| if n == 0 { 0 } else { u32::from(n) * 40 + 55 };
    match color {
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Indexed(n @ 0..=15) => format!("#{:06x}", SIXTEEN[usize::from(n)]),
        Color::Indexed(n @ 16..=231) => {
            let n = n - 16;
            format!("#{:06x}", step(n / 36) << 16 | step(n / 6 % 6) << 8 | step(n % 6))
        }
        Color::Indexed(n) => format!("#{:06x}", (u32::from(n - 232) * 10 + 8) * 0x01_0101),
        _ => otherwise.to_owned(),
    }
}

fn run(out: &mut String, (from, to, y): (u16, u16, u16), look: &Look, text: &str, sheet: Sheet) {
    let (left, top) = (f32::from(from) * CELL.0, f32::from(y) * CELL.1);
    let width = f32::from(to - from) * CELL.0;
    if look.paper != sheet.paper {
        let _ = writeln!(
            out,
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}" fill="{}"/>"#,
            CELL.1, look.paper
        );
    }
    if text.trim().is_empty() && !look.is_underlined {
        return;
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let bold = if look.is_bold { r#" font-weight="bold""# } else { "" };
    let line = if look.is_underlined {
        r#" text-decoration="underline""#
    } else {
        ""
    };
    let baseline = top + 14.0;
    let ink = &look.ink;
    let _ = writeln!(
        out,
        r#"<text x="{left:.1}" y="{baseline:.1}" fill="{ink}" textLength="{width:.1}" xml:space="preserve"{bold}{line}>{escaped}</text>"#
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn a_picture_holds_every_glyph_once_and_is_escaped() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "日本 a<b&c", Style::default());
        buffer.set_string(
            2,
            1,
            "x",
            Style::default().fg(Color::Indexed(196)).bg(Color::Indexed(232)),
        );
        assert_eq!(text(&buffer), "日本 a<b&c\n  x\n");
        let svg = svg(&buffer, DARK);
        assert!(svg.contains("日本 a&lt;b&amp;c"), "{svg}");
        assert!(svg.contains("#ff0000") && svg.contains("#080808"), "{svg}");
        let ansi = String::from_utf8(ansi(&buffer)).unwrap();
        assert_eq!(ansi, "日本 a<b&c\r\n  \u{1b}[38;5;196;48;5;232mx\u{1b}[m\r\n");
    }
}
