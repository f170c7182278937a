//! What an action does: the state changes, and perhaps something is to be done outside. Pure.

use std::sync::Arc;

use super::Pane;
use super::direction::Direction;
use super::keymap::Action;
use super::menu::{self, MenuKind};
use super::prompt::Prompt;
use super::time::Zoom;
use super::track::Track;
use super::widgets::table::Scene;
use super::{
    Effect, Popup, Since, Tab, Ui, columns, compare, escalation, export, jump, list, navigation, question, stretch,
    tab, timeline_nav,
};
use roctop_model::query::Filter;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::units::{self, Unit};

/// An interrupt this soon after another is not meant as the first one.
const SECOND_INTERRUPT_WITHIN: u64 = 10_000_000_000;

/// Keys that come in one read look like a paste on a terminal that does not say so.
pub(crate) const TOGETHER: &str = "keys that come all at once, as in a paste, do nothing outside of the screen";

pub(super) fn act(ui: &mut Ui, latest: &Arc<Snapshot>, action: Action) -> Effect {
    if action.is_act() && ui.read.is_burst {
        ui.say(latest, TOGETHER);
        return Effect::None;
    }
    let snap = ui.standing(latest);
    match action {
        Action::Show(tab) if !tab.is_there(latest) => {}
        Action::Show(tab) => jump::carry(ui, &snap, tab),
        Action::Up => list::step(ui, &snap, -1),
        Action::Down => list::step(ui, &snap, 1),
        Action::PageUp => list::step(ui, &snap, -list::page(ui)),
        Action::PageDown => list::step(ui, &snap, list::page(ui)),
        Action::First => list::step(ui, &snap, isize::MIN),
        Action::Last => list::step(ui, &snap, isize::MAX),
        Action::NextPane => list::turn_pane(ui, 1),
        Action::PreviousPane => list::turn_pane(ui, -1),
        Action::Left if ui.tab == Tab::Log => tab::log::shift(ui, &snap, Direction::Back),
        Action::Right if ui.tab == Tab::Log => tab::log::shift(ui, &snap, Direction::On),
        Action::Left if ui.tab == Tab::Launches => stretch::shift(ui, &snap, Direction::Back),
        Action::Right if ui.tab == Tab::Launches => stretch::shift(ui, &snap, Direction::On),
        Action::Left if ui.tab == Tab::Diff => compare::shift(ui, &snap, Direction::Back),
        Action::Right if ui.tab == Tab::Diff => compare::shift(ui, &snap, Direction::On),
        Action::ZoomIn if ui.tab == Tab::Diff => compare::resize(ui, &snap, true),
        Action::ZoomOut if ui.tab == Tab::Diff => compare::resize(ui, &snap, false),
        Action::ZoomIn if ui.tab == Tab::Sites => tab::sites::zoom(ui, &snap, true),
        Action::ZoomOut if ui.tab == Tab::Sites => tab::sites::zoom(ui, &snap, false),
        Action::Compare => compare::turn(ui, &snap),
        Action::OtherWindow => compare::turn_side(ui, &snap),
        Action::Left => timeline_nav::pan(ui, &snap, Direction::Back),
        Action::Right => timeline_nav::pan(ui, &snap, Direction::On),
        Action::ZoomIn => timeline_nav::zoom(ui, &snap, Zoom::In),
        Action::ZoomOut => timeline_nav::zoom(ui, &snap, Zoom::Out),
        Action::Fit => timeline_nav::fit(ui, &snap),
        Action::ZoomTo => timeline_nav::zoom_to(ui, &snap),
        Action::Previous => timeline_nav::neighbour(ui, &snap, Direction::Back),
        Action::Next => timeline_nav::neighbour(ui, &snap, Direction::On),
        Action::PreviousGap => timeline_nav::gap(ui, &snap, Direction::Back),
        Action::NextGap => timeline_nav::gap(ui, &snap, Direction::On),
        // The newest line is the last: the next match is further up.
        Action::NextMatch if ui.tab == Tab::Log => tab::log::find(ui, &snap, Direction::Back),
        Action::PreviousMatch if ui.tab == Tab::Log => tab::log::find(ui, &snap, Direction::On),
        Action::NextMatch => timeline_nav::matching(ui, &snap, Direction::On),
        Action::PreviousMatch => timeline_nav::matching(ui, &snap, Direction::Back),
        Action::Range => timeline_nav::range(ui, &snap),
        Action::Stretch => stretch::select(ui, &snap),
        Action::Mark => timeline_nav::mark(ui, &snap),
        Action::Marks => timeline_nav::to_mark(ui, &snap),
        Action::GoTo => ask(ui, "goto "),
        Action::Fold => timeline_nav::fold(ui),
        Action::Enter => return enter(ui, latest, &snap),
        Action::Back => travel(ui, &snap, Direction::Back),
        Action::Forward => travel(ui, &snap, Direction::On),
        Action::Close => return close(ui),
        Action::Pause => pause(ui, snap),
        Action::Follow => timeline_nav::follow(ui),
        Action::Filter if ui.tab == Tab::Log => ui.prompt = Some(Prompt::search(ui.log.search.clone())),
        Action::Filter => ui.prompt = Some(Prompt::new(ui.filter.clone())),
        Action::FilterTo => narrow(ui, &snap, |term| term),
        Action::FilterOut => narrow(ui, &snap, |term| format!("!({term})")),
        Action::Pick => return pick(ui),
        Action::Rest => rest(ui, latest),
        Action::Quantity => ui.prefs.quantity = ui.prefs.quantity.next(),
        Action::Mute => mute(ui, latest, &snap),
        Action::Command => ask(ui, ""),
        Action::SortNext | Action::SortRight => list::sort(ui, &snap, 1),
        Action::SortLeft => list::sort(ui, &snap, -1),
        Action::Reverse => list::reverse(ui),
        Action::Columns => columns::open(ui, &snap),
        Action::Group => group(ui, &snap),
        Action::Unit => turn_unit(ui, latest),
        Action::NameForm => ui.prefs.names = ui.prefs.names.next(),
        Action::Logarithmic => ui.prefs.logarithmic ^= true,
        Action::Reset => return reset(ui, latest),
        Action::Baseline => baseline(ui, snap),
        Action::Export => ask_to_export(ui, &snap),
        Action::ExportAll => ask_to_export_all(ui, &snap),
        Action::Record => return record(ui),
        Action::Picture => ask_for_picture(ui, &snap),
        Action::Copy => return copy(ui, &snap, tab::copied),
        Action::CopyName => return copy(ui, &snap, tab::copied_name),
        Action::Help => ui.popup = Some(Popup::Help(0)),
        Action::Hints => ui.prefs.bare ^= true,
        Action::Redraw => return Effect::Redraw,
        Action::Interrupt => return interrupt(ui, latest),
        Action::Signals if latest.is_running() => menu::open(ui, MenuKind::Signals),
        Action::Type if latest.is_running() => ask_to_type(ui, latest),
        Action::Signals | Action::Type => ui.say(latest, "the program does not run"),
        Action::Suspend => return Effect::Suspend,
        // Neither a job nor the program of a rank is this screen's to stop.
        Action::Quit
            if latest.job.is_none()
                && ui.prefs.detached.back.is_none()
                && latest.is_running()
                && ui.program.fate.is_none() =>
        {
            menu::open(ui, MenuKind::Quit);
        }
        Action::Quit => return Effect::Quit,
    }
    Effect::None
}

fn ask_to_export(ui: &mut Ui, snap: &Arc<Snapshot>) {
    let (name, bytes) = export::export_csv(ui, snap);
    question::ask(ui, format!("write {name}"), Effect::Export { name, bytes });
}

fn ask_to_export_all(ui: &mut Ui, snap: &Arc<Snapshot>) {
    let (name, files) = export::all(ui, snap);
    let text = format!("write {} files into {name}", files.len());
    question::ask(ui, text, Effect::ExportAll { name, files });
}

fn ask_for_picture(ui: &mut Ui, snap: &Arc<Snapshot>) {
    let name = export::stem(ui, snap);
    question::ask(ui, format!("write {name}.svg, .ans and .txt"), Effect::Picture(name));
}

/// Asks for a command that begins so.
fn ask(ui: &mut Ui, begun: &str) {
    ui.prompt = Some(Prompt::command(begun, ui.filter.clone()));
}

/// Goes to what belongs to the selected thing.
fn enter(ui: &mut Ui, latest: &Snapshot, snap: &Snapshot) -> Effect {
    let target = jump::entered(ui, snap);
    if let jump::Target::Rank(rank) = target {
        return Effect::OpenRank(rank);
    }
    if let Some(why) = jump::go(ui, snap, &target) {
        ui.say(latest, why);
    }
    Effect::None
}

fn travel(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    if !navigation::travel(ui, snap, way) {
        ui.say(
            snap,
            match way {
                Direction::Back => "no place to go back to",
                Direction::On => "no place to go forward to",
            },
        );
    }
}

/// The screen stands still, or goes on.
fn pause(ui: &mut Ui, snap: Arc<Snapshot>) {
    if ui.frozen.take().is_none() {
        let columns = ui.lane_columns();
        ui.time.stand(&snap, columns);
        ui.frozen = Some(snap);
    }
}

/// Asks for a recording or for its end. The name comes from outside.
fn record(ui: &mut Ui) -> Effect {
    let Some(place) = &ui.recording else {
        return Effect::NameRecording;
    };
    let text = format!("end the recording {place}");
    question::ask(ui, text, Effect::Record(None));
    Effect::None
}

/// Asks whether counters are to rest, or to count again.
fn rest(ui: &mut Ui, latest: &Snapshot) {
    match tab::counters::switched(latest) {
        Ok(true) => question::ask(ui, "pause counting".into(), Effect::Rest(true)),
        Ok(false) => question::ask(ui, "count again".into(), Effect::Rest(false)),
        Err(why) => ui.say(latest, why),
    }
}

/// An alert is muted, or no longer.
fn mute(ui: &mut Ui, latest: &Snapshot, snap: &Snapshot) {
    let Some(alert) = tab::alerts::selected(&Scene { ui, snap }) else {
        return ui.say(latest, "no alert is selected");
    };
    if let Some(at) = ui.muted.iter().position(|known| *known == alert) {
        ui.muted.remove(at);
        ui.say(latest, "the alert counts again");
    } else {
        ui.muted.push(alert);
        ui.say(latest, "muted; d shows it again");
    }
}

fn copy(ui: &mut Ui, snap: &Snapshot, text: fn(&Scene<'_>) -> Option<String>) -> Effect {
    let Some(text) = text(&Scene { ui, snap }) else {
        return Effect::None;
    };
    ui.say(snap, "copied to the terminal's clipboard");
    Effect::Clipboard(text)
}

fn baseline(ui: &mut Ui, snap: Arc<Snapshot>) {
    let at = units::clock(snap.elapsed());
    ui.say(&snap, &format!("baseline is {at}; D shows what changed since"));
    ui.baseline = Some(snap);
    ui.compare.chosen = None;
}

/// Asks whether keys are to go to the program, if they can.
fn ask_to_type(ui: &mut Ui, latest: &Snapshot) {
    if ui.prefs.detached.attached {
        return ui.say(latest, "the program's terminal is with the roctop that started it");
    }
    if ui.prefs.detached.is_piped {
        return ui.say(latest, "the program has a pipe in place of a terminal (--app-io pipe)");
    }
    question::ask_to_type(ui);
}

/// Sends all further keys to the program.
pub(super) fn begin_typing(ui: &mut Ui, latest: &Snapshot) {
    if !latest.is_running() {
        return ui.say(latest, "the program does not run");
    }
    ui.program.typing = true;
    ui.show(Tab::Log);
    ui.log.scrolled = 0;
}

/// The first interrupt goes to the program; a second one soon after, while it still runs, opens a menu. Interrupts that
/// come in one read with other keys open none.
fn interrupt(ui: &mut Ui, latest: &Snapshot) -> Effect {
    if !latest.is_running() {
        return Effect::Quit;
    }
    let is_second = |at| latest.now.saturating_sub(at) < SECOND_INTERRUPT_WITHIN;
    if ui.program.interrupted.is_some_and(is_second) && !ui.read.is_burst {
        ui.program.interrupted = None;
        escalation::begin(ui, latest);
        return Effect::None;
    }
    ui.program.interrupted = Some(latest.now);
    ui.say(
        latest,
        "SIGINT sent to the program; ctrl-c again for SIGTERM and SIGKILL",
    );
    Effect::Interrupt
}

/// Takes back one thing: the range, the selection, at last the filter.
/// Closes what is open; with nothing open, a screen that was opened from another one ends.
fn close(ui: &mut Ui) -> Effect {
    if ui.range.take().is_some() || ui.gap.take().is_some() || ui.slice.take().is_some() {
        return Effect::None;
    }
    if matches!(ui.tab, Tab::Launches | Tab::Timeline) && ui.stretch.take().is_some() {
        return Effect::None;
    }
    if ui.tab == Tab::Log && (ui.log.found.take().is_some() || !ui.log.search.is_empty()) {
        ui.log.search = Filter::default();
        return Effect::None;
    }
    if let Some(table) = ui.table_mut()
        && table.selected.take().is_some()
    {
        return Effect::None;
    }
    if ui.filter.is_empty() && ui.prefs.detached.back.is_some() {
        return Effect::Quit;
    }
    ui.filter = Filter::default();
    Effect::None
}

fn group(ui: &mut Ui, snap: &Snapshot) {
    match ui.tab {
        Tab::Timeline => {
            ui.prefs.layout = ui.prefs.layout.next();
            // A gap keeps its GPU, whatever rows there are.
            let agent = ui.track.filter(|_| ui.gap.is_some()).and_then(Track::agent);
            ui.track = agent.map(|agent| Track::Lane(LaneKey::Agent(agent)));
        }
        Tab::Markers => ui.prefs.flat ^= true,
        Tab::Job => {
            let next = tab::job_rows::kind(&Scene { ui, snap }).next();
            ui.prefs.job_rows = Some(next);
            ui.tables[Pane::JobRows as usize].selected = None;
        }
        Tab::Sites => {
            ui.prefs.sites_by = ui.prefs.sites_by.next();
            ui.tables[Pane::Sites as usize].selected = None;
        }
        Tab::Steps => ui.prefs.stepped = ui.prefs.stepped.wrapping_add(1),
        _ => {
            ui.prefs.grouping = ui.prefs.grouping.next();
            ui.tables[Pane::Kernels as usize].selected = None;
        }
    }
}

/// Asks for counters; which there are is found out once.
fn pick(ui: &mut Ui) -> Effect {
    ask(ui, "pmc ");
    if ui.counters.is_empty() {
        Effect::ListCounters
    } else {
        Effect::None
    }
}

/// Numbers count from now on. A baseline counts from another beginning than what it would be compared with.
fn reset(ui: &mut Ui, latest: &Snapshot) -> Effect {
    (ui.baseline, ui.frozen) = (None, None);
    ui.say(latest, "statistics reset; :whole counts from the beginning again");
    Effect::Reset(Since::Now)
}

/// The next unit for times in lists.
fn turn_unit(ui: &mut Ui, latest: &Snapshot) {
    ui.prefs.unit = Unit::next(ui.prefs.unit);
    let word = Unit::ALL.iter().find(|known| Some(known.0) == ui.prefs.unit);
    let text = word.map_or("each time in the unit that fits".into(), |word| {
        format!("times in {}", word.1)
    });
    ui.say(latest, &text);
}

/// Adds to the filter what `wanted` makes of the term that names the selected row.
fn narrow(ui: &mut Ui, snap: &Snapshot, wanted: fn(String) -> String) {
    let scene = Scene { ui, snap };
    let term = match ui.pane() {
        Some(pane) => pane.list().term(&scene),
        None => timeline_nav::term(&scene),
    };
    let Some(term) = term else {
        return ui.say(snap, "no row is selected that a filter could name");
    };
    let term = wanted(term);
    let source = match ui.filter.source.trim() {
        "" => term,
        source if source.contains('|') => format!("({source}) {term}"),
        source => format!("{source} {term}"),
    };
    match Filter::parse(&source) {
        Ok(filter) => ui.filter = filter,
        Err(error) => ui.say(snap, &error.message),
    }
}
