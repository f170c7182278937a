//! Markers: ranges and marks by text, as a tree, with the work of the GPU that was launched in them.

use std::collections::{HashMap, HashSet};

use ratatui::layout::Rect;

use super::{marker_detail, wall};
use crate::Pane;
use crate::Size;
use crate::jump::Target;
use crate::launches;
use crate::relation::Kind;
use crate::widgets::canvas::Canvas;
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Shown, Worth};
use crate::widgets::panes::list_and_detail;
use crate::widgets::stat_column::HasStat;
use crate::widgets::table::{self, Scene, Table};
use roctop_model::stats::Stat;
use roctop_model::subject::{MarkerSubject, SliceSubject};
use roctop_model::table::{MarkerStat, pattern};
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::TextId;
use roctop_trace::units;

/// A pattern of texts: its place in the snapshot, and how deep in the tree it stands.
#[derive(Clone)]
pub(crate) struct Row {
    at: usize,
    id: u32,
    depth: usize,
}

pub(crate) struct MarkerTable;

impl HasStat for Row {
    fn stat<'a>(&'a self, scene: &Scene<'a>) -> &'a Stat {
        &source(self, scene).stat
    }
}

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a MarkerStat {
    &scene.snap.values.markers[row.at]
}

fn text(row: &Row, scene: &Scene<'_>) -> String {
    let numbers = source(row, scene);
    if numbers.differs {
        numbers.pattern.to_string()
    } else {
        scene.snap.names.text(numbers.text).to_string()
    }
}

/// A text that is blank stands in quotes, so that its row has a name.
fn visible(text: String) -> String {
    if text.trim().is_empty() {
        format!("{text:?}")
    } else {
        text
    }
}

/// By marker: whether it passes the filter. If the filter names none, ranges over what it names do.
pub(crate) fn passing(scene: &Scene<'_>) -> Vec<bool> {
    let (snap, filter) = (scene.snap, &scene.ui.filter);
    let markers = || snap.values.markers.iter();
    if filter.is_empty() {
        return vec![true; markers().len()];
    }
    let each = launches::of(scene, Kind::Ranges);
    let texts = each.ids().into_iter();
    let patterns: HashSet<String> = texts.map(|text| pattern(snap.names.text(TextId(text)))).collect();
    let has_any = |row: &MarkerStat| patterns.contains(&*row.pattern);
    let is_whole = kept(snap).is_some_and(|kept| kept <= launches::MAX_COUNTED);
    // What is forgotten is in the row alone.
    let may_pass = |row: &MarkerStat| !is_whole && filter.accepts(&MarkerSubject(&snap.names, row));
    let is_related = each.related.is_some();
    let own: Vec<bool> = markers()
        .map(|row| !is_related && has_any(row) || may_pass(row))
        .collect();
    if own.contains(&true) || !is_related {
        return own;
    }
    markers().map(has_any).collect()
}

/// Number of marks and ranges on the timeline, if all are there.
fn kept(snap: &Snapshot) -> Option<usize> {
    let lanes = snap
        .lanes
        .iter()
        .filter(|lane| Kind::of(lane.key) == Some(Kind::Ranges));
    let kept: usize = lanes.map(|lane| lane.kept()).sum();
    (kept as u64 >= snap.values.totals.markers && snap.values.counted_from == 0).then_some(kept)
}

/// Number of marks and ranges that pass the filter, one by one; `None` if the timeline does not hold all.
pub(crate) fn count(scene: &Scene<'_>) -> Option<u64> {
    let (snap, filter) = (scene.snap, &scene.ui.filter);
    kept(snap)?;
    let lanes = snap
        .lanes
        .iter()
        .filter(|lane| Kind::of(lane.key) == Some(Kind::Ranges));
    let passing = lanes.map(|lane| {
        let key = lane.key;
        let slices = lane.recent(usize::MAX);
        slices
            .filter(|slice| filter.accepts(&SliceSubject { snap, key, slice }))
            .count() as u64
    });
    Some(passing.sum())
}

impl Table for MarkerTable {
    type Row = Row;
    const PANE: Pane = Pane::Markers;
    const TITLE: &'static str = "ROC-TX ranges and marks";
    const WHAT: &'static str = "ROC-TX marker";
    const SORT: ColumnId = ColumnId("Total_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "MARKER",
            name: "Marker",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(text(row, scene)),
            text: Shown::Own(|row, scene, _| format!("{:1$}{2}", "", row.depth * 2, visible(text(row, scene)))),
        },
        Column {
            title: "COUNT",
            name: "Count",
            width: 8,
            rank: 0,
            worth: |row, scene| Worth::whole(source(row, scene).stat.calls),
            text: Shown::Count,
        },
        Column::times("TOTAL", "Total_ns", 0, |row, scene| {
            Worth::maybe((source(row, scene).stat.timed > 0).then_some(source(row, scene).stat.total))
        }),
        Column {
            title: "%WALL",
            name: "Share_of_wall",
            width: 6,
            rank: 2,
            worth: |row, scene| Worth::Number(source(row, scene).stat.total as f64 / wall(scene.snap) as f64),
            text: Shown::Share,
        },
        Column {
            title: "GPU TIME",
            name: "GPU_ns",
            width: 8,
            rank: 1,
            worth: |row, scene| Worth::maybe(gpu_time(row, scene)),
            text: Shown::Own(|row, scene, _| {
                at_least(row, scene, gpu_time(row, scene), |nanos| scene.ui.duration(nanos))
            }),
        },
        Column {
            title: "GPU%",
            name: "Share_of_GPU_time",
            width: 5,
            rank: 2,
            worth: |row, scene| Worth::Number(gpu_share(row, scene)),
            text: Shown::Share,
        },
        Column {
            title: "AVG GPU",
            name: "Average_GPU_ns",
            width: 8,
            rank: 4,
            worth: |row, scene| Worth::maybe(average_gpu_time(row, scene)),
            text: Shown::Own(|row, scene, _| {
                at_least(row, scene, average_gpu_time(row, scene), |nanos| {
                    scene.ui.duration(nanos)
                })
            }),
        },
        Column {
            title: "KERNELS",
            name: "Kernels",
            width: 8,
            rank: 3,
            worth: |row, scene| Worth::whole(source(row, scene).work.kernels),
            text: Shown::Own(|row, scene, _| at_least(row, scene, Some(source(row, scene).work.kernels), units::count)),
        },
        Column {
            title: "COPIES",
            name: "Copies",
            width: 7,
            rank: 5,
            worth: |row, scene| Worth::whole(source(row, scene).work.copies),
            text: Shown::Own(|row, scene, _| at_least(row, scene, Some(source(row, scene).work.copies), units::count)),
        },
        Column::average(1),
        Column::minimum(7),
        Column::p50(6),
        Column::p99(6),
        Column::maximum(5),
        Column {
            title: "THREAD",
            name: "Thread",
            width: 14,
            rank: 6,
            worth: |row, scene| Worth::Text(scene.snap.names.thread_label(source(row, scene).thread)),
            text: Shown::Plain,
        },
        Column {
            title: "≥",
            name: "Is_least",
            width: FILES_ONLY,
            rank: 10,
            worth: |row, scene| Worth::whole(u64::from(source(row, scene).is_least)),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.markers.iter().enumerate();
        let passing = passing(scene);
        all.filter(|(at, _)| passing[*at])
            .map(|(at, row)| Row {
                at,
                id: row.id,
                depth: 0,
            })
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.markers.len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("programs set them with roctxRangePush, roctxRangePop, roctxMark")
    }

    /// Below each range those within it, in the same order.
    fn arrange(rows: Vec<Row>, scene: &Scene<'_>) -> Vec<Row> {
        if scene.ui.prefs.flat {
            return rows;
        }
        let shown: HashSet<u32> = rows.iter().map(|row| row.id).collect();
        let parent = |row: &Row| source(row, scene).parent.filter(|parent| shown.contains(parent));
        let mut children: HashMap<Option<u32>, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            children.entry(parent(row)).or_default().push(at);
        }
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(rows.len());
        let mut taken = vec![false; rows.len()];
        let roots = children.get(&None).cloned().unwrap_or_default();
        // Rows that are each other's parents have no root: they follow as they are.
        for root in roots.into_iter().chain(0..rows.len()) {
            let mut stack = vec![(root, 0)];
            while let Some((at, depth)) = stack.pop() {
                if std::mem::replace(&mut taken[at], true) {
                    continue;
                }
                order.push((at, depth));
                let within = children.get(&Some(rows[at].id)).into_iter().flatten();
                stack.extend(within.rev().map(|&child| (child, depth + 1)));
            }
        }
        order
            .into_iter()
            .map(|(at, depth)| Row {
                at: rows[at].at,
                id: rows[at].id,
                depth: depth.min(8),
            })
            .collect()
    }

    fn key(row: &Row) -> u64 {
        u64::from(row.id)
    }

    /// To its last range.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let text = source(row, scene).text;
        let lanes = scene
            .snap
            .lanes
            .iter()
            .filter(|lane| matches!(lane.key, LaneKey::Markers(..) | LaneKey::Ranges(_)));
        let last = lanes.filter_map(|lane| {
            let slice = lane.recent(20_000).find(|slice| slice.what == text.0)?;
            Some((lane.key, slice.span.begin))
        });
        last.max_by_key(|found| found.1).map_or(
            Target::Nowhere("none of its ranges is kept in full any more"),
            |(key, begin)| Target::Slice(key, begin),
        )
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        let text = text(row, scene);
        let word = text.split('#').max_by_key(|part| part.len())?.trim().replace('"', "");
        (!word.is_empty()).then(|| format!("\"{word}\""))
    }
}

fn gpu_time(row: &Row, scene: &Scene<'_>) -> Option<u64> {
    Some(source(row, scene).work.nanos).filter(|nanos| *nanos > 0)
}

/// GPU time of a range.
fn average_gpu_time(row: &Row, scene: &Scene<'_>) -> Option<u64> {
    let average = gpu_time(row, scene)?.checked_div(source(row, scene).stat.timed);
    average.filter(|nanos| *nanos > 0)
}

/// A number of the work in ranges, with its sign if it is a lower bound.
fn at_least(row: &Row, scene: &Scene<'_>, value: Option<u64>, text: impl Fn(u64) -> String) -> String {
    let sign = if source(row, scene).is_least { "≥" } else { "" };
    value.map_or_else(|| units::MISSING.into(), |value| format!("{sign}{}", text(value)))
}

/// Share of the time of all GPU work, kernels and copies.
fn gpu_share(row: &Row, scene: &Scene<'_>) -> f64 {
    let values = &scene.snap.values;
    let copies = values.copies.iter().map(|copies| copies.stat.total);
    let all = copies.fold(values.totals.kernel_time, u64::saturating_add);
    source(row, scene).work.nanos as f64 / all.max(1) as f64
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let kind = if scene.ui.prefs.flat { "flat" } else { "tree" };
    let right = format!("{kind}   # is any number   I step by step");
    let (list, detail) = match table::sorted::<MarkerTable>(scene).len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 8.max(area.height / 3)),
    };
    let row = table::panel::<MarkerTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        marker_detail::draw(canvas, detail, scene, source(&row, scene));
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn blank_text_of_a_marker_is_quoted() {
        let shown = ["step 1", "", " ", "\r\n"].map(|text| visible(text.to_owned()));
        assert_eq!(shown, ["step 1", r#""""#, r#"" ""#, r#""\r\n""#]);
    }
}
