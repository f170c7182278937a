//! GPU time of kernels and copies, summed by the stack of push/pop ranges in which they were launched.

use crate::range_stacks::StackId;
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use roctop_ring::record::direction;
use roctop_trace::item::{Copy, KernelId, Span};
use serde::{Deserialize, Serialize};
use std::io;

/// Memory for work while it is sorted, bytes.
const SORT_BUFFER_BYTES: usize = 32 << 20;

/// What ran on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Leaf {
    Kernel(KernelId),
    /// A copy, by its direction.
    Copy(u16),
}

impl Leaf {
    /// Its name in the files.
    pub(crate) fn name(self, view: &View<'_>) -> String {
        match self {
            Self::Kernel(kernel) => view.called(kernel).unwrap_or("").to_owned(),
            Self::Copy(direction) => {
                let copy = Copy {
                    direction,
                    ..Copy::default()
                };
                view.direction(&copy).to_owned()
            }
        }
    }

    /// Mangled name of a kernel; empty for a copy.
    pub(crate) fn mangled<'a>(self, view: &'a View<'_>) -> &'a str {
        match self {
            Self::Kernel(kernel) => view
                .run
                .kernels
                .get(kernel.0 as usize)
                .map_or("", |known| &known.mangled),
            Self::Copy(_) => "",
        }
    }
}

/// Work of one name in one stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) stack: StackId,
    pub(crate) leaf: Leaf,
    /// Its durations, ns.
    pub(crate) nanos: u64,
    /// Number of launches.
    pub(crate) count: u64,
}

impl Entry for Sum {
    type Key = (StackId, Leaf);

    fn key(&self) -> Self::Key {
        (self.stack, self.leaf)
    }
}

/// Passes each sum to `act`, by stack and leaf.
pub(crate) fn each(view: &View<'_>, act: &mut dyn FnMut(&Sum) -> io::Result<()>) -> io::Result<()> {
    let mut open: Option<Sum> = None;
    for one in work(view)?.iter() {
        let one = one?;
        match &mut open {
            Some(sum) if sum.key() == one.key() => {
                sum.nanos = sum.nanos.saturating_add(one.nanos);
                sum.count += one.count;
            }
            _ => {
                if let Some(sum) = open.replace(one) {
                    act(&sum)?;
                }
            }
        }
    }
    open.map_or(Ok(()), |sum| act(&sum))
}

/// Kernels and copies, sorted by stack and leaf.
fn work(view: &View<'_>) -> io::Result<Sorted<Sum>> {
    let mut work = Sorter::new(view.place, SORT_BUFFER_BYTES);
    let mut put = |stack, leaf, span: Span| {
        work.put(Sum {
            stack,
            leaf,
            nanos: span.duration(),
            count: 1,
        })
    };
    for row in view.rows.dispatches.iter() {
        let row = row?;
        put(row.range.stack, Leaf::Kernel(row.record.kernel), row.record.span)?;
    }
    for row in view.rows.copies.iter() {
        let row = row?;
        // A fill is called a copy inside the device, as in the other formats.
        let direction = match row.record.direction {
            direction::FILL => direction::D2D,
            known => known,
        };
        put(row.range.stack, Leaf::Copy(direction), row.record.span)?;
    }
    work.finish()
}
