//! Geometry and memory of dispatches: few differ, so each is kept once.

use super::fx_hash::FastMap;
use roctop_trace::item::Dispatch;

/// Geometry and memory of a dispatch; few differ, so they are kept once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// Work-group in work-items.
    pub workgroup: [u16; 3],
    /// LDS, bytes.
    pub group_size: u32,
    /// Scratch a work-item, bytes.
    pub private_size: u32,
}

impl Shape {
    /// The shape of a dispatch.
    pub fn of(d: &Dispatch) -> Self {
        Self {
            grid: d.grid,
            workgroup: d.workgroup,
            group_size: d.group_size,
            private_size: d.private_size,
        }
    }

    /// A number that differs for most that differ.
    fn mixed(&self) -> usize {
        let words = [
            self.grid[0],
            self.grid[1],
            self.grid[2],
            self.group_size,
            self.private_size,
        ];
        let group = self.workgroup.map(u64::from);
        let mut sum = group[0] | group[1] << 16 | group[2] << 32;
        for word in words {
            sum = (sum.rotate_left(13) ^ u64::from(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        (sum >> 32) as usize
    }
}

const MOST: usize = 1 << 16;
const LAST: usize = 4096;

/// Distinct shapes by number.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    all: Vec<Shape>,
    ids: FastMap<Shape, u32>,
    /// The last answers of `ids`, each at a place of its own.
    last: Vec<u32>,
}

impl Shapes {
    /// All of them.
    pub fn all(&self) -> &[Shape] {
        &self.all
    }

    /// The shape of a number.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Shape> {
        self.all.get(id as usize)
    }

    /// The number of a shape; `u32::MAX` when there are too many.
    pub(super) fn id(&mut self, shape: Shape) -> u32 {
        if self.last.is_empty() {
            self.last = vec![u32::MAX; LAST];
        }
        let place = shape.mixed() % LAST;
        let last = self.last[place];
        if self.get(last) == Some(&shape) {
            return last;
        }
        let id = self.find(shape);
        self.last[place] = id;
        id
    }

    fn find(&mut self, shape: Shape) -> u32 {
        if let Some(&id) = self.ids.get(&shape) {
            return id;
        }
        if self.all.len() >= MOST {
            return u32::MAX;
        }
        self.all.push(shape);
        let id = self.all.len() as u32 - 1;
        self.ids.insert(shape, id);
        id
    }
}
