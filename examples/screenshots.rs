//! The pictures in screenshots/: each view of a scenario as SVG and PNG, and a filter being typed.
//!
//! `cargo run --example screenshots` writes them all; nothing in them is drawn by hand. The test here fails when the screen
//! has changed since.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roctop::model::{Fresh, Options, Snapshot};
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, picture, update, view};
use roctop_scenario::Scenario;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When the pictures are taken, ns after the beginning.
const AT: u64 = 20_000_000_000;
/// The pictures that move; they have no PNG.
const TYPED: &str = "filter-typed.svg";
const LIVE: &str = "live.svg";

fn main() -> anyhow::Result<()> {
    let place = place();
    std::fs::create_dir_all(&place)?;
    for (name, svg) in pictures()? {
        let path = place.join(name);
        std::fs::write(&path, svg)?;
        if name != TYPED && name != LIVE {
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
    let shots: [(&str, &str, u16, u16, &str); 19] = [
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
        ("sites.svg", "sites", 120, 36, "O"),
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
        if name == "overview.svg" {
            pictures.push((LIVE, live(&scenario, &theme)));
        }
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

/// A frame of a moving picture: its cells, and how long it stays, s.
struct Frame(String, f32);

/// A filter being typed; each frame stays until the next key.
fn typing(snapshot: &Arc<Snapshot>, theme: &Theme) -> String {
    const SIZE: (u16, u16) = (100, 24);
    const KEYS: &str = "/gemm|fmha dur>1ms";
    let mut ui = Ui::new(snapshot.mode);
    update(&mut ui, snapshot, Msg::Resize(SIZE.0, SIZE.1));
    update(&mut ui, snapshot, Msg::Key(Key::Char('3')));
    let mut frames = Vec::new();
    let frame = |ui: &Ui| picture::svg_cells(&drawn(ui, snapshot, theme, SIZE), picture::DARK);
    for key in KEYS.chars().map(Key::Char).chain([Key::Enter]) {
        frames.push(Frame(frame(&ui), 0.35));
        update(&mut ui, snapshot, Msg::Key(key));
    }
    frames.push(Frame(frame(&ui), 0.35 * 7.0));
    moving(SIZE, &frames)
}

/// The live screen of a training loop: the run goes on for half a second per frame, and keys change the view.
fn live(scenario: &Scenario, theme: &Theme) -> String {
    const SIZE: (u16, u16) = (110, 30);
    /// A key, and the number of frames until the next one.
    const KEYS: [(char, u64); 5] = [('1', 4), ('2', 4), ('3', 3), ('4', 2), ('7', 2)];
    const STEP: u64 = 500_000_000;
    let options = |title: &str| Options {
        title: title.to_owned(),
        ..Options::default()
    };
    let (mut at, mut frames, mut ui) = (AT - 10_000_000_000, Vec::new(), None);
    for (key, count) in KEYS {
        for number in 0..count {
            let snapshot = scenario.store(options(&scenario.title), at).snapshot(Fresh::All);
            let ui = ui.get_or_insert_with(|| Ui::new(snapshot.mode));
            update(ui, &snapshot, Msg::Resize(SIZE.0, SIZE.1));
            if number == 0 {
                update(ui, &snapshot, Msg::Key(Key::Char(key)));
            }
            frames.push(Frame(
                picture::svg_cells(&drawn(ui, &snapshot, theme, SIZE), picture::DARK),
                0.6,
            ));
            at += STEP;
        }
    }
    moving(SIZE, &frames)
}

/// The frames one after the other, repeated.
fn moving(size: (u16, u16), frames: &[Frame]) -> String {
    let whole: f32 = frames.iter().map(|frame| frame.1).sum();
    let mut out = picture::svg_head(size.0, size.1, picture::DARK);
    let mut begin = 0.0;
    for Frame(cells, seconds) in frames {
        let (from, to) = (begin / whole, (begin + seconds) / whole);
        begin += seconds;
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
