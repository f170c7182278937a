//! The pictures in screenshots/: each view of a scenario as SVG and PNG, and a filter being typed.
//!
//! `cargo run --example screenshots` writes them all anew; nothing in them is drawn by hand. The test here fails when the
//! screen has changed since.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roctop::model::{Fresh, Options, Snapshot};
use roctop::scenario::Scenario;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, picture, update, view};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When the pictures are taken, ns after the beginning.
const AT: u64 = 20_000_000_000;
/// The one that moves; it has no PNG.
const TYPED: &str = "filter-typed.svg";

fn main() -> anyhow::Result<()> {
    let place = place();
    std::fs::create_dir_all(&place)?;
    for (name, svg) in pictures()? {
        let path = place.join(name);
        std::fs::write(&path, svg)?;
        if name != TYPED {
            png(&path);
        }
        println!("{name}");
    }
    Ok(())
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots")
}

/// All pictures, SVG, by the names of their files.
fn pictures() -> anyhow::Result<Vec<(&'static str, String)>> {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let theme = Theme::named("dark", Depth::True).ok_or_else(|| anyhow::anyhow!("no theme"))?;
    let shots: [(&str, &str, u16, u16, &str); 18] = [
        ("overview.svg", "training", 120, 36, "1"),
        ("overview-80x24.svg", "training", 80, 24, "1"),
        ("timeline.svg", "training", 120, 36, "2"),
        ("kernels.svg", "training", 120, 36, "3"),
        ("kernels-filter.svg", "training", 120, 36, "3/gemm|fmha"),
        ("copies.svg", "training", 120, 36, "4"),
        ("api.svg", "training", 120, 36, "5"),
        ("counters.svg", "counted", 200, 50, "6"),
        ("devices.svg", "training", 120, 36, "7"),
        ("markers.svg", "training", 120, 36, "8"),
        ("alerts.svg", "training", 120, 36, "A"),
        ("steps.svg", "training", 120, 36, "I"),
        ("timeline-slice.svg", "training", 120, 36, "2+++jj]]"),
        ("processes.svg", "training", 120, 36, "9"),
        ("log.svg", "training", 120, 36, "0"),
        ("memory.svg", "training", 120, 36, "M"),
        ("running.svg", "killed", 120, 36, "W"),
        ("killed.svg", "killed", 120, 36, "1"),
    ];
    let mut pictures = Vec::new();
    for (name, scenario, width, height, keys) in shots {
        let text = std::fs::read_to_string(scenarios.join(format!("{scenario}.toml")))?;
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
        let buffer = drawn(&ui, &snapshot, &theme, (width, height));
        pictures.push((name, picture::svg(&buffer, picture::DARK)));
        if name == "kernels-filter.svg" {
            pictures.push((TYPED, typing(&snapshot, &theme)));
        }
    }
    Ok(pictures)
}

/// The picture as PNG, where the machine has a converter; none is needed to build or to test.
fn png(path: &Path) {
    let converted = std::process::Command::new("rsvg-convert")
        .arg(path)
        .arg("-o")
        .arg(path.with_extension("png"))
        .status();
    if !converted.is_ok_and(|status| status.success()) {
        eprintln!("no PNG of {}: rsvg-convert is missing", path.display());
    }
}

/// Frames of a filter being typed, each shown while its key is waited for.
fn typing(snapshot: &Arc<Snapshot>, theme: &Theme) -> String {
    const SIZE: (u16, u16) = (100, 24);
    const KEYS: &str = "/gemm|fmha dur>1ms";
    const EACH: f32 = 0.35;
    let mut ui = Ui::new(snapshot.mode);
    update(&mut ui, snapshot, Msg::Resize(SIZE.0, SIZE.1));
    update(&mut ui, snapshot, Msg::Key(Key::Char('3')));
    let mut frames = Vec::new();
    for key in KEYS.chars().map(Key::Char).chain([Key::Enter]) {
        frames.push(picture::svg_cells(&drawn(&ui, snapshot, theme, SIZE), picture::DARK));
        update(&mut ui, snapshot, Msg::Key(key));
    }
    frames.push(picture::svg_cells(&drawn(&ui, snapshot, theme, SIZE), picture::DARK));
    // The last one stays for a while before it begins again.
    let whole = EACH * (frames.len() as f32 + 6.0);
    let mut out = picture::svg_head(SIZE.0, SIZE.1, picture::DARK);
    for (number, cells) in frames.iter().enumerate() {
        let from = number as f32 * EACH / whole;
        let to = if number + 1 == frames.len() {
            1.0
        } else {
            from + EACH / whole
        };
        let _ = write!(
            out,
            "<g visibility=\"hidden\"><animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{whole:.2}s\" \
             repeatCount=\"indefinite\" values=\"hidden;visible;hidden\" keyTimes=\"0;{from:.4};{to:.4}\"/>\n{cells}</g>\n"
        );
    }
    out + "</svg>\n"
}

fn drawn(ui: &Ui, snapshot: &Snapshot, theme: &Theme, size: (u16, u16)) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    view(ui, snapshot, theme, &mut buffer);
    buffer
}

#[test]
fn the_pictures_are_of_todays_screen() {
    let pictures = pictures().unwrap();
    let is_old = |(name, svg): &&(&str, String)| std::fs::read_to_string(place().join(name)).ok().as_ref() != Some(svg);
    let old: Vec<_> = pictures.iter().filter(is_old).map(|(name, _)| name).collect();
    assert!(
        old.is_empty(),
        "the screen has changed: cargo run --example screenshots: {old:?}"
    );
}
