//! What the screen costs on the wire, and that a terminal shows what was meant.
//!
//! A scenario is replayed at ten frames a second; each frame's bytes are counted, given to a terminal's model and compared
//! with the buffer cell by cell. `cargo test --test screen wire:: -- --nocapture` prints the counts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::num::NonZero;
use std::path::Path;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use roctop::item::Item;
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::ui::key::Key;
use roctop::ui::screen::attributes;
use roctop::ui::screen::frames::Frames;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::time::Motion;
use roctop::ui::{Msg, Ui, update, view};
use roctop_scenario::{BEGIN, Scenario};

/// Bytes of the first frame, of the longest later one, and of all later ones.
struct Cost {
    first: usize,
    worst: usize,
    total: usize,
}

fn color(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}

/// Whether the terminal shows the buffer; letters on blanks have no colour.
fn same(screen: &vt100::Screen, buffer: &Buffer, when: &str) {
    for y in 0..buffer.area.height {
        let mut hidden = false;
        for x in 0..buffer.area.width {
            let (meant, seen) = (&buffer[(x, y)], screen.cell(y, x).unwrap());
            if std::mem::take(&mut hidden) {
                assert!(seen.is_wide_continuation(), "{when}: half of a glyph at {x},{y}");
                continue;
            }
            let has = |flag| attributes(meant).contains(flag);
            let text = if seen.has_contents() { seen.contents() } else { " " };
            assert_eq!(text, meant.symbol(), "{when}: text at {x},{y}");
            assert_eq!(color(seen.bgcolor()), meant.bg, "{when}: background at {x},{y}");
            assert_eq!(
                (seen.underline(), seen.inverse()),
                (has(Modifier::UNDERLINED), has(Modifier::REVERSED)),
                "{when}: at {x},{y}"
            );
            if text != " " {
                assert_eq!(color(seen.fgcolor()), meant.fg, "{when}: colour at {x},{y}");
                let weight = (seen.bold(), seen.dim());
                assert_eq!(
                    weight,
                    (has(Modifier::BOLD), has(Modifier::DIM)),
                    "{when}: weight at {x},{y}"
                );
            }
            hidden = seen.is_wide();
        }
    }
}

/// What a view costs; `settles`: the window comes from the data.
fn replay(keys: &str, size: (u16, u16), seconds: u64, (motion, settles): (Motion, bool)) -> Cost {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/training.toml");
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut store = Store::new(Options {
        mode: Mode::Live,
        title: scenario.title.clone(),
        ..Options::default()
    });
    let items = scenario.items();
    let mut items = items.iter().peekable();
    let theme = Theme::named("dark", Depth::C256).unwrap();
    let mut ui = Ui::new(Mode::Live);
    ui.time.motion = motion;
    let mut frames = Frames::new(false);
    let mut terminal = vt100::Parser::new(some(size.1), some(size.0), 0);
    let mut cost = Cost {
        first: 0,
        worst: 0,
        total: 0,
    };
    // Frames come a little irregularly, as they do.
    for frame in 0..=seconds * 10 {
        let now = BEGIN + 2_000_000_000 + frame * 100_000_000 + frame * 7_919 % 3_000_000;
        while let Some((_, item)) = items.next_if(|timed| timed.0 <= now) {
            store.apply(item);
        }
        store.apply(&Item::Now(now));
        let snap = store.snapshot(if frame % 5 == 0 { Fresh::All } else { Fresh::Head });
        if frame == 0 {
            update(&mut ui, &snap, Msg::Resize(size.0, size.1));
            for key in keys.chars() {
                update(&mut ui, &snap, Msg::Key(Key::Char(key)));
            }
        }
        if settles {
            update(&mut ui, &snap, Msg::Tick);
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        view(&ui, &snap, &theme, &mut buffer);
        let bytes = frames.next(size, |next| next.clone_from(&buffer));
        terminal.process(&bytes);
        same(terminal.screen(), &buffer, &format!("{keys} {size:?} frame {frame}"));
        let again = frames.next(size, |next| next.clone_from(&buffer));
        assert!(again.is_empty(), "nothing changed, nothing is sent");
        if frame == 0 {
            cost.first = bytes.len();
        } else {
            cost.worst = cost.worst.max(bytes.len());
            cost.total += bytes.len();
        }
    }
    println!(
        "{keys} {}x{} {}: {} B/s, first {} B, worst {} B",
        size.0,
        size.1,
        motion.word(),
        cost.total as u64 / seconds,
        cost.first,
        cost.worst
    );
    cost
}

#[test]
fn a_live_screen_is_cheap_on_the_wire() {
    let seconds = 30;
    let mut over = Vec::new();
    for (size, budget) in [((120, 36), 5500), ((80, 24), 3200)] {
        for keys in ["1", "2", "3", "4", "5", "8", "9", "0"] {
            let cost = replay(keys, size, seconds, (Motion::Sweep, false));
            if cost.total > budget * seconds as usize || cost.worst > 10_000 || cost.first > 16_000 {
                over.push((keys, size, cost.total / seconds as usize, cost.worst, cost.first));
            }
        }
    }
    assert!(over.is_empty(), "view, size, B/s, worst, first: {over:?}");
}

#[test]
fn a_scrolling_timeline_is_moved_by_the_terminal() {
    let cost = |motion, settles| replay("2", (120, 36), 30, (motion, settles)).total / 30;
    let [scroll, sweep, page] = [Motion::Scroll, Motion::Sweep, Motion::Page].map(|motion| cost(motion, false));
    // A row that is rewritten takes some 300 bytes.
    assert!(scroll < 14_000, "{scroll} B/s");
    assert!(sweep <= 5_500 && page < scroll, "{sweep} and {page} B/s");
    // Three steps: a short window moves once a second.
    assert!(cost(Motion::Sweep, true) <= 5_500);
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

fn style(dice: &mut Dice) -> Style {
    const COLORS: [Color; 5] = [
        Color::Reset,
        Color::Indexed(3),
        Color::Indexed(12),
        Color::Indexed(200),
        Color::Rgb(1, 200, 30),
    ];
    const MODIFIERS: [Modifier; 4] = [Modifier::BOLD, Modifier::DIM, Modifier::UNDERLINED, Modifier::REVERSED];
    let mut style = Style::default()
        .fg(COLORS[dice.below(5) as usize])
        .bg(COLORS[dice.below(8).min(4) as usize]);
    for modifier in MODIFIERS {
        if dice.below(6) == 0 {
            style = style.add_modifier(modifier);
        }
    }
    style
}

/// Any text in any style anywhere, wide glyphs among it, through many frames and sizes.
#[test]
fn a_terminal_shows_what_was_meant() {
    const TEXTS: [&str; 8] = ["a", " ", "          ", "µs", "██▌", "日本", "lost 12", "·"];
    for seed in 1..=200 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut size = (30, 8);
        let mut frames = Frames::new(false);
        let mut terminal = vt100::Parser::new(some(size.1), some(size.0), 0);
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        for frame in 0..120 {
            if dice.below(20) == 0 {
                size = (1 + dice.below(60) as u16, 1 + dice.below(12) as u16);
                terminal.screen_mut().set_size(some(size.1), some(size.0));
                buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
            }
            for _ in 0..dice.below(12) {
                let (x, y) = (dice.below(size.0.into()) as u16, dice.below(size.1.into()) as u16);
                let style = style(&mut dice);
                put(&mut buffer, (x, y), TEXTS[dice.below(8) as usize], style);
            }
            if dice.below(3) == 0 {
                move_row(&mut buffer, dice.below(size.1.into()) as usize, dice.below(30) as usize);
            }
            let bytes = frames.next(size, |next| next.clone_from(&buffer));
            terminal.process(&bytes);
            same(terminal.screen(), &buffer, &format!("seed {seed} frame {frame}"));
        }
    }
}

/// Moves a part of a row to the left, as a scrolling timeline does; one with wide glyphs stays.
fn move_row(buffer: &mut Buffer, y: usize, from: usize) {
    let columns = buffer.area.width as usize;
    let row = &mut buffer.content[y * columns..(y + 1) * columns];
    let is_narrow = row.iter().all(|cell| cell.symbol().chars().all(|c| c < '\u{2e80}'));
    if is_narrow && from + 3 < columns {
        row[from..].rotate_left(2);
    }
}

/// Writes a text as the screen's canvas does, leaving no half of a wide glyph behind.
fn put(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, style: Style) {
    let wide = |cell: &Cell| !cell.symbol().is_ascii() && cell.symbol().chars().all(|c| c >= '\u{2e80}');
    let right = buffer.area.right();
    let mut at = x;
    for c in text.chars() {
        let width = if c >= '\u{2e80}' { 2 } else { 1 };
        if at + width > right {
            break;
        }
        if at > 0 && wide(&buffer[(at - 1, y)]) {
            buffer[(at - 1, y)].reset();
        }
        let last = at + width - 1;
        if wide(&buffer[(last, y)]) && last + 1 < right {
            buffer[(last + 1, y)].reset();
        }
        for x in at..=last {
            buffer[(x, y)].reset();
            buffer[(x, y)].set_style(style);
        }
        buffer[(at, y)].set_char(c);
        at += width;
    }
}

fn some(size: u16) -> NonZero<u16> {
    NonZero::new(size).unwrap()
}
