//! Records what a call asks to be copied or filled, because the run-time's copy kernels do not contain their sizes.
//!
//! The record is written before the call begins, so that it precedes the records of the work.

use crate::backend::hsa;
use crate::collector::{self, Call};
use hip_sys::function::ArgumentLocation;
use hip_sys::moves::{Direction, Moves};
use roctop_ring::record::{Transfer, direction};

/// Records a call's transfer; `fetch` returns an argument word.
pub(super) fn record(moves: &Moves, call: &Call, fetch: impl Fn(ArgumentLocation) -> u64) {
    let times = |place: ArgumentLocation| {
        if place == ArgumentLocation::None {
            1
        } else {
            fetch(place)
        }
    };
    let bytes = fetch(moves.width)
        .saturating_mul(times(moves.height))
        .saturating_mul(times(moves.depth))
        .saturating_mul(u64::from(moves.element));
    // An empty transfer launches nothing.
    if bytes == 0 {
        return;
    }
    let (dst, src) = (fetch(moves.dst), fetch(moves.src));
    let asked = match moves.direction {
        Direction::HostToDevice => direction::H2D,
        Direction::DeviceToHost => direction::D2H,
        Direction::DeviceToDevice => direction::D2D,
        Direction::Fill => direction::FILL,
        Direction::Kind(place) => of_kind(fetch(place)),
    };
    let [dst_agent, src_agent] = hsa::memory::owners([dst, src]);
    let known = match asked {
        direction::FILL => direction::FILL,
        _ => hsa::copy::between(dst_agent, src_agent),
    };
    collector::transfer(&Transfer {
        correlation: call.correlation,
        bytes,
        dst,
        src,
        src_agent,
        dst_agent,
        direction: if known == direction::UNKNOWN { asked } else { known },
        ..Transfer::default()
    });
}

/// Direction for a `hipMemcpyKind` (HIP 5.2 to 7.2).
fn of_kind(kind: u64) -> u16 {
    match kind as u32 {
        0 => direction::H2H,
        1 => direction::H2D,
        2 => direction::D2H,
        // Without a copy kernel on the GPU: 1024.
        3 | 1024 => direction::D2D,
        _ => direction::UNKNOWN,
    }
}
