//! The export's own configuration: the object in `results.json`, and the file `config.json`.

use super::head::Head;
use super::options::{Format, KernelNames, Kind};
use super::view::View;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Configuration with the keys of rocprofiler-sdk 1.0.0 in its order, and the selected values.
pub(super) fn entries(view: &View<'_>, head: &Head<'_>) -> Vec<(&'static str, Value)> {
    let directory = head.stem.parent();
    let directory = directory.map_or(String::new(), |path| path.display().to_string());
    let name = head.stem.file_name();
    let name = name.map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let written = |format| Value::from(head.formats.contains(&format));
    let usual = [
        ("output_path", json!(directory)),
        ("output_file", json!(name)),
        ("tmp_directory", json!(directory)),
        ("raw_output_path", json!(directory)),
        ("raw_output_file", json!(name)),
        ("raw_tmp_directory", json!(directory)),
        ("perfetto_shmem_size_hint", json!(64)),
        ("perfetto_buffer_size", json!(1 << 20)),
        ("perfetto_buffer_fill_policy", json!("discard")),
        ("perfetto_backend", json!("inprocess")),
        ("summary", json!(false)),
        ("summary_per_domain", json!(false)),
        ("summary_groups", json!([])),
        ("summary_unit", json!("nsec")),
        ("summary_file", json!("stderr")),
        ("csv_output", written(Format::Csv)),
        ("json_output", written(Format::Json)),
        ("pftrace_output", written(Format::Pftrace)),
        ("otf2_output", json!(false)),
        ("summary_output", json!(false)),
        ("rocpd_output", written(Format::Rocpd)),
        ("kernel_rename", json!(view.choice.rename)),
        ("group_by_queue", json!(view.choice.by_queue)),
    ];
    let chosen = &view.choice.config;
    usual
        .into_iter()
        .map(|(key, value)| (key, chosen.get(key).cloned().unwrap_or(value)))
        .collect()
}

/// Writes an object with these entries in their order.
pub(super) fn object(entries: &[(&str, Value)], out: &mut dyn Write) -> io::Result<()> {
    for (number, (key, value)) in entries.iter().enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        write!(out, "{before}\"{key}\":{value}")?;
    }
    write!(out, "}}")
}

/// Selected options under the names of rocprofiler-sdk's own tool.
fn tools(view: &View<'_>) -> impl Iterator<Item = (String, Value)> {
    let choice = view.choice;
    let is_traced = |kind| choice.kinds.has(kind) && !(choice.counters_only && kind == Kind::Kernel);
    let kinds = [
        ("kernel_trace", Kind::Kernel),
        ("hsa_core_api_trace", Kind::HsaCore),
        ("hsa_amd_ext_api_trace", Kind::HsaAmd),
        ("hsa_image_ext_api_trace", Kind::HsaImage),
        ("hsa_finalizer_ext_api_trace", Kind::HsaFinalizer),
        ("marker_api_trace", Kind::Marker),
        ("memory_copy_trace", Kind::MemoryCopy),
        ("memory_allocation_trace", Kind::MemoryAllocation),
        ("scratch_memory_trace", Kind::ScratchMemory),
        ("hip_runtime_api_trace", Kind::HipRuntime),
        ("hip_compiler_api_trace", Kind::HipCompiler),
        ("rccl_api_trace", Kind::Rccl),
        ("rocdecode_api_trace", Kind::RocDecode),
        ("rocjpeg_api_trace", Kind::RocJpeg),
    ];
    let names = [
        ("demangle", choice.kernel_names != KernelNames::Mangled),
        ("truncate", choice.kernel_names == KernelNames::Truncated),
    ];
    let kinds = kinds.map(|(name, kind)| (name, is_traced(kind)));
    kinds
        .into_iter()
        .chain(names)
        .map(|(name, is_on)| (name.to_owned(), is_on.into()))
}

/// Writes `config.json`: the configuration with all options, which documents how files were made.
pub(super) fn write(view: &View<'_>, head: &Head<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (first, last) = view.times();
    let mut config: Map<String, Value> = view.choice.config.clone();
    config.extend(tools(view));
    config.extend(
        entries(view, head)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value)),
    );
    let metadata = json!({
        "pid": view.process.pid,
        "init_time": first,
        "fini_time": last,
        "config": config,
        "command": head.command_of(view),
        "build_spec": { "tool": "roctop", "version": env!("CARGO_PKG_VERSION") },
    });
    writeln!(
        out,
        "{:#}",
        json!({ "rocprofiler-sdk-tool": [{ "metadata": metadata }] })
    )
}

/// Writes the collection periods in the form of rocprofv3's tests: a line each for wait, start, period and stop, with
/// begin and end in CLOCK_BOOTTIME ns.
pub(super) fn periods(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let since = view.since();
    let (_, last) = view.times();
    let mut before = since;
    for (from, to) in view.choice.periods.iter() {
        let (from, to) = (since.saturating_add(from), since.saturating_add(to));
        if from > last {
            break;
        }
        writeln!(
            out,
            "delay:{before}:{from}\nstart:{from}:{from}\nduration:{from}:{to}\nstop:{to}:{to}\n--"
        )?;
        before = to;
    }
    Ok(())
}
