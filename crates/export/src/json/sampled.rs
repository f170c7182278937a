//! PC samples in the form of rocprofiler-sdk 1.0.

use super::writer::{list, text};
use crate::view::View;
use roctop_ring::record::sampling;
use roctop_trace::pc_sampling::Sample;
use std::io::{self, Write};

/// Fields of `rocprofiler_pc_sampling_hw_id_v0_t` from the lowest bit, with widths. One upstream name ends in a space.
const HARDWARE: [(&str, u32); 11] = [
    ("chiplet", 6),
    ("wave_id", 7),
    ("simd_id", 2),
    ("pipe_id", 4),
    ("cu_or_wgp_id", 4),
    ("shader_array_id", 1),
    ("shader_engine_id", 5),
    ("workgroup_id ", 7),
    ("vm_id", 6),
    ("queue_id", 4),
    ("microengine_id", 2),
];
/// Pipes of `rocprofiler_pc_sampling_snapshot_v0_t`: issued from bit 5, stalled from bit 16.
const PIPES: [&str; 10] = [
    "valu",
    "matrix",
    "lds",
    "lds_direct",
    "scalar",
    "vmem_tex",
    "flat",
    "exp",
    "misc",
    "brmsg",
];
const ISSUED: usize = 5;
const STALLED: usize = 16;
const DUAL_ISSUE: usize = 27;

/// Writes instruction texts and comments. Instructions are not disassembled; a comment has the location.
pub(super) fn places(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\"pc_sample_instructions\":")?;
    list(out, view.samples.places.iter(), |out, place| {
        place.and_then(|_| write!(out, "\"\""))
    })?;
    write!(out, ",\"pc_sample_comments\":")?;
    list(out, view.samples.places.iter(), |out, place| {
        write!(out, "{}", text(&place?.words()))
    })
}

/// Writes the lists of both methods.
pub(super) fn records(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (name, method) in [
        ("pc_sample_host_trap", sampling::HOST_TRAP),
        ("pc_sample_stochastic", sampling::STOCHASTIC),
    ] {
        write!(out, ",\"{name}\":")?;
        list(out, view.samples.of(method), |out, found| {
            let found = found?;
            write!(out, "{{\"record\":{{")?;
            if method == sampling::STOCHASTIC {
                write!(out, "\"flags\":{{\"has_mem_cnt\":0}},")?;
            }
            common(&found.sample, found.id, out)?;
            if method == sampling::STOCHASTIC {
                stochastic(&found.sample, out)?;
            }
            write!(out, "}},\"inst_index\":{}}}", found.place)
        })?;
    }
    Ok(())
}

/// Writes the fields of both methods; `id` is the dispatch's correlation id.
fn common(sample: &Sample, id: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut bits = sample.hardware;
    let hardware = HARDWARE.map(|(name, width)| {
        let value = bits & ((1 << width) - 1);
        bits >>= width;
        format!("\"{name}\":{value}")
    });
    let [x, y, z] = sample.workgroup;
    write!(
        out,
        "\"hw_id\":{{{}}},\"pc\":{{\"code_object_id\":{},\"code_object_offset\":{}}},\"exec_mask\":{},\"timestamp\":{}\
,\"dispatch_id\":{},\"corr_id\":{{\"internal\":{id},\"external\":0}},\"wrkgrp_id\":{{\"x\":{x},\"y\":{y},\"z\":{z}}}\
,\"wave_in_grp\":{}",
        hardware.join(","),
        sample.code_object,
        sample.offset,
        sample.exec_mask,
        sample.at,
        sample.dispatch,
        sample.wave
    )
}

/// Writes the additional fields of stochastic sampling.
fn stochastic(sample: &Sample, out: &mut dyn Write) -> io::Result<()> {
    let bit = |at: usize| sample.snapshot >> at & 1;
    let pipes = |word: &str, first: usize| {
        let named = PIPES.iter().enumerate();
        let fields = named.map(|(at, pipe)| format!("\"arb_state_{word}_{pipe}\":{}", bit(first + at)));
        fields.collect::<Vec<_>>().join(",")
    };
    write!(
        out,
        ",\"wave_issued\":{},\"inst_type\":{},\"wave_cnt\":{},\"snapshot\":{{\"stall_reason\":{},\"dual_issue_valu\":{},{},{}}}",
        u8::from(sample.is_issued),
        text(&sample.instruction()),
        sample.wave_count,
        text(&sample.reason()),
        bit(DUAL_ISSUE),
        pipes("issue", ISSUED),
        pipes("stall", STALLED)
    )
}
