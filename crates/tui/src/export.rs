//! The view on screen as a file.

use std::sync::Arc;

use super::Pane;
use super::widgets::table::Scene;
use super::{Tab, Ui, tab};
use roctop_model::Snapshot;
use roctop_model::query::Filter;

/// The beginning of a file's name: whose screen, which list, when.
pub fn stem(ui: &Ui, snap: &Snapshot) -> String {
    let snap = ui.shown(snap);
    let pid = snap.values.processes.first().map_or(0, |row| row.process.pid);
    let word = match ui.pane() {
        Some(pane) => pane.word().to_string(),
        None => ui.tab.row().word.to_string(),
    };
    format!("roctop-{pid}-{word}-{}s", snap.elapsed() / 1_000_000_000)
}

/// A name for the file and what is in it: the rows of the view that pass the filter, in their order, in base units.
pub fn export_csv(ui: &Ui, snap: &Snapshot) -> (String, Vec<u8>) {
    let snap = ui.shown(snap);
    let scene = Scene { ui, snap };
    let ending = if ui.tab == Tab::Log { "txt" } else { "csv" };
    (format!("{}.{ending}", stem(ui, snap)), tab::file(&scene).into_bytes())
}

/// A name for a directory and what is in it: every list that has rows, in base units, as filtered and sorted, what the
/// program printed, and a summary of the whole.
pub fn all(ui: &Ui, snap: &Snapshot) -> (String, Vec<(String, Vec<u8>)>) {
    let snap = ui.shown(snap);
    let scene = Scene { ui, snap };
    let lists = Pane::ALL.into_iter().filter_map(|pane| {
        let list = pane.list();
        let text = (!list.keys(&scene).is_empty()).then(|| list.csv(&scene))?;
        Some((format!("{}.csv", pane.word()), text.into_bytes()))
    });
    let mut files: Vec<(String, Vec<u8>)> = lists.collect();
    if !snap.output.is_empty() {
        let lines: Vec<&str> = snap.output.iter().map(|line| &**line).collect();
        files.push(("log.txt".into(), (lines.join("\n") + "\n").into_bytes()));
    }
    let summary = format!("{:#}\n", roctop_model::report::summary::json(snap));
    files.push(("summary.json".into(), summary.into_bytes()));
    let pid = snap.values.processes.first().map_or(0, |row| row.process.pid);
    (format!("roctop-{pid}-all-{}s", snap.elapsed() / 1_000_000_000), files)
}

/// What passes a filter: the lists and their numbers as the screen has them, and the sums of those.
pub fn only(snapshot: Arc<Snapshot>, filter: Filter) -> Arc<Snapshot> {
    if filter.is_empty() {
        return snapshot;
    }
    let ui = Ui {
        filter,
        ..Ui::default()
    };
    let (ui, snap) = (&ui, &*snapshot);
    let values = tab::passing(&Scene { ui, snap });
    let title = format!("{}, only {}", snap.title, ui.filter.source).into();
    let values = Arc::new(values);
    Arc::new(Snapshot {
        title,
        values,
        ..snap.clone()
    })
}
