//! Counted values on screen.

use crate::kit::counted::Rig;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::recording::Recording;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, update, view};

#[test]
fn counters_are_columns_on_screen_that_sort_and_filter() {
    let Some(rig) = Rig::new("screen") else { return };
    rig.works(&[
        "record",
        "-o",
        "rec",
        "--pmc",
        "SQ_WAVES",
        "./counted",
        "load",
        "scale",
        "plain",
        "scale",
    ]);
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let recording = Recording::open(&rig.0.join("rec")).unwrap();
    recording.items(&mut |items| store.apply_all(&items)).unwrap();
    let snap = store.snapshot(Fresh::All);
    let mut ui = Ui::new(snap.mode);
    update(&mut ui, &snap, Msg::Resize(160, 40));
    let theme = Theme::named("dark", Depth::C256).unwrap();
    let mut shown = |keys: &str| -> String {
        for key in keys.chars() {
            let key = if key == '\n' { Key::Enter } else { Key::Char(key) };
            update(&mut ui, &snap, Msg::Key(key));
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, 160, 40));
        view(&ui, &snap, &theme, &mut buffer);
        let lines = buffer.content().chunks(160);
        lines
            .map(|line| line.iter().map(Cell::symbol).collect::<String>() + "\n")
            .collect()
    };
    let kernels = shown("3");
    assert!(kernels.contains("▲ SERIALIZED"), "{kernels}");
    assert!(kernels.contains("SQ_WAVES"), "{kernels}");
    let row = |text: &str, name: &str| text.lines().find(|line| line.contains(name)).map(str::to_owned);
    assert!(row(&kernels, "  a scale").unwrap().contains(" 1024 "), "{kernels}");
    assert!(row(&kernels, "  b plain").unwrap().contains(" 2 "), "{kernels}");
    let filtered = shown("/SQ_WAVES>1e3\n");
    assert!(
        row(&filtered, "  a scale").is_some() && row(&filtered, "  b plain").is_none(),
        "{filtered}"
    );
    let counters = shown("6");
    assert!(counters.contains("SQ_WAVES") && counters.contains("1024"), "{counters}");
}
