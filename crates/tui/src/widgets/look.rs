//! How slices look: letters and colours by what they are.

use ratatui::style::Style;
use roctop_ring::record::direction;

use super::canvas::Canvas;
use crate::theme::Role;
use roctop_model::collectives::{CollectiveSlice, Stage};
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
        LaneKey::Collectives(_) => {
            let (operation, stage) = CollectiveSlice::kind(what);
            match stage {
                Stage::Arrivals => by_role('W', operation.name(), Role::ApiSync),
                Stage::Transfer => by_role('C', operation.name(), Role::CopyD2d),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Theme};
    use crate::widgets::popup::LEGEND;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use roctop_model::{Fresh, Options, Store};
    use roctop_trace::item::{Item, Operation, ThreadId};

    #[test]
    fn legend_has_the_sign_of_everything_on_the_timeline() {
        let mut store = Store::new(Options::default());
        let calls = ["hipStreamSynchronize", "hipLaunchKernel", "hipMalloc", "hipGetDevice"];
        for (id, name) in (0..).zip(calls) {
            store.apply(&Item::Operation(Operation {
                id: OperationId(id),
                domain: 1,
                name: name.into(),
            }));
        }
        let snap = store.snapshot(Fresh::All);
        let theme = Theme::named("mono", Depth::None).expect("it is there");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 1, 1));
        let canvas = Canvas {
            buffer: &mut buffer,
            theme: &theme,
        };
        let copies = [
            direction::H2D,
            direction::D2H,
            direction::D2D,
            direction::H2H,
            direction::FILL,
        ];
        let copies = copies.map(|way| (LaneKey::Copies(way), 0));
        let calls = (0..4).map(|what| (LaneKey::Api(ThreadId(0), 0), what));
        let collectives = (0..2).map(|what| (LaneKey::Collectives(0), what));
        let ranges = [(LaneKey::Ranges(ThreadId(0)), 0)];
        for (key, what) in copies.into_iter().chain(calls).chain(collectives).chain(ranges) {
            let letter = look(&canvas, &snap, key, what).letter;
            let is_there = LEGEND.iter().any(|(signs, _)| signs.contains(letter));
            assert!(is_there, "{letter} of {key:?} is not in the legend");
        }
    }
}
