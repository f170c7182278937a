//! Title, tabs, scope: what is watched, how it stands, what is shown of it.

use std::collections::HashSet;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::table::Scene;
use crate::hit_map::Hit;
use crate::keymap::Action;
use crate::tab::{self, counters};
use crate::theme::Role;
use crate::{Size, Tab, Ui, View};
use roctop_model::snapshot::Loading;
use roctop_model::{Mode, Snapshot, snapshot};
use roctop_trace::item::{AgentKind, Exit, NodeId};
use roctop_trace::units;

/// Shape, word and role of the state: never a colour alone.
pub(crate) fn state(ui: &Ui, latest: &Snapshot) -> (&'static str, String, Role) {
    if ui.frozen.is_some() {
        return ("❚❚", "PAUSED".into(), Role::Paused);
    }
    if let Some(percent) = latest.loading.percent() {
        return ("↺", format!("LOADING {percent:>2} %"), Role::Warn);
    }
    if latest.loading == Loading::Failed {
        return ("▲", "NOT READ TO THE END".into(), Role::Bad);
    }
    match (latest.mode, latest.ended) {
        (Mode::Replay, _) => ("↺", "REPLAY".into(), Role::Replay),
        (_, Some(Exit::Code(0))) => ("■", "ENDED exit 0".into(), Role::Ended),
        (_, Some(Exit::Code(code))) => ("■", format!("ENDED exit {code}"), Role::Bad),
        // Asked to end, by the user or by a job's manager.
        (_, Some(Exit::Signal(number @ (2 | 15)))) => {
            ("■", format!("ENDED {}", units::signal_name(number)), Role::Ended)
        }
        (_, Some(Exit::Signal(number))) => ("■", format!("KILLED by signal {number}"), Role::Bad),
        (_, Some(Exit::Unknown)) => ("■", "GONE".into(), Role::Bad),
        (_, None) => ("●", "LIVE".into(), Role::Live),
    }
}

/// Draws the heading: two lines, three when there is room.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot, size: Size) {
    title(canvas, area, scene, latest, size);
    tabs(canvas, Rect { y: area.y + 1, ..area }, scene, size);
    if size == Size::Large {
        scope(canvas, Rect { y: area.y + 2, ..area }, scene, latest);
    }
}

fn title(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot, size: Size) {
    let large = size == Size::Large;
    let snap = scene.snap;
    let mut x = canvas.say(area.x + 1, area.y, "roctop", 6, Role::Title) + 1;
    let mut end = area.right().saturating_sub(1);
    let gap = if large { 3 } else { 2 };
    // The program's own name goes before all but what is wrong with it.
    let least = units::width(program(&snap.title)).clamp(12, LONGEST_PROGRAM);
    let room = usize::from(end.saturating_sub(x));
    let beside = units::width(&pids(snap)) + 3;
    let mut parts = parts(scene, latest, size);
    // The whole command line goes before the words of the rate.
    if width(&parts, gap) + " records".len() + units::width(&snap.title) + beside <= room {
        let rate = parts.iter_mut().find(|part| part.rank == RATE_RANK);
        if let Some(part) = rate.filter(|part| part.text.ends_with("/s")) {
            part.text = part.text.replace("/s", " records/s");
        }
    }
    keep_what_fits(&mut parts, room.saturating_sub(least), gap);
    for part in parts {
        canvas.right(end, area.y, &part.text, part.role);
        end = end.saturating_sub((units::width(&part.text) + gap) as u16);
    }
    let room = end.saturating_sub(x);
    let pids = pids(snap);
    let beside = units::width(&pids) as u16 + 3;
    let name = command(&snap.title, room as usize, if large { beside as usize } else { 0 });
    x = canvas.say(x, area.y, &name, room, Role::Accent);
    if large && !pids.is_empty() && x + beside <= end {
        canvas.say(x + 3, area.y, &pids, end.saturating_sub(x + 3), Role::Muted);
    }
}

/// A part of the title's right side.
struct Part {
    text: String,
    role: Role,
    /// Parts of a higher rank go first when there is no room; those of 0 stay.
    rank: u8,
}

/// The right side of the title, from its end.
fn parts(scene: &Scene<'_>, latest: &Snapshot, size: Size) -> Vec<Part> {
    let (large, totals) = (size == Size::Large, latest.values.totals);
    let part = |text: String, role, rank| Part { text, role, rank };
    let lost = format!("lost {}", totals.lost.text(units::count));
    let mut parts = vec![if totals.lost.is_any() {
        part(lost, Role::Bad, 1)
    } else {
        part(lost, Role::Muted, 3)
    }];
    // Whatever mode changes how the program runs is said on every view.
    if let Some(what) = counters::perturbs(latest) {
        parts.push(part(format!("▲ {what}"), Role::Warn, 1));
    }
    if let Some(level) = snapshot::level(&latest.values.processes) {
        parts.push(part(format!("▲ LEVEL {level}"), Role::Warn, 1));
    }
    if latest.values.processes.iter().any(|row| !row.incomplete.is_empty()) {
        parts.push(part("▲ INCOMPLETE".into(), Role::Warn, 1));
    }
    for fault in latest.faults.iter().filter(|fault| !fault.word.is_empty()) {
        parts.push(part(format!("▲ {}", fault.word), Role::Warn, 1));
    }
    if scene.ui.prefs.detached.is_uncollected {
        parts.push(part("▲ NOT COLLECTED".into(), Role::Warn, 1));
    }
    if let Some(back) = &scene.ui.prefs.detached.back {
        parts.push(part(format!("{back}: esc back"), Role::Text, 2));
    }
    if scene.ui.recording.is_some() {
        parts.push(part("● REC".into(), Role::Bad, 1));
    }
    if let Some(lag) = scene.ui.lag {
        parts.push(part(format!("▲ LAG {:.1} s", lag as f64 / 1e9), Role::Warn, 1));
    }
    let records = if latest.is_running() {
        format!("{:>6}", units::rate(latest.values.rate))
    } else {
        match totals.records() {
            1 => "1 record".into(),
            records => format!("{} records", units::count(records)),
        }
    };
    // The records of a job's ranks are not here.
    if latest.job.is_none() {
        parts.push(part(records, Role::Text, RATE_RANK));
    }
    if let Some(own) = scene.ui.own.filter(|own| large || own.slowed > 1) {
        let text = format!("roctop {:>3.0} % CPU", own.share);
        parts.push(if own.slowed > 1 {
            part(format!("DRAW RATE 1/{} {text}", own.slowed), Role::Warn, 1)
        } else {
            part(format!("{text} {:>9}", units::bandwidth(own.wire)), Role::Muted, 6)
        });
    }
    if large && let Some(gpus) = gpus(scene.snap) {
        parts.push(part(gpus, Role::Muted, 5));
    }
    parts.push(part(units::clock(latest.elapsed()), Role::Text, 2));
    let (shape, word, role) = state(scene.ui, latest);
    parts.push(part(format!("{shape} {word}"), role, 0));
    parts
}

/// The rank of the rate of records.
const RATE_RANK: u8 = 4;

/// Columns of parts, `gap` columns apart.
fn width(parts: &[Part], gap: usize) -> usize {
    let widths = parts.iter().map(|part| units::width(&part.text) + gap);
    widths.sum::<usize>().saturating_sub(gap)
}

/// Takes parts away until the others fit into `room` columns, `gap` columns apart.
fn keep_what_fits(parts: &mut Vec<Part>, room: usize, gap: usize) {
    while width(parts, gap) > room {
        let ranks = parts.iter().map(|part| part.rank).enumerate();
        let Some((last, _)) = ranks.max_by_key(|ranked| ranked.1).filter(|ranked| ranked.1 > 0) else {
            return;
        };
        parts.remove(last);
    }
}

/// Columns of a program's name that are kept at the cost of all that is not wrong.
const LONGEST_PROGRAM: usize = 24;

/// The command line from the program's file name on.
fn program_on(title: &str) -> &str {
    let word = title.split(' ').next().unwrap_or(title);
    let slash = word.trim_end_matches('/').rfind('/');
    &title[slash.map_or(0, |slash| slash + 1)..]
}

/// The program's file name.
fn program(title: &str) -> &str {
    program_on(title).split(' ').next().unwrap_or(title)
}

/// As much of a command line as there is room for: all of it with what stands beside it, without its directory, the
/// program and the first arguments.
pub(crate) fn command(title: &str, room: usize, beside: usize) -> String {
    if units::width(title) + beside <= room {
        return title.to_owned();
    }
    let short = program_on(title);
    if units::width(short) <= room {
        short.to_owned()
    } else {
        units::fit(short, room).trim_end().to_owned()
    }
}

fn pids(snap: &Snapshot) -> String {
    match &snap.values.processes[..] {
        [] => String::new(),
        [only] if only.process.pid == 0 => String::new(),
        [only] => format!("pid {}", only.process.pid),
        [first, rest @ ..] => format!("pid {} +{}", first.process.pid, rest.len()),
    }
}

/// `2×MI300X`.
fn gpus(snap: &Snapshot) -> Option<String> {
    let gpus: Vec<_> = snap
        .names
        .agents()
        .iter()
        .filter(|agent| agent.kind == AgentKind::Gpu && !agent.name.is_empty())
        .collect();
    let first = gpus.first()?;
    let name = model(&first.product).unwrap_or(&first.name);
    // Processes that share GPUs have each reported them.
    let places: HashSet<NodeId> = gpus.iter().map(|agent| snap.names.node_of(agent)).collect();
    Some(format!("{}×{name}", places.len()))
}

/// What distinguishes a product from others (`MI300X` of `AMD Instinct MI300X`); none when nothing does, as in
/// `AMD Radeon Graphics`.
pub(crate) fn model(product: &str) -> Option<&str> {
    let digit = product.rfind(|c: char| c.is_ascii_digit())?;
    let from = product[..digit].rfind(' ').map_or(0, |space| space + 1);
    Some(&product[from..])
}

/// Columns from which on there is room for the names of views.
const NAMES_COLUMNS: u16 = 120;

/// How views are labelled that are not shown.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    Spaced,
    Names,
    Keys,
}

fn label(tab: Tab, active: bool, labels: Labels) -> String {
    let View { key, title, .. } = tab.row();
    match labels {
        _ if active => format!("[{key} {title}]"),
        Labels::Spaced => format!(" {key} {title} "),
        Labels::Names => format!("{key} {title}"),
        Labels::Keys => format!("{key}"),
    }
}

fn tabs(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let mut x = area.x + 1;
    let has_digit = |tab: &Tab| tab.row().key.is_ascii_digit();
    let own = Some(scene.ui.tab).filter(|tab| !has_digit(tab));
    let is_shown = |tab: &Tab| has_digit(tab) && tab.is_there(scene.snap);
    let shown = || Tab::ALL.into_iter().filter(is_shown).chain(own);
    let fits = |labels: &Labels| {
        let widths = shown().map(|tab| units::width(&label(tab, tab == scene.ui.tab, *labels)) + 1);
        area.width >= NAMES_COLUMNS && widths.sum::<usize>() < usize::from(area.width)
    };
    let labels = [Labels::Spaced, Labels::Names].into_iter().find(fits);
    let labels = labels.unwrap_or(Labels::Keys);
    for tab in shown() {
        let active = tab == scene.ui.tab;
        let text = label(tab, active, labels);
        let role = if active { Role::TabActive } else { Role::Tab };
        let end = canvas.say(x, area.y, &text, area.right().saturating_sub(x), role);
        let place = Rect {
            x,
            y: area.y,
            width: end - x,
            height: 1,
        };
        scene.ui.hits.add(place, Hit::Do(Action::Show(tab)));
        x = end + 1;
    }
    if size != Size::Large {
        filter(
            canvas,
            Rect {
                x: x + 2,
                width: area.right().saturating_sub(x + 2),
                height: 1,
                ..area
            },
            scene,
        );
    }
}

/// Draws the terms of the filter, each with a cross that takes it away, and what it does in this view; where it ends.
fn filter(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) -> u16 {
    let (ui, end) = (scene.ui, area.right());
    ui.hits.add(area, Hit::Do(Action::Filter));
    let room = |x: u16| end.saturating_sub(x);
    let mut x = canvas.say(area.x, area.y, "filter: ", 8.min(area.width), Role::Muted);
    if ui.filter.is_empty() {
        return canvas.say(x, area.y, "none", room(x), Role::Muted);
    }
    let effect = tab::use_of_filter(scene);
    for (at, term) in ui.filter.terms.iter().enumerate() {
        let cross = if room(x) > 8 { " ✕" } else { "" };
        let text = units::elide(term, usize::from(room(x)).saturating_sub(cross.chars().count()));
        x = canvas.say(x, area.y, &text, room(x), Role::Warn);
        let from = x;
        x = canvas.say(x, area.y, cross, room(x), Role::Key);
        let cross = Rect {
            x: from,
            width: (x + 1 - from).min(room(from)),
            height: 1,
            ..area
        };
        ui.hits.add(cross, Hit::Term(at));
        x = (x + 2).min(end);
    }
    let notes: Vec<String> = ui
        .filter
        .understood
        .iter()
        .cloned()
        .chain(effect.map(Into::into))
        .collect();
    if notes.is_empty() {
        return x;
    }
    canvas.say(
        x,
        area.y,
        &units::elide(&format!("({})", notes.join("; ")), usize::from(room(x))),
        room(x),
        Role::Muted,
    )
}

fn scope(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, latest: &Snapshot) {
    let half = Rect {
        x: area.x + 1,
        width: area.width / 2 + 8,
        height: 1,
        ..area
    };
    let x = filter(canvas, half, scene);
    let snap = scene.snap;
    let mut right = Vec::new();
    if snap.values.window > 0 {
        right.push(format!("window {}", units::duration(snap.values.window)));
    }
    if snap.values.counted_from > 0 {
        let at = snap.values.counted_from.saturating_sub(snap.origin);
        right.insert(0, format!("counted from {}", units::timestamp_short(at)));
    }
    if scene.ui.frozen.is_some() {
        let ahead = latest.now.saturating_sub(snap.now);
        right.insert(0, format!("live is {} ahead", units::duration(ahead)));
    } else if !scene.ui.time.follows && !scene.ui.time.fits && !scene.ui.time.is_work {
        right.insert(0, "timeline frozen – f to follow".into());
    }
    let alerts = tab::alerts::active(scene).count();
    if alerts > 0 {
        right.push(format!("▲ {} (A)", units::counted(alerts as u64, "alert", "alerts")));
    }
    let text = right.join("   ");
    if x + (units::width(&text) as u16) < area.right() {
        canvas.right(area.right().saturating_sub(1), area.y, &text, Role::Muted);
        let wide = 16.min(area.width);
        let place = Rect {
            x: area.right() - wide,
            width: if alerts > 0 { wide } else { 0 },
            height: 1,
            ..area
        };
        scene.ui.hits.add(place, Hit::Do(Action::Show(Tab::Alerts)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_its_name_longest() {
        let title = "/opt/site/bin/solver -n 4096 --tolerance 1e-9";
        assert_eq!(command(title, 60, 12), title);
        assert_eq!(command(title, 50, 12), "solver -n 4096 --tolerance 1e-9");
        assert_eq!(command(title, 15, 0), "solver -n 4096…");
        assert_eq!(command(title, 6, 0), "solve…");
        assert_eq!(program("./train"), "train");
        assert_eq!(program("run.0 run.1"), "run.0");
        assert_eq!((program(""), program("runs/first/")), ("", "first/"));
    }

    #[test]
    fn a_product_without_a_number_says_nothing() {
        assert_eq!(model("AMD Instinct MI300X"), Some("MI300X"));
        assert_eq!(model("AMD Radeon RX 7900 XTX"), Some("7900 XTX"));
        assert_eq!(model("AMD Radeon Graphics"), None);
        assert_eq!(model(""), None);
    }
}
