//! Where the ranks of a node run: what their node's report says of it. A rank hands over its place every few seconds, and the node's
//! daemon judges all of them together.

use super::sums::{MAX_NAME, cut};
use crate::analysis::placement::{Kind, Place, verdicts};
use roctop_trace::binding::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of ranks of a node that are judged.
const MAX_PLACES: usize = 512;
/// Maximum number of findings in a report.
pub(super) const MAX_FINDINGS: usize = 16;
/// Maximum length of a sentence, bytes.
pub(super) const MAX_SENTENCE: usize = 2 * MAX_NAME + 80;
/// Maximum length of all lines that mend something, bytes: a shortened line would be a wrong one.
pub(super) const MAX_LINES: usize = 2048;

/// What is wrong with some ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The ranks, in the format of CPUs.
    pub ranks: CpuSet,
    /// It as a sentence.
    pub text: String,
    /// Number of the line that mends it.
    pub line: Option<u8>,
}

/// Where the ranks of a node run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlacement {
    /// Ranks of which it is known, in the format of CPUs.
    pub known: CpuSet,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// The lines that mend it.
    pub lines: Vec<String>,
}

/// The places of a node's ranks.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_rank: BTreeMap<u32, Place>,
    is_new: bool,
    judged: NodePlacement,
}

impl Places {
    /// Takes what a rank handed over.
    pub(super) fn take(&mut self, rank: u32, place: Place) {
        if self.by_rank.len() < MAX_PLACES || self.by_rank.contains_key(&rank) {
            let place = Place {
                rank: Some(rank),
                ..place
            };
            self.by_rank.insert(rank, place);
            self.is_new = true;
        }
    }

    /// What is to be said of all of them.
    pub(super) fn judged(&mut self) -> &NodePlacement {
        if std::mem::take(&mut self.is_new) {
            let places: Vec<Place> = self.by_rank.values().cloned().collect();
            self.judged = judge(&places);
        }
        &self.judged
    }
}

fn judge(places: &[Place]) -> NodePlacement {
    let ranks = |of: &mut dyn Iterator<Item = &Place>| CpuSet::of(of.filter_map(|place| place.rank));
    let mut all = NodePlacement {
        known: ranks(&mut places.iter()),
        ..NodePlacement::default()
    };
    let mut room = MAX_LINES;
    for verdict in verdicts(places).into_iter().take(MAX_FINDINGS) {
        let line = verdict.remedy.and_then(|line| {
            if let Some(known) = all.lines.iter().position(|known| *known == line) {
                return Some(known);
            }
            room = room.checked_sub(line.len())?;
            all.lines.push(line);
            Some(all.lines.len() - 1)
        });
        all.findings.push(Finding {
            kind: verdict.kind,
            ranks: ranks(&mut verdict.of.iter().filter_map(|at| places.get(*at))),
            text: cut(&verdict.text, MAX_SENTENCE),
            line: line.and_then(|line| u8::try_from(line).ok()),
        });
    }
    all
}

impl Place {
    /// Without the facts of its node that no verdict needs.
    #[must_use]
    pub(super) fn shortened(mut self) -> Self {
        self.node.cards.clear();
        self.node.settings.clear();
        for gpu in &mut self.node.gpus {
            gpu.name.clear();
            gpu.links.clear();
            (gpu.root, gpu.partition) = (None, None);
        }
        self
    }
}
