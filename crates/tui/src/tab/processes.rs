//! Processes: how they are, what they lost, what their collectors said.

use std::collections::HashMap;

use ratatui::layout::Rect;
use roctop_ring::record::status;

use super::process_detail;
use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top, words};
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::header;
use crate::widgets::panes::list_and_detail;
use crate::widgets::table::{self, Scene, Table};
use crate::{Size, Tab};
use roctop_model::Mode;
use roctop_model::analysis::overhead::{self, Overhead};
use roctop_model::snapshot::ProcessRow;
use roctop_model::subject::ProcessSubject;
use roctop_trace::units;

/// A process: its place in the snapshot, and how deep below the first it stands.
#[derive(Clone)]
pub(crate) struct Row(usize, usize);

pub(crate) struct ProcessTable;

/// Columns of what stands before a collector's sentence: `pid 4242     on   `.
const LABEL_COLUMNS: usize = 18;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a ProcessRow {
    &scene.snap.values.processes[row.0]
}

/// How a process is, in words.
pub(crate) fn state(row: &ProcessRow, mode: Mode) -> String {
    match (row.exit, mode) {
        (Some((exit, _)), _) => units::exit(exit),
        (None, Mode::Live) if row.recording => "running".into(),
        (None, Mode::Live) => "not recorded".into(),
        (None, Mode::Replay) => units::MISSING.into(),
    }
}

impl Table for ProcessTable {
    type Row = Row;
    const PANE: Pane = Pane::Processes;
    const TITLE: &'static str = "Processes";
    const WHAT: &'static str = "process";
    const SORT: ColumnId = ColumnId("Records");
    const NAMES: &'static [&'static str] = &["Pid", "Host"];
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "PID",
            name: "Pid",
            width: 8,
            rank: 0,
            worth: |row, scene| Worth::whole(u64::from(source(row, scene).process.pid)),
            text: Shown::Plain,
        },
        Column {
            title: "RANK",
            name: "Rank",
            width: 5,
            rank: 2,
            worth: |row, scene| Worth::maybe(source(row, scene).process.rank.map(u64::from)),
            text: Shown::Plain,
        },
        Column {
            title: "COMMAND",
            name: "Command",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(source(row, scene).process.command.to_string()),
            text: Shown::Own(|row, scene, width| {
                let branch = if row.1 > 0 { "└ " } else { "" };
                let depth = 2 * row.1.saturating_sub(1);
                let head = format!("{:depth$}{branch}", "");
                let room = width.saturating_sub(units::width(&head));
                head + &header::command(&source(row, scene).process.command, room, 0)
            }),
        },
        Column {
            title: "STATE ",
            name: "State",
            width: 18,
            rank: 0,
            worth: |row, scene| Worth::Text(state(source(row, scene), scene.snap.mode)),
            text: Shown::Left,
        },
        Column {
            title: "RECORDS",
            name: "Records",
            width: 8,
            rank: 1,
            worth: |row, scene| Worth::whole(source(row, scene).records),
            text: Shown::Count,
        },
        Column {
            title: "REC/S",
            name: "Records_per_Second",
            width: 7,
            rank: 5,
            worth: |row, scene| Worth::number(running(row, scene).map(|row| row.rate)),
            text: Shown::Rate,
        },
        Column {
            title: "RING%",
            name: "Ring_Fill_Percentage",
            width: 5,
            rank: 4,
            worth: |row, scene| Worth::number(fill(row, scene).map(|fill| 100.0 * fill)),
            text: Shown::Own(|row, scene, _| fill(row, scene).map_or_else(|| units::MISSING.into(), units::percent)),
        },
        Column {
            title: "RSS",
            name: "Resident_Bytes",
            width: 9,
            rank: 3,
            worth: |row, scene| Worth::maybe(resident(row, scene)),
            text: Shown::Bytes,
        },
        Column {
            title: "LOST",
            name: "Lost",
            width: 8,
            rank: 1,
            worth: |row, scene| Worth::whole(source(row, scene).lost_of_it()),
            text: Shown::Count,
        },
        Column {
            title: "OPEN",
            name: "Open",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::whole(open(source(row, scene))),
            text: Shown::Count,
        },
        Column {
            title: "OVERHEAD",
            name: "Overhead_ns",
            width: 14,
            rank: 3,
            worth: |row, scene| Worth::number(overhead(row, scene).map(|known| one(&known).0)),
            text: Shown::Own(|row, scene, _| {
                overhead(row, scene).map_or_else(
                    || units::MISSING.into(),
                    |known| {
                        let (nanos, of) = one(&known);
                        format!("~{}/{of}", units::duration(nanos.round() as u64))
                    },
                )
            }),
        },
        Column {
            title: "COST%",
            name: "Overhead_Percentage",
            width: 6,
            rank: 6,
            worth: |row, scene| Worth::number(overhead(row, scene).map(|known| 100.0 * known.share)),
            text: Shown::Own(|row, scene, _| {
                overhead(row, scene)
                    .map_or_else(|| units::MISSING.into(), |known| format!("~{:.2}", 100.0 * known.share))
            }),
        },
        Column {
            title: "HOST",
            name: "Host",
            width: 12,
            rank: 7,
            worth: |row, scene| Worth::Text(source(row, scene).process.host.to_string()),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.processes.iter().enumerate();
        all.filter(|(_, row)| scene.ui.filter.accepts(&ProcessSubject(row)))
            .map(|(at, _)| Row(at, 0))
            .collect()
    }

    /// Below each process those that it started, in the same order.
    fn arrange(rows: Vec<Row>, scene: &Scene<'_>) -> Vec<Row> {
        let mut named: HashMap<(u32, &str), Vec<usize>> = HashMap::new();
        let mut shown: Vec<usize> = rows.iter().map(|row| row.0).collect();
        shown.sort_unstable();
        let process = |at: usize| &scene.snap.values.processes[at].process;
        for at in shown {
            named.entry((process(at).pid, &process(at).host)).or_default().push(at);
        }
        // Images that follow one another by exec have one pid: the last before the child has it.
        let parent = |at: usize| {
            let known = named.get(&(process(at).parent, &*process(at).host))?;
            known.iter().rev().find(|&&other| other < at).copied()
        };
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for row in rows.iter().rev() {
            children.entry(parent(row.0)).or_default().push(row.0);
        }
        let mut below = |at: Option<usize>, depth: usize| {
            let children = children.remove(&at).unwrap_or_default();
            children.into_iter().map(move |child| Row(child, depth.min(8)))
        };
        let mut stack: Vec<Row> = below(None, 0).collect();
        let mut out = Vec::with_capacity(rows.len());
        while let Some(row) = stack.pop() {
            stack.extend(below(Some(row.0), row.1 + 1));
            out.push(row);
        }
        out
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.processes.len()
    }

    fn least(width: u16) -> u16 {
        (width / 5).clamp(16, 60)
    }

    /// To what runs now.
    fn target(_: &Row, _: &Scene<'_>) -> Target {
        Target::View(Tab::Running)
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        Some(format!("pid={}", source(row, scene).process.pid))
    }

    fn key(row: &Row) -> u64 {
        row.0 as u64
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        if source(row, scene).lost_of_it() > 0 {
            Role::Bad
        } else {
            Role::Text
        }
    }
}

/// The process, while it is known how it does.
fn running<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a ProcessRow> {
    let row = source(row, scene);
    (row.exit.is_none() && row.health.is_some()).then_some(row)
}

/// How full its fullest ring was found lately.
fn fill(row: &Row, scene: &Scene<'_>) -> Option<f64> {
    let (health, _) = running(row, scene)?.health?;
    Some(f64::from(health.fill) / 1000.0)
}

fn resident(row: &Row, scene: &Scene<'_>) -> Option<u64> {
    running(row, scene)?.health?.0.resident
}

/// What being recorded costs it; nothing is known where counters hold its kernels up.
fn overhead(row: &Row, scene: &Scene<'_>) -> Option<Overhead> {
    let held_up = super::counters::perturbs(scene.snap).is_some();
    let row = source(row, scene);
    overhead::of(scene.snap, row.process.id, row).filter(|_| !held_up)
}

/// The cost of one of what it does most, ns, and what that is.
fn one(known: &Overhead) -> (f64, &'static str) {
    known.launch.map_or((known.call, "call"), |launch| (launch, "launch"))
}

fn open(row: &ProcessRow) -> u64 {
    (row.open.calls.len() + row.open.dispatches.len() + row.open.ranges.len()) as u64
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let rows = table::sorted::<ProcessTable>(scene).len();
    let (list, below) = match size {
        Size::Large | Size::Medium => list_and_detail(area, rows, 8.max(area.height / 2)),
        _ => (area, None),
    };
    let row = table::panel::<ProcessTable>(canvas, list, scene, None, u8::MAX);
    let Some(below) = below else { return };
    let said = said(scene, below.width.saturating_sub(3));
    let Some(row) = row.filter(|_| below.height >= MIN_DETAIL + MIN_SAID) else {
        return collectors(canvas, below, &said);
    };
    let wanted = (said.len() as u16).saturating_add(2).clamp(MIN_SAID, below.height / 2);
    let (detail, lower) = top(below, below.height - wanted.min(below.height - MIN_DETAIL));
    process_detail::draw(canvas, detail, scene, source(&row, scene), overhead(&row, scene));
    collectors(canvas, lower, &said);
}

/// Rows of the pane with the process, and of what collectors say, at least.
const MIN_DETAIL: u16 = 7;
const MIN_SAID: u16 = 4;

/// What was lost, and what collectors said, in lines of at most `room` columns.
fn said(scene: &Scene<'_>, room: u16) -> Vec<(String, Role)> {
    let values = &scene.snap.values;
    let mut lines: Vec<(String, Role)> = Vec::new();
    for row in &values.processes {
        for (why, lost) in row.losses() {
            let of = if why.is_of_recording() {
                "recording".into()
            } else {
                format!("pid {}", row.process.pid)
            };
            let text = format!("{of:<12} lost {:>8}: {}", lost.text(units::count), why.phrase());
            lines.push((text, Role::Bad));
        }
    }
    for said in values.said.iter().rev() {
        let pid = scene.snap.names.process(said.process).map_or(0, |process| process.pid);
        let (word, role) = match said.code {
            status::BACKEND | status::COUNTING => ("on  ", Role::Text),
            status::RESTING => ("rest", Role::Text),
            status::UNAVAILABLE => ("none", Role::Warn),
            status::OFF => ("OFF ", Role::Bad),
            status::LEVEL => ("step", Role::Warn),
            status::INCOMPLETE => ("part", Role::Warn),
            _ => ("note", Role::Muted),
        };
        lines.push((format!("pid {pid:<8} {word} {}", said.text), role));
    }
    if lines.is_empty() {
        lines.push(("no collector has said anything".into(), Role::Muted));
    }
    let indent = " ".repeat(LABEL_COLUMNS);
    let broken = lines.iter().flat_map(|(text, role)| {
        let head: String = text.chars().take(LABEL_COLUMNS).collect();
        let rest: String = text.chars().skip(LABEL_COLUMNS).collect();
        let parts = words(&rest, usize::from(room).saturating_sub(LABEL_COLUMNS))
            .into_iter()
            .enumerate();
        let lines = parts.map(|(at, part)| {
            if at == 0 {
                head.clone() + &part
            } else {
                indent.clone() + &part
            }
        });
        lines.map(|line| (line, *role)).collect::<Vec<_>>()
    });
    broken.collect()
}

fn collectors(canvas: &mut Canvas<'_>, area: Rect, said: &[(String, Role)]) {
    let inner = canvas.frame(area, "Collectors", "what they decided, what was lost");
    for (y, (text, role)) in (inner.y..inner.bottom()).zip(said) {
        canvas.say(inner.x + 1, y, text, inner.width.saturating_sub(1), *role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ui;
    use roctop_model::{Fresh, Options, Store};
    use roctop_trace::item::{Item, Process, ProcessId};

    #[test]
    fn a_child_stands_once_below_the_image_that_started_it() {
        let mut store = Store::new(Options::default());
        // 20 becomes another program by exec and then starts 30.
        for (id, (pid, parent)) in [(10, 1), (20, 10), (20, 10), (30, 20), (40, 10)]
            .into_iter()
            .enumerate()
        {
            store.apply(&Item::Process(Process {
                id: ProcessId(id as u32),
                pid,
                parent,
                ..Process::default()
            }));
        }
        let (snap, ui) = (store.snapshot(Fresh::All), Ui::new(Mode::Live));
        let scene = Scene { ui: &ui, snap: &snap };
        let rows = ProcessTable::arrange((0..5).map(|at| Row(at, 0)).collect(), &scene);
        let order: Vec<(usize, usize)> = rows.iter().map(|row| (row.0, row.1)).collect();
        assert_eq!(order, [(0, 0), (1, 1), (2, 1), (3, 2), (4, 1)]);
    }
}
