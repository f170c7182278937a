//! Names of call paths, from the program's files on this machine.

use crate::model::sites::Sites;
use roctop_trace::site::{Frame, Line, Module};
use roctop_unwind::{Named, Names};
use std::collections::BTreeMap;
use std::path::Path;

/// Frames that are named together.
const PORTION: usize = 512;

/// Names all frames without a name: those of a recording that has none.
pub fn name(sites: &mut Sites) {
    for found in Finder::of(sites) {
        for (frame, lines) in found {
            sites.name(frame, &lines);
        }
    }
    sites.settle();
}

/// Finds names portion by portion.
pub struct Finder {
    names: Names,
    /// Modules with their frames that have no name.
    unnamed: Vec<(Module, Vec<Frame>)>,
}

impl Finder {
    /// Names of frames that have none.
    pub fn of(sites: &Sites) -> Self {
        let mut unnamed: BTreeMap<u32, (Module, Vec<Frame>)> = BTreeMap::new();
        for frame in sites.unnamed() {
            if let Some(module) = sites
                .module(frame)
                .filter(|module| module.problem.is_empty() && !module.is_python)
            {
                let known = unnamed.entry(frame.module);
                known.or_insert_with(|| (module.clone(), Vec::new())).1.push(frame);
            }
        }
        Self {
            names: Names::default(),
            unnamed: unnamed.into_values().collect(),
        }
    }
}

impl Iterator for Finder {
    type Item = Vec<(Frame, Vec<Line>)>;

    /// Names of some frames of one file. Those of a file that has changed have none.
    fn next(&mut self) -> Option<Self::Item> {
        let (module, frames) = self.unnamed.last_mut()?;
        let these = frames.split_off(frames.len().saturating_sub(PORTION));
        let offsets: Vec<u64> = these.iter().map(|frame| frame.offset).collect();
        let found = self.names.all(Path::new(&module.path), &module.build_id, &offsets);
        if frames.is_empty() {
            self.unnamed.pop();
        }
        let found = found.into_iter().map(Result::unwrap_or_default);
        let lines = found.map(|named| named.into_iter().map(line).collect());
        Some(these.into_iter().zip(lines).collect())
    }
}

/// A function as items have it.
pub fn line(named: Named) -> Line {
    Line {
        function: named.function,
        file: named.file,
        line: named.line,
        distance: named.distance,
    }
}
