//! Hardware counters and their values.

use super::agent::handle;
use super::dimensions;
use super::record::{dispatch_info, external};
use super::writer::{list, text};
use crate::counted::CountedRow;
use crate::view::View;
use roctop_ring::record::counter_flag;
use roctop_trace::item::CounterInfo;
use std::io::{self, Write};

/// Handle of a counter; unique and greater than 0.
fn counter_handle(info: &CounterInfo) -> u64 {
    if info.handle == 0 {
        u64::from(info.id.0) + 1
    } else {
        info.handle
    }
}

/// Writes the counters that have values.
pub(super) fn counters(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    list(out, &view.counted.counters, |out, info| {
        let flag = |bit: u16| u8::from(info.flags & bit != 0);
        write!(
            out,
            "{{\"agent_id\":{{\"handle\":{}}},\"id\":{{\"handle\":{}}},\"is_constant\":{},\"is_derived\":{},\"name\":{}",
            handle(view.node(Some(info.agent))),
            counter_handle(info),
            flag(counter_flag::CONSTANT),
            flag(counter_flag::DERIVED),
            text(&info.name)
        )?;
        write!(
            out,
            ",\"description\":{},\"block\":{},\"expression\":{},\"dimensions\":",
            text(&info.description),
            text(&info.block),
            text(&info.expression)
        )?;
        let dimensions = dimensions::of(info);
        dimensions::write(&dimensions, out)?;
        if view.is_seed() {
            write!(out, ",\"dimension_ids\":")?;
            list(out, &dimensions, |out, (_, id, _)| write!(out, "{id}"))?;
        }
        write!(out, ",\"instances\":")?;
        instances(counter_handle(info), &dimensions, out)?;
        write!(out, "}}")
    })
}

/// Maximum number of listed instances.
const MAX_INSTANCES: u64 = 1 << 16;

/// Writes every instance of a counter: its number yields the position in each dimension, the first fastest.
fn instances(counter: u64, dimensions: &[(&str, u32, u64)], out: &mut dyn Write) -> io::Result<()> {
    let sizes = dimensions.iter().map(|one| one.2).filter(|size| *size > 0);
    let all = sizes.clone().try_fold(1u64, u64::checked_mul);
    let all = all.filter(|all| *all <= MAX_INSTANCES && !dimensions.is_empty());
    list(out, 0..all.unwrap_or(0), |out, number| {
        let mut rest = number;
        let mut position = |size: u64| {
            let at = rest % size.max(1);
            rest /= size.max(1);
            at
        };
        let positions: Vec<(&str, u32, u64)> = dimensions.iter().map(|one| (one.0, one.1, position(one.2))).collect();
        // Encoding of rocprofiler-sdk 1.0: counter in the highest 16 bits, then 6 bits per dimension.
        let bits = positions.iter().filter(|one| one.1 > 0);
        let bits = bits.fold(0u64, |bits, one| bits | (one.2 & 0x3f) << (6 * (one.1 - 1)));
        write!(
            out,
            "{{\"instance_id\":{},\"counter_id\":{counter},\"dimensions\":",
            counter << 48 | bits
        )?;
        list(out, &positions, |out, (name, _, at)| {
            write!(out, "{{\"dimension_name\":{},\"index\":{at}}}", text(name))
        })?;
        write!(out, "}}")
    })
}

/// Writes one record per counted dispatch: a value for each instance of a counter, or their sum if only that is known.
pub(super) fn collection(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rows = view.counted.rows_with_parts(&view.rows.dispatches);
    let rows = rows.filter(|found| found.as_ref().map_or(true, CountedRow::is_counted));
    list(out, rows, |out, found| {
        let found = found?;
        let row = &found.row;
        let d = &row.record;
        write!(
            out,
            "{{\"thread_id\":{},\"dispatch_data\":{{\"size\":168,\"correlation_id\":{{\"internal\":{},\"external\":{}}},\
\"start_timestamp\":{},\"end_timestamp\":{}",
            view.tid(d.thread),
            row.id,
            external(view, row),
            d.span.begin,
            d.span.end
        )?;
        dispatch_info(view, d, out)?;
        write!(out, "}},\"records\":")?;
        list(out, view.counted.instances(&found), |out, (info, value)| {
            let counter = counter_handle(info);
            write!(out, "{{\"counter_id\":{{\"handle\":{counter}}},\"value\":{value:?}}}")
        })?;
        if view.is_seed() {
            let kernel = view.run.kernels.get(d.kernel.0 as usize);
            let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
            write!(
                out,
                ",\"arch_vgpr_count\":{},\"sgpr_count\":{},\"lds_block_size_v\":{}",
                registers.vgpr,
                registers.sgpr,
                view.lds_block(d)
            )?;
        }
        write!(out, ",\"stream_id\":{{\"handle\":{}}}}}", view.stream(d.stream))
    })
}
