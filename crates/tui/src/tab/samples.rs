//! Samples of program counters: which kernels waves were in, and at which instructions.

use std::collections::HashMap;

use ratatui::layout::Rect;

use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::history::{self, Amount, Axis, Scale};
use crate::widgets::panes::{across, list_and_detail};
use crate::widgets::table::{self, Scene, Table};
use crate::{NameForm, Size, Tab};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::sampled::{SampledPlace, Tally};
use roctop_trace::item::KernelId;
use roctop_trace::pc_sampling;
use roctop_trace::units;

/// A place: its number in the snapshot.
#[derive(Clone)]
pub(crate) struct Row(usize);

pub(crate) struct SampleTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a SampledPlace {
    &scene.snap.values.sampled[row.0]
}

fn name(kernel: Option<KernelId>, scene: &Scene<'_>) -> String {
    kernel.map_or_else(
        || "(kernel not known)".into(),
        |kernel| super::kernels::name(scene.snap, kernel, scene.ui.prefs.names),
    )
}

/// Where the instruction is: instructions are not disassembled.
fn place(row: &SampledPlace) -> String {
    if row.code_object == 0 {
        format!("{:#x}", row.offset)
    } else {
        format!("obj {} +{:#x}", row.code_object, row.offset)
    }
}

fn share(row: &SampledPlace, scene: &Scene<'_>) -> f64 {
    row.count as f64 / scene.snap.values.samples.max(1) as f64
}

/// Mean number of active lanes.
fn lanes(row: &SampledPlace) -> f64 {
    row.lanes as f64 / row.count.max(1) as f64
}

fn issued(row: &SampledPlace) -> Option<f64> {
    (row.with_state > 0).then(|| row.issued as f64 / row.with_state as f64)
}

/// The most frequent reason why waves did not issue; none when no sample has a reason.
fn reason(row: &SampledPlace) -> Option<&'static str> {
    let first = row.reasons.ranked().first().copied()?;
    Some(pc_sampling::reason_word(first.0))
}

fn instruction(row: &SampledPlace) -> Option<&'static str> {
    let first = row.instructions.ranked().first().copied()?;
    Some(pc_sampling::instruction_word(first.0))
}

fn word(text: Option<&str>, width: usize) -> String {
    units::fit(text.unwrap_or(units::MISSING), width)
}

impl Table for SampleTable {
    type Row = Row;
    const PANE: Pane = Pane::Samples;
    const TITLE: &'static str = "Instructions";
    const WHAT: &'static str = "sampled place";
    const SORT: ColumnId = ColumnId("Samples");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "KERNEL",
            name: "Kernel_Name",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(source(row, scene).kernel, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "PLACE ",
            name: "Place",
            width: 18,
            rank: 0,
            worth: |row, scene| Worth::Text(place(source(row, scene))),
            text: Shown::Left,
        },
        Column {
            title: "SAMPLES",
            name: "Samples",
            width: 8,
            rank: 0,
            worth: |row, scene| Worth::whole(source(row, scene).count),
            text: Shown::Count,
        },
        Column {
            title: "%",
            name: "Percentage",
            width: 5,
            rank: 1,
            worth: |row, scene| Worth::Number(100.0 * share(source(row, scene), scene)),
            text: Shown::Own(|row, scene, _| units::percent(share(source(row, scene), scene))),
        },
        Column {
            title: "LANES",
            name: "Active_Lanes",
            width: 5,
            rank: 4,
            worth: |row, scene| Worth::Number(lanes(source(row, scene))),
            text: Shown::Own(|row, scene, _| format!("{:.1}", lanes(source(row, scene)))),
        },
        Column {
            title: "ISSUED%",
            name: "Issued_Percentage",
            width: 7,
            rank: 3,
            worth: |row, scene| Worth::number(issued(source(row, scene)).map(|share| 100.0 * share)),
            text: Shown::Own(|row, scene, _| {
                issued(source(row, scene)).map_or_else(|| units::MISSING.into(), units::percent)
            }),
        },
        Column {
            title: "TYPE ",
            name: "Instruction_Type",
            width: 12,
            rank: 5,
            worth: |row, scene| Worth::text(instruction(source(row, scene))),
            text: Shown::Own(|row, scene, width| word(instruction(source(row, scene)), width)),
        },
        Column {
            title: "WAITS FOR ",
            name: "Stall_Reason",
            width: 18,
            rank: 2,
            worth: |row, scene| Worth::text(reason(source(row, scene))),
            text: Shown::Own(|row, scene, width| word(reason(source(row, scene)), width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let all = scene.snap.values.sampled.iter().enumerate();
        all.filter(|(_, row)| scene.ui.filter.accepts(&SampleSubject { row, scene }))
            .map(|(at, _)| Row(at))
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.sampled.len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("asked for by --pc-sampling host_trap,time,100; roctop counters lists what GPUs offer")
    }

    fn least(width: u16) -> u16 {
        (width / 4).clamp(12, 60)
    }

    fn key(row: &Row) -> u64 {
        row.0 as u64
    }

    /// To the kernel.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        match source(row, scene).kernel {
            Some(kernel) => Target::Row(Tab::Kernels, Pane::Kernels, u64::from(kernel.0)),
            None => Target::Nowhere("no dispatch names the kernel of this instruction"),
        }
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        let kernel = source(row, scene).kernel?;
        let name = super::kernels::name(scene.snap, kernel, NameForm::Full);
        Some(format!("\"{}\"", name.replace('"', "")))
    }
}

struct SampleSubject<'a> {
    row: &'a SampledPlace,
    scene: &'a Scene<'a>,
}

impl Subject for SampleSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let forms = [NameForm::Short, NameForm::Full, NameForm::Mangled];
        let kernel = self.row.kernel;
        kernel.is_some_and(|kernel| {
            let mut names = forms
                .iter()
                .map(|form| super::kernels::name(self.scene.snap, kernel, *form));
            names.any(|name| test(&name))
        })
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Calls => Value::whole(self.row.count),
            Field::Share => Value::Number(share(self.row, self.scene)),
            Field::Pid => {
                let process = self.scene.snap.names.process(self.row.process);
                process.map_or(Value::None, |process| Value::Number(f64::from(process.pid)))
            }
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let ranked = by_kernel(scene);
    let places = scene.snap.values.sampled.len();
    let right = units::counted(places as u64, "place", "places");
    if size < Size::Medium || ranked.is_empty() {
        table::panel::<SampleTable>(canvas, area, scene, Some(right), u8::MAX);
        return;
    }
    let wide = area.height < 20;
    let (upper, lower) = if wide {
        left(area, area.width / 3)
    } else {
        top(
            area,
            (ranked.len() as u16).saturating_add(2).min(area.height / 3).max(4),
        )
    };
    let samples = scene.snap.values.samples;
    let inner = canvas.frame(
        upper,
        "Kernels by samples",
        &units::counted(samples, "sample", "samples"),
    );
    kernels(canvas, inner, scene, &ranked, samples);
    let rows = table::sorted::<SampleTable>(scene).len();
    let (list, detail) = match (wide, rows) {
        (true, _) => {
            let (list, detail) = left(lower, lower.width * 3 / 5);
            (list, Some(detail))
        }
        (_, 0) => (lower, None),
        (_, rows) => list_and_detail(lower, rows, 8.max(lower.height * 2 / 5)),
    };
    let row = table::panel::<SampleTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        sample_detail(canvas, detail, scene, source(&row, scene));
    }
}

/// Rows of the chart over the code at least, with its heading.
const MIN_CHART: u16 = 4;

/// An instruction: what its waves waited for, and where else in the kernel waves were.
fn sample_detail(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &SampledPlace) {
    let inner = canvas.frame(
        area,
        &format!("{} {}", name(row.kernel, scene), place(row)),
        "enter kernel",
    );
    let issued = issued(row).map_or_else(String::new, |share| format!("   issued {} %", units::percent(share)));
    let text = format!(
        "{}   {:.1} of 64 lanes active{issued}",
        units::counted(row.count, "sample", "samples"),
        lanes(row)
    );
    let room = inner.width.saturating_sub(2);
    canvas.say(
        inner.x + 1,
        inner.y,
        &units::items(&text, usize::from(room)),
        room,
        Role::Text,
    );
    let (_, rest) = top(inner, 1);
    let ranked = |tally: &Tally, word: fn(u16) -> &'static str| {
        let ranked = tally.ranked().into_iter();
        ranked
            .map(|(number, count)| (word(number), u64::from(count)))
            .collect::<Vec<_>>()
    };
    let reasons = ranked(&row.reasons, pc_sampling::reason_word);
    let types = ranked(&row.instructions, pc_sampling::instruction_word);
    let longest = reasons.len().max(types.len()) as u16 + 1;
    let (bars_area, below) = top(rest, longest.min(rest.height.saturating_sub(MIN_CHART)).max(2));
    let parts = across(bars_area, 2);
    bars(canvas, parts[0], "waits for, by samples", &reasons);
    bars(canvas, parts[1], "type of instruction, by samples", &types);
    if below.height >= 3 {
        over_code(canvas, below, scene, row);
    }
}

/// Words with their counts as bars.
fn bars(canvas: &mut Canvas<'_>, area: Rect, title: &str, all: &[(&str, u64)]) {
    let title = if all.is_empty() {
        format!("{title}: not sampled")
    } else {
        title.to_owned()
    };
    let below = canvas.headed(area, &title);
    let sum: u64 = all.iter().map(|known| known.1).sum();
    for (y, (word, count)) in (below.y..below.bottom()).zip(all) {
        let x = canvas.say(below.x + 1, y, &units::fit(word, 20), 20, Role::Text);
        let share = *count as f64 / sum.max(1) as f64;
        canvas.right(x + 8, y, &format!("{} %", units::percent(share)), Role::Text);
        let room = below.right().saturating_sub(x + 10);
        canvas.say(x + 9, y, &chart::bar(share, usize::from(room)), room, Role::GaugeMid);
    }
}

/// Samples by offset in the code object of a place, of its kernel.
fn over_code(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &SampledPlace) {
    let all = scene.snap.values.sampled.iter();
    let own: Vec<&SampledPlace> = all
        .filter(|other| other.kernel == row.kernel && other.code_object == row.code_object)
        .collect();
    let ends = own.iter().map(|place| place.offset);
    let (first, last) = (ends.clone().min().unwrap_or(0), ends.max().unwrap_or(0));
    let places = units::counted(own.len() as u64, "sampled place", "sampled places");
    let below = canvas.headed(area, &format!("samples by offset in the code, {places} of this kernel"));
    let marks = scene.ui.prefs.marks;
    let columns = history::columns(below, marks).max(1);
    // A column is an instruction of 4 bytes where there is room.
    let each = (last - first + 4).div_ceil(columns as u64).max(4);
    let mut sums = vec![0u64; (last - first) as usize / each as usize + 1];
    for place in &own {
        sums[((place.offset - first) / each) as usize] += place.count;
    }
    let scale = Scale {
        most: sums.iter().copied().max().unwrap_or(0) as f64,
        text: &|value| units::count(value as u64),
    };
    let values: Vec<Option<Amount>> = sums.into_iter().map(|count| Some(count.into())).collect();
    let axis = Axis {
        from: first as f64,
        to: (last + 4) as f64,
        grain: 16.0,
        text: &|at| format!("+{:#x}", at as u64),
    };
    history::draw(canvas, below, marks, &values, &scale, &axis, Role::GaugeMid);
}

/// Samples of each kernel that passes the filter, and its hottest place; the most first.
fn by_kernel<'a>(scene: &Scene<'a>) -> Vec<(Option<KernelId>, u64, &'a SampledPlace)> {
    let mut known: HashMap<Option<KernelId>, (u64, &SampledPlace)> = HashMap::new();
    for row in SampleTable::rows(scene) {
        let row = source(&row, scene);
        let sum = known.entry(row.kernel).or_insert((0, row));
        sum.0 += row.count;
        if row.count > sum.1.count {
            sum.1 = row;
        }
    }
    let mut ranked: Vec<_> = known.into_iter().map(|(kernel, sum)| (kernel, sum.0, sum.1)).collect();
    ranked.sort_by_key(|one| (std::cmp::Reverse(one.1), one.0));
    ranked
}

fn kernels(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    ranked: &[(Option<KernelId>, u64, &SampledPlace)],
    all: u64,
) {
    let most = ranked.first().map_or(1, |one| one.1.max(1));
    let room = (area.width / 3).max(24) as usize;
    for (y, (kernel, count, hottest)) in (area.y..area.bottom()).zip(ranked) {
        let name = units::fit(&units::elide(&name(*kernel, scene), room), room);
        let x = canvas.say(area.x + 1, y, &name, room as u16, Role::Text);
        canvas.right(x + 9, y, &units::count(*count), Role::Text);
        let part = units::percent(*count as f64 / all.max(1) as f64);
        canvas.right(x + 17, y, &format!("{part} %"), Role::Muted);
        let share = units::percent(hottest.count as f64 / (*count).max(1) as f64);
        let text = format!("{share:>5} % at {}", place(hottest));
        let end = canvas.say(x + 19, y, &text, area.right().saturating_sub(x + 20), Role::Text);
        let from = end.max(x + 19 + 28) + 1;
        let wide = area.right().saturating_sub(from + 1);
        let bar = chart::bar(*count as f64 / most as f64, wide as usize);
        canvas.say(from, y, &bar, wide, Role::GaugeMid);
    }
}
