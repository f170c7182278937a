//! The escape sequences that take the terminal, give it back, and hold a frame together.

use crossterm::cursor::{Hide, Show};
use crossterm::queue;
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};

/// Clicks and the wheel, with their places. Crossterm's own asks for every movement as well, which is much on a slow line.
pub(super) const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
/// No longer.
pub(super) const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
/// A paste comes between marks, and not as keys.
pub(super) const PASTE: &[u8] = b"\x1b[?2004h";
/// No longer.
pub(super) const NO_PASTE: &[u8] = b"\x1b[?2004l";
/// Asks for the background's colour (OSC 11). Most terminals answer at once, others never.
pub(super) const BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";

/// The alternate screen, without a cursor, empty.
pub(super) fn enter() -> Vec<u8> {
    let mut bytes = Vec::new();
    // Memory takes everything: here and below nothing can fail.
    let _ = queue!(bytes, EnterAlternateScreen, Hide, Clear(ClearType::All));
    bytes
}

/// The terminal as it was, also from the middle of a frame.
pub(super) fn leave() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = queue!(bytes, EndSynchronizedUpdate);
    bytes.extend_from_slice(NO_PASTE);
    bytes.extend_from_slice(NO_MOUSE);
    let _ = queue!(bytes, SetAttribute(Attribute::Reset), Show, LeaveAlternateScreen);
    bytes
}

/// Nothing on the screen, in no style.
pub(super) fn clear(bytes: &mut Vec<u8>) {
    let _ = queue!(bytes, SetAttribute(Attribute::Reset), Clear(ClearType::All));
}

/// A frame that appears at once, where the terminal can do that.
pub(super) fn at_once(frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.len() + 16);
    let _ = queue!(bytes, BeginSynchronizedUpdate);
    bytes.extend_from_slice(frame);
    let _ = queue!(bytes, EndSynchronizedUpdate);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_on_is_switched_off_again_in_the_other_order() {
        assert_eq!(enter(), b"\x1b[?1049h\x1b[?25l\x1b[2J");
        assert_eq!(
            leave(),
            b"\x1b[?2026l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l"
        );
        assert_eq!(at_once(b"x"), b"\x1b[?2026hx\x1b[?2026l");
    }
}
