//! Frames as bytes: what a terminal must be sent so that it shows a buffer. Pure.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::encode::Encoder;
use super::sequence;

/// A frame from this size on may take more than one packet, and is shown at once by terminals that know how.
const LARGE: usize = 1024;

/// What a terminal shows, and how it comes to show the next.
pub struct Frames {
    ascii: bool,
    shown: Buffer,
    next: Buffer,
    is_fresh: bool,
    encoder: Encoder,
}

impl Frames {
    /// For a terminal whose screen is not known; `ascii` sends ASCII only.
    pub fn new(ascii: bool) -> Self {
        Self {
            ascii,
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            is_fresh: true,
            encoder: Encoder::default(),
        }
    }

    /// What the terminal shows.
    pub fn shown(&self) -> &Buffer {
        &self.shown
    }

    /// The next frame is whole.
    pub fn redraw(&mut self) {
        self.is_fresh = true;
    }

    /// The bytes of the next frame: what changed, or nothing when nothing did.
    pub fn next(&mut self, size: (u16, u16), paint: impl FnOnce(&mut Buffer)) -> Vec<u8> {
        let area = Rect::new(0, 0, size.0, size.1);
        if self.shown.area != area {
            self.shown = Buffer::empty(area);
            self.is_fresh = true;
        }
        self.next.resize(area);
        self.next.reset();
        paint(&mut self.next);
        let mut bytes = Vec::new();
        if self.is_fresh {
            sequence::clear(&mut bytes);
            self.shown.reset();
            self.encoder = Encoder::default();
        }
        self.encoder.encode(&self.shown, &self.next, self.ascii, &mut bytes);
        self.is_fresh = false;
        std::mem::swap(&mut self.shown, &mut self.next);
        if bytes.len() > LARGE {
            bytes = sequence::at_once(&bytes);
        }
        bytes
    }
}
