//! A kernel's numbers by the place where it ran: one look into a table finds them, however many there are.

use super::kernels::Cell;
use super::stat::Sum;

/// Places that a kernel has cells of its own for.
pub(super) const MOST_CELLS: usize = 64;
/// No cell.
pub(super) const NONE: u32 = u32::MAX;
const LEAST: usize = 1 << 10;

/// Numbers of one kernel in one place, in a line of the processor's cache of their own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Kept {
    kernel: u32,
    place: u32,
    sum: Sum,
}

/// Where a cell is looked for.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    cell: u32,
}

const FREE: Entry = Entry { tag: 0, cell: NONE };

/// All cells of all kernels.
#[derive(Debug, Default)]
pub(super) struct Cells {
    all: Vec<Kept>,
    /// By kernel: its cells.
    own: Vec<Vec<u32>>,
    /// Open addressing; never more than three quarters full: the smaller it is, the more of it lies near the processor.
    table: Vec<Entry>,
}

const fn mixed(kernel: u32, place: u32) -> u64 {
    let number = (kernel as u64) << 32 | place as u64;
    let number = (number ^ number >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ number >> 32
}

const fn tag(mixed: u64) -> u32 {
    (mixed >> 32) as u32
}

impl Cells {
    /// Makes room for so many kernels.
    pub(super) fn grow(&mut self, kernels: usize) {
        self.own.resize(kernels, Vec::new());
    }

    /// Where the cell is said to be; [`NONE`] when there is none. [`Cells::holds`] says whether that is so: cells lie far
    /// from the processor, so many are asked for before the first is looked at.
    #[inline]
    pub(super) fn guess(&self, kernel: u32, place: u32) -> u32 {
        let Some(mask) = self.table.len().checked_sub(1) else {
            return NONE;
        };
        let mixed = mixed(kernel, place);
        let mut at = mixed as usize & mask;
        loop {
            let entry = self.table[at];
            if entry.cell == NONE || entry.tag == tag(mixed) {
                return entry.cell;
            }
            at = (at + 1) & mask;
        }
    }

    /// Asks for what [`Cells::guess`] will look at. The answer is of no meaning, but must not be left away.
    #[inline]
    pub(super) fn ask(&self, kernel: u32, place: u32) -> u32 {
        let mask = self.table.len().wrapping_sub(1);
        let entry = self.table.get(mixed(kernel, place) as usize & mask);
        entry.map_or(0, |entry| entry.tag)
    }

    /// Asks for the numbers of a cell, as [`Cells::ask`] does for the cell.
    #[inline]
    pub(super) fn ask_for(&self, cell: u32) -> u32 {
        self.all.get(cell as usize).map_or(0, |kept| kept.place)
    }

    /// Whether a cell is this one.
    #[inline]
    pub(super) fn holds(&self, cell: u32, kernel: u32, place: u32) -> bool {
        let known = self.all.get(cell as usize);
        known.is_some_and(|known| known.kernel == kernel && known.place == place)
    }

    /// The numbers of a cell.
    #[inline]
    pub(super) fn sum(&mut self, cell: u32) -> &mut Sum {
        &mut self.all[cell as usize].sum
    }

    /// Finds or makes a cell.
    #[cold]
    pub(super) fn find(&mut self, kernel: u32, place: u32) -> u32 {
        let own = &mut self.own[kernel as usize];
        let known = own.iter().find(|&&cell| self.all[cell as usize].place == place);
        match (known, own.last()) {
            (Some(&known), _) => known,
            // The last cell is for all places beyond the bound.
            (None, Some(&last)) if own.len() == MOST_CELLS => last,
            _ => {
                let place = if own.len() + 1 == MOST_CELLS { NONE } else { place };
                let cell = self.all.len() as u32;
                self.all.push(Kept {
                    kernel,
                    place,
                    sum: Sum::default(),
                });
                own.push(cell);
                self.enter(cell);
                cell
            }
        }
    }

    fn enter(&mut self, cell: u32) {
        if self.all.len() * 4 > self.table.len() * 3 {
            let size = (self.all.len() * 2).next_power_of_two().max(LEAST);
            self.table = vec![FREE; size];
            (0..self.all.len() as u32).for_each(|cell| self.put(cell));
        } else {
            self.put(cell);
        }
    }

    fn put(&mut self, cell: u32) {
        let Kept { kernel, place, .. } = self.all[cell as usize];
        let (mixed, mask) = (mixed(kernel, place), self.table.len() - 1);
        let mut at = mixed as usize & mask;
        while self.table[at].cell != NONE {
            at = (at + 1) & mask;
        }
        self.table[at] = Entry { tag: tag(mixed), cell };
    }

    /// The cells of a kernel.
    pub(super) fn of(&self, kernel: usize) -> Vec<Cell> {
        let own = self.own.get(kernel).into_iter().flatten();
        own.map(|&cell| {
            let Kept { place, sum, .. } = self.all[cell as usize];
            Cell { place, sum }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_found_again_and_those_beyond_the_bound_share_one() {
        let mut cells = Cells::default();
        cells.grow(3000);
        let mut known = Vec::new();
        for place in 0..40 {
            for kernel in 0..3000 {
                known.push((kernel, place, cells.find(kernel, place)));
            }
        }
        for (kernel, place, cell) in known {
            assert_eq!(cells.find(kernel, place), cell);
            assert!(cells.holds(cell, kernel, place));
            let guess = cells.guess(kernel, place);
            assert!(guess == cell || !cells.holds(guess, kernel, place));
        }
        let shared = (0..200).map(|place| cells.find(7, 1000 + place)).max();
        assert_eq!(Some(cells.find(7, 5000)), shared);
        assert_eq!(cells.of(7).len(), MOST_CELLS);
        assert_eq!(cells.of(7).last().map(|cell| cell.place), Some(NONE));
    }
}
