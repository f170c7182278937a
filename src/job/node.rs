//! What the daemon of a node does with the sums of its ranks: one report a second.

use super::{parts, realtime_ahead};
use crate::clocks::boottime;
use crate::model::job::{Reducer, decode_rank};
use roctop_job::{Duties, Question, Rank};
use std::sync::{Mutex, PoisonError};

/// The duties of a node's daemon.
pub(super) struct Node {
    reducer: Mutex<Reducer>,
}

impl Node {
    /// Of a host.
    pub(super) fn new(host: &str) -> Self {
        Self {
            reducer: Mutex::new(Reducer::new(host)),
        }
    }
}

impl Duties for Node {
    /// Sums count once: a rank whose roctop is stopped looks so.
    fn reduce(&self, ranks: &[Rank]) -> Option<bytes::Bytes> {
        let mut reducer = self.reducer.lock().unwrap_or_else(PoisonError::into_inner);
        let new = ranks.iter().filter(|rank| rank.is_new);
        for sums in new.filter_map(|rank| rank.sums.as_deref()) {
            for report in parts::split(sums) {
                // Damaged or foreign ones are left out.
                if let Ok(report) = decode_rank(report) {
                    reducer.take(report);
                }
            }
        }
        Some(reducer.report(boottime(), realtime_ahead()).into())
    }

    fn answer(&self, question: Question, _: &[Rank]) {
        question.reply.fail("this roctop answers no questions over the network");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::{RankReport, RankSums, decode_node, encode_rank};
    use std::time::Instant;

    fn rank(number: u32, is_new: bool) -> Rank {
        let report = RankReport {
            sums: RankSums {
                rank: number,
                begin: 5,
                length: 1_000_000_000,
                ..RankSums::default()
            },
            ..RankReport::default()
        };
        Rank {
            pid: number + 10,
            hello: bytes::Bytes::new(),
            sums: Some(parts::join(&[encode_rank(&report), b"damaged".to_vec()]).into()),
            is_new,
            at: Instant::now(),
            left: None,
        }
    }

    #[test]
    fn sums_are_reported_once() {
        let node = Node::new("n01");
        let reported = |ranks: &[Rank]| {
            let report = decode_node(&node.reduce(ranks).expect("a report")).expect("it can be read");
            let numbers: Vec<u32> = report.ranks.iter().map(|sums| sums.rank).collect();
            (report.host, numbers)
        };
        assert_eq!(
            reported(&[rank(3, true), rank(4, true)]),
            ("n01".to_owned(), vec![3, 4])
        );
        assert_eq!(reported(&[rank(3, false), rank(4, true)]).1, [4]);
        assert!(reported(&[rank(3, false)]).1.is_empty());
        assert!(reported(&[]).1.is_empty());
    }
}
