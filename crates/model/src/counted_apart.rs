//! Statistics by kernel, operation and thread, counted apart from the rest of a store: by another thread.

use super::Store;
use super::apply::credible_portions;
use super::calls::Calls;
use super::kernels::Kernels;
use super::launch_config::Shapes;
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
    /// Counts decoder output. It is what the store takes, in the same order; of the items, only operations matter.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        for item in decoded.items {
            if let Item::Operation(operation) = item {
                self.names.put_operation(operation.clone());
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
    /// The part of an empty store without a timeline that counts by kernel, operation and thread. The store does not, until
    /// [`Store::join`] has the part back.
    #[must_use]
    pub fn part(&mut self) -> CountedApart {
        self.counts_apart = true;
        CountedApart::default()
    }

    /// Takes the part back.
    pub fn join(&mut self, part: CountedApart) {
        self.counts_apart = false;
        self.tables.join(part.kernels, part.places, part.shapes, part.calls);
    }
}
