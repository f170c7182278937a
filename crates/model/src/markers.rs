//! Statistics of markers by the pattern of their texts, with the GPU work launched in their ranges.

use std::collections::HashMap;
use std::sync::Arc;

use super::apply::{credible_portions, is_timed};
use super::credible;
use super::range_attribution::{Credit, Recent, Under, Work};
use super::stats::{HISTOGRAMS, Quantiles, Stat, Sum};
use super::table::{dense, is_untimed, pattern};
use roctop_trace::decode::Decoded;
use roctop_trace::item::{Copy, Dispatch, Item, Marker, Nanos, TextId, ThreadId};

/// Maximum number of patterns with a separate row.
const MAX_MARKERS: usize = 4096;

/// Statistics of markers whose texts differ only in digits.
#[derive(Clone, Debug, Default)]
pub struct MarkerStat {
    /// Dense id: index of the row.
    pub id: u32,
    /// Pattern: text with `#` for each run of digits.
    pub pattern: Arc<str>,
    /// Latest text.
    pub text: TextId,
    /// Whether there was more than one text.
    pub differs: bool,
    /// Durations of ranges.
    pub stat: Stat,
    /// Number of marks.
    pub marks: u64,
    /// Thread that used it last.
    pub thread: ThreadId,
    /// GPU work launched in its ranges.
    pub work: Work,
    /// Whether that is a lower bound: not all work was kept until its range was closed.
    pub is_least: bool,
    /// Kernels in its ranges that are known individually, and percentiles of the latest.
    pub kernels: (Sum, Quantiles),
    /// Row of the enclosing range, if any.
    pub parent: Option<u32>,
}

/// All markers; those with a pattern beyond the limit share the last row.
#[derive(Debug, Default)]
pub struct Markers {
    rows: Vec<MarkerStat>,
    patterns: HashMap<Arc<str>, u32>,
    /// Row of each text.
    texts: Vec<u32>,
    /// Latest kernels, by row.
    recent: Vec<Recent>,
    under: Under,
    /// Reused buffer.
    room: Vec<Dispatch>,
}

impl Markers {
    /// Rows by pattern.
    pub(super) fn rows(&self) -> &[MarkerStat] {
        &self.rows
    }

    /// Assigns a row to a new text.
    pub(super) fn text(&mut self, id: TextId, text: &str) {
        let pattern = pattern(text);
        let row = match self.patterns.get(pattern.as_str()) {
            Some(&row) => row,
            None if self.rows.len() < MAX_MARKERS => {
                let pattern: Arc<str> = pattern.into();
                let stat = Stat::new(self.rows.len() < HISTOGRAMS);
                self.rows.push(MarkerStat {
                    id: self.rows.len() as u32,
                    pattern: pattern.clone(),
                    stat,
                    text: id,
                    ..MarkerStat::default()
                });
                self.recent.push(Recent::default());
                let row = self.rows.len() as u32 - 1;
                self.patterns.insert(pattern, row);
                row
            }
            None => {
                if let Some(last) = self.rows.last_mut() {
                    last.pattern = "(all other texts)".into();
                }
                self.rows.len() as u32 - 1
            }
        };
        if let Some(known) = dense(&mut self.texts, id.0, |_| u32::MAX) {
            *known = row;
        }
    }

    /// Row of a text.
    pub(super) fn row(&self, text: TextId) -> Option<u32> {
        let row = *self.texts.get(text.0 as usize)?;
        (row != u32::MAX).then_some(row)
    }

    /// Counts a mark.
    pub(super) fn mark(&mut self, marker: &Marker) {
        if let Some(row) = self.used(marker) {
            row.marks += 1;
            row.stat.add_untimed();
        }
    }

    /// Counts a range that was closed, with its completed work and its inner ranges.
    pub(super) fn range(&mut self, marker: &Marker) {
        if let Some(row) = self.used(marker) {
            row.stat.add(marker.span.duration());
        }
        let Some(row) = self.row(marker.text) else { return };
        let mut recent = self.recent.get_mut(row as usize);
        let level = (marker.range_id == 0).then_some(marker.level);
        let (work, is_least) = self.under.range(marker.thread, marker.span, row, level, |nanos| {
            if let Some(recent) = &mut recent {
                recent.add(nanos);
            }
        });
        if let Some(row) = self.rows.get_mut(row as usize) {
            row.work.merge(work);
            row.is_least |= is_least;
        }
        if marker.range_id == 0 {
            for child in self.under.nest(marker.thread, marker.level, row) {
                if let Some(child) = self.rows.get_mut(child as usize) {
                    child.parent = Some(row);
                }
            }
        }
    }

    /// The row of a marker, which was the latest to use it.
    fn used(&mut self, marker: &Marker) -> Option<&mut MarkerStat> {
        if self.row(marker.text).is_none() {
            self.text(marker.text, "?");
        }
        let row = self.row(marker.text)?;
        let row = self.rows.get_mut(row as usize)?;
        row.differs |= row.text != marker.text;
        row.text = marker.text;
        row.thread = marker.thread;
        Some(row)
    }

    /// Whether it attributes work to ranges.
    pub(super) const fn attributes_work(&self) -> bool {
        self.under.is_wanted()
    }

    /// Starts to attribute work to ranges; `known` has the previous work in order of completion, all
    /// that ended after `unknown_until`.
    pub(super) fn want_work(&mut self, known: impl Iterator<Item = (ThreadId, Nanos, Work)>, unknown_until: Nanos) {
        self.under.want(known, unknown_until);
    }

    /// Attributes dispatches with credible times.
    pub(super) fn dispatches(&mut self, dispatches: &[Dispatch]) {
        if self.attributes_work() {
            for one in dispatches.iter().filter(|one| is_timed(one)) {
                self.launched(one.thread, one.submit, Work::kernel(one.span));
            }
        }
    }

    /// Attributes a copy with a credible time.
    pub(super) fn copy(&mut self, copy: &Copy) {
        if self.attributes_work() && !is_untimed(copy.flags, copy.span.end) {
            self.launched(copy.thread, copy.submit, Work::copy(copy.span));
        }
    }

    /// Attributes work to the ranges in which it was launched.
    fn launched(&mut self, thread: Option<ThreadId>, submit: Nanos, work: Work) {
        let Some(thread) = thread.filter(|_| submit > 0) else {
            return;
        };
        let (rows, recent) = (&mut self.rows, &mut self.recent);
        self.under.work(thread, submit, work, |row, credit| {
            let row = row as usize;
            if let (Some(stat), Some(recent)) = (rows.get_mut(row), recent.get_mut(row)) {
                if credit == Credit::Unknown {
                    stat.is_least = true;
                    return;
                }
                stat.work.merge(work);
                if work.kernels > 0 {
                    recent.add(work.nanos);
                }
            }
        });
    }

    /// Counts decoder output, as the store does that these markers are apart from.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        for item in decoded.items {
            match item {
                Item::Text(id, text) => self.text(*id, text),
                Item::Mark(marker) => self.mark(marker),
                Item::Range(marker) => self.range(&Marker {
                    span: credible(marker.span),
                    ..*marker
                }),
                Item::Copy(copy) => self.copy(&Copy {
                    span: credible(copy.span),
                    ..*copy
                }),
                _ => {}
            }
        }
        let mut room = std::mem::take(&mut self.room);
        credible_portions(decoded.dispatches, &mut room, |portion| self.dispatches(portion));
        self.room = room;
    }

    /// Updates percentiles.
    pub(super) fn refresh(&mut self) {
        for (row, recent) in self.rows.iter_mut().zip(&mut self.recent) {
            row.stat.refresh();
            row.kernels = recent.fresh().unwrap_or(row.kernels);
        }
    }
}
