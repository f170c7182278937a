//! Arguments of calls as rocprofiler-sdk tells them: type, name and value of each.

use super::view::View;
use roctop_trace::arguments::GIVEN;
use roctop_trace::item::ApiCall;
use std::borrow::Cow;
use std::fmt::Write;

/// An argument.
pub(super) struct Argument {
    /// Its C++ type, mangled; empty when it is not known.
    pub(super) kind: &'static str,
    /// Its parameter's name.
    pub(super) name: Cow<'static, str>,
    /// Its value.
    pub(super) value: String,
    /// What the call put there, where the value is the place of a result.
    pub(super) given: Option<String>,
}

/// Parameters of functions as `api_args.h` of rocprofiler-sdk 1.0.0 declares them: mangled type and name of each, in the
/// order of the arguments that are recorded.
const FUNCTIONS: &[(&str, &str)] = &[
    (
        "__hipPushCallConfiguration",
        "18rocprofiler_dim3_t gridDim, 18rocprofiler_dim3_t blockDim, m sharedMem, P12ihipStream_t stream",
    ),
    (
        "hipDeviceGetAttribute",
        "Pi pi, 20hipDeviceAttribute_t attr, i deviceId",
    ),
    ("hipEventCreate", "PP11ihipEvent_t event"),
    ("hipEventCreateWithFlags", "PP11ihipEvent_t event, j flags"),
    ("hipEventDestroy", "P11ihipEvent_t event"),
    (
        "hipEventElapsedTime",
        "Pf ms, P11ihipEvent_t start, P11ihipEvent_t stop",
    ),
    ("hipEventQuery", "P11ihipEvent_t event"),
    ("hipEventRecord", "P11ihipEvent_t event, P12ihipStream_t stream"),
    ("hipEventSynchronize", "P11ihipEvent_t event"),
    (
        "hipExtLaunchKernel",
        "PKv function_address, 18rocprofiler_dim3_t numBlocks, 18rocprofiler_dim3_t dimBlocks, PPv args, \
         m sharedMemBytes, P12ihipStream_t stream, P11ihipEvent_t startEvent, P11ihipEvent_t stopEvent, i flags",
    ),
    ("hipExtMallocWithFlags", "PPv ptr, m sizeBytes, j flags"),
    (
        "hipExtModuleLaunchKernel",
        "P18ihipModuleSymbol_t func, j globalWorkSizeX, j globalWorkSizeY, j globalWorkSizeZ, j localWorkSizeX, \
         j localWorkSizeY, j localWorkSizeZ, m sharedMemBytes, P12ihipStream_t stream, PPv kernelParams, \
         PPv extra, P11ihipEvent_t startEvent, P11ihipEvent_t stopEvent, j flags",
    ),
    ("hipFree", "Pv ptr"),
    ("hipFreeAsync", "Pv dev_ptr, P12ihipStream_t stream"),
    ("hipFreeHost", "Pv ptr"),
    ("hipGetDevice", "Pi deviceId"),
    ("hipGetDeviceCount", "Pi count"),
    ("hipGraphInstantiate", "PP12hipGraphExec pGraphExec, P9ihipGraph graph"),
    ("hipGraphLaunch", "P12hipGraphExec graphExec, P12ihipStream_t stream"),
    ("hipHostFree", "Pv ptr"),
    ("hipHostMalloc", "PPv ptr, m size, j flags"),
    ("hipHostRegister", "Pv hostPtr, m sizeBytes, j flags"),
    ("hipHostUnregister", "Pv hostPtr"),
    (
        "hipLaunchCooperativeKernel",
        "PKv func, 18rocprofiler_dim3_t gridDim, 18rocprofiler_dim3_t blockDimX, PPv kernelParams, \
         j sharedMemBytes, P12ihipStream_t stream",
    ),
    (
        "hipLaunchKernel",
        "PKv function_address, 18rocprofiler_dim3_t numBlocks, 18rocprofiler_dim3_t dimBlocks, PPv args, \
         m sharedMemBytes, P12ihipStream_t stream",
    ),
    ("hipMalloc", "PPv ptr, m size"),
    ("hipMallocAsync", "PPv dev_ptr, m size, P12ihipStream_t stream"),
    (
        "hipMallocFromPoolAsync",
        "PPv dev_ptr, m size, P20ihipMemPoolHandle_t mem_pool, P12ihipStream_t stream",
    ),
    ("hipMallocHost", "PPv ptr, m size"),
    ("hipMallocManaged", "PPv dev_ptr, m size, j flags"),
    ("hipMallocPitch", "PPv ptr, Pm pitch, m width, m height"),
    (
        "hipMemAdvise",
        "PKv dev_ptr, m count, 15hipMemoryAdvise advice, i device",
    ),
    (
        "hipMemPrefetchAsync",
        "PKv dev_ptr, m count, i device, P12ihipStream_t stream",
    ),
    ("hipMemcpy", "Pv dst, PKv src, m sizeBytes, 13hipMemcpyKind kind"),
    (
        "hipMemcpy2D",
        "Pv dst, m dpitch, PKv src, m spitch, m width, m height, 13hipMemcpyKind kind",
    ),
    (
        "hipMemcpy2DAsync",
        "Pv dst, m dpitch, PKv src, m spitch, m width, m height, 13hipMemcpyKind kind, P12ihipStream_t stream",
    ),
    (
        "hipMemcpyAsync",
        "Pv dst, PKv src, m sizeBytes, 13hipMemcpyKind kind, P12ihipStream_t stream",
    ),
    ("hipMemcpyDtoD", "Pv dst, Pv src, m sizeBytes"),
    (
        "hipMemcpyDtoDAsync",
        "Pv dst, Pv src, m sizeBytes, P12ihipStream_t stream",
    ),
    ("hipMemcpyDtoH", "Pv dst, Pv src, m sizeBytes"),
    (
        "hipMemcpyDtoHAsync",
        "Pv dst, Pv src, m sizeBytes, P12ihipStream_t stream",
    ),
    ("hipMemcpyHtoD", "Pv dst, PKv src, m sizeBytes"),
    (
        "hipMemcpyHtoDAsync",
        "Pv dst, PKv src, m sizeBytes, P12ihipStream_t stream",
    ),
    (
        "hipMemcpyPeer",
        "Pv dst, i dstDeviceId, PKv src, i srcDeviceId, m sizeBytes",
    ),
    (
        "hipMemcpyPeerAsync",
        "Pv dst, i dstDeviceId, PKv src, i srcDevice, m sizeBytes, P12ihipStream_t stream",
    ),
    (
        "hipMemcpyWithStream",
        "Pv dst, PKv src, m sizeBytes, 13hipMemcpyKind kind, P12ihipStream_t stream",
    ),
    ("hipMemset", "Pv dst, i value, m sizeBytes"),
    ("hipMemset2D", "Pv dst, m pitch, i value, m width, m height"),
    ("hipMemsetAsync", "Pv dst, i value, m sizeBytes, P12ihipStream_t stream"),
    ("hipMemsetD32Async", "Pv dst, i value, m count, P12ihipStream_t stream"),
    (
        "hipModuleGetFunction",
        "PP18ihipModuleSymbol_t function, P12ihipModule_t module, PKc kname",
    ),
    (
        "hipModuleLaunchKernel",
        "P18ihipModuleSymbol_t func, j gridDimX, j gridDimY, j gridDimZ, j blockDimX, j blockDimY, j blockDimZ, \
         j sharedMemBytes, P12ihipStream_t stream, PPv kernelParams, PPv extra",
    ),
    ("hipModuleLoad", "PP12ihipModule_t module, PKc fname"),
    ("hipModuleLoadData", "PP12ihipModule_t module, PKv image"),
    ("hipSetDevice", "i deviceId"),
    (
        "hipStreamAddCallback",
        "P12ihipStream_t stream, PFvP12ihipStream_t10hipError_tPvE callback, Pv userData, j flags",
    ),
    (
        "hipStreamBeginCapture",
        "P12ihipStream_t stream, 20hipStreamCaptureMode mode",
    ),
    ("hipStreamCreate", "PP12ihipStream_t stream"),
    ("hipStreamCreateWithFlags", "PP12ihipStream_t stream, j flags"),
    (
        "hipStreamCreateWithPriority",
        "PP12ihipStream_t stream, j flags, i priority",
    ),
    ("hipStreamDestroy", "P12ihipStream_t stream"),
    ("hipStreamQuery", "P12ihipStream_t stream"),
    ("hipStreamSynchronize", "P12ihipStream_t stream"),
    (
        "hipStreamWaitEvent",
        "P12ihipStream_t stream, P11ihipEvent_t event, j flags",
    ),
    (
        "ncclAllGather",
        "PKv sendbuff, Pv recvbuff, m sendcount, 14ncclDataType_t datatype, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    (
        "ncclAllReduce",
        "PKv sendbuff, Pv recvbuff, m count, 14ncclDataType_t datatype, 11ncclRedOp_t op, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    (
        "ncclAllToAll",
        "PKv sendbuff, Pv recvbuff, m count, 14ncclDataType_t datatype, P8ncclComm comm, P12ihipStream_t stream",
    ),
    (
        "ncclBroadcast",
        "PKv sendbuff, Pv recvbuff, m count, 14ncclDataType_t datatype, i root, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    ("ncclCommInitRank", "PP8ncclComm newcomm, i nranks, i myrank"),
    (
        "ncclGather",
        "PKv sendbuff, Pv recvbuff, m sendcount, 14ncclDataType_t datatype, i root, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    (
        "ncclRecv",
        "Pv recvbuff, m count, 14ncclDataType_t datatype, i peer, P8ncclComm comm, P12ihipStream_t stream",
    ),
    (
        "ncclReduce",
        "PKv sendbuff, Pv recvbuff, m count, 14ncclDataType_t datatype, 11ncclRedOp_t op, i root, \
         P8ncclComm comm, P12ihipStream_t stream",
    ),
    (
        "ncclReduceScatter",
        "PKv sendbuff, Pv recvbuff, m recvcount, 14ncclDataType_t datatype, 11ncclRedOp_t op, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    (
        "ncclScatter",
        "PKv sendbuff, Pv recvbuff, m recvcount, 14ncclDataType_t datatype, i root, P8ncclComm comm, \
         P12ihipStream_t stream",
    ),
    (
        "ncclSend",
        "PKv sendbuff, m count, 14ncclDataType_t datatype, i peer, P8ncclComm comm, P12ihipStream_t stream",
    ),
];

/// The arguments of a call; none when they were not recorded.
pub(super) fn of(view: &View<'_>, call: &ApiCall) -> Vec<Argument> {
    let text = call.arguments.and_then(|id| view.text(id));
    text.map_or_else(Vec::new, |text| parts(view.function(call), &text))
}

/// The handle of the stream that a call works on, when its arguments name one.
pub(super) fn stream(arguments: &[Argument]) -> Option<u64> {
    let named = arguments.iter().find(|one| one.kind == STREAM)?;
    if named.value == NOTHING {
        return Some(0);
    }
    u64::from_str_radix(named.value.strip_prefix("0x")?, 16).ok()
}

const STREAM: &str = "P12ihipStream_t";
/// How a null pointer to something is told.
const NOTHING: &str = "(null)";

fn parts(function: &str, text: &str) -> Vec<Argument> {
    let known = FUNCTIONS.iter().find(|(name, _)| *name == function);
    let mut parameters = known.map_or("", |(_, parameters)| *parameters).split(", ");
    let own = text.split(", ").filter_map(|part| part.split_once('='));
    own.map(|(name, value)| {
        let parameter = parameters.next().and_then(|parameter| parameter.split_once(' '));
        let (kind, name) = parameter.map_or_else(
            || ("", Cow::Owned(name.to_owned())),
            |(kind, name)| (kind, Cow::Borrowed(name)),
        );
        let (value, given) = value.split_once(GIVEN).unwrap_or((value, ""));
        Argument {
            kind,
            name,
            value: shown(kind, value),
            given: (!given.is_empty()).then(|| given.to_owned()),
        }
    })
    .collect()
}

/// A value as rocprofiler-sdk writes those of its type.
fn shown(kind: &str, value: &str) -> String {
    let number = value
        .strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match (kind, number) {
        ("18rocprofiler_dim3_t", _) => {
            let mut axes = value.split('x');
            let [x, y, z] = [(); 3].map(|()| axes.next().unwrap_or("0"));
            format!("{{z={z}, y={y}, x={x}}}")
        }
        (STREAM, _) if value == "null" => NOTHING.to_owned(),
        // hipStreamLegacy and hipStreamPerThread.
        (STREAM, _) if value == "legacy" => "0x1".to_owned(),
        (STREAM, _) if value == "per-thread" => "0x2".to_owned(),
        ("i" | "j" | "m", Some(number)) => number.to_string(),
        ("Pv" | "PKv", Some(0)) => "0".to_owned(),
        (kind, Some(0)) if kind.starts_with('P') => NOTHING.to_owned(),
        _ => value.to_owned(),
    }
}

/// A mangled type in words, as the ABI's demangler writes it: `void const*`.
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
        let told = |function, text| -> Vec<(&'static str, String, String)> {
            let parts = parts(function, text).into_iter();
            parts.map(|one| (one.kind, one.name.into_owned(), one.value)).collect()
        };
        let row = |kind, name: &str, value: &str| (kind, name.to_owned(), value.to_owned());
        assert_eq!(
            told(
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
            told(
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
            told("hipStreamCreateWithFlags", "stream=0x5611, flags=0x1")[1],
            row("j", "flags", "1")
        );
        assert_eq!(told("nobodyKnows", "a=0x1"), [row("", "a", "0x1")]);
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
    fn types_are_told_in_words() {
        let told = ["Pv", "PKv", "PPv", "m", "j", "13hipMemcpyKind", "PP12ihipStream_t"].map(demangled);
        let words = [
            "void*",
            "void const*",
            "void**",
            "unsigned long",
            "unsigned int",
            "hipMemcpyKind",
            "ihipStream_t**",
        ];
        assert_eq!(told, words);
    }
}
