//! The sums of a node's ranks become one report of bounded length.

use super::placed::Places;
use super::report::{LeftOut, MAX_RANKS, MAX_REPORT, NodeReport, RankReport, encode};
use super::sums::{MAX_NAME, RankSums, cut};
use crate::fx_hash::FastMap;
use std::collections::VecDeque;

/// Maximum number of names that a node keeps.
const MAX_NAMES: usize = 4096;
/// Bytes of a name beside its text: id and length.
const NAME_BYTES: usize = 12;
/// Bytes of the number of names.
const COUNT_BYTES: usize = 2;

/// Makes the reports of a node.
#[derive(Debug, Default)]
pub struct Reducer {
    host: String,
    sequence: u64,
    /// Latest sums by rank, until they are reported.
    ranks: Vec<RankSums>,
    places: Places,
    names: FastMap<u64, String>,
    /// Names in the order in which they are reported; each goes to the end.
    turns: VecDeque<u64>,
}

impl Reducer {
    /// Of a host.
    pub fn new(host: &str) -> Self {
        Self {
            host: cut(host, 64),
            ..Self::default()
        }
    }

    /// Takes what a rank handed over. Of several reports of one rank, the later one counts.
    pub fn take(&mut self, report: RankReport) {
        for (id, name) in report.names {
            if self.names.len() < MAX_NAMES && !self.names.contains_key(&id) {
                self.names.insert(id, cut(&name, MAX_NAME));
                // A new name goes first.
                self.turns.push_front(id);
            }
        }
        if let Some(place) = report.place {
            self.places.take(report.sums.rank, *place);
        }
        match self.ranks.iter_mut().find(|known| known.rank == report.sums.rank) {
            Some(known) if known.begin > report.sums.begin => {}
            Some(known) => *known = report.sums,
            None => self.ranks.push(report.sums),
        }
    }

    /// The report of what was taken since the last one, made at `at` (CLOCK_BOOTTIME ns) with CLOCK_REALTIME
    /// `realtime_ahead` ns ahead of that: at most [`MAX_REPORT`] bytes.
    /// What does not fit is left out and counted: arrivals first, then kernels and texts.
    pub fn report(&mut self, at: u64, realtime_ahead: i64) -> Vec<u8> {
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.sort_by_key(|sums| sums.rank);
        self.sequence += 1;
        let mut left_out = LeftOut {
            ranks: ranks.len().saturating_sub(MAX_RANKS) as u32,
            ..LeftOut::default()
        };
        ranks.truncate(MAX_RANKS);
        let mut report = NodeReport {
            sequence: self.sequence,
            host: self.host.clone(),
            at,
            realtime_ahead,
            ranks,
            placement: self.places.judged().clone(),
            left_out,
            ..NodeReport::default()
        };
        let mut bytes = encode(&report);
        for round in 0.. {
            if bytes.len() + COUNT_BYTES <= MAX_REPORT || !shorten(&mut report, round, &mut left_out) {
                break;
            }
            report.left_out = left_out;
            bytes = encode(&report);
        }
        self.add_names(&mut report, MAX_REPORT.saturating_sub(bytes.len() + COUNT_BYTES));
        encode(&report)
    }

    /// Fills what room is left with names.
    fn add_names(&mut self, report: &mut NodeReport, mut room: usize) {
        for _ in 0..self.turns.len() {
            let Some(id) = self.turns.front().copied() else { return };
            let name = self.names.get(&id).cloned().unwrap_or_default();
            let Some(left) = room.checked_sub(name.len() + NAME_BYTES) else {
                return;
            };
            room = left;
            self.turns.rotate_left(1);
            report.names.push((id, name));
        }
    }
}

/// Leaves out more of each rank; false if there is nothing more.
fn shorten(report: &mut NodeReport, round: u32, left_out: &mut LeftOut) -> bool {
    if round == 6 {
        // The ranks stay, and what is wrong with them.
        report.placement.lines.clear();
        for finding in &mut report.placement.findings {
            left_out.others += 1;
            finding.line = None;
            finding.text.clear();
        }
    }
    for sums in &mut report.ranks {
        match round {
            // Those of the larger powers of two stay, so that ranks of several nodes still meet.
            0..5 => {
                for part in &mut sums.communicators {
                    let before = part.arrivals.len();
                    part.arrivals
                        .retain(|arrival| arrival.sequence.trailing_zeros() > round);
                    left_out.arrivals += (before - part.arrivals.len()) as u32;
                }
            }
            5 => {
                left_out.others += sums.kernels.len().saturating_sub(2) as u32;
                sums.kernels.truncate(2);
            }
            6 => {
                for text in sums
                    .alerts
                    .iter_mut()
                    .map(|alert| &mut alert.text)
                    .chain([&mut sums.doing, &mut sums.before])
                {
                    left_out.others += u32::from(text.len() > 24);
                    *text = cut(text, 24);
                }
            }
            7 => {
                left_out.others += sums.communicators.len().saturating_sub(1) as u32;
                sums.communicators.truncate(1);
            }
            8 => sums.communicators.iter_mut().for_each(|part| part.arrivals.clear()),
            _ => return false,
        }
    }
    true
}
