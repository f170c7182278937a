//! Single launches, calls, copies and ranges, the longest first: the columns are those of the screen's lists of them.

use super::Asking;
use crate::NameForm;
use crate::relation::Kind as Slices;
use crate::tab::calls::{CallRow, CallTable};
use crate::tab::instances::{Launch, LaunchTable};
use crate::tab::kernels;
use crate::tab::transfers::{self, TransferTable};
use crate::widgets::table::{self, Table};
use roctop_model::ask::{Basis, Cell, Column, Id, Kind, Order, Row, Slow, Unit};
use roctop_model::subject::{SliceSubject, thread_of};
use roctop_model::{LaneKey, Slice};
use roctop_trace::item::{KernelId, TextId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Duration, begin, and place among the slices that were found; the shortest is on top of a heap.
type Entry = Reverse<(u64, Reverse<u64>, usize)>;

/// The longest slices that pass, and how many pass; whether all slices are kept.
fn longest(asking: &Asking<'_>, kind: Slices) -> (Vec<(LaneKey, Slice)>, usize, bool) {
    let (snap, filter, limit) = (&*asking.snap, &asking.ui.filter, asking.question.limit);
    let (mut count, mut is_whole) = (0, true);
    let mut heap: BinaryHeap<Entry> = BinaryHeap::new();
    let mut found: Vec<(LaneKey, Slice)> = Vec::new();
    for lane in snap.lanes.iter().filter(|lane| Slices::of(lane.key) == Some(kind)) {
        is_whole &= lane.total <= lane.kept() as u64;
        let key = lane.key;
        for slice in lane.recent(usize::MAX) {
            if kind == Slices::Ranges && slice.shape != 0 || slice.is_along() {
                continue;
            }
            if !filter.is_empty() && !filter.accepts(&SliceSubject { snap, key, slice }) {
                continue;
            }
            count += 1;
            let nanos = slice.span.duration();
            if heap.len() >= limit && heap.peek().is_some_and(|least| least.0.0 >= nanos) {
                continue;
            }
            found.push((key, *slice));
            heap.push(Reverse((nanos, Reverse(slice.span.begin), found.len() - 1)));
            if heap.len() > limit {
                heap.pop();
            }
            if found.len() > 8 * limit.max(1024) {
                compact(&mut heap, &mut found);
            }
        }
    }
    let mut order: Vec<_> = heap.into_iter().map(|entry| entry.0).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    (order.into_iter().map(|entry| found[entry.2]).collect(), count, is_whole)
}

/// Forgets slices that are no longer among the longest.
fn compact(heap: &mut BinaryHeap<Entry>, found: &mut Vec<(LaneKey, Slice)>) {
    let mut kept = Vec::with_capacity(heap.len());
    let entries = std::mem::take(heap).into_iter().map(|Reverse((nanos, begin, place))| {
        kept.push(found[place]);
        Reverse((nanos, begin, kept.len() - 1))
    });
    *heap = entries.collect::<Vec<_>>().into();
    *found = kept;
}

/// Answers with rows of a table; its own columns are added to what names them.
fn rows<T: Table>(asking: &Asking<'_>, rows: &[T::Row]) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let scene = asking.scene();
    let columns = table::answer_columns::<T>(&scene, &[])
        .into_iter()
        .map(|column| column.1);
    let rows = table::answer_rows::<T>(&scene, rows, &[], usize::MAX).into_iter();
    (columns.collect(), rows.map(|row| row.cells).collect())
}

/// Launches, calls, copies or ranges by their durations.
pub(super) fn slowest(asking: &mut Asking<'_>, slow: Slow) {
    let (kind, id) = match slow {
        Slow::Kernels => (Slices::Kernels, Kind::Launch),
        Slow::Calls => (Slices::Calls, Kind::Call),
        Slow::Copies => (Slices::Copies, Kind::Copy),
        Slow::Ranges => (Slices::Ranges, Kind::Range),
    };
    let (found, count, is_whole) = longest(asking, kind);
    let (mut columns, mut cells) = match slow {
        Slow::Kernels => {
            let launches: Vec<Launch> = found.iter().map(|&(key, slice)| Launch { key, slice }).collect();
            rows::<LaunchTable>(asking, &launches)
        }
        Slow::Calls => {
            let calls: Vec<CallRow> = found
                .iter()
                .map(|&(key, slice)| CallRow::returned(key, slice))
                .collect();
            rows::<CallTable>(asking, &calls)
        }
        Slow::Copies => {
            let copies: Vec<transfers::Row> = found.iter().map(|&(key, slice)| transfers::Row(key, slice)).collect();
            rows::<TransferTable>(asking, &copies)
        }
        Slow::Ranges => ranges(asking, &found),
    };
    if slow == Slow::Kernels {
        let snap = &asking.snap;
        for column in &mut columns {
            column.is_wide = false;
        }
        columns.push(Column {
            name: "Kernel_Name".into(),
            unit: Unit::Text,
            rank: 0,
            is_wide: true,
        });
        for (cells, (_, slice)) in cells.iter_mut().zip(&found) {
            cells.push(Cell::Text(kernels::name(snap, KernelId(slice.what), NameForm::Full)));
        }
    }
    asking.answer.columns = columns;
    asking.answer.order = Some(Order {
        column: "Duration_ns".into(),
        is_ascending: false,
    });
    asking.answer.rows = cells
        .into_iter()
        .zip(&found)
        .map(|(cells, (_, slice))| Row {
            id: Some(Id::Work(id, slice.span.begin)),
            cells,
        })
        .collect();
    asking.answer.count = count;
    if !is_whole {
        asking.answer.basis = Basis::Kept;
    }
}

fn ranges(asking: &Asking<'_>, found: &[(LaneKey, Slice)]) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let names = &asking.snap.names;
    let column = |name: &str, unit: Unit, is_wide: bool| Column {
        name: name.into(),
        unit,
        rank: 0,
        is_wide,
    };
    let columns = vec![
        column("Begin_ns", Unit::Moment, false),
        column("Duration_ns", Unit::Nanos, false),
        column("Thread", Unit::Text, false),
        column("Marker", Unit::Text, true),
    ];
    let cells = found.iter().map(|(key, slice)| {
        vec![
            Cell::Number(slice.span.begin as f64),
            Cell::Number(slice.span.duration() as f64),
            thread_of(*key).map_or(Cell::None, |thread| Cell::Text(names.thread_label(thread))),
            Cell::Text(names.text(TextId(slice.what)).into()),
        ]
    });
    (columns, cells.collect())
}
