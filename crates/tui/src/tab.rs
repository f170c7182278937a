//! The views: a file and a row of the table each, and what all of them can be asked.

mod alert_detail;
pub(crate) mod alerts;
pub(crate) mod api;
pub(crate) mod calls;
pub(crate) mod collectives;
pub(crate) mod copies;
mod counter_detail;
pub(crate) mod counters;
mod device_detail;
pub(crate) mod devices;
pub(crate) mod diff;
pub(crate) mod gaps;
pub(crate) mod instances;
pub(crate) mod job;
mod job_lists;
pub(crate) mod job_rows;
mod kernel_detail;
pub(crate) mod kernel_rows;
pub(crate) mod kernels;
pub(crate) mod log;
mod marker_detail;
pub(crate) mod markers;
pub(crate) mod memory;
mod overview;
mod process_detail;
pub(crate) mod processes;
mod roofline;
pub(crate) mod running;
pub(crate) mod samples;
mod selected;
pub(crate) mod sites;
pub(crate) mod steps;
mod timeline;
pub(crate) mod transfers;

use std::borrow::Cow;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;

use self::alerts::AlertTable;
use self::api::ApiTable;
use self::calls::{CallTable, ThreadTable};
use self::collectives::{CollectiveEventTable, CollectiveTable};
use self::copies::{CopyTable, Which};
use self::counters::CounterTable;
use self::devices::DeviceTable;
use self::diff::ChangeTable;
use self::gaps::GapTable;
use self::instances::LaunchTable;
use self::job_lists::{JobAlertTable, JobCollectiveTable, SlowTable};
use self::job_rows::JobRowTable;
use self::kernels::KernelTable;
use self::markers::MarkerTable;
use self::memory::MemoryTable;
use self::processes::ProcessTable;
use self::running::RunningTable;
use self::samples::SampleTable;
use self::sites::SiteTable;
use self::steps::StepTable;
use self::transfers::TransferTable;
use super::Size;
use super::key::Key;
use super::launches;
use super::relation::Kind;
use super::tally;
use super::views::{View, views};
use super::widgets::list::{List, ListOf};
use super::widgets::table::{Scene, Table as _};
use roctop_model::query::Field;
use roctop_model::snapshot::ApiRow;
use roctop_model::{Mode, Snapshot, Values};
use roctop_trace::item::{KernelId, OperationId};
use roctop_trace::units;

views! {
    /// All at a glance.
    #[default]
    Overview '1' "Overview" "overview" "overview" overview::draw {} [
        Kernels Small, Routes Large, Operations Large, Alerts Large
    ]
    /// Lanes of time.
    Timeline '2' "Timeline" "timeline" "timeline" timeline::draw {}
    /// Kernels.
    Kernels '3' "Kernels" "kernels" "kernels" kernels::draw {
        /// Kernels, or what they are grouped by.
        #[default]
        Kernels "kernels" KernelTable, Small;
    }
    /// Copies.
    Copies '4' "Copies" "copies" "copies" copies::draw {
        /// Copies by route.
        Routes "copies" CopyTable, Small;
        /// The last copies.
        Transfers "recent-copies" TransferTable, Medium;
    }
    /// API calls.
    Api '5' "API" "api" "API calls" api::draw {
        /// API calls by operation.
        Operations "api" ApiTable, Small;
        /// Threads by time in calls.
        Threads "threads" ThreadTable, Medium;
        /// The last calls.
        Calls "recent-calls" CallTable, Medium;
    }
    /// Counters.
    Counters '6' "Counters" "counters" "counters" counters::draw {
        /// Counters.
        Counters "counters" CounterTable, Small;
    }
    /// Devices.
    Devices '7' "Devices" "devices" "devices, idle gaps" devices::draw {
        /// Devices.
        Devices "devices" DeviceTable, Small;
        /// When a device was idle.
        Gaps "gaps" GapTable, Medium;
    }
    /// Markers.
    Markers '8' "Markers" "markers" "markers and ranges" markers::draw {
        /// Markers.
        Markers "markers" MarkerTable, Small;
    }
    /// Processes.
    Processes '9' "Processes" "processes" "processes" processes::draw {
        /// Processes.
        Processes "processes" ProcessTable, Small;
    }
    /// What the program printed.
    Log '0' "Log" "log" "log: program's output" log::draw {}
    /// Alerts.
    Alerts 'A' "Alerts" "alerts" "alerts" alerts::draw {
        /// Alerts.
        Alerts "alerts" AlertTable, Small;
    }
    /// What is open now.
    Running 'W' "Running" "running" "what runs, what hangs" running::draw {
        /// What is open now.
        Running "running" RunningTable, Small;
    }
    /// Launches of a kernel.
    Launches 'L' "Launches" "launches" "launches of a kernel" instances::draw {
        /// Launches of a kernel.
        Launches "launches" LaunchTable, Small;
    }
    /// Iterations.
    Steps 'I' "Steps" "steps" "iterations" steps::draw {
        /// Steps.
        Steps "steps" StepTable, Small;
    }
    /// What changed.
    Diff 'D' "Diff" "diff" "compare two windows, b" diff::draw {
        /// Differences by kernel.
        Changes "changes" ChangeTable, Small;
    }
    /// Memory that is held.
    Memory 'M' "Memory" "memory" "memory that is held" memory::draw {
        /// Allocations that are not freed.
        Memory "memory" MemoryTable, Small;
    }
    /// Where launches, copies and calls come from.
    Sites 'O' "Sites" "sites" "code that launches" sites::draw {
        /// Call paths by GPU time.
        Sites "sites" SiteTable, Small;
    }
    /// Collectives of RCCL.
    Collectives 'K' "Collectives" "collectives" "collectives" collectives::draw {
        /// Operations of communicators.
        Collectives "collectives" CollectiveTable, Small;
        /// What ranks wait for, mismatches, and the last collectives.
        CollectiveEvents "recent-collectives" CollectiveEventTable, Medium;
    }
    /// All ranks of a job.
    Job 'J' "Job" "job" "all ranks of the job" job::draw {
        /// Ranks × time.
        JobRows "job-ranks" JobRowTable, Small;
        /// Ranks that hold the job up.
        Slow "slowest-ranks" SlowTable, Small;
        /// Communicators over all ranks.
        JobCollectives "job-collectives" JobCollectiveTable, Large;
        /// Alerts of all ranks.
        JobAlerts "job-alerts" JobAlertTable, Large;
    }
    /// Samples of program counters.
    Samples 'C' "Samples" "samples" "sampled instructions" samples::draw {
        /// Instructions at which waves were sampled.
        Samples "pc-samples" SampleTable, Small;
    }
}

impl Tab {
    /// Whether there is such a view: a job has one, and a program has all others.
    pub fn is_there(self, snap: &Snapshot) -> bool {
        (self == Self::Job) == snap.job.is_some()
    }

    /// The views of a program.
    pub fn of_program() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|tab| *tab != Self::Job)
    }
}

/// Columns that the names of lanes take.
pub(crate) const fn label_columns(size: Size) -> u16 {
    match size {
        Size::Large => 18,
        _ => 14,
    }
}

/// The selected row as text; on the timeline what is known of the slice.
pub(crate) fn copied(scene: &Scene<'_>) -> Option<String> {
    match (scene.ui.pane(), scene.ui.tab) {
        (Some(pane), _) => pane.list().copied(scene),
        (None, Tab::Timeline) => Some(selected::text(scene)),
        (None, Tab::Log) => log::line(scene),
        (None, _) => None,
    }
}

/// The name in the selected row.
pub(crate) fn copied_name(scene: &Scene<'_>) -> Option<String> {
    match scene.ui.pane() {
        Some(pane) => pane.list().copied_name(scene),
        None => copied(scene),
    }
}

/// What the view shows as a file: the rows of the list that has the focus as comma-separated values.
pub(crate) fn file(scene: &Scene<'_>) -> String {
    match (scene.ui.pane(), scene.ui.tab) {
        (Some(pane), _) => pane.list().csv(scene),
        (None, Tab::Timeline) => timeline::csv(scene),
        (None, Tab::Log) => log::text(scene),
        (None, _) => String::new(),
    }
}

/// What the filter lets pass, in words: `8 of 318 kernels · 68.0 % of time`.
pub(crate) fn matches(scene: &Scene<'_>) -> String {
    match (scene.ui.pane(), scene.ui.tab) {
        (Some(pane), _) => pane.list().matches(scene),
        (None, Tab::Log) => log::matches(scene),
        (None, _) => "what does not match is ░".into(),
    }
}

/// The values of what passes the filter.
pub(crate) fn passing(scene: &Scene<'_>) -> Values {
    let mut values = (*scene.snap.values).clone();
    let kernels = kernel_rows::by_name(scene).into_iter().filter_map(|row| {
        let kernel_rows::What::Kernel(at) = row.what else {
            return None;
        };
        let mut kernel = values.kernels[at].clone();
        kernel.numbers.stat = row.stat;
        Some((kernel, row.internal))
    });
    let kernels: Vec<_> = kernels.collect();
    // A summary is of what the filter names, not of what belongs to it.
    let is_named = |kind: &Kind| launches::relation(scene, *kind).is_none();
    let kernels: Vec<_> = kernels.into_iter().filter(|_| is_named(&Kind::Kernels)).collect();
    let calls = |internal: bool| {
        let rows = kernels.iter().filter(|row| row.1 || !internal);
        rows.map(|row| row.0.numbers.stat.calls).sum()
    };
    let totals = &mut values.totals;
    (totals.dispatches, totals.internal) = (calls(false), calls(true));
    totals.kernel_time = kernels.iter().map(|row| row.0.numbers.stat.total).sum();
    values.kernels = Arc::new(kernels.into_iter().map(|row| row.0).collect());
    let (mut kept, mut kept_sums) = (vec![false; values.copies.len()], vec![false; values.copy_sums.len()]);
    let rows = CopyTable::rows(scene);
    for row in rows.into_iter().filter(|_| is_named(&Kind::Copies)) {
        let known = match row.which {
            Which::Alone(at) | Which::Part(_, at) => {
                kept[at] = true;
                &mut Arc::make_mut(&mut values.copies)[at]
            }
            Which::Sum(at) => {
                kept_sums[at] = true;
                &mut Arc::make_mut(&mut values.copy_sums)[at].sum
            }
        };
        if let Some(passing) = row.passing {
            *known = Arc::unwrap_or_clone(passing);
        }
    }
    let place = |at: u32| kept[..at as usize].iter().filter(|kept| **kept).count() as u32;
    let sums = Arc::make_mut(&mut values.copy_sums);
    retain(sums, &kept_sums);
    for sum in sums {
        sum.parts.retain(|&at| kept[at as usize]);
        sum.parts.iter_mut().for_each(|at| *at = place(*at));
    }
    retain(Arc::make_mut(&mut values.copies), &kept);
    totals.copies = values.copies.iter().map(|row| row.stat.calls).sum();
    let calls = ApiTable::rows(scene).into_iter().map(|row| ApiRow {
        stat: row.stat,
        ..values.api[row.at].clone()
    });
    let calls: Vec<_> = calls.collect();
    values.api = Arc::new(calls.into_iter().filter(|_| is_named(&Kind::Calls)).collect());
    totals.calls = values.api.iter().map(|row| row.stat.calls).sum();
    let mut kept = markers::passing(scene);
    for kept in &mut kept {
        *kept &= is_named(&Kind::Ranges);
    }
    retain(Arc::make_mut(&mut values.markers), &kept);
    let of_rows = || values.markers.iter().map(|row| row.stat.calls).sum();
    totals.markers = if values.markers.is_empty() {
        0
    } else {
        markers::count(scene).unwrap_or_else(of_rows)
    };
    let collectives = Arc::make_mut(&mut values.collectives);
    let filter = &scene.ui.filter;
    collectives
        .operations
        .retain(|row| filter.accepts_text(row.operation.name()));
    collectives
        .waiting
        .retain(|waiting| filter.accepts_text(waiting.operation.name()));
    let kernels: HashSet<KernelId> = values.kernels.iter().map(|row| row.id).collect();
    let operations: HashSet<OperationId> = values.api.iter().map(|row| row.id).collect();
    for row in &mut values.processes {
        let open = Arc::make_mut(&mut row.open);
        open.calls.retain(|call| operations.contains(&call.operation));
        open.dispatches.retain(|dispatch| kernels.contains(&dispatch.kernel));
        open.copies = 0;
    }
    values
}

/// Keeps those elements of a list that `kept` names.
fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    list.retain(|_| kept.next().is_some_and(|kept| *kept));
}

/// What the filter does here, where that is not to compare rows; none where it has nothing unusual to say.
pub(crate) fn use_of_filter(scene: &Scene<'_>) -> Option<Cow<'static, str>> {
    let filter = &scene.ui.filter;
    let kind = match scene.ui.tab {
        _ if filter.is_empty() => return None,
        Tab::Kernels | Tab::Launches => Kind::Kernels,
        Tab::Api => Kind::Calls,
        Tab::Markers => Kind::Ranges,
        Tab::Copies => Kind::Copies,
        Tab::Overview | Tab::Timeline | Tab::Running | Tab::Diff | Tab::Sites => return None,
        Tab::Devices if !filter.asks_only(|field| !matches!(field, Field::Dev | Field::Dur)) => {
            return Some("words hide nothing here".into());
        }
        Tab::Processes if !filter.asks_only(|field| !matches!(field, Field::Pid | Field::Rank)) => {
            return Some("words hide nothing here".into());
        }
        _ => return Some("not used here".into()),
    };
    if let Some(relation) = launches::relation(scene, kind) {
        return Some(relation.into());
    }
    let words = match kind {
        _ if !tally::asks_more(scene.snap, filter, kind) => return None,
        Kind::Kernels => "each launch",
        Kind::Calls => "each call",
        Kind::Copies => "each copy",
        Kind::Ranges => return Some("rows with any such".into()),
    };
    Some(match launches::progress(scene) {
        Some(progress) => format!("{words}, {progress}").into(),
        None => words.into(),
    })
}

/// Why a pane has nothing to show: what is missing and what to do.
pub(crate) fn why_empty(scene: &Scene<'_>, what: &str, known: usize) -> Vec<String> {
    let snap = scene.snap;
    if known > 0 && !scene.ui.filter.is_empty() {
        let source = &scene.ui.filter.source;
        let mut lines = vec![
            format!("0 of {known} match the filter: {source}"),
            "esc clears it, / changes it".into(),
        ];
        let is_plain = scene.ui.filter.names_only() && !source.contains(['"', '/', '~']);
        if is_plain && source.chars().any(char::is_uppercase) {
            lines.push(format!("capitals match as they are: try {}", source.to_lowercase()));
        }
        return lines;
    }
    if let Some(job) = &snap.job {
        return job::why_empty(job, what);
    }
    let mut lines = Vec::new();
    if snap.values.processes.iter().all(|row| row.process.pid == 0) {
        // Overview has many empty panes and says why in one.
        if scene.ui.tab == Tab::Overview && what != KernelTable::WHAT {
            return lines;
        }
        lines.push(match snap.mode {
            _ if scene.ui.prefs.detached.is_uncollected => "started with --no-collect: nothing is recorded".into(),
            _ if snap.missed.is_some() => "nothing is recorded".into(),
            Mode::Live if snap.ended.is_some() => "no HIP or HSA use: no collector started".into(),
            Mode::Live => "no HIP or HSA use yet: the collector starts with it".into(),
            Mode::Replay if snap.loading.percent().is_some() => "the recording is being read".into(),
            Mode::Replay => "the recording has no process".into(),
        });
    } else {
        let after = units::duration(snap.elapsed());
        lines.push(match (snap.mode, snap.ended) {
            (Mode::Replay, _) if snap.loading.percent().is_some() => format!("no {what} read yet"),
            (Mode::Replay, _) => format!("the recording has no {what}"),
            (_, Some(_)) => format!("there was no {what}"),
            (_, None) => format!("no {what} yet, after {after}"),
        });
    }
    lines.extend(snap.missed.iter().map(ToString::to_string));
    if snap.values.totals.records() == 0 && !snap.output.is_empty() && snap.mode == Mode::Live {
        lines.push("what the program prints is in the log (0)".into());
    }
    lines.extend(
        snap.values
            .said
            .iter()
            .rev()
            .take(3)
            .map(|said| format!("collector: {}", said.text)),
    );
    lines
}

/// Time that percentages of the wall are of.
pub(crate) fn wall(snap: &Snapshot) -> u64 {
    snap.wall()
}
