//! The whole job: what holds it up, ranks × time, communicators and alerts.

use ratatui::layout::Rect;

use super::job_lists::{JobAlertTable, JobCollectiveTable, SlowTable};
use super::job_rows::{JobRowTable, kind, text};
use crate::Size;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::table::{self, Scene, Table as _};
use roctop_model::analysis::placement::Kind;
use roctop_model::job::{JobValues, Quantity, RowKind};
use roctop_trace::units;

/// Rows of a list in addition to its own: frame and heading.
const FRAME: u16 = 3;
/// Rows that a list gets at most before the ranks get theirs.
const MAX_SLOW_ROWS: u16 = 6;
/// Rows of the lists below.
const BELOW: u16 = 7;

/// Why a list of a job has no row.
pub(crate) fn why_empty(job: &JobValues, what: &str) -> Vec<String> {
    let nodes = job.nodes.len() as u64;
    let one = match (nodes, job.ranks.len(), what) {
        (0, ..) => "no node has connected yet".into(),
        (_, 0, _) => format!(
            "{} connected, no rank has reported yet",
            units::counted(nodes, "node is", "nodes are")
        ),
        (.., "slow rank") => "no rank stands out: their own times are alike".into(),
        (.., "communicator") => "no collective yet: RCCL's calls are matched when all ranks report".into(),
        _ => format!("no {what}"),
    };
    vec![one]
}

/// A part of a line, and how it looks.
type Part = (String, Role);

/// Who is there.
fn presence(job: &JobValues) -> Vec<Part> {
    let totals = &job.totals;
    let [live, silent, gone, ended] = totals.ranks;
    let mut parts = Vec::new();
    let of = if totals.size > live {
        format!(" of {}", totals.size)
    } else {
        String::new()
    };
    parts.push((format!("{live}{of} ranks live"), Role::Text));
    for (count, word, role) in [
        (silent, "silent", Role::Warn),
        (gone, "gone", Role::Bad),
        (ended, "ended", Role::Muted),
    ] {
        if count > 0 {
            parts.push((format!("{count} {word}"), role));
        }
    }
    for (kind, count) in Kind::ALL.iter().zip(totals.misplaced) {
        if count > 0 {
            parts.push((format!("{count} {}", kind.of_many()), Role::Warn));
        }
    }
    let [nodes, quiet, away] = totals.nodes;
    parts.push((units::counted(u64::from(nodes + quiet), "node", "nodes"), Role::Text));
    if quiet > 0 {
        parts.push((units::counted(quiet.into(), "node silent", "nodes silent"), Role::Warn));
    }
    if away > 0 {
        parts.push((units::counted(away.into(), "node gone", "nodes gone"), Role::Bad));
    }
    for (reason, count) in &totals.lost {
        parts.push((format!("{} lost: {}", units::count(*count), reason.phrase()), Role::Bad));
    }
    for (count, one, more) in [
        (totals.network_errors, "network error", "network errors"),
        (totals.xgmi_errors, "xGMI error", "xGMI errors"),
    ] {
        if count > 0 {
            parts.push((units::counted(count, one, more), Role::Bad));
        }
    }
    if totals.refused > 0 {
        let text = units::counted(totals.refused, "report refused", "reports refused");
        parts.push((text, Role::Bad));
    }
    if totals.left_out.ranks + totals.left_out.arrivals + totals.left_out.others > 0 {
        parts.push(("reports shortened".into(), Role::Muted));
    }
    parts
}

/// How fast it is.
fn pace(job: &JobValues, scene: &Scene<'_>) -> Vec<Part> {
    let totals = &job.totals;
    let mut parts = Vec::new();
    if let Some((median, most, rank)) = totals.step {
        let number = job.ranks.get(rank as usize).map_or(0, |row| row.rank);
        let longest = scene.ui.duration(most as u64);
        let median = scene.ui.duration(median as u64);
        parts.push((
            format!("step {median} median, {longest} longest (rank {number})"),
            Role::Text,
        ));
    }
    let share = |word: &str, value: Option<f64>| Some((format!("{word} {} %", units::percent(value?)), Role::Text));
    parts.extend(share("busy", totals.busy));
    let wait = totals.wait.map(|wait| {
        let role = if wait > 0.1 { Role::Warn } else { Role::Text };
        (format!("wait {} %", units::percent(wait)), role)
    });
    // It is unknown whether ranks wait: their clocks are not known well enough.
    let unknown = || (job.communicators.iter().any(|known| known.size > 1)).then(|| ("wait –".into(), Role::Muted));
    parts.extend(wait.or_else(unknown));
    parts.extend(share("transfer", totals.transfer));
    let network = totals
        .network
        .map(|rate| (format!("network {}", units::bandwidth(rate)), Role::Text));
    parts.extend(network);
    parts.extend(
        totals
            .power
            .map(|power| (format!("{:.1} kW", power / 1000.0), Role::Text)),
    );
    parts
}

/// The kernels with the most time.
fn kernels(job: &JobValues) -> Vec<Part> {
    let whole: u64 = job.kernels.iter().map(|kernel| kernel.2).sum();
    let share = |nanos: u64| units::percent(nanos as f64 / whole.max(1) as f64);
    let parts = job
        .kernels
        .iter()
        .map(|(name, _, nanos)| (format!("{name} {} %", share(*nanos)), Role::Muted));
    parts.collect()
}

/// Writes as many parts as there is room for.
fn line(canvas: &mut Canvas<'_>, area: Rect, y: u16, parts: &[Part]) {
    let mut x = area.x + 1;
    for (text, role) in parts {
        let room = area.right().saturating_sub(x + 1);
        if units::width(text) > usize::from(room) {
            let text = units::elide(text, room.into());
            canvas.say(x, y, &text, room, *role);
            return;
        }
        x = canvas.say(x, y, text, room, *role) + 3;
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let Some(job) = scene.snap.job.as_deref() else {
        return canvas.empty(area, &["this is a program's screen: there is no job".into()]);
    };
    let lines = match size {
        Size::Tiny => 1,
        Size::Small | Size::Medium => 2,
        Size::Large => 3,
    };
    let (head, rest) = top(area, lines);
    let texts = [presence(job), pace(job, scene), kernels(job)];
    for (y, parts) in (head.y..head.bottom()).zip(&texts) {
        line(canvas, head, y, parts);
    }
    let slow = (SlowTable::all(scene) as u16).clamp(0, MAX_SLOW_ROWS);
    let slow = if slow == 0 { FRAME } else { slow + FRAME };
    let (upper, rest) = top(rest, slow.min(rest.height / 2));
    let right = format!("last {} s, against the median", JobValues::averaged());
    table::panel::<SlowTable>(canvas, upper, scene, Some(right), u8::MAX);
    let below = if size == Size::Large && rest.height > 2 * BELOW {
        BELOW
    } else {
        0
    };
    let (ranks, lists) = top(rest, rest.height - below);
    let (remedy, ranks) = remedy(job, scene, ranks);
    table::panel::<JobRowTable>(
        canvas,
        ranks,
        scene,
        Some(legend(job, scene, ranks.width.saturating_sub(18))),
        u8::MAX,
    );
    let below = ranks.bottom();
    for (y, (text, role)) in (below..).zip(remedy) {
        canvas.say(ranks.x + 1, y, &text, ranks.width.saturating_sub(2), role);
    }
    if below > 0 {
        let (collectives, alerts) = left(lists, lists.width / 5 * 3);
        table::panel::<JobCollectiveTable>(canvas, collectives, scene, None, u8::MAX);
        table::panel::<JobAlertTable>(canvas, alerts, scene, None, u8::MAX);
    }
}

/// What is wrong with where the selected rank runs and the line that mends it, in lines below the ranks; and what is left to these.
/// The line is broken as a shell reads it, and has no lines where it does not fit.
fn remedy(job: &JobValues, scene: &Scene<'_>, area: Rect) -> (Vec<Part>, Rect) {
    let row = table::selected::<JobRowTable>(scene);
    let mut found = row
        .into_iter()
        .flat_map(|row| job.members(row))
        .flat_map(|rank| job.findings(*rank));
    let Some((finding, line)) = found.next() else {
        return (Vec::new(), area);
    };
    let room = usize::from(area.width.saturating_sub(2));
    let mut parts = vec![(units::elide(&finding.text, room), Role::Warn)];
    if let Some(line) = line {
        let line: Vec<char> = format!("try: {line}").chars().collect();
        parts.extend(line.chunks(room.max(1)).map(|part| (part.iter().collect(), Role::Text)));
    }
    let most = usize::from(area.height / 3);
    if parts.len() > most {
        parts.truncate(most.min(1));
    }
    let height = area.height - parts.len() as u16;
    (parts, Rect { height, ..area })
}

/// What the cells show, in at most `width` columns: `step time by node, median 352 ms   ░▒▓ mean   · no report  ▾ lost`.
fn legend(job: &JobValues, scene: &Scene<'_>, width: u16) -> String {
    let (quantity, kind) = (scene.ui.prefs.quantity, kind(scene));
    let median = job.median(quantity).map(|median| text(median, quantity, scene));
    let median = median.map_or_else(String::new, |median| format!(", median {median}"));
    let scale = match quantity {
        Quantity::Step => ", 50 to 150 % of it",
        Quantity::Busy | Quantity::Wait | Quantity::Mpi => ", 0 to 100 %",
        Quantity::Power => ", 0 to the highest",
    };
    let mean = if kind == RowKind::Node { "   ░▒▓ mean" } else { "" };
    let short = format!("{} {}{median}", quantity.word(), kind.word());
    let longer = format!("{short}{mean}");
    let whole = format!("{short}{scale}{mean}   · no report  ▾ lost");
    let fits = |text: &String| units::width(text) <= usize::from(width);
    [whole, longer].into_iter().find(fits).unwrap_or(short)
}
