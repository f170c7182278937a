//! Joins PC samples with their dispatches, and numbers the instructions.

use super::counted::{DispatchFinder, Numbered};
use super::sample_streams::{Sampled, Walk};
use super::scope::Scope;
use super::sort::{Entry, Sorted, Sorter};
use roctop_trace::item::Nanos;
use roctop_trace::pc_sampling::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

/// Memory for each kind while it is sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;

/// A sample with its references.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) sample: Sample,
    /// Correlation id of the dispatch; 0 if it has no row.
    pub(super) id: u64,
    /// Number of the instruction; -1 outside code objects, as upstream.
    pub(super) place: i64,
}

impl Entry for Found {
    type Key = (u16, Nanos, u64, i64, u64);

    fn key(&self) -> Self::Key {
        let Sample {
            method,
            at,
            dispatch,
            hardware,
            ..
        } = self.sample;
        (method, at, dispatch, self.place, hardware)
    }
}

/// A sample, sorted by instruction.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Placed(Found);

impl Entry for Placed {
    type Key = (u64, u64);

    fn key(&self) -> Self::Key {
        (self.0.sample.code_object, self.0.sample.offset)
    }
}

/// Code object and offset of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InstructionKey(u64, u64);

impl Entry for InstructionKey {
    type Key = (u64, u64);

    fn key(&self) -> Self::Key {
        (self.0, self.1)
    }
}

impl InstructionKey {
    /// As text.
    pub(super) fn words(&self) -> String {
        let sample = Sample {
            code_object: self.0,
            offset: self.1,
            ..Sample::default()
        };
        sample.place()
    }
}

/// PC samples of a process.
#[derive(Default)]
pub(super) struct Samples {
    found: Sorted<Found>,
    methods: BTreeSet<u16>,
    /// Instructions in code objects, each once, in order of their numbers.
    pub(super) places: Sorted<InstructionKey>,
}

impl Samples {
    /// Samples at selected times and of dispatches that pass the filter.
    pub(super) fn new(scope: &Scope<'_>, walk: &mut Walk<'_>, dispatches: &Sorted<Numbered>) -> io::Result<Self> {
        let mut placed = Sorter::new(scope.place, SORT_BUFFER_BYTES);
        let mut finding = DispatchFinder::new(dispatches);
        for sample in walk.samples.of(scope.process.id) {
            let Sampled(sample) = sample?;
            if !scope.is_wanted_at(sample.at) {
                continue;
            }
            let found = finding.find(sample.dispatch)?;
            if found.is_some() || scope.choice.filter.is_empty() {
                placed.put(Placed(Found {
                    sample,
                    id: found.map_or(0, |found| found.id),
                    place: -1,
                }))?;
            }
        }
        let (mut places, mut all) = (
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
        );
        let (mut last, mut number) = (None, -1);
        let mut methods = BTreeSet::new();
        for placed in placed.finish()?.iter() {
            let Placed(mut found) = placed?;
            let place = InstructionKey(found.sample.code_object, found.sample.offset);
            if place.0 != 0 {
                if last.as_ref() != Some(&place) {
                    number += 1;
                    places.put(place.clone())?;
                    last = Some(place);
                }
                found.place = number;
            }
            methods.insert(found.sample.method);
            all.put(found)?;
        }
        Ok(Self {
            found: all.finish()?,
            methods,
            places: places.finish()?,
        })
    }

    /// Whether there are samples of a method.
    pub(super) fn has(&self, method: u16) -> bool {
        self.methods.contains(&method)
    }

    /// Samples of a method, sorted by time.
    pub(super) fn of(&self, method: u16) -> impl Iterator<Item = io::Result<Found>> {
        let is_of = move |found: &io::Result<Found>| found.as_ref().map_or(true, |found| found.sample.method == method);
        self.found.iter().filter(is_of)
    }
}
