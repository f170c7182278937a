//! What will be recorded with the run-times that are here, and what not, and why.

use super::{Report, Verdict};
use crate::process::library::{self, Library};
use roctop_ring::session::ENV_SDK;
use std::path::Path;

/// The HSA library's minor version from which scratch events exist (ROCm 6.1).
const SCRATCH_SINCE: u32 = 13;

/// Looks at the run-times; `hip` is the one that the program will load, when that is known.
pub(super) fn examine(report: &mut Report, hip: Option<Library>) {
    let hip = hip.or_else(|| library::find("libamdhip64.so"));
    let beside = |prefix: &str| {
        let near = hip
            .as_ref()
            .and_then(|hip| library::find_in(hip.path.parent()?, prefix));
        near.or_else(|| library::find(prefix))
    };
    calls(report, hip.as_ref());
    let hsa = beside("libhsa-runtime64.so");
    work(report, hsa.as_ref());
    markers(report);
    match beside("librccl.so") {
        Some(library) => report.add(
            Verdict::Well,
            "RCCL calls",
            format!("wrapped functions, with count and type; {}", library.path.display()),
        ),
        None => report.add(
            Verdict::Note,
            "RCCL calls",
            "no librccl here; recorded where a program brings one",
        ),
    }
    counters(report, hsa.as_ref(), sdk(beside).as_ref());
}

fn calls(report: &mut Report, hip: Option<&Library>) {
    let Some(hip) = hip else {
        return report.add(Verdict::Note, "HIP calls", "no libamdhip64 in the usual places");
    };
    let shown = hip.path.display();
    let way = if hip.mentions("rocprofiler_register_library_api_table") {
        "all, with return codes: wrapped functions and the dispatch table that it hands over"
    } else {
        "with return codes: wrapped functions; not those of libraries opened with RTLD_DEEPBIND"
    };
    report.add(Verdict::Well, "HIP calls", format!("{way}; {shown}"));
}

fn work(report: &mut Report, hsa: Option<&Library>) {
    let Some(hsa) = hsa else {
        for kind in ["kernels", "copies"] {
            report.add(Verdict::Note, kind, "no libhsa-runtime64 in the usual places");
        }
        return;
    };
    let shown = hsa.path.display();
    let text = format!("all, with the GPU's own times: queues are intercepted; {shown}");
    report.add(Verdict::Well, "kernels", text);
    report.add(
        Verdict::Well,
        "copies",
        "those of DMA engines and copy kernels; not those that the CPU makes (large BAR)",
    );
    report.add(Verdict::Well, "memory", "allocations and frees of HIP and HSA");
    report.add(
        Verdict::Well,
        "HSA calls",
        "with --hsa-trace: every entry of its tables",
    );
    // A wheel's library has one number behind its name; one that knows the register is of 6.2 or later.
    let registers = || hsa.mentions("rocprofiler_register_library_api_table");
    let minor = hsa.version().get(1).copied();
    if minor.map_or_else(registers, |minor| minor >= SCRATCH_SINCE) {
        report.add(Verdict::Well, "scratch", "allocations, frees and reclaims of queues");
    } else {
        let text = "not recorded: this HSA run-time reports it to no tool (6.1 and later do)";
        report.add(Verdict::Note, "scratch", text);
    }
}

fn markers(report: &mut Report) {
    let text = match library::find("libroctx64.so").or_else(|| library::find("librocprofiler-sdk-roctx.so")) {
        Some(library) => format!("recorded and passed on to {}", library.path.display()),
        None => "recorded; no ROC-TX library is here, so programs that open one by name get roctop's".to_owned(),
    };
    report.add(Verdict::Well, "markers", text);
}

/// The SDK that the collector will load.
fn sdk(beside: impl Fn(&str) -> Option<Library>) -> Option<Library> {
    match std::env::var_os(ENV_SDK).filter(|path| !path.is_empty()) {
        Some(named) => Path::new(&named).exists().then(|| Library::open(Path::new(&named))),
        None => beside("librocprofiler-sdk.so"),
    }
}

fn counters(report: &mut Report, hsa: Option<&Library>, sdk: Option<&Library>) {
    let registers = hsa.is_some_and(|hsa| hsa.mentions("rocprofiler_register_library_api_table"));
    let (verdict, text) = match (sdk, registers) {
        (Some(library), true) => (Verdict::Well, format!("by {}", library.path.display())),
        (Some(library), false) => (
            Verdict::Note,
            format!(
                "none: {} is here, but this HSA run-time was built without rocprofiler-register",
                library.path.display()
            ),
        ),
        (None, _) => (
            Verdict::Note,
            format!("none: no librocprofiler-sdk here (ROCm 6.2 and later; {ENV_SDK} may name one)"),
        ),
    };
    report.add(verdict, "counters", text);
}
