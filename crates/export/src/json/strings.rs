//! Tables of `results.json` for kinds and operations, and the texts of markers.

use super::writer::{list, text};
use crate::operation::{ALLOCATIONS, SCRATCHES};
use crate::options::{Kind, LIBRARIES, library};
use crate::records::Mark;
use crate::view::View;
use roctop_model::FastMap;
use roctop_model::subject::DIRECTIONS;
use roctop_trace::item::{ApiCall, OperationId};
use std::collections::HashMap;
use std::io::{self, Write};

/// Kinds of buffer records, by number.
const BUFFER: [&str; 34] = [
    "NONE",
    "HSA_CORE_API",
    "HSA_AMD_EXT_API",
    "HSA_IMAGE_EXT_API",
    "HSA_FINALIZE_EXT_API",
    "HIP_RUNTIME_API",
    "HIP_COMPILER_API",
    "MARKER_CORE_API",
    "MARKER_CONTROL_API",
    "MARKER_NAME_API",
    "MEMORY_COPY",
    "KERNEL_DISPATCH",
    "SCRATCH_MEMORY",
    "CORRELATION_ID_RETIREMENT",
    "RCCL_API",
    "OMPT",
    "MEMORY_ALLOCATION",
    "RUNTIME_INITIALIZATION",
    "ROCDECODE_API",
    "ROCJPEG_API",
    "HIP_STREAM",
    "HIP_RUNTIME_API_EXT",
    "HIP_COMPILER_API_EXT",
    "ROCDECODE_API_EXT",
    "KFD_EVENT_PAGE_MIGRATE",
    "KFD_EVENT_PAGE_FAULT",
    "KFD_EVENT_QUEUE",
    "KFD_EVENT_UNMAP_FROM_GPU",
    "KFD_EVENT_DROPPED_EVENTS",
    "KFD_PAGE_MIGRATE",
    "KFD_PAGE_FAULT",
    "KFD_QUEUE",
    "MARKER_CORE_RANGE_API",
    // Later than 1.0.0.
    "HIP_GRAPH",
];

/// Kinds of callback records, by number.
const CALLBACK: [&str; 22] = [
    "NONE",
    "HSA_CORE_API",
    "HSA_AMD_EXT_API",
    "HSA_IMAGE_EXT_API",
    "HSA_FINALIZE_EXT_API",
    "HIP_RUNTIME_API",
    "HIP_COMPILER_API",
    "MARKER_CORE_API",
    "MARKER_CONTROL_API",
    "MARKER_NAME_API",
    "CODE_OBJECT",
    "SCRATCH_MEMORY",
    "KERNEL_DISPATCH",
    "MEMORY_COPY",
    "RCCL_API",
    "OMPT",
    "MEMORY_ALLOCATION",
    "RUNTIME_INITIALIZATION",
    "ROCDECODE_API",
    "ROCJPEG_API",
    "HIP_STREAM",
    "MARKER_CORE_RANGE_API",
];

/// Numbers of kinds of records.
pub(crate) const MEMORY_COPY: usize = 10;
pub(crate) const KERNEL_DISPATCH: usize = 11;
pub(super) const SCRATCH_MEMORY: usize = 12;
pub(super) const MEMORY_ALLOCATION: usize = 16;
pub(super) const HIP_GRAPH: usize = 33;
/// Operation of a completed dispatch.
pub(super) const COMPLETE: usize = 2;
/// Operation of a graph's launch.
pub(super) const LAUNCH: usize = 3;

const MARKERS: [&str; 6] = [
    "roctxMarkA",
    "roctxRangePushA",
    "roctxRangePop",
    "roctxRangeStartA",
    "roctxRangeStop",
    "roctxGetThreadId",
];
const CONTROLS: [&str; 2] = ["roctxProfilerPause", "roctxProfilerResume"];
const NAMES: [&str; 4] = [
    "roctxNameOsThread",
    "roctxNameHsaAgent",
    "roctxNameHipDevice",
    "roctxNameHipStream",
];
const RANGES: [&str; 4] = [
    "roctxMarkA",
    "roctxThreadRangeA",
    "roctxProcessRangeA",
    "roctxGetThreadId",
];

/// Numbers of operations, for the tables and the records.
pub(crate) struct Tables<'a> {
    view: &'a View<'a>,
    numbers: FastMap<OperationId, usize>,
    names: HashMap<Kind, Vec<&'a str>>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(view: &'a View<'a>) -> Self {
        let mut tables = Self {
            view,
            numbers: FastMap::default(),
            names: HashMap::new(),
        };
        let name = |operation: &OperationId| {
            let known = view.run.operations.get(operation.0 as usize);
            known.map_or("", |known| &known.name)
        };
        // Sorted by name: ids depend on reading order, which differs between recordings of one run.
        let mut operations: Vec<OperationId> = view.rows.operations.iter().copied().collect();
        operations.sort_by_key(name);
        for operation in operations {
            let names = tables.names.entry(view.kind_of(operation)).or_default();
            tables.numbers.insert(operation, names.len());
            names.push(name(&operation));
        }
        tables
    }

    /// Numbers of a call's kind and operation.
    pub(crate) fn of_call(&self, call: &ApiCall) -> (usize, usize) {
        let kind = match (self.view.kind(call), self.view.is_seed()) {
            (Kind::HsaAmd, _) => 2,
            (Kind::HsaImage, _) => 3,
            (Kind::HsaFinalizer, _) => 4,
            (Kind::HipRuntime, true) => 5,
            (Kind::HipCompiler, true) => 6,
            (Kind::HipRuntime, false) => 21,
            (Kind::HipCompiler, false) => 22,
            (kind, _) => library(kind).map_or(1, |(_, library)| library.number),
        };
        (kind, self.numbers.get(&call.operation).copied().unwrap_or(0))
    }

    /// Numbers of a marker's kind and operation.
    pub(crate) fn of_marker(&self, marker: &Mark) -> (usize, usize) {
        let own = if self.view.is_seed() { 7 } else { 32 };
        if marker.call.is_some() {
            let name = self.view.message(marker);
            let (kind, names): (usize, &[&str]) = match (self.view.is_control(marker), self.view.is_seed()) {
                _ if self.view.is_name(marker) => (9, &NAMES),
                (true, _) => (8, &CONTROLS),
                (false, true) => (own, &MARKERS),
                (false, false) => (own, &RANGES),
            };
            return (kind, names.iter().position(|known| *known == name).unwrap_or(0));
        }
        let operation = match (
            marker.span.begin == marker.span.end,
            marker.range_id,
            self.view.is_seed(),
        ) {
            (true, 0, _) => 0,
            (false, 0, _) => 1,
            (_, _, true) => 3,
            (_, _, false) => 2,
        };
        (own, operation)
    }

    /// Name of a marker's operation.
    pub(crate) fn marker_name(&self, marker: &Mark) -> &'static str {
        match self.of_marker(marker) {
            (8, operation) => CONTROLS[operation],
            (9, operation) => NAMES[operation],
            (7, operation) => MARKERS[operation],
            (_, operation) => RANGES[operation],
        }
    }

    fn operations(&self, kind: &str) -> Vec<&str> {
        let seed = self.view.is_seed();
        let calls = |kind| self.names.get(&kind).cloned().unwrap_or_default();
        match kind {
            "HSA_CORE_API" => calls(Kind::HsaCore),
            "HSA_AMD_EXT_API" => calls(Kind::HsaAmd),
            "HSA_IMAGE_EXT_API" => calls(Kind::HsaImage),
            "HSA_FINALIZE_EXT_API" => calls(Kind::HsaFinalizer),
            "HIP_RUNTIME_API" | "HIP_RUNTIME_API_EXT" => calls(Kind::HipRuntime),
            "HIP_COMPILER_API" | "HIP_COMPILER_API_EXT" => calls(Kind::HipCompiler),
            "MARKER_CORE_API" => MARKERS.to_vec(),
            "MARKER_CORE_RANGE_API" if !seed => RANGES.to_vec(),
            "MARKER_CONTROL_API" => CONTROLS.to_vec(),
            "MARKER_NAME_API" => NAMES.to_vec(),
            "MEMORY_COPY" => DIRECTIONS.to_vec(),
            "KERNEL_DISPATCH" => vec![
                "KERNEL_DISPATCH_NONE",
                "KERNEL_DISPATCH_ENQUEUE",
                "KERNEL_DISPATCH_COMPLETE",
            ],
            "MEMORY_ALLOCATION" => ALLOCATIONS.to_vec(),
            "HIP_GRAPH" => vec![
                "HIP_GRAPH_OPERATION_NONE",
                "HIP_GRAPH_OPERATION_EXEC_CREATE",
                "HIP_GRAPH_OPERATION_EXEC_DESTROY",
                "HIP_GRAPH_OPERATION_EXEC_LAUNCH",
            ],
            "SCRATCH_MEMORY" => SCRATCHES.to_vec(),
            _ => LIBRARIES
                .iter()
                .find(|library| library.domain == kind)
                .map_or_else(Vec::new, |library| calls(library.kind)),
        }
    }
}

/// Writes the tables.
pub(super) fn write(view: &View<'_>, tables: &Tables<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"callback_records\":")?;
    kinds(&CALLBACK, tables, out)?;
    write!(out, ",\n\"buffer_records\":")?;
    let [.., mpi] = &view.rows.libraries;
    let own = (!mpi.is_empty()).then_some("MPI_API");
    kinds(&BUFFER.into_iter().chain(own).collect::<Vec<_>>(), tables, out)?;
    write!(out, ",\n\"marker_api\":")?;
    let said = view.rows.markers.iter();
    let said = said.filter(|row| row.as_ref().map_or(true, |row| row.record.call.is_none()));
    list(out, said, |out, row| {
        let row = row?;
        let message = text(&view.message(&row.record));
        write!(out, "{{\"key\":{},\"value\":{message}}}", row.id)
    })?;
    write!(out, ",\n\"correlation_id\":{{\"external\":")?;
    let regions = view.rows.regions.iter().filter(|_| view.choice.rename);
    list(out, regions, |out, region| {
        let message = text(&view.region_name(Some(*region)));
        write!(out, "{{\"key\":{},\"value\":{message}}}", region.id)
    })?;
    write!(out, "}},\n\"counters\":{{\"dimension_ids\":")?;
    super::dimensions::all(view, out)?;
    write!(out, "}},")?;
    super::sampled::places(view, out)?;
    write!(out, ",\"att_filenames\":[],\"code_object_snapshot_filenames\":[]}}")
}

fn kinds(kinds: &[&str], tables: &Tables<'_>, out: &mut dyn Write) -> io::Result<()> {
    list(out, kinds, |out, kind| {
        let operations = serde_json::Value::from(tables.operations(kind));
        write!(out, "{{\"kind\":\"{kind}\",\"operations\":{operations}}}")
    })
}
