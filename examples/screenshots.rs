//! The pictures in screenshots/: each view of a scenario as SVG.
//!
//! `cargo run --example screenshots` writes them all anew; nothing in them is drawn by hand.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use roctop::model::{Fresh, Options};
use roctop::scenario::Scenario;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, update, view};
use std::fmt::Write;
use std::path::Path;

/// When the pictures are taken, ns after the beginning.
const AT: u64 = 20_000_000_000;
const CELL: (f32, f32) = (8.4, 18.0);
const PAPER: &str = "#14161a";
const INK: &str = "#d8dade";

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let theme = Theme::named("dark", Depth::True).ok_or_else(|| anyhow::anyhow!("no theme"))?;
    let shots: [(&str, &str, u16, u16, &str); 14] = [
        ("overview", "training", 120, 36, "1"),
        ("overview-80x24", "training", 80, 24, "1"),
        ("timeline", "training", 120, 36, "2"),
        ("kernels", "training", 120, 36, "3"),
        ("kernels-filter", "training", 120, 36, "3/gemm|fmha"),
        ("copies", "training", 120, 36, "4"),
        ("api", "training", 120, 36, "5"),
        ("devices", "training", 120, 36, "7"),
        ("markers", "training", 120, 36, "8"),
        ("alerts", "training", 120, 36, "A"),
        ("steps", "training", 120, 36, "I"),
        ("timeline-slice", "training", 120, 36, "2+++jj]]"),
        ("running", "killed", 120, 36, "W"),
        ("killed", "killed", 120, 36, "1"),
    ];
    std::fs::create_dir_all(root.join("screenshots"))?;
    for (name, scenario, width, height, keys) in shots {
        let text = std::fs::read_to_string(root.join(format!("tests/scenarios/{scenario}.toml")))?;
        let scenario = Scenario::parse(&text)?;
        let options = Options {
            title: scenario.title.clone(),
            ..Options::default()
        };
        let mut store = scenario.store(options, AT);
        let snapshot = store.snapshot(Fresh::All);
        let mut ui = Ui::new(snapshot.mode);
        update(&mut ui, &snapshot, Msg::Resize(width, height));
        for key in keys.chars() {
            update(&mut ui, &snapshot, Msg::Key(Key::Char(key)));
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        view(&ui, &snapshot, &theme, &mut buffer);
        let path = root.join("screenshots").join(format!("{name}.svg"));
        std::fs::write(&path, svg(&buffer)?)?;
        println!("{}", path.file_name().unwrap_or_default().to_string_lossy());
    }
    Ok(())
}

fn svg(buffer: &Buffer) -> Result<String, std::fmt::Error> {
    let (width, height) = (
        f32::from(buffer.area.width) * CELL.0,
        f32::from(buffer.area.height) * CELL.1,
    );
    let mut out = String::new();
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" font-size="14">"#
    )?;
    writeln!(
        out,
        r"<style>text{{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}</style>"
    )?;
    writeln!(out, r#"<rect width="100%" height="100%" fill="{PAPER}"/>"#)?;
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let look = look(buffer, x, y);
            let from = x;
            let mut text = String::new();
            while x < buffer.area.width && self::look(buffer, x, y) == look {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            run(&mut out, (from, x, y), &look, &text)?;
        }
    }
    out.push_str("</svg>\n");
    Ok(out)
}

#[derive(PartialEq)]
struct Look {
    ink: String,
    paper: String,
    is_bold: bool,
    is_underlined: bool,
}

fn look(buffer: &Buffer, x: u16, y: u16) -> Look {
    let cell = &buffer[(x, y)];
    let (mut ink, mut paper) = (paint(cell.fg, INK), paint(cell.bg, PAPER));
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut ink, &mut paper);
    }
    Look {
        ink,
        paper,
        is_bold: cell.modifier.contains(Modifier::BOLD),
        is_underlined: cell.modifier.contains(Modifier::UNDERLINED),
    }
}

fn paint(color: Color, otherwise: &str) -> String {
    match color {
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        _ => otherwise.to_owned(),
    }
}

fn run(out: &mut String, (from, to, y): (u16, u16, u16), look: &Look, text: &str) -> std::fmt::Result {
    let (left, top) = (f32::from(from) * CELL.0, f32::from(y) * CELL.1);
    let width = f32::from(to - from) * CELL.0;
    if look.paper != PAPER {
        writeln!(
            out,
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}" fill="{}"/>"#,
            CELL.1, look.paper
        )?;
    }
    if text.trim().is_empty() {
        return Ok(());
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let bold = if look.is_bold { r#" font-weight="bold""# } else { "" };
    let line = if look.is_underlined {
        r#" text-decoration="underline""#
    } else {
        ""
    };
    let baseline = top + 14.0;
    writeln!(
        out,
        r#"<text x="{left:.1}" y="{baseline:.1}" fill="{}" textLength="{width:.1}" xml:space="preserve"{bold}{line}>{escaped}</text>"#,
        look.ink
    )
}
