//! The rows of the timeline: which there are, in which order, and what stands to the left of them.

use std::collections::HashSet;

use roctop_ring::record::direction;

use super::open::open_work;
use super::plot;
use super::table::Scene;
use crate::track::{Layout, Track};
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{AgentId, AgentKind, QueueId, ThreadId};
use roctop_trace::units;

/// Where a row stands: group, GPU or thread, kind, number within, tie.
type Rank = (u8, GpuPosition, u8, u32, u32);

/// Number of a GPU, the GPU, the process on it; or a thread.
type GpuPosition = (u32, u32, u32);

/// Where a GPU, or a process on it, stands.
fn place(snap: &Snapshot, id: AgentId) -> GpuPosition {
    let gpu = snap.names.gpu_of(id);
    let number = snap.names.agent(id).map_or(u32::MAX, |agent| agent.number);
    let members = snap.names.members(gpu);
    let process = members.iter().position(|&member| member == id);
    // A shared GPU stands where the first of its processes did.
    let first = members.iter().map(|member| member.0).min();
    (number, first.unwrap_or(gpu.0), process.map_or(0, |at| at as u32 + 1))
}

fn rank(snap: &Snapshot, layout: Layout, track: Track) -> Rank {
    let names = &snap.names;
    let agent = |id: AgentId| place(snap, id);
    let stream = |id| names.stream(id).map_or(u32::MAX, |stream| stream.number);
    // GPUs, copies, calls, markers; the layouts of the host put their own first.
    let [gpu, copy, call, mark] = match layout {
        Layout::Thread => [2, 3, 0, 0],
        Layout::Marker => [1, 2, 3, 0],
        _ => [0, 1, 2, 3],
    };
    match track {
        Track::Lane(LaneKey::Agent(id)) => (gpu, agent(id), 0, 0, 0),
        Track::OnAgent(id) | Track::AtOnce(id) => (gpu, agent(id), 1, 0, 0),
        Track::Lane(LaneKey::Stream(id, number)) => (gpu, agent(id), 1, stream(number), number.0),
        Track::InQueue(id, queue) | Track::Lane(LaneKey::Queue(id, queue)) => (gpu, agent(id), 2, queue.0, 0),
        Track::Lane(LaneKey::Copies(way)) => (copy, (0, 0, 0), 0, u32::from(way), 0),
        Track::Lane(LaneKey::Collectives(number)) => (copy, (1, 0, 0), 0, number, 0),
        Track::Lane(LaneKey::Api(thread, depth)) => (call, (thread.0, 0, 0), 0, u32::from(depth), 0),
        Track::By(thread) => (call, (thread.0, 0, 0), 1, 0, 0),
        Track::Lane(LaneKey::Markers(thread, depth)) => (mark, (thread.0, 0, 0), 2, u32::from(depth), 0),
        Track::Lane(LaneKey::Ranges(thread)) => (mark, (thread.0, 0, 0), 3, 0, 0),
        // What was read and counted stands below all that was recorded.
        Track::Gauge(node, kind) => {
            let place = plot::agent_of(snap, node).map_or((u32::MAX, node.machine, node.node), agent);
            (4, place, 0, node.node, kind as u32)
        }
        Track::Counter(id) => (5, (0, 0, 0), 0, id, 0),
    }
}

/// Streams of a GPU that always have separate rows.
const FEW_STREAMS: usize = 8;

/// GPUs with many streams whose kernels are shorter than a column: a row says how many run at once, until it is unfolded.
fn crowded(scene: &Scene<'_>) -> Vec<AgentId> {
    let snap = scene.snap;
    let width = scene.ui.time.width(snap, scene.ui.lane_columns());
    let totals = snap.values.totals;
    if totals.kernel_time / totals.dispatches.max(1) >= width {
        return Vec::new();
    }
    let rows = snap.values.agents.iter();
    let many = rows.filter(|row| row.streams > FEW_STREAMS);
    many.map(|row| row.id).collect()
}

/// All rows in the order of the screen; those with open work only are among them.
pub(crate) fn order(scene: &Scene<'_>) -> Vec<Track> {
    let (snap, layout) = (scene.snap, scene.ui.prefs.layout);
    let is_folded = |agent: AgentId| scene.ui.folded.contains(&agent);
    let folded = |agent: AgentId| is_folded(agent) || is_folded(snap.names.gpu_of(agent));
    let crowded = crowded(scene);
    let open = open_work(snap);
    let keys = snap.lanes.iter().map(|lane| lane.key);
    let keys = keys.chain(open.iter().map(|open| open.key));
    let mut tracks: Vec<Track> = Vec::with_capacity(snap.lanes.len());
    let mut known: HashSet<Track> = HashSet::with_capacity(snap.lanes.len());
    for key in keys {
        let is_work = matches!(key, LaneKey::Stream(..) | LaneKey::Queue(..));
        let track = match (key, layout) {
            (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _), Layout::Stream | Layout::Marker)
                if crowded.contains(&agent) && !folded(agent) =>
            {
                Track::AtOnce(agent)
            }
            (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _), Layout::Stream | Layout::Marker)
                if crowded.contains(&agent) =>
            {
                Track::Lane(key)
            }
            (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _), _) if folded(agent) => continue,
            (LaneKey::Agent(agent), _) if folded(agent) && !is_folded(agent) => continue,
            (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _), Layout::Agent) => Track::OnAgent(agent),
            (_, Layout::Queue | Layout::Thread) if is_work => continue,
            _ => Track::Lane(key),
        };
        if known.insert(track) {
            tracks.push(track);
        }
    }
    match layout {
        Layout::Queue => {
            let mut queues: Vec<(AgentId, QueueId)> = snap
                .values
                .places
                .iter()
                .map(|place| (place.agent, place.queue))
                .collect();
            queues.sort_unstable();
            queues.dedup();
            queues.retain(|queue| !folded(queue.0));
            tracks.extend(queues.into_iter().map(|(agent, queue)| Track::InQueue(agent, queue)));
        }
        Layout::Thread => {
            let threads: Vec<ThreadId> = snap.values.threads.iter().map(|row| row.id).collect();
            tracks.extend(threads.into_iter().map(Track::By).filter(|track| track.is_from(snap)));
        }
        _ => {}
    }
    tracks.extend(plot::tracks(snap));
    tracks.sort_by_cached_key(|&track| rank(snap, layout, track));
    tracks
}

/// What stands to the left of a row.
pub(crate) fn label(scene: &Scene<'_>, track: Track) -> String {
    let names = &scene.snap.names;
    match track {
        Track::Lane(LaneKey::Agent(agent)) => {
            let sign = if scene.ui.folded.contains(&agent) { "▸" } else { "" };
            format!("{sign}{}", lane_label(scene.snap, LaneKey::Agent(agent)))
        }
        Track::Lane(key) => lane_label(scene.snap, key),
        Track::InQueue(_, queue) => format!("  {}", names.queue_label(queue)),
        Track::OnAgent(_) | Track::By(_) => "  kernels".into(),
        Track::AtOnce(agent) => {
            let streams = scene.snap.values.agent(agent).map_or(0, |row| row.streams);
            format!("  {streams} streams")
        }
        Track::Gauge(..) | Track::Counter(_) => plot::label(scene.snap, track),
    }
}

/// The name of a lane.
pub(crate) fn lane_label(snap: &Snapshot, key: LaneKey) -> String {
    let names = &snap.names;
    match key {
        LaneKey::Agent(agent) => {
            let share = snap.values.agent(agent).map(|row| units::percent(row.share));
            let label = match names.gpu_of(agent) {
                gpu if gpu == agent => names.agent_label_of(agent),
                // Below the row of the GPU.
                _ => format!(" {}", names.agent_process(agent)),
            };
            format!("{label} {}%", share.unwrap_or_default())
        }
        LaneKey::Stream(_, stream) => format!("  {}", names.stream_label(stream)),
        LaneKey::Queue(_, queue) => format!("  {}", names.queue_label(queue)),
        LaneKey::Copies(direction::UNKNOWN) => "copy ?".into(),
        LaneKey::Copies(way) => format!("copy {}", direction::name(way)),
        LaneKey::Collectives(number) => {
            let size = snap.values.collectives.communicators.get(number as usize);
            let size = size.map_or(0, |row| row.size);
            format!("comm {number} ×{size}")
        }
        LaneKey::Api(LaneKey::OTHERS, _) => "API others".into(),
        LaneKey::Markers(LaneKey::OTHERS, _) => "mark others".into(),
        LaneKey::Api(thread, 0) => format!("API {}", names.thread_label(thread)),
        LaneKey::Api(..) => "  within".into(),
        LaneKey::Markers(thread, 0) => format!("mark {}", names.thread_label(thread)),
        LaneKey::Markers(_, level) => format!("  level {level}"),
        LaneKey::Ranges(thread) => format!("rng {}", names.thread_label(thread)),
    }
}

/// Whether a lane belongs on the overview: GPUs, their streams, copies, the first markers.
pub(crate) fn is_principal(snap: &Snapshot, key: LaneKey) -> bool {
    match key {
        LaneKey::Agent(id) => snap.names.agent(id).is_some_and(|agent| agent.kind == AgentKind::Gpu),
        LaneKey::Stream(..) | LaneKey::Queue(..) | LaneKey::Copies(_) | LaneKey::Collectives(_) => true,
        LaneKey::Markers(_, level) => level == 0,
        LaneKey::Api(..) | LaneKey::Ranges(_) => false,
    }
}
