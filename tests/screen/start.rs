//! The screen of `roctop` alone.

use crate::SIZES;
use crate::golden::Goldens;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::gauge::Device;
use roctop::item::NodeId;
use roctop::ui::Marks;
use roctop::ui::key::{Key, Mouse, MouseKind};
use roctop::ui::start::{SessionRow, Start, StartAction, view};
use roctop::ui::theme::{Depth, Theme};

const SECOND: u64 = 1_000_000_000;

fn buffer(start: &Start, theme: &str) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, start.size.0, start.size.1));
    let theme = Theme::named(theme, Depth::C256).expect("a theme of this name is there");
    view(start, &theme, &mut buffer);
    buffer
}

fn text(start: &Start) -> String {
    let buffer = buffer(start, "dark");
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    let rows = rows.map(|row| {
        let line: String = row.iter().map(Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

/// GPUs read for a minute, with a load that rises and falls.
fn with_gpus(size: (u16, u16), count: u32) -> Start {
    let mut start = Start::new(Marks::Blocks);
    start.size = size;
    for second in 100..=160u64 {
        let devices = (0..count).map(|number| {
            let wave = f64::midpoint((second as f64 / 6.0 + f64::from(number)).sin(), 1.0);
            Device {
                node: NodeId {
                    machine: 0,
                    node: number + 1,
                },
                number,
                name: "gfx942".into(),
                product: "aqua_vanjaram".into(),
                at: second * SECOND,
                busy: Ok(wave),
                memory_used: Ok((40 + u64::from(number)) << 30),
                memory_total: Ok(192 << 30),
                power: Ok(200.0 + 400.0 * wave),
                power_cap: Ok(750.0),
                junction: Ok(40.0 + 30.0 * wave),
                shader_clock: Ok(2100.0),
                throttle: Ok(if number == 1 { "power" } else { "none" }.into()),
                ..Device::default()
            }
        });
        start.devices(devices.collect());
    }
    start
}

fn sessions(start: &mut Start, count: u32) {
    let row = |number: u32| SessionRow {
        name: format!("{}", 4576 + number),
        command: format!("./train --epochs 3 --rank {number}"),
        pids: vec![4580 + number, 4581 + number],
        began: Some((100 - u64::from(number)) * SECOND),
        recording: (number == 1).then(|| "/data/run".to_owned()),
    };
    start.sessions(160 * SECOND, (0..count).map(row).collect());
}

#[test]
fn the_start_screen_looks_as_it_did() {
    let mut goldens = Goldens::default();
    for size in SIZES {
        let at = format!("{}x{}", size.0, size.1);
        let mut start = with_gpus(size, 2);
        sessions(&mut start, 3);
        goldens.compare(&format!("start-two-{at}"), &text(&start));
        start.key(Key::Char('?'));
        goldens.compare(&format!("start-help-{at}"), &text(&start));
        let mut start = with_gpus(size, 8);
        sessions(&mut start, 1);
        "n./trian -n 4".chars().for_each(|c| {
            start.key(Key::Char(c));
        });
        let action = start.key(Key::Enter);
        start.refuse(&action, "./trian: no such file");
        goldens.compare(&format!("start-eight-{at}"), &text(&start));
        let mut start = Start::new(Marks::Blocks);
        start.size = size;
        start.devices(Vec::new());
        goldens.compare(&format!("start-none-{at}"), &text(&start));
    }
    goldens.finish();
}

#[test]
fn nothing_on_the_start_screen_is_told_by_colour_alone() {
    let mut start = with_gpus((120, 36), 2);
    sessions(&mut start, 3);
    let symbols = |theme| {
        let buffer = buffer(&start, theme);
        let cells: String = buffer.content().iter().map(Cell::symbol).collect();
        cells
    };
    assert_eq!(symbols("dark"), symbols("mono"));
    let screen = text(&start);
    assert!(screen.contains("▲ throttled: power"), "{screen}");
    let marked = screen.lines().find(|line| line.contains('▸'));
    assert!(marked.is_some_and(|line| line.contains("4576")), "{screen}");
}

#[test]
fn more_gpus_than_rows_are_some_keys_away() {
    let mut start = with_gpus((80, 24), 64);
    let screen = text(&start);
    assert!(screen.contains("GPU0 ") && screen.contains("more: h l"), "{screen}");
    for _ in 0..63 {
        start.key(Key::Char('l'));
    }
    let screen = text(&start);
    assert!(screen.contains("GPU63 ") && !screen.contains("GPU0 "), "{screen}");
}

#[test]
fn clicks_do_what_keys_do_on_the_start_screen() {
    let mut start = with_gpus((120, 36), 2);
    sessions(&mut start, 3);
    let mut click = |what: &str| {
        let screen = text(&start);
        let found = screen.lines().enumerate();
        let found = found.filter_map(|(y, line)| Some((y, line[..line.find(what)?].chars().count())));
        let (y, x) = found.last().unwrap_or_else(|| panic!("no {what} on\n{screen}"));
        start.mouse(Mouse {
            kind: MouseKind::Press,
            x: x as u16,
            y: y as u16,
        })
    };
    assert_eq!(click("--rank 2"), StartAction::None);
    assert_eq!(click("--rank 2"), StartAction::Attach("4578".into()));
    assert_eq!(click("demo"), StartAction::Demo);
    assert_eq!(click("quit"), StartAction::Quit);
}

#[test]
fn a_start_screen_of_any_size_is_drawn() {
    for (width, height) in [(1, 1), (39, 9), (40, 10), (60, 12), (300, 20), (100, 60)] {
        for gpus in [0, 1, 9] {
            let mut start = with_gpus((width, height), gpus);
            sessions(&mut start, 20);
            for key in ['j', 'n', '?'] {
                assert_eq!(text(&start).lines().count(), usize::from(height));
                start.key(Key::Char(key));
            }
        }
    }
}
