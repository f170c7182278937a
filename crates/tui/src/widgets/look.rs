//! How slices look: letters and colours by what they are.

use ratatui::style::Style;
use roctop_ring::record::direction;

use super::canvas::Canvas;
use crate::theme::Role;
use roctop_model::{Class, LaneKey, Snapshot};
use roctop_trace::item::{KernelId, OperationId, TextId};

/// How a slice looks: letter, text, style filled, style of a line.
pub(crate) struct Look {
    pub(crate) letter: char,
    pub(crate) text: String,
    pub(crate) filled: Style,
    pub(crate) line: Style,
}

/// How a slice of a lane looks.
pub(crate) fn look(canvas: &Canvas<'_>, snap: &Snapshot, key: LaneKey, what: u32) -> Look {
    let names = &snap.names;
    let by_role = |letter, text: &str, role| Look {
        letter,
        text: text.to_string(),
        filled: canvas.theme.filled_role(role),
        line: canvas.style(role),
    };
    match key {
        LaneKey::Stream(..) | LaneKey::Queue(..) => {
            let id = KernelId(what);
            let place = snap.letters.iter().position(|&lettered| lettered == id);
            let hue = place.unwrap_or(what as usize);
            let text = names.kernel(id).map_or("?", |name| &name.short);
            if names.is_internal(id) {
                return by_role('~', text, Role::CopyFill);
            }
            let letter = snap.letter(id).unwrap_or('*');
            Look {
                letter,
                text: text.into(),
                filled: canvas.theme.filled(hue),
                line: canvas.theme.line(hue),
            }
        }
        LaneKey::Copies(way) => by_role(copy_letter(way), direction::name(way), copy_role(way)),
        LaneKey::Api(..) => {
            let name = names.operation(OperationId(what));
            let (letter, role) = match name.map(|name| name.class).unwrap_or_default() {
                Class::Sync => ('S', Role::ApiSync),
                Class::Launch => ('L', Role::ApiLaunch),
                Class::Memory => ('M', Role::ApiMemory),
                Class::Other => ('A', Role::ApiOther),
            };
            by_role(letter, name.map_or("?", |name| &name.operation.name), role)
        }
        LaneKey::Markers(..) | LaneKey::Ranges(_) => by_role('─', names.text(TextId(what)), Role::Marker),
        LaneKey::Agent(_) => by_role('█', "", Role::Muted),
    }
}

/// The role of a direction.
pub(crate) fn copy_role(way: u16) -> Role {
    match way {
        direction::H2D => Role::CopyH2d,
        direction::D2H => Role::CopyD2h,
        direction::D2D | direction::H2H => Role::CopyD2d,
        _ => Role::CopyFill,
    }
}

fn copy_letter(way: u16) -> char {
    match way {
        direction::H2D => '↓',
        direction::D2H => '↑',
        direction::FILL => '=',
        _ => '↔',
    }
}
