//! Statistics that are counted apart from the rest of a store, by other threads.

use super::Store;
use super::apply::credible_portions;
use super::calls::Calls;
use super::kernels::Kernels;
use super::launch_config::Shapes;
use super::markers::Markers;
use super::names::Names;
use super::placement::Places;
use roctop_trace::decode::Decoded;
use roctop_trace::item::{Dispatch, Item};

/// The part of a store that counts dispatches by kernel, and calls by operation and thread.
#[derive(Debug, Default)]
pub struct CountedApart {
    kernels: Kernels,
    places: Places,
    shapes: Shapes,
    calls: Calls,
    /// Operations alone.
    names: Names,
    /// Reused buffers.
    dispatches: Vec<Dispatch>,
    numbers: [Vec<u32>; 2],
}

impl CountedApart {
    /// Counts decoder output. It is what the store takes, in the same order; of the items, only operations and texts matter.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        for item in decoded.items {
            match item {
                Item::Operation(operation) => self.names.put_operation(operation.clone()),
                Item::Text(id, text) => self.calls.text(*id, text),
                _ => {}
            }
        }
        for run in decoded.calls.chunk_by(|one, next| one.thread == next.thread) {
            self.calls.add(run[0].thread, run, &self.names);
        }
        let [places, shapes] = &mut self.numbers;
        credible_portions(decoded.dispatches, &mut self.dispatches, |portion| {
            places.clear();
            places.extend(portion.iter().map(|dispatch| self.places.id(dispatch)));
            self.kernels.add(portion, places, &mut self.shapes, shapes);
        });
    }
}

impl Store {
    /// The parts of an empty store without a timeline that count by kernel, operation and thread, and by marker. The store does
    /// not, until [`Store::join`] has the parts back.
    #[must_use]
    pub fn parts(&mut self) -> (CountedApart, Markers) {
        self.counts_apart = true;
        (CountedApart::default(), std::mem::take(&mut self.tables.markers))
    }

    /// Takes the parts back.
    pub fn join(&mut self, part: CountedApart, markers: Markers) {
        self.counts_apart = false;
        self.tables.join(part.kernels, part.places, part.shapes, part.calls);
        self.tables.markers = markers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_attribution::Work;
    use crate::{Fresh, Mode, Options};
    use roctop_trace::item::{ApiCall, Copy, KernelId, Marker, Operation, OperationId, Span, TextId, ThreadId};

    const THREAD: ThreadId = ThreadId(1);

    fn span(begin: u64, end: u64) -> Span {
        Span { begin, end }
    }

    fn range(text: u32, begin: u64, end: u64) -> Item {
        Item::Range(Marker {
            thread: THREAD,
            text: TextId(text),
            span: span(begin, end),
            ..Marker::default()
        })
    }

    /// Work in the ranges, and what tables show of some batches, counted by the store alone or with its parts apart.
    fn shown(is_apart: bool) -> (Work, [String; 5]) {
        let copy = Item::Copy(Copy {
            thread: Some(THREAD),
            submit: 2100,
            span: span(2200, 2900),
            bytes: 64,
            ..Copy::default()
        });
        let operation = Item::Operation(Operation {
            id: OperationId(0),
            name: "hipLaunchKernel".into(),
            ..Operation::default()
        });
        let texts = ["step 1", "inner", "step 2"].into_iter().zip(0..);
        let texts = texts.map(|(text, id)| Item::Text(TextId(id), text.into()));
        let items = [
            texts.chain([operation]).collect(),
            vec![range(1, 1200, 1400), range(0, 1000, 1900)],
            vec![copy, range(2, 2000, 3000)],
        ];
        let launch = |number: u64| Dispatch {
            dispatch_id: number,
            kernel: KernelId(number as u32 % 2),
            thread: Some(THREAD),
            submit: 1000 + number * 100,
            span: span(1010 + number * 100, 1090 + number * 100),
            ..Dispatch::default()
        };
        let call = |number: u64| ApiCall {
            thread: THREAD,
            span: span(1000 + number * 100, 1009 + number * 100),
            correlation: number,
            ..ApiCall::default()
        };
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            timeline: false,
            ..Options::default()
        });
        let mut parts = is_apart.then(|| store.parts());
        for (items, first) in items.iter().zip([1, 8, 15]) {
            let dispatches: Vec<Dispatch> = (first..first + 7).map(launch).collect();
            let calls: Vec<ApiCall> = (first..first + 7).map(call).collect();
            let decoded = Decoded {
                items,
                calls: &calls,
                dispatches: &dispatches,
            };
            store.take(&decoded);
            if let Some((counted, markers)) = &mut parts {
                counted.take(&decoded);
                markers.take(&decoded);
            }
        }
        if let Some((counted, markers)) = parts {
            store.join(counted, markers);
        }
        let values = store.snapshot(Fresh::All).values.clone();
        let shown = [
            format!("{:?}", values.markers),
            format!("{:?}", values.kernels),
            format!("{:?}", values.api),
            format!("{:?}", values.threads),
            format!("{:?}", values.copies),
        ];
        (values.markers[0].work, shown)
    }

    #[test]
    fn parts_count_what_the_whole_counts() {
        let ((work, whole), (_, apart)) = (shown(false), shown(true));
        assert!(whole == apart, "{whole:?} {apart:?}");
        assert_eq!((work.kernels, work.copies, work.copying), (20, 1, 700));
    }
}
