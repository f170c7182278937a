//! A lane of the timeline as one row of cells, and the axis above.

use std::collections::HashMap;

use ratatui::layout::Rect;
use ratatui::style::Style;
use roctop_ring::record::direction;

use super::canvas::Canvas;
use super::chart::{LEVELS, level};
use super::table::Scene;
use crate::format;
use crate::item::{AgentKind, KernelId, Nanos, OperationId, QueueId, StreamId, TextId};
use crate::model::{Bucket, Class, LaneKey, Slice, Snapshot};
use crate::ui::subject::SliceSubject;
use crate::ui::theme::Role;
use crate::ui::time::nice;

/// The stretch of time of an area.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) from: Nanos,
    /// Nanoseconds per column.
    pub(crate) width: u64,
}

impl Stretch {
    fn to(self, columns: u16) -> Nanos {
        self.from.saturating_add(self.width.saturating_mul(u64::from(columns)))
    }

    fn column(self, at: Nanos, columns: u16) -> u16 {
        (at.saturating_sub(self.from) / self.width.max(1)).min(u64::from(columns)) as u16
    }
}

/// All lanes in the order of the screen; those with open work only are among them.
pub(crate) fn order(snap: &Snapshot) -> Vec<LaneKey> {
    let mut keys: Vec<LaneKey> = snap.lanes.iter().map(|lane| lane.key).collect();
    for open in open_work(snap) {
        if !keys.contains(&open.key) {
            keys.push(open.key);
        }
    }
    let names = &snap.names;
    let agent_rank = |id| names.agent(id).map_or((u32::MAX, id), |agent| (agent.number, id));
    let stream_number = |id| names.stream(id).map_or(u32::MAX, |stream| stream.number);
    keys.sort_by_cached_key(|&key| match key {
        LaneKey::Agent(agent) => (0, agent_rank(agent), 0, 0, 0),
        LaneKey::Stream(agent, stream) => (0, agent_rank(agent), 1, stream_number(stream), stream.0),
        LaneKey::Queue(agent, queue) => (0, agent_rank(agent), 2, queue.0, 0),
        LaneKey::Copies(way) => (1, (0, crate::item::AgentId(0)), 0, u32::from(way), 0),
        LaneKey::Api(thread, depth) => (2, (thread.0, crate::item::AgentId(0)), 0, u32::from(depth), 0),
        LaneKey::Markers(thread, depth) => (3, (thread.0, crate::item::AgentId(0)), 0, u32::from(depth), 0),
        LaneKey::Ranges(thread) => (3, (thread.0, crate::item::AgentId(0)), 1, 0, 0),
    });
    keys
}

/// What stands to the left of a lane.
pub(crate) fn label(snap: &Snapshot, key: LaneKey) -> String {
    let names = &snap.names;
    match key {
        LaneKey::Agent(agent) => {
            let share = snap
                .values
                .agents
                .iter()
                .find(|row| row.id == agent)
                .map(|row| format::percent(row.share));
            format!("{} {}%", names.agent_label(agent), share.unwrap_or_default())
        }
        LaneKey::Stream(_, stream) => format!("  {}", names.stream_label(stream)),
        LaneKey::Queue(_, queue) => format!("  {}", names.queue_label(queue)),
        LaneKey::Copies(direction::UNKNOWN) => "copy ?".into(),
        LaneKey::Copies(way) => format!("copy {}", direction::name(way)),
        LaneKey::Api(thread, 0) => format!("API {}", names.thread_label(thread)),
        LaneKey::Api(..) => "  within".into(),
        LaneKey::Markers(thread, 0) => format!("mark {}", names.thread_label(thread)),
        LaneKey::Markers(_, level) => format!("  level {level}"),
        LaneKey::Ranges(thread) => format!("rng {}", names.thread_label(thread)),
    }
}

/// Work of one lane that has not ended.
pub(crate) struct OpenWork {
    pub(crate) key: LaneKey,
    pub(crate) begin: Nanos,
    pub(crate) text: String,
    /// How much more of this lane is open, and younger.
    pub(crate) more: usize,
}

/// The oldest work of each lane that is open, or was when its process ended.
pub(crate) fn open_work(snap: &Snapshot) -> Vec<OpenWork> {
    let names = &snap.names;
    let places = snap.values.places.iter();
    let streams: HashMap<QueueId, StreamId> = places.filter_map(|place| Some((place.queue, place.stream?))).collect();
    let mut out: Vec<OpenWork> = Vec::new();
    let mut add =
        |key: LaneKey, begin: Nanos, text: &dyn Fn() -> String| match out.iter_mut().find(|open| open.key == key) {
            Some(open) if open.begin <= begin => open.more += 1,
            Some(open) => (open.begin, open.text, open.more) = (begin, text(), open.more + 1),
            None => out.push(OpenWork {
                key,
                begin,
                text: text(),
                more: 0,
            }),
        };
    for open in &snap.open {
        for call in &open.calls {
            let name = names.operation(call.operation);
            add(
                LaneKey::Api(call.thread, u8::from(call.parent != 0)),
                call.span.begin,
                &|| name.map_or_else(|| "?".into(), |name| name.operation.name.to_string()),
            );
        }
        for dispatch in &open.dispatches {
            // The stream is known once a dispatch of the same queue has ended.
            let key = match dispatch.stream.or_else(|| streams.get(&dispatch.queue).copied()) {
                Some(stream) => LaneKey::Stream(dispatch.agent, stream),
                None => LaneKey::Queue(dispatch.agent, dispatch.queue),
            };
            let name = names.kernel(dispatch.kernel);
            add(key, dispatch.submit, &|| {
                name.map_or_else(|| "?".into(), |name| name.short.to_string())
            });
        }
        for range in &open.ranges {
            let key = match range.range_id {
                0 => LaneKey::Markers(range.thread, range.level),
                _ => LaneKey::Ranges(range.thread),
            };
            add(key, range.span.begin, &|| names.text(range.text).into());
        }
    }
    // What ran before it in the same lane is not covered.
    for open in &mut out {
        open.begin = open.begin.max(snap.lane(open.key).map_or(0, |lane| lane.last));
    }
    out
}

/// Draws the axis: ticks at round times, each with its label.
pub(crate) fn axis(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, stretch: Stretch) {
    let snap = scene.snap;
    let step = nice(stretch.width.saturating_mul(18));
    let decimals = 9usize.saturating_sub(step.ilog10() as usize);
    let mut tick = stretch
        .from
        .saturating_sub(snap.origin)
        .div_ceil(step)
        .saturating_mul(step);
    for _ in 0..area.width {
        let at = snap.origin.saturating_add(tick);
        if at >= stretch.to(area.width) {
            break;
        }
        let seconds = tick as f64 / 1e9;
        let text = format!("╷+{seconds:.decimals$}");
        let x = area.x + stretch.column(at, area.width);
        canvas.say(x, area.y, &text, area.right().saturating_sub(x), Role::Muted);
        tick = tick.saturating_add(step);
    }
    // Where the lanes end: said once, since a mark in each lane would go over the wire ten times a second.
    let now = area.x.saturating_add(stretch.column(snap.now, area.width));
    let is_free = canvas
        .buffer
        .cell((now, area.y))
        .is_some_and(|cell| cell.symbol() == " ");
    if snap.is_running() && now < area.right() && is_free {
        canvas.say(now, area.y, "▾", 1, Role::Now);
    }
    // Where the selected slice begins.
    if let Some((_, begin)) = scene.ui.slice
        && begin >= stretch.from
        && begin < stretch.to(area.width)
    {
        let x = area.x + stretch.column(begin, area.width);
        canvas.say(x, area.y, "▼", 1, Role::Accent);
    }
}

/// How a slice looks: letter, text, style filled, style of a line.
struct Look {
    letter: char,
    text: String,
    filled: Style,
    line: Style,
}

fn look(canvas: &Canvas<'_>, snap: &Snapshot, key: LaneKey, what: u32) -> Look {
    let names = &snap.names;
    let by_role = |letter, text: &str, role| Look {
        letter,
        text: text.to_string(),
        filled: canvas.theme.filled_role(role),
        line: canvas.style(role),
    };
    match key {
        LaneKey::Stream(..) | LaneKey::Queue(..) => {
            let id = KernelId(what);
            let place = snap.letters.iter().position(|&lettered| lettered == id);
            let hue = place.unwrap_or(what as usize);
            let text = names.kernel(id).map_or("?", |name| &name.short);
            if names.is_internal(id) {
                return by_role('~', text, Role::CopyFill);
            }
            let letter = snap.letter(id).unwrap_or('*');
            Look {
                letter,
                text: text.into(),
                filled: canvas.theme.filled(hue),
                line: canvas.theme.line(hue),
            }
        }
        LaneKey::Copies(way) => by_role(copy_letter(way), direction::name(way), copy_role(way)),
        LaneKey::Api(..) => {
            let name = names.operation(OperationId(what));
            let (letter, role) = match name.map(|name| name.class).unwrap_or_default() {
                Class::Sync => ('S', Role::ApiSync),
                Class::Launch => ('L', Role::ApiLaunch),
                Class::Memory => ('M', Role::ApiMemory),
                Class::Other => ('A', Role::ApiOther),
            };
            by_role(letter, name.map_or("?", |name| &name.operation.name), role)
        }
        LaneKey::Markers(..) | LaneKey::Ranges(_) => by_role('─', names.text(TextId(what)), Role::Marker),
        LaneKey::Agent(_) => by_role('█', "", Role::GaugeHigh),
    }
}

/// The role of a direction.
pub(crate) fn copy_role(way: u16) -> Role {
    match way {
        direction::H2D => Role::CopyH2d,
        direction::D2H => Role::CopyD2h,
        direction::D2D | direction::H2H => Role::CopyD2d,
        _ => Role::CopyFill,
    }
}

fn copy_letter(way: u16) -> char {
    match way {
        direction::H2D => '↓',
        direction::D2H => '↑',
        direction::FILL => '=',
        _ => '↔',
    }
}

/// Adds slices up by column, exactly.
fn gather(slices: &[Slice], stretch: Stretch, columns: u16) -> Vec<Bucket> {
    let mut out = vec![Bucket::default(); columns as usize];
    for slice in slices {
        let first = stretch.column(slice.span.begin, columns);
        let end = slice.span.end.saturating_sub(1).max(slice.span.begin);
        let last = stretch.column(end, columns.saturating_sub(1));
        for column in first..=last.max(first) {
            let Some(bucket) = out.get_mut(column as usize) else {
                break;
            };
            let left = stretch
                .from
                .saturating_add(stretch.width.saturating_mul(u64::from(column)));
            let right = left.saturating_add(stretch.width);
            let part = slice.span.end.min(right).saturating_sub(slice.span.begin.max(left));
            bucket.add(slice.what, part, column == first);
        }
    }
    out
}

/// Draws one lane in a row.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    key: LaneKey,
    stretch: Stretch,
    open: &[OpenWork],
) {
    if area.width == 0 {
        return;
    }
    let snap = scene.snap;
    let lane = snap.lane(key);
    let to = stretch.to(area.width);
    let slices = lane.and_then(|lane| lane.slices(stretch.from, to, area.width as usize * 64));
    let is_agent = matches!(key, LaneKey::Agent(_));
    let buckets = match (&slices, lane) {
        (Some(slices), Some(_)) if !is_agent => gather(slices, stretch, area.width),
        (_, Some(lane)) => lane.columns(stretch.from, stretch.width, area.width as usize),
        _ => vec![Bucket::default(); area.width as usize],
    };
    let now = stretch.column(snap.now, area.width);
    for (x, bucket) in buckets.iter().enumerate() {
        let x = x as u16;
        let at = area.x + x;
        if bucket.busy == 0 && bucket.count == 0 {
            let (text, role) = match x {
                x if x < now => ("·", Role::Idle),
                _ => (" ", Role::Idle),
            };
            canvas.say(at, area.y, text, 1, role);
            continue;
        }
        base(canvas, scene, key, bucket, stretch.width, (at, area.y));
    }
    if !is_agent {
        // A column in which one slice ends and the next begins shows the end of the first.
        let mut ended = u16::MAX;
        let is_selected = |slice: &&Slice| scene.ui.slice == Some((key, slice.span.begin));
        for slice in slices.iter().flatten().filter(|slice| !is_selected(slice)) {
            ended = wide(canvas, area, scene, (key, slice), stretch, ended);
        }
        // The selected one is above all others.
        for slice in slices.iter().flatten().filter(is_selected) {
            wide(canvas, area, scene, (key, slice), stretch, u16::MAX);
        }
    }
    for open in open.iter().filter(|open| open.key == key && open.begin < to) {
        let begin = stretch.column(open.begin, area.width);
        let end = (now + u16::from(snap.is_running())).clamp(begin + 1, area.width.max(begin + 1));
        let text = format::fit(&format!("▒ {}… ", open.text), (end - begin) as usize).replace(' ', "▒");
        canvas.say(
            area.x + begin,
            area.y,
            &text,
            (end - begin).min(area.width - begin.min(area.width)),
            Role::Open,
        );
    }
}

/// A column as a whole: level of what was busy, in the colour of what took most of it.
fn base(canvas: &mut Canvas<'_>, scene: &Scene<'_>, key: LaneKey, bucket: &Bucket, width: u64, at: (u16, u16)) {
    let (x, y) = at;
    if let LaneKey::Agent(_) = key {
        let mark = level(bucket.busy, width).to_string();
        canvas.say(x, y, &mark, 1, Role::GaugeHigh);
        return;
    }
    let look = look(canvas, scene.snap, key, bucket.what);
    let is_marker = matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_));
    let named = Slice {
        what: bucket.what,
        ..Slice::default()
    };
    let subject = SliceSubject {
        snap: scene.snap,
        key,
        slice: &named,
    };
    // By column only names can be asked for; what else the filter says is asked of slices.
    let is_out = !scene.ui.filter.is_empty() && scene.ui.filter.names_only() && !scene.ui.filter.accepts(&subject);
    if is_out {
        canvas.say(x, y, "░", 1, Role::Idle);
    } else if is_marker {
        let mark = if bucket.busy == 0 {
            "▾"
        } else if bucket.count > 1 {
            "╫"
        } else {
            "─"
        };
        canvas.put(x, y, mark, 1, look.line);
    } else if bucket.busy.saturating_mul(2) >= width {
        canvas.put(x, y, &look.letter.to_string(), 1, look.filled);
    } else {
        let mark = LEVELS[(bucket.busy.saturating_mul(8).div_ceil(width.max(1))).clamp(1, 4) as usize];
        canvas.put(x, y, &mark.to_string(), 1, look.line);
    }
}

/// A slice that is wide enough to be a thing of its own: its name within, its end marked.
/// Returns its last column; `ended` is that of the slice before.
fn wide(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    piece: (LaneKey, &Slice),
    stretch: Stretch,
    ended: u16,
) -> u16 {
    let (key, slice) = piece;
    let to = stretch.to(area.width);
    let mut first = stretch.column(slice.span.begin, area.width);
    let last = stretch.column(
        slice.span.end.saturating_sub(1).max(slice.span.begin),
        area.width.saturating_sub(1),
    );
    if first == ended && last > first {
        first += 1;
    }
    let is_selected = scene.ui.slice == Some((key, slice.span.begin));
    let cells = (last + 1).saturating_sub(first);
    let (x, y) = (area.x + first, area.y);
    let subject = SliceSubject {
        snap: scene.snap,
        key,
        slice,
    };
    let is_out = !scene.ui.filter.accepts(&subject);
    // A short slice upon the edge of two columns is none that is wide.
    let is_short = cells < 2 || slice.span.duration() < stretch.width;
    if (is_short && !is_selected && !is_out) || first >= area.width {
        return ended;
    }
    if is_out {
        canvas.say(x, y, &"░".repeat(cells as usize), cells, Role::Idle);
        return last;
    }
    let mut look = look(canvas, scene.snap, key, slice.what);
    if is_selected {
        look.filled = canvas.style(Role::Selected);
        look.line = look.filled;
    }
    let mut text = look.text.clone();
    if let LaneKey::Copies(_) = key {
        text = format!("{text} {}", format::bytes(slice.value));
    }
    let room = cells as usize;
    let ends = slice.span.end <= to;
    let cut = slice.span.begin < stretch.from;
    if matches!(key, LaneKey::Markers(..) | LaneKey::Ranges(_)) {
        let head = if cut { "─" } else { "├" };
        let tail = if ends { "┤" } else { "─" };
        let name = if room >= 9 || room >= format::width(&text) + 4 {
            format!(" {} ", format::elide(&text, room - 4))
        } else {
            String::new()
        };
        let rule = "─".repeat(room.saturating_sub(2 + format::width(&name)));
        canvas.put(x, y, &format!("{head}{name}{rule}{tail}"), cells, look.line);
    } else {
        let inner = if ends && room > 1 { room - 1 } else { room };
        let name = if room >= 7 {
            format!("{} {text}", look.letter)
        } else {
            String::new()
        };
        let name = if name.is_empty() {
            look.letter.to_string().repeat(inner)
        } else {
            format::fit(&name, inner)
        };
        canvas.put(x, y, &name, inner as u16, look.filled);
        if inner < room {
            canvas.put(x + inner as u16, y, "▌", 1, look.line);
        }
    }
    if is_selected {
        canvas.paint(
            Rect {
                x,
                y,
                width: cells.max(1),
                height: 1,
            },
            Role::Selected,
        );
        if room >= 3 {
            canvas.say(x, y, "[", 1, Role::Selected);
            canvas.say(x + cells - 1, y, "]", 1, Role::Selected);
        }
    }
    last
}

/// Whether a lane belongs on the overview: GPUs, their streams, copies, the first markers.
pub(crate) fn is_principal(snap: &Snapshot, key: LaneKey) -> bool {
    match key {
        LaneKey::Agent(id) => snap.names.agent(id).is_some_and(|agent| agent.kind == AgentKind::Gpu),
        LaneKey::Stream(..) | LaneKey::Queue(..) | LaneKey::Copies(_) => true,
        LaneKey::Markers(_, level) => level == 0,
        LaneKey::Api(..) | LaneKey::Ranges(_) => false,
    }
}
