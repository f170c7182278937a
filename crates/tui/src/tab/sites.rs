//! Call sites: which lines of the program cause GPU time, with the call path of the selected one and a flame graph of all.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use ratatui::layout::Rect;

use crate::jump::Target;
use crate::launches;
use crate::relation::Kind;
use crate::source_text::SourceLine;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::flame::{self, Flame};
use crate::widgets::panes::list_and_detail;
use crate::widgets::row_cache::Basis;
use crate::widgets::table::{self, Scene, Table};
use crate::{Pane, SiteGrouping, Size, Tab, Ui};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::sites::{PathId, SiteRow, SiteWork, file_name, place, with_distance};
use roctop_model::stats::Sum;
use roctop_model::subject::site;
use roctop_model::{Slice, Snapshot};
use roctop_trace::item::{KernelId, ProcessId};
use roctop_trace::site::{Frame, Line, SiteNumber};
use roctop_trace::units;

/// Columns beside each other from which a call path and a flame graph fit.
const MIN_BOTH: u16 = 110;
/// Callers that are compared to distinguish rows with the same label.
const MAX_CALLERS: usize = 64;
/// Rows of the flame graph where it is below the call path.
const MIN_FLAME: u16 = 8;

/// A call path or a group of them, and what they cost.
#[derive(Clone)]
pub(crate) struct Row {
    /// The path with most GPU time. None: sites whose call path is not known.
    path: Option<PathId>,
    /// Number of paths.
    paths: u64,
    /// Name of the group; `None` for a single call path.
    group: Option<String>,
    /// One of the sites of `path`.
    site: (ProcessId, SiteNumber),
    launches: Sum,
    copies: Sum,
    bytes: u64,
    calls: Sum,
    /// Time by kernel, ns.
    kernels: HashMap<KernelId, u64>,
    /// The innermost caller that distinguishes it from other rows with the same label; empty if there are none.
    by: String,
}

impl Row {
    fn new(path: Option<PathId>, row: &SiteRow) -> Self {
        Self {
            path,
            paths: 1,
            group: None,
            site: (row.process, row.site),
            launches: Sum::default(),
            copies: Sum::default(),
            bytes: 0,
            calls: Sum::default(),
            kernels: HashMap::new(),
            by: String::new(),
        }
    }

    fn add(&mut self, row: &SiteRow) {
        match row.work {
            SiteWork::Kernel(id) => {
                self.launches.merge(&row.sum);
                self.add_kernel(id, row.sum.total);
            }
            SiteWork::Copy(_) => {
                self.copies.merge(&row.sum);
                self.bytes = self.bytes.saturating_add(row.bytes);
            }
            SiteWork::Call(_) => self.calls.merge(&row.sum),
        }
    }

    fn add_kernel(&mut self, id: KernelId, time: u64) {
        let sum = self.kernels.entry(id).or_default();
        *sum = sum.saturating_add(time);
    }

    /// Adds the row of another call path with less GPU time.
    fn merge(&mut self, other: &Self) {
        self.paths += other.paths;
        self.launches.merge(&other.launches);
        self.copies.merge(&other.copies);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.calls.merge(&other.calls);
        for (id, time) in &other.kernels {
            self.add_kernel(*id, *time);
        }
    }

    /// Time of kernels and copies, ns.
    const fn gpu_time(&self) -> u64 {
        self.launches.total.saturating_add(self.copies.total)
    }

    /// The kernel with most of the time.
    fn kernel(&self) -> Option<KernelId> {
        let most = self.kernels.iter().max_by_key(|(id, time)| (**time, Reverse(id.0)));
        most.map(|(id, _)| *id)
    }

    /// The call path in short, or the name of the group.
    fn label(&self, snap: &Snapshot) -> String {
        self.group.clone().unwrap_or_else(|| label(snap, self.path))
    }
}

/// A row of a list with the column of call sites.
pub(crate) trait HasSite: Sized {
    /// Its site in short.
    fn site(&self, scene: &Scene<'_>) -> Option<String>;
}

const SITE: ColumnId = ColumnId("Site");

/// The column of call sites.
pub(crate) const fn column<R: HasSite>(rank: u8) -> Column<R> {
    Column {
        title: "SITE ",
        name: SITE.0,
        width: 26,
        rank,
        worth: |row, scene| Worth::text(row.site(scene)),
        text: Shown::Own(|row, scene, width| {
            let text = row.site(scene).unwrap_or_else(|| units::MISSING.into());
            fit(&text, width)
        }),
    }
}

/// Whether it is the column of call sites, and no site is known.
pub(crate) fn is_absent(scene: &Scene<'_>, column: ColumnId) -> bool {
    column == SITE && scene.snap.sites.is_empty()
}

/// Headings of a list without other columns that may be absent.
pub(crate) fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
    if is_absent(scene, column) {
        Heading::Absent
    } else {
        Heading::Usual
    }
}

/// The call site with most time of some work, and how many others there are.
pub(crate) fn main_of(snap: &Snapshot, work: SiteWork) -> Option<String> {
    let &(at, count) = snap.values.main_sites.get(&work)?;
    let known = snap.values.sites.get(at as usize)?;
    let label = label_of(snap, known.process, known.site)?;
    Some(match count {
        0 | 1 => label,
        many => format!("{label} +{}", many - 1),
    })
}

/// The same of the work that passes the filter; `calls` is the number of all.
pub(crate) fn main_of_passing(scene: &Scene<'_>, kind: Kind, work: &[SiteWork], calls: u64) -> Option<String> {
    let snap = scene.snap;
    if snap.sites.is_empty() {
        return None;
    }
    let (paths, is_whole) = launches::of(scene, kind).paths(snap, work, calls);
    let (path, _) = paths
        .iter()
        .max_by_key(|(path, nanos)| (**nanos, Reverse(path.map(|path| path.0))))?;
    let sign = if is_whole { "" } else { "≈ " };
    let more = match paths.len() {
        1 => String::new(),
        many => format!(" +{}", many - 1),
    };
    Some(format!("{sign}{}{more}", label(snap, *path)))
}

/// The call site of a slice.
pub(crate) fn of_slice(snap: &Snapshot, slice: &Slice) -> Option<String> {
    label_of(snap, ProcessId(slice.process), slice.site)
}

/// A call path in short.
pub(crate) fn label(snap: &Snapshot, path: Option<PathId>) -> String {
    let Some(path) = path else {
        return "(call path not known)".into();
    };
    let label = snap.sites.label(path);
    if snap.sites.is_ambiguous(path) {
        format!("≈ {label}")
    } else {
        label.to_owned()
    }
}

/// A site in a width. If it is too long, its function is without return type and parameters, then without namespaces. File and
/// line before it, the distance from its beginning and the number of others behind it stay.
fn fit(site: &str, width: usize) -> String {
    // Fewer letters of a function say less than file and line.
    const MIN_LETTERS: usize = 6;
    if units::width(site) <= width {
        return units::fit(site, width);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_place = |word: &str| word == "≈" || word.rsplit_once(':').is_some_and(|(_, line)| is_number(line));
    let mut begin = 0;
    while let Some((word, _)) = site[begin..].split_once(' ').filter(|(word, _)| is_place(word)) {
        begin += word.len() + 1;
    }
    let others = site.rfind(" +").filter(|at| *at >= begin && is_number(&site[at + 2..]));
    let (site, others) = site.split_at(others.unwrap_or(site.len()));
    let (place, function) = site.split_at(begin);
    let distance = function.rfind("+0x").filter(|at| is_distance(&function[*at..]));
    let (function, distance) = function.split_at(distance.unwrap_or(function.len()));
    let others = format!("{distance}{others}");
    let room = width.saturating_sub(units::width(&others));
    let left = room.saturating_sub(units::width(place));
    let function = without_parameters(function, left);
    let alone = if place.contains(':') && left < units::width(&function).min(MIN_LETTERS) {
        place.trim_end().to_owned()
    } else {
        format!("{place}{function}")
    };
    units::fit(&format!("{}{others}", units::elide(&alone, room)), width)
}

/// Whether a text is `+0x1a4`.
fn is_distance(text: &str) -> bool {
    let digits = text.strip_prefix("+0x");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A function without return type and parameters, and without namespaces if it is still wider than this.
fn without_parameters(function: &str, width: usize) -> String {
    // A closure has the name of the function around it.
    if let Some(at) = function.rfind("::operator()") {
        return function[..at].to_owned();
    }
    let qualified = units::qualified_name(function);
    if units::width(qualified) <= width {
        qualified.to_owned()
    } else {
        units::short_name(function)
    }
}

/// The site of a launch or call in short; none if the collector does not know it.
pub(crate) fn label_of(snap: &Snapshot, process: ProcessId, number: SiteNumber) -> Option<String> {
    number
        .is_known()
        .then(|| label(snap, snap.sites.path_of(process, number)))
}

/// All rows, those of one call path put together.
fn all_paths(snap: &Snapshot) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: HashMap<Option<PathId>, usize> = HashMap::new();
    for row in &*snap.values.sites {
        let path = snap.sites.path_of(row.process, row.site);
        let at = *places.entry(path).or_insert(rows.len());
        if at == rows.len() {
            rows.push(Row::new(path, row));
        }
        rows[at].add(row);
    }
    rows
}

/// Those that pass the filter.
fn passing(scene: &Scene<'_>) -> Vec<Row> {
    let mut rows = all_paths(scene.snap);
    distinguish(scene.snap, &mut rows);
    rows.retain(|row| scene.ui.filter.accepts(&SiteSubject { row, scene }));
    rows
}

/// Name of the group of a call path.
fn group(snap: &Snapshot, by: SiteGrouping, path: Option<PathId>) -> String {
    let Some((path, (frame, line))) = path.and_then(|path| Some((path, snap.sites.caller(path)?))) else {
        return label(snap, path);
    };
    let library = || {
        snap.sites
            .module(frame)
            .map(|module| file_name(&module.path).to_owned())
    };
    let file = || (!line.file.is_empty()).then(|| line.file.clone());
    let found = match by {
        SiteGrouping::Path => None,
        SiteGrouping::Line => place(line),
        SiteGrouping::Function => Some(snap.sites.function(frame, line)),
        SiteGrouping::File => file().or_else(|| Some(format!("{} (no file known)", library()?))),
        SiteGrouping::Library => library(),
        SiteGrouping::Operator => Some(or_none(snap.sites.operator(path), "(no operator of PyTorch)")),
        SiteGrouping::Module => Some(or_none(snap.sites.torch_module(path), "(no module of PyTorch)")),
    };
    found.unwrap_or_else(|| label(snap, Some(path)))
}

fn or_none(name: &str, none: &str) -> String {
    if name.is_empty() { none } else { name }.to_owned()
}

/// Rows of call paths, or of groups of them.
fn grouped(snap: &Snapshot, by: SiteGrouping, mut rows: Vec<Row>) -> Vec<Row> {
    if by == SiteGrouping::Path {
        return rows;
    }
    rows.sort_by_key(|row| (Reverse(row.gpu_time()), row.path.map(|path| path.0)));
    let mut groups: Vec<Row> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for mut row in rows {
        let name = group(snap, by, row.path);
        if let Some(&at) = places.get(&name) {
            groups[at].merge(&row);
        } else {
            places.insert(name.clone(), groups.len());
            row.group = Some(name);
            row.by.clear();
            groups.push(row);
        }
    }
    groups
}

/// Gives rows with the same label the innermost callers that are not the same in all of them.
fn distinguish(snap: &Snapshot, rows: &mut [Row]) {
    let sites = &snap.sites;
    let mut same: HashMap<&str, Vec<(usize, PathId)>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(path) = row.path {
            same.entry(sites.label(path)).or_default().push((at, path));
        }
    }
    for group in same.into_values().filter(|group| group.len() > 1) {
        let paths: Vec<Vec<(Frame, &Line)>> = group
            .iter()
            .map(|(_, path)| sites.functions(*path).take(MAX_CALLERS).collect())
            .collect();
        let differ = |depth: &usize| {
            let first = paths[0].get(*depth);
            paths.iter().any(|path| path.get(*depth) != first)
        };
        let Some(depth) = (0..MAX_CALLERS).find(differ) else {
            continue;
        };
        for ((at, _), path) in group.iter().zip(&paths) {
            if let Some((frame, line)) = path.get(depth) {
                rows[*at].by = sites.place(*frame, line);
            }
        }
    }
}

/// The site of a row in words.
fn named(row: &Row, scene: &Scene<'_>) -> String {
    let label = row.label(scene.snap);
    if row.by.is_empty() {
        label
    } else {
        format!("{label} ← {}", row.by)
    }
}

fn kernel(row: &Row, scene: &Scene<'_>) -> String {
    let Some(id) = row.kernel() else {
        return units::MISSING.into();
    };
    let name = super::kernels::name(scene.snap, id, scene.ui.prefs.names);
    match row.kernels.len() {
        1 => name,
        many => format!("{name} +{}", many - 1),
    }
}

/// The site of a row in a width: the caller that distinguishes it stays.
fn shown(row: &Row, scene: &Scene<'_>, width: usize) -> String {
    const ARROW: &str = " ← ";
    let label = row.label(scene.snap);
    let whole = named(row, scene);
    if row.by.is_empty() || units::width(&whole) <= width {
        return fit(&whole, width);
    }
    let half = units::width(&row.by).min(width.saturating_sub(units::width(ARROW)) / 2);
    let room = width.saturating_sub(half + units::width(ARROW));
    let label = fit(&label, units::width(&label).min(room));
    let label = label.trim_end();
    let by = fit(&row.by, width.saturating_sub(units::width(label) + units::width(ARROW)));
    units::fit(&format!("{label}{ARROW}{by}"), width)
}

fn share(row: &Row, scene: &Scene<'_>) -> f64 {
    let all: u64 = scene.snap.values.totals.kernel_time;
    row.launches.total as f64 / all.max(1) as f64
}

pub(crate) struct SiteTable;

impl Table for SiteTable {
    type Row = Row;
    const PANE: Pane = Pane::Sites;
    const TITLE: &'static str = "Sites";
    const WHAT: &'static str = "site";
    const SORT: ColumnId = ColumnId("GPU_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "SITE ",
            name: "Site",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(named(row, scene)),
            text: Shown::Own(shown),
        },
        Column {
            title: "GPU TIME",
            name: "GPU_ns",
            width: 9,
            rank: 0,
            worth: |row, _| Worth::whole(row.gpu_time()),
            text: Shown::Duration,
        },
        Column {
            title: "KERNEL%",
            name: "Kernel_Share",
            width: 7,
            rank: 1,
            worth: |row, scene| Worth::Number(share(row, scene)),
            text: Shown::Share,
        },
        Column {
            title: "LAUNCHES",
            name: "Launches",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.launches.calls),
            text: Shown::Count,
        },
        Column {
            title: "AVG",
            name: "Kernel_Average_ns",
            width: 8,
            rank: 3,
            worth: |row, _| Worth::maybe(row.launches.average()),
            text: Shown::Duration,
        },
        Column {
            title: "COPIES",
            name: "Copies",
            width: 7,
            rank: 4,
            worth: |row, _| Worth::whole(row.copies.calls),
            text: Shown::Count,
        },
        Column {
            title: "BYTES",
            name: "Bytes",
            width: 9,
            rank: 5,
            worth: |row, _| Worth::maybe((row.copies.calls > 0).then_some(row.bytes)),
            text: Shown::Bytes,
        },
        Column {
            title: "CALLS",
            name: "Calls",
            width: 7,
            rank: 5,
            worth: |row, _| Worth::whole(row.calls.calls),
            text: Shown::Count,
        },
        Column {
            title: "IN CALLS",
            name: "Calls_ns",
            width: 8,
            rank: 6,
            worth: |row, _| Worth::whole(row.calls.total),
            text: Shown::Duration,
        },
        Column {
            title: "KERNEL ",
            name: "Kernel_Name",
            width: 24,
            rank: 2,
            worth: |row, scene| Worth::Text(kernel(row, scene)),
            text: Shown::Own(|row, scene, width| units::fit(&units::elide(&kernel(row, scene), width), width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        grouped(scene.snap, scene.ui.prefs.sites_by, passing(scene))
    }

    fn all(scene: &Scene<'_>) -> usize {
        grouped(scene.snap, scene.ui.prefs.sites_by, all_paths(scene.snap)).len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("launches, copies and allocations have sites, unless --sites off")
    }

    fn basis(scene: &Scene<'_>) -> Option<Basis> {
        let basis = Basis::of_sites(scene, scene.ui.tables[Self::PANE as usize].sort);
        Some(basis.also(scene.ui.prefs.sites_by.word()))
    }

    fn least(_: u16) -> u16 {
        28
    }

    fn key(row: &Row) -> u64 {
        match &row.group {
            None => row.path.map_or(u64::MAX, |path| u64::from(path.0)),
            Some(group) => BuildHasherDefault::<DefaultHasher>::default().hash_one(group),
        }
    }

    /// A call path has its names later than its frames, or not at all.
    fn identity(row: &Row, scene: &Scene<'_>) -> Option<String> {
        match &row.group {
            None => row.path.map(|path| scene.snap.sites.identity(path)),
            Some(_) => None,
        }
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        row.kernel()
            .map_or(Target::Nowhere("no kernel was launched from here"), |id| {
                Target::Row(Tab::Kernels, Pane::Kernels, u64::from(id.0))
            })
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        let (frame, line) = scene.snap.sites.caller(row.path?)?;
        let function = scene.snap.sites.function(frame, line);
        let name = function.split(['(', '<', '+']).next().unwrap_or_default().to_owned();
        (!name.is_empty()).then(|| format!("site~\"{name}\""))
    }
}

struct SiteSubject<'a> {
    row: &'a Row,
    scene: &'a Scene<'a>,
}

impl Subject for SiteSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let snap = self.scene.snap;
        let functions = self.row.path.map_or("", |path| snap.sites.functions_text(path));
        let mut kernels = self.row.kernels.keys();
        test(functions)
            || test(&label(snap, self.row.path))
            || kernels.any(|id| test(&super::kernels::name(snap, *id, crate::NameForm::Full)))
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (process, number) = self.row.site;
        match field {
            Field::Site | Field::File => site(&self.scene.snap.sites, process, number, field),
            Field::Calls => Value::whole(self.row.launches.calls),
            Field::Total => Value::whole(self.row.gpu_time()),
            Field::Share => Value::Number(share(self.row, self.scene)),
            Field::Avg => Value::maybe(self.row.launches.average()),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let rows = table::sorted::<SiteTable>(scene);
    let (list, detail) = match rows.len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 10.max(area.height / 2)),
    };
    let selected = table::panel::<SiteTable>(canvas, list, scene, Some(title(scene)), u8::MAX);
    let (Some(detail), Some(selected)) = (detail, selected) else {
        return;
    };
    let (stack, flames) = if detail.width >= MIN_BOTH {
        let (stack, flames) = left(detail, detail.width / 2);
        (stack, Some(flames))
    } else if detail.height >= 2 * MIN_FLAME {
        let (stack, flames) = top(detail, detail.height / 2);
        (stack, Some(flames))
    } else {
        (detail, None)
    };
    path(canvas, stack, scene, &selected);
    if let Some(flames) = flames {
        if scene.ui.prefs.sites_by == SiteGrouping::Path {
            flame_graph(canvas, flames, scene, &rows, &selected);
        } else {
            flame_graph(canvas, flames, scene, &passing(scene), &selected);
        }
    }
}

/// Number of sites, and what has none.
fn title(scene: &Scene<'_>) -> String {
    let snap = scene.snap;
    let (calls, stacks) = snap.sites.missing();
    let mut parts = vec![units::counted(
        snap.sites.paths().len() as u64,
        "call path",
        "call paths",
    )];
    if scene.ui.prefs.sites_by != SiteGrouping::Path {
        parts.insert(0, format!("by {}", scene.ui.prefs.sites_by.word()));
    }
    if calls > 0 {
        parts.push(format!("{} calls without a site", units::count(calls)));
    }
    if stacks > 0 {
        parts.push(format!("{} stacks overwritten", units::count(stacks)));
    }
    if snap.values.sites_left_out > 0 {
        parts.push(format!(
            "{} launches not counted",
            units::count(snap.values.sites_left_out)
        ));
    }
    parts.join(", ")
}

/// The frames of a call path, innermost first.
fn path(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let snap = scene.snap;
    let checked = row
        .path
        .and_then(|path| snap.sites.path(path))
        .map_or_else(String::new, |path| match (path.copies, path.different) {
            _ if path.is_guessed => "found by frame pointers: callers may be missing".into(),
            (0, _) => String::new(),
            (copies, 0) => format!("checked {}×", units::count(copies)),
            (copies, different) => format!("ambiguous: {} of {} checks differ", different, units::count(copies)),
        });
    let title = match row.paths {
        1 => "Call path".into(),
        many => format!("Call path with most time of {many}"),
    };
    let inner = canvas.frame(area, &title, &checked);
    let (_, inner) = left(inner, 1);
    draw_frames(canvas, inner, scene, row.site.0, row.path);
}

/// A frame of a call path in words.
pub(crate) struct FrameText<'a> {
    /// Function and place; in parentheses what is said in place of a frame.
    function: String,
    role: Role,
    source: Option<&'a SourceLine>,
}

impl FrameText<'_> {
    fn note(text: &str) -> Self {
        Self {
            function: format!("({text})"),
            role: Role::Muted,
            source: None,
        }
    }

    /// All in one line.
    pub(crate) fn text(&self) -> String {
        let Some(source) = self.source else {
            return format!("  {}", self.function);
        };
        format!("  {}  {} {}", self.function, mark(source), source.text)
    }
}

/// What is between a function and its line of source text.
const fn mark(source: &SourceLine) -> char {
    if source.is_doubtful { '?' } else { '│' }
}

/// What `?` means.
const DOUBTFUL: &str = "? may be another text: the file is newer than the run or the build, or another machine's";

/// The frames of a call path, innermost first. Those that are taken get their line of source text.
pub(crate) fn frames<'a>(
    scene: &'a Scene<'a>,
    process: ProcessId,
    path: Option<PathId>,
) -> Box<dyn Iterator<Item = FrameText<'a>> + 'a> {
    let Some(path) = path else {
        return Box::new(std::iter::once(FrameText::note("call path not known")));
    };
    let sites = &scene.snap.sites;
    let written = sites.caller(path);
    let frames = sites.functions(path).map(move |(frame, line)| {
        let function = sites.function(frame, line);
        let is_it = written.is_some_and(|(known, it)| known == frame && std::ptr::eq(it, line));
        FrameText {
            function: match place(line) {
                Some(place) => format!("{function}  {place}"),
                None => with_distance(function, line),
            },
            role: if is_it { Role::Accent } else { Role::Text },
            source: scene.ui.source.line(scene.snap, process, (frame, line)),
        }
    });
    let end = sites.path(path).and_then(|path| path.end.reason());
    Box::new(frames.chain(end.map(FrameText::note)))
}

/// Columns of a source text, at least: fewer say nothing.
const MIN_SOURCE: usize = 12;

/// Draws as many frames as there is room for, each with its line of source text.
pub(crate) fn draw_frames(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    process: ProcessId,
    path: Option<PathId>,
) {
    let mut shown: Vec<FrameText<'_>> = frames(scene, process, path).take(usize::from(area.height)).collect();
    let is_doubtful = |frame: &FrameText<'_>| frame.source.is_some_and(|source| source.is_doubtful);
    let mut note = None;
    if area.height > 2 && shown.iter().any(is_doubtful) {
        shown.truncate(usize::from(area.height) - 1);
        note = Some(area.y + shown.len() as u16);
    }
    let room = usize::from(area.width.saturating_sub(1));
    let with_source = shown.iter().filter(|frame| frame.source.is_some());
    let longest = with_source.map(|frame| units::width(&frame.function)).max();
    // Functions get half of the room, and what source texts leave.
    let texts = shown.iter().filter_map(|frame| frame.source);
    let text = texts.map(|source| units::width(&source.text)).max().unwrap_or(0);
    let most = (room / 2).max(room.saturating_sub(text + 3));
    let column = longest.unwrap_or(0).min(most);
    for (y, frame) in (area.y..).zip(&shown) {
        let Some(source) = frame.source.filter(|_| room >= column + 3 + MIN_SOURCE) else {
            canvas.say(area.x, y, &units::elide(&frame.function, room), room as u16, frame.role);
            continue;
        };
        canvas.say(
            area.x,
            y,
            &units::elide(&frame.function, column),
            column as u16,
            frame.role,
        );
        let role = if source.is_doubtful { Role::Warn } else { Role::Muted };
        let left = room - column - 1;
        let text = format!("{} {}", mark(source), source.text);
        let end = canvas.say(area.x + column as u16 + 1, y, &text, left as u16, role);
        if units::width(&text) > left {
            canvas.say(end - 1, y, "…", 1, role);
        }
    }
    if let Some(y) = note {
        canvas.say(area.x, y, &units::cut(DOUBTFUL, room), room as u16, Role::Warn);
    }
}

/// Functions of a call path, outermost first.
fn functions(snap: &Snapshot, path: Option<PathId>) -> Vec<String> {
    let Some(path) = path else {
        return vec!["(call path not known)".into()];
    };
    let functions = snap.sites.functions(path);
    let mut names: Vec<String> = functions
        .map(|(frame, line)| snap.sites.function(frame, line))
        .collect();
    names.reverse();
    names
}

/// GPU time of rows by call path.
fn flames(snap: &Snapshot, rows: &[Row]) -> Flame {
    let mut flames = Flame::default();
    for row in rows {
        flames.add(&functions(snap, row.path), row.gpu_time());
    }
    flames
}

fn flame_graph(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rows: &[Row], selected: &Row) {
    let flames = flames(scene.snap, rows);
    let chosen = functions(scene.snap, selected.path);
    let part = flames.part(&chosen, scene.ui.prefs.flame_zoom);
    let (total, all) = (units::duration(part.weight()), units::duration(flames.total()));
    let (title, time) = match part.function(&chosen).filter(|_| part.zoom > 0) {
        Some(function) => (
            format!("GPU time below {}", units::elide(function, usize::from(area.width / 2))),
            format!("{total} of {all}"),
        ),
        None => ("GPU time by call path".into(), all),
    };
    let inner = canvas.frame(area, &title, &time);
    flame::draw(canvas, inner, part, &chosen);
}

/// Zooms the flame graph in or out by one function of the selected path.
pub(crate) fn zoom(ui: &mut Ui, snap: &Snapshot, is_in: bool) {
    let scene = Scene { ui, snap };
    let Some(selected) = table::selected::<SiteTable>(&scene) else {
        return;
    };
    let flames = flames(snap, &passing(&scene));
    let path = functions(snap, selected.path);
    // The path that was selected before may be deeper.
    let now = flames.part(&path, ui.prefs.flame_zoom).zoom;
    let next = if is_in { now + 1 } else { now.saturating_sub(1) };
    ui.prefs.flame_zoom = flames.part(&path, next).zoom;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_site_keeps_place_function_and_number() {
        for (site, shown) in [
            ("main +3", "main +3             "),
            (
                "void launch<78>(std::vector<Node, std::allocator<Node> >&)",
                "launch<78>          ",
            ),
            (
                "≈ model.cpp:120 void math::forward<float>(float*) +12",
                "≈ model.cpp:120 +12 ",
            ),
            ("a.cpp:7 math::forward(float*, float const*)", "a.cpp:7 forward     "),
            ("math::forward(float*, float const*)", "math::forward       "),
            ("math::forward(float*, float const*)+0x1a4", "math::forward+0x1a4 "),
            ("void math::forward<float>(float*)+0x1a4 +12", "forwar…at>+0x1a4 +12"),
            ("main+0x1a4 +3", "main+0x1a4 +3       "),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambd…int)#1}"),
        ] {
            assert_eq!(fit(site, 20), shown, "{site}");
        }
    }
}
