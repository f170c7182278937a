//! How much of the screen views use: every view with something to show, at sizes from narrow to wide.
//!
//! `cargo run --example room` prints the shares of blank rows and cells and the time of a frame.

use std::path::Path;
use std::sync::Arc;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::item::{
    AgentId, Allocation, ApiCall, Communication, Communicator, Health, Item, Operation, OperationId, ProcessId, Span,
    ThreadId,
};
use roctop::model::{Fresh, LaneKey, Options, Snapshot, Store};
use roctop::pc_sampling::Sample;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Tab, Ui, update, view};
use roctop_scenario::job::{JobKind, JobPlan, SyntheticJob};
use roctop_scenario::{BEGIN, Scenario};

/// Columns and rows.
pub(crate) const SIZES: [(u16, u16); 5] = [(80, 24), (120, 36), (200, 50), (300, 20), (100, 60)];
/// Places in the code that are sampled, and allocations that are not freed.
const PLACES: u64 = 6;
const ALLOCATIONS: u64 = 5;
const SECOND: u64 = 1_000_000_000;

/// A scenario as far as it has come after some time; its process answers once a second.
fn store(name: &str, milliseconds: u64) -> Store {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scenarios/{name}.toml"));
    let text = std::fs::read_to_string(place).expect("the scenario is there");
    let scenario = Scenario::parse(&text).expect("the scenario is one");
    let mut store = Store::new(Options {
        title: scenario.title.clone(),
        ..Options::default()
    });
    let until = BEGIN + milliseconds * 1_000_000;
    let mut ticked = BEGIN;
    for (at, item) in scenario.items().iter().filter(|timed| timed.0 <= until) {
        while ticked + SECOND <= *at {
            ticked += SECOND;
            store.apply(&Item::Now(ticked));
            store.health(&[Health {
                process: ProcessId(0),
                resident: Some((4 << 30) + (ticked - BEGIN) / 10),
                fill: 120,
            }]);
        }
        store.apply(item);
    }
    store.apply(&Item::Now(until));
    store
}

/// A training loop with samples and allocations.
fn training(milliseconds: u64) -> Arc<Snapshot> {
    let mut store = store("training", milliseconds);
    let now = BEGIN + milliseconds * 1_000_000;
    let snap = store.snapshot(Fresh::All);
    let lane = snap.lanes.iter().find(|lane| matches!(lane.key, LaneKey::Stream(..)));
    let dispatches: Vec<u64> = lane.map_or_else(Vec::new, |lane| lane.recent(3).map(|slice| slice.value).collect());
    for (at, dispatch) in (0..200u64).zip(dispatches.into_iter().cycle()) {
        store.apply(&Item::PcSample(Sample {
            at: now - at * 1_000_000,
            dispatch,
            code_object: 3,
            offset: 0x1000 + 8 * (at * at % PLACES),
            exec_mask: u64::MAX >> (at % 32),
            wave_count: 8,
            is_issued: at % 3 == 0,
            instruction: (at % 4) as u16,
            reason: (at % 5) as u16,
            ..Sample::default()
        }));
    }
    for at in 0..ALLOCATIONS {
        let begin = BEGIN + (1 + at) * 100_000_000;
        store.apply(&Item::Allocation(Allocation {
            thread: ThreadId(0),
            agent: Some(AgentId(1)),
            operation: 1,
            span: Span {
                begin,
                end: begin + 5_000,
            },
            address: 0x7000_0000 + (at << 20),
            bytes: (1 + at) << 20,
            total: ((1 + at) * (2 + at)) << 19,
            ..Allocation::default()
        }));
    }
    collectives(&mut store, now);
    store.snapshot(Fresh::All)
}

/// Collectives of two ranks in one process until `now`.
fn collectives(store: &mut Store, now: u64) {
    const CALLS: u32 = 60;
    let (process, operation) = (ProcessId(0), OperationId(90));
    store.apply(&Item::Operation(Operation {
        id: operation,
        domain: 8,
        name: "ncclAllReduce".into(),
    }));
    for rank in 0..2 {
        store.apply(&Item::Communicator(Communicator {
            process,
            number: rank + 1,
            identity: Some(9),
            rank: Some(rank),
            size: Some(2),
            ..Communicator::default()
        }));
        for sequence in 1..=CALLS {
            let start = now - u64::from(CALLS + 1 - sequence) * 50_000_000 + u64::from(rank * sequence) * 100_000;
            let correlation = 1 << 50 | u64::from(rank) << 32 | u64::from(sequence);
            store.apply(&Item::Communication(Communication {
                process,
                correlation,
                start,
                communicator: rank + 1,
                sequence,
                count: 1 << 20,
                ..Communication::default()
            }));
            store.apply(&Item::Api(ApiCall {
                process,
                operation,
                correlation,
                span: Span {
                    begin: start,
                    end: start + 10_000_000,
                },
                ..ApiCall::default()
            }));
        }
    }
}

/// Each view with what it shows.
pub(crate) fn scenes() -> Vec<(Tab, Arc<Snapshot>, Arc<Snapshot>)> {
    let (before, training) = (training(9_050), training(20_050));
    let counted = store("counted", 10_020).snapshot(Fresh::All);
    let sites = store("sites", 3_000).snapshot(Fresh::All);
    let job = SyntheticJob::after(JobPlan::of(JobKind::Compute), 200);
    let job = Arc::new(job.job.values(job.now()).snapshot());
    let of = |tab| match tab {
        Tab::Counters => (tab, counted.clone(), counted.clone()),
        Tab::Job => (tab, job.clone(), job.clone()),
        Tab::Sites => (tab, sites.clone(), sites.clone()),
        _ => (tab, before.clone(), training.clone()),
    };
    Tab::ALL.into_iter().map(of).collect()
}

/// The screen of a view; what changed is shown against the numbers of before.
pub(crate) fn screen(scene: &(Tab, Arc<Snapshot>, Arc<Snapshot>), size: (u16, u16)) -> Ui {
    let (tab, before, now) = scene;
    let mut ui = Ui::new(now.mode);
    update(&mut ui, before, Msg::Resize(size.0, size.1));
    update(&mut ui, before, Msg::Key(Key::Char('b')));
    update(&mut ui, now, Msg::Key(Key::Char(tab.row().key)));
    ui
}

/// Draws it.
pub(crate) fn draw(ui: &Ui, snap: &Snapshot) -> Buffer {
    let theme = Theme::named("dark", Depth::C256).expect("a theme of this name is there");
    let mut buffer = Buffer::empty(Rect::new(0, 0, ui.size.0, ui.size.1));
    view(ui, snap, &theme, &mut buffer);
    buffer
}

/// Rows with nothing but frames and scales, and blank cells.
pub(crate) fn blank(buffer: &Buffer) -> (usize, usize) {
    let is_blank = |cell: &&Cell| cell.symbol() == " ";
    let is_nothing = |cell: &Cell| matches!(cell.symbol(), " " | "│" | "┤");
    let rows = buffer.content().chunks(buffer.area.width as usize);
    let nothing = rows.filter(|row| row.iter().all(is_nothing)).count();
    (nothing, buffer.content().iter().filter(is_blank).count())
}

/// Blank rows of a large screen, per cent, that a view may have while it has something to show.
#[cfg(test)]
const MAX_BLANK: usize = 25;

#[test]
fn no_view_leaves_a_quarter_of_a_large_screen_blank() {
    let mut found = Vec::new();
    for scene in scenes() {
        let ui = screen(&scene, (200, 50));
        let (rows, _) = blank(&draw(&ui, &scene.2));
        if rows * 100 > MAX_BLANK * 50 {
            found.push((scene.0, rows));
        }
    }
    assert!(found.is_empty(), "blank rows of 50: {found:?}");
}

#[test]
fn charts_of_every_kind_are_drawn_at_every_size_and_sent_as_ascii() {
    use roctop::ui::Marks;
    use roctop::ui::screen::frames::Frames;
    for scene in scenes() {
        for (size, marks) in SIZES
            .into_iter()
            .flat_map(|size| Marks::ALL.map(|marks| (size, marks.0)))
        {
            let mut ui = screen(&scene, size);
            ui.prefs.marks = marks;
            let buffer = draw(&ui, &scene.2);
            let bytes = Frames::new(true).next(size, |next| *next = buffer.clone());
            let sent = String::from_utf8(bytes).expect("ASCII is UTF-8");
            assert!(sent.is_ascii(), "{:?} at {size:?} with {marks:?}", scene.0);
            let meant = buffer.content().iter().filter(|cell| cell.symbol() == "?").count();
            let unknown = sent.replace("\x1b[?", "").matches('?').count();
            assert!(
                unknown <= meant,
                "{:?} at {size:?} with {marks:?}: {unknown} characters have no ASCII",
                scene.0
            );
        }
    }
}
