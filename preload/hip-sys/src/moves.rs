//! Functions that copy or fill memory, and the meaning of their arguments.

use crate::function::{ArgumentLocation, begins_with};
use hip_functions::signature::is_same;

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Device to device.
    DeviceToDevice,
    /// In this argument, a `hipMemcpyKind`.
    Kind(ArgumentLocation),
    /// A fill.
    Fill,
}

/// A function's copy or fill, as positions of its arguments. It moves `width * height * depth * element` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Destination address; [`ArgumentLocation::None`] for a symbol.
    pub dst: ArgumentLocation,
    /// Source address; [`ArgumentLocation::None`] for a fill or a symbol.
    pub src: ArgumentLocation,
    /// Elements per line.
    pub width: ArgumentLocation,
    /// Lines; [`ArgumentLocation::None`] for one.
    pub height: ArgumentLocation,
    /// Planes; [`ArgumentLocation::None`] for one.
    pub depth: ArgumentLocation,
    /// Bytes of an element.
    pub element: u8,
    /// Direction.
    pub direction: Direction,
}

const fn linear(dst: ArgumentLocation, src: ArgumentLocation, width: ArgumentLocation, direction: Direction) -> Moves {
    Moves {
        dst,
        src,
        width,
        height: ArgumentLocation::None,
        depth: ArgumentLocation::None,
        element: 1,
        direction,
    }
}

const fn fill(width: ArgumentLocation, element: u8) -> Moves {
    Moves {
        element,
        ..linear(
            ArgumentLocation::Register(0),
            ArgumentLocation::None,
            width,
            Direction::Fill,
        )
    }
}

const fn lines(height: ArgumentLocation, one: Moves) -> Moves {
    Moves { height, ..one }
}

const R0: ArgumentLocation = ArgumentLocation::Register(0);
const R1: ArgumentLocation = ArgumentLocation::Register(1);
const R2: ArgumentLocation = ArgumentLocation::Register(2);
const R3: ArgumentLocation = ArgumentLocation::Register(3);
const R4: ArgumentLocation = ArgumentLocation::Register(4);
const R5: ArgumentLocation = ArgumentLocation::Register(5);
const S0: ArgumentLocation = ArgumentLocation::Stack(0);

const BOX: Moves = Moves {
    dst: S0,
    height: ArgumentLocation::Stack(5),
    depth: ArgumentLocation::Stack(6),
    ..fill(ArgumentLocation::Stack(4), 1)
};

/// Functions without their suffixes `Async` and `_spt`. Not a column of `hip_functions`: it would repeat each line for up
/// to four variants, and be empty in 550 rows. A test requires a line, or an entry in its list of exceptions, for each
/// copy and fill function.
const TABLE: [(&str, Moves); 18] = [
    ("hipMemcpy", linear(R0, R1, R2, Direction::Kind(R3))),
    ("hipMemcpyWithStream", linear(R0, R1, R2, Direction::Kind(R3))),
    ("hipMemcpyHtoD", linear(R0, R1, R2, Direction::HostToDevice)),
    ("hipMemcpyDtoH", linear(R0, R1, R2, Direction::DeviceToHost)),
    ("hipMemcpyDtoD", linear(R0, R1, R2, Direction::DeviceToDevice)),
    ("hipMemcpyPeer", linear(R0, R2, R4, Direction::DeviceToDevice)),
    ("hipMemcpy2D", lines(R5, linear(R0, R2, R4, Direction::Kind(S0)))),
    (
        "hipMemcpyToSymbol",
        linear(ArgumentLocation::None, R1, R2, Direction::Kind(R4)),
    ),
    (
        "hipMemcpyFromSymbol",
        linear(R0, ArgumentLocation::None, R2, Direction::Kind(R4)),
    ),
    ("hipMemset", fill(R2, 1)),
    ("hipMemsetD8", fill(R2, 1)),
    ("hipMemsetD16", fill(R2, 2)),
    ("hipMemsetD32", fill(R2, 4)),
    ("hipMemset2D", lines(R4, fill(R3, 1))),
    ("hipMemsetD2D8", lines(R4, fill(R3, 1))),
    ("hipMemsetD2D16", lines(R4, fill(R3, 2))),
    ("hipMemsetD2D32", lines(R4, fill(R3, 4))),
    ("hipMemset3D", BOX),
];

/// The copy or fill of the function of this name; `None` if its arguments do not describe it.
pub const fn moves(name: &str) -> Option<Moves> {
    // Most names end here: the rest is evaluated for each row when this crate is compiled.
    if !begins_with(name, "hipMem") {
        return None;
    }
    let mut at = 0;
    while at < TABLE.len() {
        if is_variant(name, TABLE[at].0) {
            return Some(TABLE[at].1);
        }
        at += 1;
    }
    None
}

/// Whether `name` is this function or its variant `Async`, `_spt` or `Async_spt`.
const fn is_variant(name: &str, function: &str) -> bool {
    let Some((begin, end)) = name.split_at_checked(function.len()) else {
        return false;
    };
    is_same(begin, function)
        && (end.is_empty() || is_same(end, "Async") || is_same(end, "_spt") || is_same(end, "Async_spt"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FUNCTIONS;

    #[test]
    fn copied_bytes_follow_the_function_table() {
        for function in &FUNCTIONS {
            if let Some(moves) = function.moves
                && moves.height == ArgumentLocation::None
            {
                assert_eq!(moves.width, function.argument, "{}", function.name);
            }
        }
    }

    /// Their arguments are structures behind a pointer, arrays, or lists: the sizes are not in the arguments.
    const WITHOUT_MOVES: [&str; 17] = [
        "hipMemcpy2DArrayToArray",
        "hipMemcpy2DFromArray",
        "hipMemcpy2DToArray",
        "hipMemcpy3D",
        "hipMemcpy3DBatch",
        "hipMemcpy3DPeer",
        "hipMemcpyAtoA",
        "hipMemcpyAtoD",
        "hipMemcpyAtoH",
        "hipMemcpyBatch",
        "hipMemcpyDtoA",
        "hipMemcpyFromArray",
        "hipMemcpyHtoA",
        "hipMemcpyParam2D",
        "hipMemcpyToArray",
        "hipDrvMemcpy2DUnaligned",
        "hipDrvMemcpy3D",
    ];

    #[test]
    fn every_copy_or_fill_is_in_the_table_or_excepted() {
        let is_copy = |name: &str| {
            let name = name
                .strip_prefix("hipDrv")
                .or(name.strip_prefix("hip"))
                .unwrap_or_default();
            name.starts_with("Memcpy") || name.starts_with("Memset")
        };
        for function in FUNCTIONS.iter().filter(|function| is_copy(function.name)) {
            let is_excepted = WITHOUT_MOVES.iter().any(|excepted| is_variant(function.name, excepted));
            assert!(function.moves.is_some() != is_excepted, "{}", function.name);
        }
    }

    #[test]
    fn every_function_of_the_table_exists() {
        for (name, moves) in TABLE {
            let is_it = |function: &&crate::function::Function| function.name == name;
            assert_eq!(
                FUNCTIONS.iter().find(is_it).and_then(|found| found.moves),
                Some(moves),
                "{name}"
            );
        }
        assert_eq!(moves("hipMemcpyAtoH"), None);
    }
}
