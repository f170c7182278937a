//! Call arguments as rocprofiler-sdk writes them: type, name and value of each.

use super::view::View;
use hip_functions::{ROWS, signature};
use roctop_trace::arguments::RESULT_ARROW;
use roctop_trace::item::ApiCall;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// An argument.
pub(super) struct Argument {
    /// C++ type, mangled; empty if unknown.
    pub(super) kind: &'static str,
    /// Name of its parameter.
    pub(super) name: Cow<'static, str>,
    /// Its value.
    pub(super) value: String,
    /// Result of the call, if the value is the address of one.
    pub(super) given: Option<String>,
}

/// Mangled type and name of each shown parameter, by function, as declared in `api_args.h` of rocprofiler-sdk 1.0.0. It
/// has only functions in dispatch tables.
static PARAMETERS: LazyLock<HashMap<&'static str, Vec<(String, &'static str)>>> = LazyLock::new(|| {
    let rows = ROWS.iter().filter(|row| row.entry.is_some() && !row.shown.is_empty());
    rows.map(|row| {
        let shown = row.shown.split(' ').zip(signature::parameters(row.signature));
        let shown = shown.filter(|(name, _)| *name != "_");
        let typed = shown.map(|(_, parameter)| (mangled(parameter.kind), parameter.name));
        (row.name, typed.collect())
    })
    .collect()
});

/// Mangles a C type by the C++ ABI.
fn mangled(kind: &str) -> String {
    let base = kind.trim_end_matches('*');
    let pointers = "P".repeat(kind.len() - base.len());
    let (constant, base) = base.strip_prefix("const ").map_or(("", base), |base| ("K", base));
    let base = match base {
        "void" => "v",
        "char" => "c",
        "int" | "hipDevice_t" => "i",
        "unsigned int" | "uint32_t" => "j",
        "size_t" => "m",
        "float" => "f",
        "dim3" => DIM3,
        "hipDeviceptr_t" => "Pv",
        "hipEvent_t" => "P11ihipEvent_t",
        "hipFunction_t" => "P18ihipModuleSymbol_t",
        "hipGraph_t" => "P9ihipGraph",
        "hipGraphExec_t" => "P12hipGraphExec",
        "hipMemPool_t" => "P20ihipMemPoolHandle_t",
        "hipModule_t" => "P12ihipModule_t",
        "hipStream_t" => STREAM,
        "hipStreamCallback_t" => "PFvP12ihipStream_t10hipError_tPvE",
        "ncclComm_t" => "P8ncclComm",
        named => return format!("{pointers}{constant}{}{named}", named.len()),
    };
    format!("{pointers}{constant}{base}")
}

/// Arguments of a call; empty if they were not recorded.
pub(super) fn of(view: &View<'_>, call: &ApiCall) -> Vec<Argument> {
    let text = call.arguments.and_then(|id| view.text(id));
    text.map_or_else(Vec::new, |text| parts(view.function(call), &text))
}

/// Handle of the stream that a call uses, if its arguments contain one.
pub(super) fn stream(arguments: &[Argument]) -> Option<u64> {
    let named = arguments.iter().find(|one| one.kind == STREAM)?;
    if named.value == NULL_POINTER {
        return Some(0);
    }
    u64::from_str_radix(named.value.strip_prefix("0x")?, 16).ok()
}

const STREAM: &str = "P12ihipStream_t";
const DIM3: &str = "18rocprofiler_dim3_t";
/// Text of a null pointer.
const NULL_POINTER: &str = "(null)";

fn parts(function: &str, text: &str) -> Vec<Argument> {
    let mut parameters = PARAMETERS.get(function).into_iter().flatten();
    let own = text.split(", ").filter_map(|part| part.split_once('='));
    own.map(|(name, value)| {
        let (kind, name) = parameters.next().map_or_else(
            || ("", Cow::Owned(name.to_owned())),
            |(kind, name)| (kind.as_str(), Cow::Borrowed(*name)),
        );
        let (value, given) = value.split_once(RESULT_ARROW).unwrap_or((value, ""));
        Argument {
            kind,
            name,
            value: shown(kind, value),
            given: (!given.is_empty()).then(|| given.to_owned()),
        }
    })
    .collect()
}

/// Formats a value as rocprofiler-sdk does for its type.
fn shown(kind: &str, value: &str) -> String {
    let number = value
        .strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match (kind, number) {
        (DIM3, _) => {
            let mut axes = value.split('x');
            let [x, y, z] = [(); 3].map(|()| axes.next().unwrap_or("0"));
            format!("{{z={z}, y={y}, x={x}}}")
        }
        (STREAM, _) if value == "null" => NULL_POINTER.to_owned(),
        // hipStreamLegacy and hipStreamPerThread.
        (STREAM, _) if value == "legacy" => "0x1".to_owned(),
        (STREAM, _) if value == "per-thread" => "0x2".to_owned(),
        ("i" | "j" | "m", Some(number)) => number.to_string(),
        ("Pv" | "PKv", Some(0)) => "0".to_owned(),
        (kind, Some(0)) if kind.starts_with('P') => NULL_POINTER.to_owned(),
        _ => value.to_owned(),
    }
}

/// Demangles a type: `void const*`.
pub(super) fn demangled(kind: &str) -> String {
    let base = kind.trim_start_matches('P');
    let (is_const, base) = base.strip_prefix('K').map_or((false, base), |base| (true, base));
    let plain = match base {
        "v" => "void",
        "i" => "int",
        "j" => "unsigned int",
        "m" => "unsigned long",
        "f" => "float",
        "c" => "char",
        function if function.starts_with('F') => return "hipStreamCallback_t".to_owned(),
        named => named.trim_start_matches(|digit: char| digit.is_ascii_digit()),
    };
    let mut words = plain.to_owned();
    if is_const {
        words.push_str(" const");
    }
    for _ in 0..kind.len() - kind.trim_start_matches('P').len() {
        let _ = words.write_char('*');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_upstreams_types_names_and_values() {
        let shown = |function, text| -> Vec<(&'static str, String, String)> {
            let parts = parts(function, text).into_iter();
            parts.map(|one| (one.kind, one.name.into_owned(), one.value)).collect()
        };
        let row = |kind, name: &str, value: &str| (kind, name.to_owned(), value.to_owned());
        assert_eq!(
            shown(
                "hipMemcpyAsync",
                "dst=0x7f00, src=0x0, size=8, kind=HostToDevice, stream=0x5611"
            ),
            [
                row("Pv", "dst", "0x7f00"),
                row("PKv", "src", "0"),
                row("m", "sizeBytes", "8"),
                row("13hipMemcpyKind", "kind", "HostToDevice"),
                row("P12ihipStream_t", "stream", "0x5611"),
            ]
        );
        assert_eq!(
            shown(
                "hipLaunchKernel",
                "kernel=0x10, grid=256x2x1, block=64x1x1, args=0x20, shared=0, stream=null"
            )[1..],
            [
                row("18rocprofiler_dim3_t", "numBlocks", "{z=1, y=2, x=256}"),
                row("18rocprofiler_dim3_t", "dimBlocks", "{z=1, y=1, x=64}"),
                row("PPv", "args", "0x20"),
                row("m", "sharedMemBytes", "0"),
                row("P12ihipStream_t", "stream", "(null)"),
            ]
        );
        assert_eq!(
            shown("hipStreamCreateWithFlags", "stream=0x5611, flags=0x1")[1],
            row("j", "flags", "1")
        );
        assert_eq!(shown("nobodyKnows", "a=0x1"), [row("", "a", "0x1")]);
        let allocated = parts("hipMalloc", "ptr=0x7ffd->0xbeef, size=64");
        assert_eq!(
            (allocated[0].value.as_str(), allocated[0].given.as_deref()),
            ("0x7ffd", Some("0xbeef"))
        );
        assert_eq!(
            (allocated[1].value.as_str(), allocated[1].given.as_deref()),
            ("64", None)
        );
    }

    #[test]
    fn a_stream_is_the_one_that_is_worked_on() {
        let of = |function, text| stream(&parts(function, text));
        assert_eq!(of("hipStreamSynchronize", "stream=0x5611"), Some(0x5611));
        assert_eq!(of("hipStreamSynchronize", "stream=null"), Some(0));
        assert_eq!(of("hipStreamCreate", "stream=0x5611"), None, "made, not worked on");
        assert_eq!(of("hipFree", "ptr=0x1"), None);
    }

    #[test]
    fn types_are_demangled() {
        let shown = ["Pv", "PKv", "PPv", "m", "j", "13hipMemcpyKind", "PP12ihipStream_t"].map(demangled);
        let words = [
            "void*",
            "void const*",
            "void**",
            "unsigned long",
            "unsigned int",
            "hipMemcpyKind",
            "ihipStream_t**",
        ];
        assert_eq!(shown, words);
    }
}
