//! Launch configurations of dispatches. Few distinct ones occur, so each is stored once.

use super::fx_hash::FastMap;
use roctop_trace::item::Dispatch;

/// Grid, work-group and memory of a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Grid size in work-items.
    pub grid: [u32; 3],
    /// Work-group size in work-items.
    pub workgroup: [u16; 3],
    /// LDS, bytes per work-group.
    pub group_size: u32,
    /// Scratch, bytes per work-item.
    pub private_size: u32,
}

impl Shape {
    /// Launch configuration of a dispatch.
    pub fn of(d: &Dispatch) -> Self {
        Self {
            grid: d.grid,
            workgroup: d.workgroup,
            group_size: d.group_size,
            private_size: d.private_size,
        }
    }

    /// Hash of the configuration.
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

const MAX_CONFIGS: usize = 1 << 16;
const RECENT_IDS: usize = 4096;

/// Distinct shapes by number.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    all: Vec<Shape>,
    ids: FastMap<Shape, u32>,
    /// Cache of recent results of `id`.
    last: Vec<u32>,
}

impl Shapes {
    /// All configurations, by index.
    pub fn all(&self) -> &[Shape] {
        &self.all
    }

    /// A configuration by its index.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Shape> {
        self.all.get(id as usize)
    }

    /// Index of a configuration; `u32::MAX` if there are too many.
    pub(super) fn id(&mut self, shape: Shape) -> u32 {
        if self.last.is_empty() {
            self.last = vec![u32::MAX; RECENT_IDS];
        }
        let place = shape.mixed() % RECENT_IDS;
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
        if self.all.len() >= MAX_CONFIGS {
            return u32::MAX;
        }
        self.all.push(shape);
        let id = self.all.len() as u32 - 1;
        self.ids.insert(shape, id);
        id
    }
}
