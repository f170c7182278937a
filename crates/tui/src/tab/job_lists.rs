//! What holds a job up, its communicators, and the alerts of all ranks.

use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::table::{Scene, Table};
use roctop_model::analysis::collectives as words;
use roctop_model::job::{CommunicatorSums, JobAlert, JobValues, Slow};
use roctop_trace::units;

fn job<'a>(scene: &Scene<'a>) -> Option<&'a JobValues> {
    scene.snap.job.as_deref()
}

/// Number of a rank by its index.
fn number(rank: u32, scene: &Scene<'_>) -> Option<u64> {
    Some(job(scene)?.ranks.get(rank as usize)?.rank.into())
}

fn host(rank: u32, scene: &Scene<'_>) -> String {
    let node = job(scene).and_then(|job| job.node_of(rank));
    node.map_or_else(String::new, |node| node.host.to_string())
}

pub(crate) struct SlowTable;

/// The reason as text.
fn reason(row: &Slow, scene: &Scene<'_>) -> String {
    job(scene).map_or_else(String::new, |job| row.text(job))
}

impl Table for SlowTable {
    type Row = Slow;
    const PANE: Pane = Pane::Slow;
    const TITLE: &'static str = "What holds the job up";
    const WHAT: &'static str = "slow rank";
    const SORT: ColumnId = ColumnId("Excess_ns");
    const NAMES: &'static [&'static str] = &["Rank"];
    const COLUMNS: &'static [Column<Slow>] = &[
        Column {
            title: "RANK",
            name: "Rank",
            width: 6,
            rank: 0,
            worth: |row, scene| Worth::maybe(number(row.rank, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "NODE ",
            name: "Node",
            width: 10,
            rank: 2,
            worth: |row, scene| Worth::Text(host(row.rank, scene)),
            text: Shown::Left,
        },
        Column {
            title: "GPU",
            name: "Device",
            width: 3,
            rank: 4,
            worth: |row, scene| {
                let rank = job(scene).and_then(|job| job.ranks.get(row.rank as usize));
                Worth::maybe(rank.and_then(|rank| rank.sums.gpu).map(u64::from))
            },
            text: Shown::Plain,
        },
        Column {
            title: "WHY ",
            name: "Reason",
            width: 9,
            rank: 0,
            worth: |row, _| Worth::text(Some(row.word())),
            text: Shown::Left,
        },
        // Of a rank that is down, the time since then; else in each step.
        Column {
            title: "COST",
            name: "Excess_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.excess),
            text: Shown::Duration,
        },
        Column {
            title: "",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(reason(row, scene)),
            text: Shown::Own(|row, scene, width| units::cut(&reason(row, scene), width)),
        },
        Column {
            title: "±CLOCK",
            name: "Clock_Error_ns",
            width: 8,
            rank: 3,
            worth: |row, _| Worth::maybe(row.error.filter(|error| *error != u64::MAX)),
            text: Shown::Own(|row, _, _| row.error_text().unwrap_or_default()),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Slow> {
        job(scene).map_or_else(Vec::new, |job| job.slow.clone())
    }

    fn all(scene: &Scene<'_>) -> usize {
        job(scene).map_or(0, |job| job.slow.len())
    }

    /// Ranks that are down stay above.
    fn arrange(mut rows: Vec<Slow>, _: &Scene<'_>) -> Vec<Slow> {
        rows.sort_by_key(|row| !row.is_down());
        rows
    }

    fn least(width: u16) -> u16 {
        (width / 2).clamp(36, 110)
    }

    fn key(row: &Slow) -> u64 {
        row.rank.into()
    }

    fn role(row: &Slow, _: &Scene<'_>) -> Role {
        if row.is_down() { Role::Bad } else { Role::Warn }
    }

    fn target(row: &Slow, scene: &Scene<'_>) -> Target {
        let rank = job(scene).and_then(|job| job.ranks.get(row.rank as usize));
        rank.map_or(Target::Nowhere("this rank is not known"), |rank| {
            Target::Rank(rank.rank)
        })
    }
}

pub(crate) struct JobCollectiveTable;

/// What the ranks of a communicator wait for.
fn waiting(row: &CommunicatorSums, scene: &Scene<'_>) -> String {
    let Some(waiting) = &row.waiting else {
        return String::new();
    };
    let since = scene.snap.now.saturating_sub(waiting.since);
    let label = format!("{} #{}", waiting.operation.name(), waiting.sequence);
    let missing = match (&waiting.missing[..], waiting.unknown) {
        ([], unknown) => format!("{} not reported", units::counted(unknown.into(), "rank", "ranks")),
        ([one], _) => format!("no rank {}", number(*one, scene).unwrap_or_default()),
        (more, _) => format!("{} ranks missing", more.len()),
    };
    format!("{label} for {}: {missing}", units::duration(since))
}

impl Table for JobCollectiveTable {
    type Row = CommunicatorSums;
    const PANE: Pane = Pane::JobCollectives;
    const TITLE: &'static str = "Collectives";
    const WHAT: &'static str = "communicator";
    const SORT: ColumnId = ColumnId("Skew_ns");
    const NAMES: &'static [&'static str] = &["Communicator"];
    const COLUMNS: &'static [Column<CommunicatorSums>] = &[
        Column {
            title: "COMM",
            name: "Communicator",
            width: 4,
            rank: 0,
            worth: |row, _| Worth::whole(row.number.into()),
            text: Shown::Plain,
        },
        Column {
            title: "RANKS",
            name: "Ranks",
            width: 9,
            rank: 1,
            worth: |row, _| Worth::whole(row.known.into()),
            text: Shown::Own(|row, _, _| {
                if row.known == row.size {
                    row.size.to_string()
                } else {
                    format!("{} of {}", row.known, row.size)
                }
            }),
        },
        Column {
            title: "MATCHED",
            name: "Count",
            width: 7,
            rank: 4,
            worth: |row, _| Worth::whole(row.count),
            text: Shown::Count,
        },
        Column::times("SKEW", "Skew_ns", 0, |row, _| Worth::whole(row.skew)),
        Column {
            title: "±CLOCK",
            name: "Clock_Error_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(row.error),
            text: Shown::Own(|row, _, _| words::error(row.error.unwrap_or(u64::MAX))),
        },
        Column {
            title: "LAST RANK",
            name: "Last_Rank",
            width: 12,
            rank: 0,
            worth: |row, scene| Worth::maybe(row.late.and_then(|late| number(late.rank, scene))),
            text: Shown::Own(|row, scene, _| {
                let late = row.late.and_then(|late| Some((number(late.rank, scene)?, late.share)));
                late.map_or_else(
                    || units::MISSING.into(),
                    |(rank, share)| format!("{rank} {} %", units::percent(share)),
                )
            }),
        },
        Column {
            title: "WAITING",
            name: "What",
            width: 0,
            rank: 2,
            worth: |row, scene| Worth::Text(waiting(row, scene)),
            text: Shown::Own(|row, scene, width| units::cut(&waiting(row, scene), width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<CommunicatorSums> {
        job(scene).map_or_else(Vec::new, |job| job.communicators.clone())
    }

    fn all(scene: &Scene<'_>) -> usize {
        job(scene).map_or(0, |job| job.communicators.len())
    }

    /// What is wrong stays above.
    fn arrange(mut rows: Vec<CommunicatorSums>, _: &Scene<'_>) -> Vec<CommunicatorSums> {
        rows.sort_by_key(|row| row.waiting.is_none());
        rows
    }

    fn least(_: u16) -> u16 {
        14
    }

    fn key(row: &CommunicatorSums) -> u64 {
        row.number.into()
    }

    fn role(row: &CommunicatorSums, _: &Scene<'_>) -> Role {
        if row.waiting.is_some() { Role::Bad } else { Role::Text }
    }
}

pub(crate) struct JobAlertTable;

impl Table for JobAlertTable {
    type Row = JobAlert;
    const PANE: Pane = Pane::JobAlerts;
    const TITLE: &'static str = "Alerts of all ranks";
    const WHAT: &'static str = "alert";
    const SORT: ColumnId = ColumnId("Ranks");
    const NAMES: &'static [&'static str] = &["Rule"];
    const COLUMNS: &'static [Column<JobAlert>] = &[
        Column {
            title: "RULE ",
            name: "Rule",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::text(Some(row.rule.word())),
            text: Shown::Left,
        },
        Column {
            title: "RANKS",
            name: "Ranks",
            width: 6,
            rank: 0,
            worth: |row, _| Worth::whole(row.count.into()),
            text: Shown::Count,
        },
        Column {
            title: "FIRST",
            name: "Rank",
            width: 5,
            rank: 1,
            worth: |row, scene| Worth::maybe(number(row.rank, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "WHAT",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, _| Worth::text(Some(row.text.clone())),
            text: Shown::Own(|row, _, width| units::cut(&row.text, width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<JobAlert> {
        job(scene).map_or_else(Vec::new, |job| job.alerts.clone())
    }

    fn all(scene: &Scene<'_>) -> usize {
        job(scene).map_or(0, |job| job.alerts.len())
    }

    fn key(row: &JobAlert) -> u64 {
        row.rule as u64
    }

    fn role(row: &JobAlert, _: &Scene<'_>) -> Role {
        if row.rule.is_bad() { Role::Bad } else { Role::Warn }
    }
}
