//! Tables of hardware counter values.

use super::writer::{Lines, header, quoted};
use crate::stats;
use crate::view::View;
use std::io::{self, Write};

const COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,\
Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,\
Counter_Value,Start_Timestamp,End_Timestamp";
const SEED_COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,\
Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value";
const WIDE_COLUMNS: &str = "Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size_X,Grid_Size_Y,Grid_Size_Z,Kernel_Id,\
Kernel_Name,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,LDS_Block_Size,Scratch_Size,VGPR_Count,\
Accum_VGPR_Count,SGPR_Count,Start_Timestamp,End_Timestamp";

/// Formats a value as upstream does: six decimals; below 1 in scientific notation with eight.
pub(crate) fn value(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.6}")
    } else {
        stats::scientific(value, 8)
    }
}

/// Writes `counter_collection.csv`: a row per dispatch and counter.
pub(super) fn csv(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    let mut lines = Lines::new(out, if seed { SEED_COUNTED } else { COUNTED })?;
    for found in view.counted.rows(&view.rows.dispatches) {
        let found = found?;
        let row = &found.row;
        let d = &row.record;
        let kernel = view.run.kernels.get(d.kernel.0 as usize);
        let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
        for (info, amount) in view.counted.values(&found) {
            lines.number(row.id).number(d.dispatch_id);
            if seed {
                lines
                    .number(view.node(Some(d.agent)))
                    .number(view.queue_handle(d.queue));
            } else {
                lines.text(&view.agent(Some(d.agent))).number(view.queue(d.queue));
            }
            lines.number(view.process.pid).number(view.tid(d.thread));
            lines.number(d.grid.iter().map(|size| u64::from(*size)).product::<u64>());
            if !seed {
                lines.number(d.kernel.0 + 1);
            }
            lines.text(&view.kernel_name(row));
            lines.number(d.workgroup.iter().map(|size| u64::from(*size)).product::<u64>());
            lines.number(view.lds_block(d)).number(d.private_size);
            lines.number(registers.vgpr);
            if !seed {
                lines.number(registers.agpr);
            }
            // ROCm 6.2 has whole numbers without decimals.
            let amount = if seed { amount.to_string() } else { value(amount) };
            lines.number(registers.sgpr).text(&info.name).raw(&amount);
            if !seed {
                lines.number(d.span.begin).number(d.span.end);
            }
            lines.end()?;
        }
    }
    Ok(())
}

/// Writes `counter_collection_wide.csv`: a row per dispatch, a column per counter; empty if it was not counted.
pub(super) fn wide(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let names = view.counted.names();
    let cells = names.iter().map(|name| quoted(name));
    let cells: Vec<String> = std::iter::once(header(WIDE_COLUMNS)).chain(cells).collect();
    let mut lines = Lines::below(out, &cells.join(","))?;
    for found in view.counted.rows(&view.rows.dispatches) {
        let found = found?;
        let row = &found.row;
        let d = &row.record;
        let values: Vec<_> = view.counted.values(&found).collect();
        if values.is_empty() {
            continue;
        }
        let kernel = view.run.kernels.get(d.kernel.0 as usize);
        let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
        lines
            .number(d.dispatch_id)
            .text(&view.agent(Some(d.agent)))
            .number(view.queue(d.queue));
        lines.number(view.process.pid).number(view.tid(d.thread));
        for size in d.grid {
            lines.number(size);
        }
        lines.number(d.kernel.0 + 1).text(&view.kernel_name(row));
        for size in d.workgroup {
            lines.number(size);
        }
        lines.number(view.lds_block(d)).number(d.private_size);
        lines
            .number(registers.vgpr)
            .number(registers.agpr)
            .number(registers.sgpr);
        lines.number(d.span.begin).number(d.span.end);
        for name in &names {
            let found = values.iter().find(|one| *one.0.name == **name);
            lines.raw(&found.map_or_else(String::new, |one| value(one.1)));
        }
        lines.end()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_upstreams_number_format() {
        assert_eq!(value(16384.0), "16384.000000");
        assert_eq!(value(1.0), "1.000000");
        assert_eq!(value(0.0), "0.00000000e+00");
        assert_eq!(value(0.5), "5.00000000e-01");
    }
}
