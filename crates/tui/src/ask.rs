//! Answers to questions: the rows of the screen's own lists, so that `roctop ask` and the screen have the same numbers.

mod open;
mod single;
mod status;

use std::sync::Arc;

use self::single::slowest;
use super::compare::{self, Comparison};
use super::launches;
use super::relation::Kind;
use super::tab::{diff, running};
use super::widgets::list::List;
use super::widgets::table::{self, AnswerRow, Scene};
use super::{Grouping, Pane, SiteGrouping, Ui, columns};
use roctop_model::analysis::collectives as words;
use roctop_model::analysis::placement;
use roctop_model::ask::{
    Answer, Basis, Buffers, Cell, Clause, Column, Compared, Id, Order, Question, Row, Top, Unit, Verb, heading,
    window as asked_window,
};
use roctop_model::query::Error;
use roctop_model::{Counted, Lane, Snapshot};
use roctop_trace::item::Span;
use roctop_trace::spelling::did_you_mean;
use roctop_trace::units;

pub(crate) use self::open::go;

/// Reads the records of a stretch of time again; `None` if they cannot be read.
pub type Reread<'a> = &'a mut dyn FnMut(Span) -> Option<Snapshot>;

/// Where an answer comes from.
pub struct Source<'a> {
    /// What is known.
    pub snap: &'a Arc<Snapshot>,
    /// Records of a stretch of time that are counted again at most.
    pub most: usize,
    /// How records are read again that are not kept.
    pub reread: Option<Reread<'a>>,
}

/// Answers a question.
///
/// Errors: a field, step or range that there is not; with its column.
pub fn answer(question: &Question, source: &mut Source<'_>) -> Result<Answer, Error> {
    let snap = source.snap.clone();
    let mut ui = Ui::new(snap.mode);
    ui.filter = question.filter.clone();
    // A tree of markers would put small ones before great ones.
    ui.prefs.flat = true;
    let mut asking = Asking {
        question,
        answer: Answer::about(&snap, &question.source),
        ui,
        snap,
    };
    if !question.filter.understood.is_empty() {
        let understood = question.filter.understood.join(", ");
        asking
            .answer
            .notes
            .push(format!("the filter is understood as {understood}"));
    }
    let whole = asking.snap.clone();
    let asked = asked_window(question, &whole)?;
    match question.verb {
        Verb::Top(top) => {
            asking.narrow(asked, source);
            asking.top(top)?;
        }
        Verb::Slowest(slow) => {
            asking.narrow(asked, source);
            if let Some(by) = &question.by {
                return Err(error(by, "slowest is sorted by duration: it takes no by"));
            }
            slowest(&mut asking, slow);
        }
        Verb::Errors => {
            asking.narrow(asked, source);
            asking.sort(Pane::Operations)?;
            status::errors(&mut asking);
        }
        Verb::Gaps => {
            asking.sort(Pane::Gaps)?;
            asking.gaps(asked);
        }
        Verb::Steps => {
            asking.sort(Pane::Steps)?;
            asking.steps(asked);
        }
        Verb::Hang => asking.hang()?,
        Verb::Compare(compared) => asking.compare(compared)?,
        Verb::Memory => {
            asking.sort(Pane::Memory)?;
            asking.list(Pane::Memory, &[], &|_| true);
        }
        Verb::Gauges => {
            asking.sort(Pane::Devices)?;
            asking.list(Pane::Devices, &["Device"], &|_| true);
        }
        Verb::Placement(buffers) => {
            if let Some(by) = &question.by {
                return Err(error(by, "placement is sorted by rank: it takes no by"));
            }
            if !question.filter.is_empty() {
                return Err(Error {
                    column: question.source.find("where").unwrap_or(0),
                    message: "placement judges all processes together: it takes no filter".into(),
                });
            }
            asking.answer.places = placement::places(&asking.snap);
            if buffers != Buffers::None {
                placement::add_buffers(&mut asking.answer.places, &asking.snap);
            }
            asking.answer.place(question.limit);
        }
        Verb::Status => status::status(&mut asking),
    }
    Ok(asking.answer)
}

fn error<T>(clause: &Clause<T>, message: impl Into<String>) -> Error {
    Error {
        column: clause.column,
        message: message.into(),
    }
}

/// Words of filters for columns that have another name in files.
const ALIASES: [(&str, &str); 12] = [
    ("dur", "Duration_ns"),
    ("dur", "Total_ns"),
    ("begin", "Begin_ns"),
    ("count", "Calls"),
    ("calls", "Count"),
    ("share", "Share"),
    ("bw", "Average_Bps"),
    ("err", "Errors"),
    ("gpu", "GPU_ns"),
    ("dev", "Device"),
    ("pid", "Process_Id"),
    ("skew", "Skew_ns"),
];

/// Fields by which kernels are put together.
const GROUPS: [(&str, Grouping); 7] = [
    ("stream", Grouping::Stream),
    ("dev", Grouping::Agent),
    ("gpu", Grouping::Agent),
    ("pid", Grouping::Process),
    ("process", Grouping::Process),
    ("range", Grouping::Marker),
    ("marker", Grouping::Marker),
];

/// A question while it is answered.
struct Asking<'a> {
    question: &'a Question,
    answer: Answer,
    ui: Ui,
    /// What the answer is about.
    snap: Arc<Snapshot>,
}

impl Asking<'_> {
    /// Keeps the records of a stretch of time alone.
    fn narrow(&mut self, asked: Option<Span>, source: &mut Source<'_>) {
        let Some(asked) = asked else { return };
        self.answer.window.span = asked;
        let counted = match self.question.verb {
            Verb::Top(Top::Calls | Top::Mpi) if self.question.filter.is_empty() => Counted::Calls,
            _ => Counted::All,
        };
        let narrowed = self.snap.narrowed(asked, counted, source.most);
        let reread = |source: &mut Source<'_>| source.reread.as_mut().and_then(|reread| reread(asked));
        if let Some(narrowed) = narrowed.or_else(|| reread(source)) {
            self.snap = Arc::new(narrowed);
            return;
        }
        let sums = self.snap.values.seconds.span();
        let has_sums = sums.is_some_and(|sums| sums.begin <= asked.begin || sums.begin <= self.snap.origin);
        if self.question.verb == Verb::Top(Top::Kernels) && has_sums && self.group().is_none() {
            let (summed, span) = self.snap.summed(asked);
            self.answer.window.asked = (span != asked).then_some(asked);
            self.answer.window.span = span;
            self.answer.basis = Basis::Seconds;
            self.snap = Arc::new(summed);
            return;
        }
        let kept = self.snap.kept_part(asked, counted, source.most);
        self.answer.window.asked = Some(asked);
        self.answer.window.span = kept;
        self.answer.basis = Basis::Kept;
        let empty = Span {
            begin: kept.end,
            end: kept.end,
        };
        let narrowed = self.snap.narrowed(kept, counted, usize::MAX / 2);
        let narrowed = narrowed.or_else(|| self.snap.narrowed(empty, counted, usize::MAX / 2));
        if let Some(narrowed) = narrowed {
            self.snap = Arc::new(narrowed);
        }
        self.note("memory no longer holds the records before: a recording does (roctop record)");
    }

    fn note(&mut self, text: impl Into<String>) {
        self.answer.notes.push(text.into());
    }

    fn group(&self) -> Option<Grouping> {
        let by = self.question.by.as_ref()?;
        GROUPS.iter().find(|known| known.0 == by.value).map(|known| known.1)
    }

    fn site_group(&self) -> Option<SiteGrouping> {
        let by = self.question.by.as_ref()?;
        let known = SiteGrouping::ALL.into_iter().find(|known| known.1 == by.value)?;
        Some(known.0)
    }

    /// Sorts a list by the field that the question names.
    fn sort(&mut self, pane: Pane) -> Result<(), Error> {
        let Some(by) = &self.question.by else { return Ok(()) };
        let mut aliases = ALIASES.iter().filter(|alias| alias.0 == by.value);
        let found = columns::named(pane, &by.value);
        let found = found.or_else(|| aliases.find_map(|alias| columns::named(pane, alias.1)));
        let found = found.ok_or_else(|| {
            let fields = self.fields(pane);
            let near = did_you_mean(&by.value, fields.iter().map(String::as_str));
            let fields = fields.join(", ");
            error(
                by,
                format!("no field {:?} to sort by{near}; fields are {fields}", by.value),
            )
        })?;
        self.ui.tables[pane as usize].sort.column = Some(found);
        Ok(())
    }

    /// Words by which a list is sorted or put together: the heading on the screen, if it is a word, or that of the answer.
    fn fields(&self, pane: Pane) -> Vec<String> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let titles = columns::words(pane);
        let title = |name: &str| {
            let known = titles.iter().find(|known| known.0.name() == name)?;
            Some(known.1.trim()).filter(|title| is_word(title))
        };
        let (columns, _, _) = pane.list().answer(&self.scene(), &[], 0);
        let words = columns.iter().map(|column| match title(&column.name) {
            Some(title) => title.to_lowercase(),
            None => heading(&column.name).to_lowercase(),
        });
        let groups: &[&str] = match pane {
            Pane::Kernels => &["stream", "dev", "pid", "range"],
            Pane::Sites => &["line", "function", "file", "library", "operator", "module"],
            _ => &[],
        };
        words.chain(groups.iter().map(ToString::to_string)).collect()
    }

    /// The rows are in the order of a list.
    fn order(&mut self, pane: Pane) {
        let sort = self.ui.tables[pane as usize].sort;
        self.answer.order = Some(Order {
            column: sort.column.unwrap_or_else(|| pane.list().sort()).name().to_owned(),
            is_ascending: sort.ascending,
        });
    }

    fn top(&mut self, top: Top) -> Result<(), Error> {
        let pane = match top {
            Top::Kernels => Pane::Kernels,
            Top::Calls | Top::Mpi => Pane::Operations,
            Top::Copies => Pane::Routes,
            Top::Markers | Top::Ranges => Pane::Markers,
            Top::Processes => Pane::Processes,
            Top::Collectives => Pane::Collectives,
            Top::Sites => Pane::Sites,
        };
        if let Some(grouping) = self.group().filter(|_| top == Top::Kernels) {
            self.ui.prefs.grouping = grouping;
        } else if let Some(grouping) = self.site_group().filter(|_| top == Top::Sites) {
            self.ui.prefs.sites_by = grouping;
        } else {
            self.sort(pane)?;
        }
        if top == Top::Ranges {
            // A pattern of marks alone has no time.
            let at = self.place(pane, "Total_ns");
            self.list(pane, &[], &|row| {
                row.cells.get(at).is_some_and(|total| *total != Cell::None)
            });
        } else if top == Top::Mpi {
            status::mpi(self);
        } else {
            self.list(pane, &[], &|_| true);
        }
        let kind = match top {
            Top::Kernels => Some(Kind::Kernels),
            Top::Calls | Top::Mpi => Some(Kind::Calls),
            Top::Copies => Some(Kind::Copies),
            Top::Markers | Top::Ranges => Some(Kind::Ranges),
            Top::Processes | Top::Collectives | Top::Sites => None,
        };
        if let Some(relation) = kind.and_then(|kind| launches::relation(&self.scene(), kind)) {
            let source = &self.ui.filter.source;
            self.note(format!(
                "no name here matches the filter: {source}; the rows are related: {relation}"
            ));
            let is_dropped = |lane: &Lane| Kind::of(lane.key).is_some() && lane.total > lane.kept() as u64;
            if self.snap.lanes.iter().any(|lane| is_dropped(lane)) {
                self.answer.basis = Basis::Kept;
            }
        }
        let at = self
            .answer
            .columns
            .iter()
            .position(|column| column.name == "Is_estimate");
        let is_estimate = |row: &Row| at.is_some_and(|at| row.cells[at] == Cell::Number(1.0));
        if self.answer.rows.iter().any(is_estimate) {
            self.answer.basis = Basis::Kept;
            self.note(match top {
                Top::Copies => "Is_estimate 1: of the copies that are still kept, in proportion, or an upper bound of copies by kernels",
                _ => "Is_estimate 1: of the launches that are still kept, in proportion",
            });
        }
        let is_least = self.snap.values.markers.iter().any(|row| row.is_least);
        if is_least && (matches!(top, Top::Markers | Top::Ranges) || self.group() == Some(Grouping::Marker)) {
            self.answer.basis = Basis::Kept;
            self.note(
                "Is_least 1: at least this GPU work was launched in the ranges; memory no longer holds all of it",
            );
        }
        if top == Top::Sites {
            self.answer.notes.extend(self.snap.launches_without_path());
            self.note_names();
        }
        if top == Top::Collectives {
            for waiting in &self.snap.values.collectives.waiting {
                self.answer.notes.push(words::missing(&self.snap, waiting));
            }
        }
        Ok(())
    }

    /// Notes why call paths have no names.
    fn note_names(&mut self) {
        let (waiting, without) = self.snap.sites.unnamed_callers();
        let paths = |count: usize| units::counted(count as u64, "call path has", "call paths have");
        if waiting > 0 {
            let again = if self.snap.is_running() {
                "names are looked for from the first question on: ask again"
            } else {
                "nobody looked for them"
            };
            self.note(format!("{} no name yet; {again}", paths(waiting)));
        }
        if without > 0 {
            let why = "their files have no symbols, were replaced, or are not on this machine; 'roctop record --symbols' keeps \
                       names in the recording";
            self.note(format!("{} no name: {why}", paths(without)));
        }
    }

    /// Where a column of a list stands.
    fn place(&self, pane: Pane, name: &str) -> usize {
        let scene = self.scene();
        let (columns, _, _) = pane.list().answer(&scene, &[], 0);
        columns
            .iter()
            .position(|column| column.name == name)
            .unwrap_or(usize::MAX)
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            ui: &self.ui,
            snap: &self.snap,
        }
    }

    /// Answers with the rows of a list that a test takes.
    fn list(&mut self, pane: Pane, shown: &[&str], takes: &dyn Fn(&AnswerRow) -> bool) {
        let list: &dyn List = pane.list();
        let (columns, mut rows, all) = list.answer(&self.scene(), shown, usize::MAX);
        rows.retain(takes);
        let count = rows.len();
        rows.truncate(self.question.limit);
        let rows = rows.into_iter().map(|row| Row {
            id: Some(Id::of_row(pane.word(), &row.name.0, row.name.1)),
            cells: row.cells,
        });
        self.order(pane);
        self.answer.columns = columns;
        self.answer.rows = rows.collect();
        self.answer.count = count;
        if all == 0 && !self.ui.filter.is_empty() {
            let unfiltered = Ui {
                prefs: self.ui.prefs.clone(),
                ..Ui::new(self.snap.mode)
            };
            let scene = Scene {
                ui: &unfiltered,
                snap: &self.snap,
            };
            let known = list.keys(&scene).len();
            self.note(format!("0 of {known} match the filter: {}", self.ui.filter.source));
        }
    }

    /// Ids of rows that have a begin and a duration: the screen shows the stretch.
    fn stretches(&mut self) {
        let at = |name: &str| self.answer.columns.iter().position(|column| column.name == name);
        let Some((begin, nanos)) = at("Begin_ns").zip(at("Duration_ns")) else {
            return;
        };
        for row in &mut self.answer.rows {
            if let (Cell::Number(begin), Cell::Number(nanos)) = (&row.cells[begin], &row.cells[nanos]) {
                row.id = Some(Id::Stretch(Span {
                    begin: *begin as u64,
                    end: (*begin + *nanos) as u64,
                }));
            }
        }
    }

    fn gaps(&mut self, asked: Option<Span>) {
        if let Some(asked) = asked {
            self.snap = Arc::new(self.snap.analysed(asked));
        }
        self.list(Pane::Gaps, &[], &|_| true);
        self.stretches();
        let analysis = self.snap.analysis();
        let rows = &analysis.whole;
        if let Some(wanted) = asked {
            let stretch = analysis.stretch;
            if stretch != wanted {
                self.answer.window.asked = Some(wanted);
                self.answer.basis = Basis::Kept;
            }
            self.answer.window.span = stretch;
        }
        let starts = rows.iter().filter(|row| row.start_up > 0 && asked.is_none());
        let starts = starts.map(|row| {
            let (gpu, start) = (self.snap.names.agent_label(row.agent), units::duration(row.start_up));
            format!("{gpu} ran its first kernel after {start}: the time before is start-up, not idle")
        });
        self.answer.notes.extend(starts);
        if rows.iter().any(|row| row.is_estimated) {
            self.answer.basis = Basis::Kept;
        }
        let least = units::duration(self.snap.thresholds.gap);
        self.note(format!(
            "neither kernel nor copy for {least} or more; at most the 100 longest"
        ));
    }

    fn steps(&mut self, asked: Option<Span>) {
        let (begin, nanos) = (
            self.place(Pane::Steps, "Begin_ns"),
            self.place(Pane::Steps, "Duration_ns"),
        );
        let is_in = |row: &AnswerRow| {
            let number = |at: usize| match row.cells.get(at) {
                Some(Cell::Number(value)) => *value as u64,
                _ => 0,
            };
            let end = number(begin).saturating_add(number(nanos));
            asked.is_none_or(|asked| number(begin) >= asked.begin && end <= asked.end)
        };
        self.list(Pane::Steps, &[], &is_in);
        self.stretches();
        if let Some(asked) = asked {
            self.answer.window.span = asked;
        }
        if let Some(steps) = self.snap.steps(0) {
            let (median, p99) = (units::duration(steps.median), units::duration(steps.p99));
            let outliers = steps.outliers;
            let is_estimate = self.snap.busy_in_steps(0).iter().any(|busy| busy.is_estimate);
            if steps.is_estimate {
                self.answer
                    .notes
                    .push("steps are numbered by the kernels before them: earlier steps were not counted".into());
            }
            if is_estimate {
                self.answer.notes.push("Is_estimate 1: memory no longer has all kernels of the step; its GPU time comes from sums over time".into());
            }
            if steps.since.is_some() || is_estimate {
                self.answer.basis = Basis::Kept;
            }
            self.note(format!(
                "of all steps: median {median}, p99 {p99}, {outliers} much longer than most"
            ));
        }
    }

    fn hang(&mut self) -> Result<(), Error> {
        if let Some(by) = &self.question.by {
            return Err(error(by, "hang is sorted by age: it takes no by"));
        }
        let shown = ["Kind"];
        let scene = self.scene();
        let (rows, open) = running::hanging(&scene);
        let columns = table::answer_columns::<running::RunningTable>(&scene, &shown);
        let answered = table::answer_rows::<running::RunningTable>(&scene, &rows, &shown, self.question.limit);
        let count = rows.len();
        self.answer.columns = columns.into_iter().map(|column| column.1).collect();
        self.answer.order = Some(Order {
            column: "Age_ns".into(),
            is_ascending: false,
        });
        self.answer.rows = answered
            .into_iter()
            .map(|row| Row {
                id: Some(Id::of_row(Pane::Running.word(), &row.name.0, row.name.1)),
                cells: row.cells,
            })
            .collect();
        self.answer.count = count;
        let least = units::duration(self.snap.thresholds.hang);
        let open = units::counted(open as u64, "piece of work is", "pieces of work are");
        if self.snap.is_running() {
            self.note(format!("{open} open; listed if for more than {least}"));
        } else {
            self.note(format!(
                "{} open at the end",
                open.replace(" is", " was").replace(" are", " were")
            ));
        }
        for waiting in &self.snap.values.collectives.waiting {
            self.answer.notes.push(words::missing(&self.snap, waiting));
        }
        Ok(())
    }

    fn compare(&mut self, compared: Compared) -> Result<(), Error> {
        let snap = self.snap.clone();
        let window = |(from, to): (u64, u64)| {
            let at = |since: u64| snap.origin.saturating_add(since).min(snap.now.max(snap.origin));
            Span {
                begin: at(from),
                end: at(to),
            }
        };
        let chosen = match compared {
            Compared::Usual => None,
            Compared::Ago { length, back } => Some(Comparison::Ago { length, back }),
            Compared::Steps(before, after) => {
                let both = compare::named(&self.ui, &snap, [before, after]);
                let clause = Clause {
                    column: "compare ".len(),
                    value: (),
                };
                Some(both.map_err(|why| error(&clause, format!("{why}; 'steps' lists them")))?)
            }
            Compared::Windows([before, after]) => Some(Comparison::Windows {
                before: window(before),
                after: window(after),
            }),
        };
        self.ui.compare.chosen = chosen;
        self.sort(Pane::Changes)?;
        self.list(Pane::Changes, &[], &|_| true);
        let counted = diff::counted(&self.scene());
        if let Some((is_exact, [before, after])) = counted {
            self.answer.window.span = Span {
                begin: before.begin.min(after.begin),
                end: before.end.max(after.end),
            };
            if !is_exact {
                self.answer.basis = Basis::Seconds;
            }
            let since = |at: u64| format!("{:.3} s", at.saturating_sub(snap.origin) as f64 / 1e9);
            let words = |span: Span| format!("{} to {}", since(span.begin), since(span.end));
            self.note(format!("before: {}; after: {}", words(before), words(after)));
        }
        Ok(())
    }

    /// Adds a column that no list has.
    fn column(&mut self, name: &str, unit: Unit, rank: u8) {
        self.answer.columns.push(Column {
            name: name.into(),
            unit,
            rank,
            is_wide: false,
        });
    }
}
