//! Values of hardware counters, by the dispatch that they are of.

use super::choice::KernelChoice;
use super::csv::{Lines, lds_block};
use super::stats;
use super::view::View;
use crate::item::{CounterId, CounterInfo, CounterInstances};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

const COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,\
Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,\
Counter_Value,Start_Timestamp,End_Timestamp";
const SEED_COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,\
Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value";
const WIDE: &str = "Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size_X,Grid_Size_Y,Grid_Size_Z,Kernel_Id,\
Kernel_Name,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,LDS_Block_Size,Scratch_Size,VGPR_Count,\
Accum_VGPR_Count,SGPR_Count,Start_Timestamp,End_Timestamp";

/// The values of a process, by dispatch and counter.
pub(super) struct Counted<'a> {
    values: BTreeMap<u64, Vec<(&'a CounterInfo, f64)>>,
    /// Values of instances, by dispatch, counter and instance.
    instances: Vec<&'a CounterInstances>,
    /// All counters that have values, by name.
    pub(super) counters: Vec<&'a CounterInfo>,
}

impl<'a> Counted<'a> {
    pub(super) fn of(view: &View<'a>) -> Self {
        let own = view.process.id;
        let infos: BTreeMap<CounterId, &CounterInfo> = view
            .run
            .counters
            .iter()
            .filter(|info| info.process == own)
            .map(|info| (info.id, info))
            .collect();
        let mut counted = Self {
            values: BTreeMap::new(),
            instances: view
                .run
                .counter_instances
                .iter()
                .filter(|one| one.process == own)
                .collect(),
            counters: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for value in view.run.counter_values.iter().filter(|value| value.process == own) {
            if let (Some(dispatch), Some(info)) = (value.dispatch, infos.get(&value.counter)) {
                let row = counted.values.entry(dispatch).or_default();
                row.push((*info, value.value));
                if seen.insert(info.id) {
                    counted.counters.push(info);
                }
            }
        }
        counted
            .instances
            .sort_by_key(|one| (one.dispatch, one.counter, one.first));
        counted.choose(view);
        for row in counted.values.values_mut() {
            row.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        }
        counted
            .counters
            .sort_by(|a, b| (&a.name, a.agent).cmp(&(&b.name, b.agent)));
        counted
    }

    /// Leaves the values of dispatches that have rows, and of wanted kernels: those whose names hold the one pattern and
    /// not the other.
    fn choose(&mut self, view: &View<'a>) {
        let KernelChoice { include, exclude } = &view.choice.counted;
        if self.values.is_empty() {
            return;
        }
        let mut left = BTreeMap::new();
        // What cannot be read now cannot be read when the rows are written, and is told then.
        for row in view.rows.dispatches.iter().flatten() {
            // Whatever the dispatch is renamed to.
            let name = view.called(row.record.kernel).unwrap_or("");
            let is_wanted = include.as_ref().is_none_or(|pattern| pattern.is_match(name))
                && !exclude.as_ref().is_some_and(|pattern| pattern.is_match(name));
            if is_wanted && let Some(values) = self.values.remove(&row.record.dispatch_id) {
                left.insert(row.record.dispatch_id, values);
            }
        }
        self.values = left;
        let seen: BTreeSet<CounterId> = self.values.values().flatten().map(|one| one.0.id).collect();
        self.counters.retain(|info| seen.contains(&info.id));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of a dispatch, by the counters' names.
    pub(super) fn of_dispatch(&self, dispatch: u64) -> &[(&'a CounterInfo, f64)] {
        self.values.get(&dispatch).map_or(&[], Vec::as_slice)
    }

    /// The values of a counter's instances over a dispatch, by instance; none where only their sum is known.
    pub(super) fn instances(&self, dispatch: u64, counter: CounterId) -> impl Iterator<Item = (u16, f64)> {
        let key = |one: &&CounterInstances| (one.dispatch, one.counter);
        let from = self.instances.partition_point(|one| key(one) < (dispatch, counter));
        let own = self.instances.get(from..).unwrap_or_default().iter();
        own.take_while(move |one| key(one) == (dispatch, counter))
            .flat_map(|one| one.each())
    }

    /// All counters' names, each once.
    pub(super) fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.counters.iter().map(|info| &*info.name).collect();
        names.dedup();
        names
    }
}

/// A value as upstream writes it: six decimals; below 1 in scientific notation with eight.
pub fn value(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.6}")
    } else {
        stats::scientific(value, 8)
    }
}

/// `counter_collection.csv`: a row for each dispatch and counter.
pub(super) fn csv(view: &View<'_>, counted: &Counted<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seed = view.is_seed();
    let mut lines = Lines::new(out, if seed { SEED_COUNTED } else { COUNTED })?;
    for row in view.rows.dispatches.iter() {
        let row = row?;
        let d = &row.record;
        let kernel = view.run.kernels.get(d.kernel.0 as usize);
        let registers = kernel.and_then(|kernel| kernel.registers).unwrap_or_default();
        for (info, amount) in counted.of_dispatch(d.dispatch_id) {
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
            lines.text(view.kernel_name(&row));
            lines.number(d.workgroup.iter().map(|size| u64::from(*size)).product::<u64>());
            lines.number(lds_block(view, d)).number(d.private_size);
            lines.number(registers.vgpr);
            if !seed {
                lines.number(registers.agpr);
            }
            // The manual of ROCm 6.2 has whole numbers without decimals.
            let amount = if seed { amount.to_string() } else { value(*amount) };
            lines.number(registers.sgpr).text(&info.name).raw(&amount);
            if !seed {
                lines.number(d.span.begin).number(d.span.end);
            }
            lines.end()?;
        }
    }
    Ok(())
}

/// `counter_collection_wide.csv`: a row for each dispatch, a column for each counter; empty where one was not counted.
pub(super) fn wide(view: &View<'_>, counted: &Counted<'_>, out: &mut dyn Write) -> io::Result<()> {
    let names = counted.names();
    let mut lines = Lines::new(out, &format!("{WIDE},{}", names.join(",")))?;
    for row in view.rows.dispatches.iter() {
        let row = row?;
        let d = &row.record;
        let values = counted.of_dispatch(d.dispatch_id);
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
        lines.number(d.kernel.0 + 1).text(view.kernel_name(&row));
        for size in d.workgroup {
            lines.number(size);
        }
        lines.number(lds_block(view, d)).number(d.private_size);
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
