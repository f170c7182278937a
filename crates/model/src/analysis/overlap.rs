//! Computes how much copy time is hidden under kernels, by route.

use super::usage::{Usage, clip, total, union};
use crate::{LaneKey, Snapshot};
use roctop_trace::item::Span;

/// Copies of a route during a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Time with at least one copy, ns.
    pub copied: u64,
    /// Part of that time with a kernel on a GPU of the route, ns.
    pub under: u64,
}

impl Overlap {
    /// Hidden share; `None` without copies.
    pub fn share(self) -> Option<f64> {
        (self.copied > 0).then(|| self.under as f64 / self.copied as f64)
    }
}

/// Overlap by route, in the order of the snapshot's copies.
pub fn overlaps(snap: &Snapshot, stretch: Span, usage: &[Usage]) -> Vec<Overlap> {
    let mut copies: Vec<Vec<Span>> = vec![Vec::new(); snap.values.copies.len()];
    for lane in snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Copies(_))) {
        let slices = lane.slices(stretch.begin, stretch.end, usize::MAX / 2);
        for slice in slices.unwrap_or_default() {
            if let (Some(spans), Some(span)) = (copies.get_mut(slice.what as usize), clip(slice.span, stretch)) {
                spans.push(span);
            }
        }
    }
    let rows = copies.into_iter().zip(&*snap.values.copies);
    rows.map(|(mut spans, known)| {
        spans.sort_by_key(|span| span.begin);
        let spans = union(spans.into_iter());
        let ends = [known.route.source, known.route.destination];
        let touched = usage
            .iter()
            .filter(|row| ends.iter().flatten().any(|end| row.agents.contains(end)));
        let mut compute: Vec<Span> = touched.flat_map(|row| row.computing.iter().copied()).collect();
        compute.sort_by_key(|span| span.begin);
        let compute = union(compute.into_iter());
        Overlap {
            copied: total(spans.iter().copied()),
            under: common(&spans, &compute),
        }
    })
    .collect()
}

/// Length of the intersection, ns. Each list is sorted and its spans are disjoint.
pub(super) fn common(a: &[Span], b: &[Span]) -> u64 {
    let (mut at, mut sum) = (0, 0u64);
    for span in a {
        while b.get(at).is_some_and(|other| other.end <= span.begin) {
            at += 1;
        }
        let near = b.iter().skip(at).take_while(|other| other.begin < span.end);
        sum = near
            .filter_map(|other| clip(*other, *span))
            .fold(sum, |sum, part| sum.saturating_add(part.duration()));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_part_of_two_lists_is_counted_once() {
        let spans =
            |pairs: &[(u64, u64)]| -> Vec<Span> { pairs.iter().map(|&(begin, end)| Span { begin, end }).collect() };
        let copies = spans(&[(0, 10), (20, 30), (40, 50)]);
        assert_eq!(common(&copies, &spans(&[(5, 25), (28, 29), (60, 70)])), 5 + 5 + 1);
        assert_eq!(common(&copies, &spans(&[(0, 100)])), 30);
        assert_eq!(common(&copies, &[]), 0);
        assert_eq!(common(&spans(&[(0, 100)]), &copies), 30);
    }
}
