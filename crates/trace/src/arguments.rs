//! The arguments of API calls in words: which words of the calling convention a function takes, and what they mean.
//!
//! Only functions that people ask about are in the table (HIP 5.2 to 7.2, RCCL); the arguments of others stay away.

use roctop_ring::arguments::Arguments;
use std::fmt::Write;

/// A function's parameters in order, `name:kind` each; kinds are those of [`value`].
const FUNCTIONS: [(&str, &str); 76] = [
    (
        "__hipPushCallConfiguration",
        "grid:dim block:dim shared:n stream:stream",
    ),
    ("hipDeviceGetAttribute", "value:p attribute:i device:i"),
    ("hipEventCreate", "event:out"),
    ("hipEventCreateWithFlags", "event:out flags:x"),
    ("hipEventDestroy", "event:p"),
    ("hipEventElapsedTime", "ms:p start:p stop:p"),
    ("hipEventQuery", "event:p"),
    ("hipEventRecord", "event:p stream:stream"),
    ("hipEventSynchronize", "event:p"),
    (
        "hipExtLaunchKernel",
        "kernel:p grid:dim block:dim args:p shared:n stream:stream start:p stop:p flags:x",
    ),
    ("hipExtMallocWithFlags", "ptr:out size:n flags:x"),
    (
        "hipExtModuleLaunchKernel",
        "kernel:p grid_x:u grid_y:u grid_z:u block_x:u block_y:u block_z:u shared:n stream:stream params:p extra:p start:p \
         stop:p flags:x",
    ),
    ("hipFree", "ptr:p"),
    ("hipFreeAsync", "ptr:p stream:stream"),
    ("hipFreeHost", "ptr:p"),
    ("hipGetDevice", "device:p"),
    ("hipGetDeviceCount", "count:p"),
    ("hipGraphInstantiate", "exec:out graph:p"),
    ("hipGraphLaunch", "exec:p stream:stream"),
    ("hipHostFree", "ptr:p"),
    ("hipHostMalloc", "ptr:out size:n flags:x"),
    ("hipHostRegister", "ptr:p size:n flags:x"),
    ("hipHostUnregister", "ptr:p"),
    (
        "hipLaunchCooperativeKernel",
        "kernel:p grid:dim block:dim params:p shared:u stream:stream",
    ),
    (
        "hipLaunchKernel",
        "kernel:p grid:dim block:dim args:p shared:n stream:stream",
    ),
    ("hipMalloc", "ptr:out size:n"),
    ("hipMallocAsync", "ptr:out size:n stream:stream"),
    ("hipMallocFromPoolAsync", "ptr:out size:n pool:p stream:stream"),
    ("hipMallocHost", "ptr:out size:n"),
    ("hipMallocManaged", "ptr:out size:n flags:x"),
    ("hipMallocPitch", "ptr:out pitch:p width:n height:n"),
    ("hipMemAdvise", "ptr:p count:n advice:i device:i"),
    ("hipMemPrefetchAsync", "ptr:p count:n device:i stream:stream"),
    ("hipMemcpy", "dst:p src:p size:n kind:copy"),
    (
        "hipMemcpy2D",
        "dst:p dpitch:n src:p spitch:n width:n height:n kind:copy",
    ),
    (
        "hipMemcpy2DAsync",
        "dst:p dpitch:n src:p spitch:n width:n height:n kind:copy stream:stream",
    ),
    ("hipMemcpyAsync", "dst:p src:p size:n kind:copy stream:stream"),
    ("hipMemcpyDtoD", "dst:p src:p size:n"),
    ("hipMemcpyDtoDAsync", "dst:p src:p size:n stream:stream"),
    ("hipMemcpyDtoH", "dst:p src:p size:n"),
    ("hipMemcpyDtoHAsync", "dst:p src:p size:n stream:stream"),
    ("hipMemcpyHtoD", "dst:p src:p size:n"),
    ("hipMemcpyHtoDAsync", "dst:p src:p size:n stream:stream"),
    ("hipMemcpyPeer", "dst:p dst_device:i src:p src_device:i size:n"),
    (
        "hipMemcpyPeerAsync",
        "dst:p dst_device:i src:p src_device:i size:n stream:stream",
    ),
    ("hipMemcpyWithStream", "dst:p src:p size:n kind:copy stream:stream"),
    ("hipMemset", "dst:p value:i size:n"),
    ("hipMemset2D", "dst:p pitch:n value:i width:n height:n"),
    ("hipMemsetAsync", "dst:p value:i size:n stream:stream"),
    ("hipMemsetD32Async", "dst:p value:i count:n stream:stream"),
    ("hipModuleGetFunction", "function:out module:p name:p"),
    (
        "hipModuleLaunchKernel",
        "kernel:p grid_x:u grid_y:u grid_z:u block_x:u block_y:u block_z:u shared:u stream:stream params:p extra:p",
    ),
    ("hipModuleLoad", "module:out file:p"),
    ("hipModuleLoadData", "module:out image:p"),
    ("hipSetDevice", "device:i"),
    ("hipStreamAddCallback", "stream:stream callback:p data:p flags:x"),
    ("hipStreamBeginCapture", "stream:stream mode:i"),
    ("hipStreamCreate", "stream:out"),
    ("hipStreamCreateWithFlags", "stream:out flags:x"),
    ("hipStreamCreateWithPriority", "stream:out flags:x priority:i"),
    ("hipStreamDestroy", "stream:stream"),
    ("hipStreamQuery", "stream:stream"),
    ("hipStreamSynchronize", "stream:stream"),
    ("hipStreamWaitEvent", "stream:stream event:p flags:x"),
    ("ncclAllGather", "send:p recv:p count:n type:type comm:p stream:stream"),
    (
        "ncclAllReduce",
        "send:p recv:p count:n type:type op:op comm:p stream:stream",
    ),
    ("ncclAllToAll", "send:p recv:p count:n type:type comm:p stream:stream"),
    ("ncclBcast", "buffer:p count:n type:type root:i comm:p stream:stream"),
    (
        "ncclBroadcast",
        "send:p recv:p count:n type:type root:i comm:p stream:stream",
    ),
    ("ncclCommInitRank", "comm:out ranks:i rank:i"),
    (
        "ncclGather",
        "send:p recv:p count:n type:type root:i comm:p stream:stream",
    ),
    ("ncclRecv", "recv:p count:n type:type peer:i comm:p stream:stream"),
    (
        "ncclReduce",
        "send:p recv:p count:n type:type op:op root:i comm:p stream:stream",
    ),
    (
        "ncclReduceScatter",
        "send:p recv:p count:n type:type op:op comm:p stream:stream",
    ),
    (
        "ncclScatter",
        "send:p recv:p count:n type:type root:i comm:p stream:stream",
    ),
    ("ncclSend", "send:p count:n type:type peer:i comm:p stream:stream"),
];

/// What is told of an argument that is the place of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Results {
    /// The result, when it is known.
    #[default]
    Alone,
    /// The place, and the result behind [`GIVEN`].
    Both,
}

/// Stands between the place of a result and the result.
pub const GIVEN: &str = "->";

/// The arguments of a call of `function` as `name=value, …`; none when the function is not in the table.
pub fn text(function: &str, arguments: &Arguments, results: Results) -> Option<String> {
    let (_, parameters) = FUNCTIONS.iter().find(|(name, _)| *name == function)?;
    let mut words = arguments.registers.iter().chain(&arguments.stack).copied();
    let mut text = String::new();
    for parameter in parameters.split_whitespace() {
        let (name, kind) = parameter.split_once(':')?;
        if !text.is_empty() {
            text.push_str(", ");
        }
        let word = words.next()?;
        let shown = match kind {
            "dim" => {
                let depth = words.next()?;
                format!("{}x{}x{}", word as u32, word >> 32, depth as u32)
            }
            "out" if arguments.given != 0 => match results {
                Results::Alone => format!("{:#x}", arguments.given),
                Results::Both => format!("{word:#x}{GIVEN}{:#x}", arguments.given),
            },
            _ => value(kind, word),
        };
        let _ = write!(text, "{name}={shown}");
    }
    Some(text)
}

/// A word by its kind: `p` and `out` an address, `n` a number, `i` and `u` 32-bit ones, `x` flags, the rest by their
/// enumerations.
fn value(kind: &str, word: u64) -> String {
    let named = |names: &[&str]| {
        let known = names.get(word as u32 as usize).map(|name| (*name).to_owned());
        known.unwrap_or_else(|| (word as u32).to_string())
    };
    match kind {
        "n" => word.to_string(),
        "i" => (word as u32).cast_signed().to_string(),
        "u" => (word as u32).to_string(),
        "x" => format!("{:#x}", word as u32),
        "stream" => match word {
            0 => "null".to_owned(),
            1 => "legacy".to_owned(),
            2 => "per-thread".to_owned(),
            handle => format!("{handle:#x}"),
        },
        // hipMemcpyKind.
        "copy" => named(&[
            "HostToHost",
            "HostToDevice",
            "DeviceToHost",
            "DeviceToDevice",
            "Default",
        ]),
        // ncclDataType_t.
        "type" => named(&[
            "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
        ]),
        // ncclRedOp_t.
        "op" => named(&["sum", "prod", "max", "min", "avg"]),
        _ => format!("{word:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_by_name_and_kind() {
        let arguments = Arguments {
            registers: [0xd000, 0x5000, 4096, 1, 0, 0],
            ..Arguments::default()
        };
        let told = text("hipMemcpyAsync", &arguments, Results::Both).unwrap();
        assert_eq!(
            told,
            "dst=0xd000, src=0x5000, size=4096, kind=HostToDevice, stream=null"
        );
        let launch = Arguments {
            registers: [0xf, 3 << 32 | 2, 4, 1 << 32 | 64, 1, 0xa],
            stack: {
                let mut stack = [0; Arguments::STACK];
                stack[..2].copy_from_slice(&[256, 0x1230]);
                stack
            },
            stack_words: 2,
            ..Arguments::default()
        };
        assert_eq!(
            text("hipLaunchKernel", &launch, Results::Both).unwrap(),
            "kernel=0xf, grid=2x3x4, block=64x1x1, args=0xa, shared=256, stream=0x1230"
        );
        let given = Arguments {
            registers: [0x7fff, 64, 0, 0, 0, 0],
            given: 0xbeef,
            ..Arguments::default()
        };
        let told = |results| text("hipMalloc", &given, results).unwrap();
        assert_eq!(told(Results::Alone), "ptr=0xbeef, size=64");
        assert_eq!(told(Results::Both), "ptr=0x7fff->0xbeef, size=64");
        assert_eq!(text("hipNoSuchFunction", &given, Results::Both), None);
    }

    #[test]
    fn every_row_can_be_told_of_any_words() {
        for (name, _) in FUNCTIONS {
            let any = Arguments {
                registers: [u64::MAX; 6],
                given: u64::MAX,
                stack: [u64::MAX; Arguments::STACK],
                stack_words: 16,
            };
            for results in [Results::Alone, Results::Both] {
                assert!(text(name, &any, results).is_some(), "{name}");
            }
        }
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| *name));
    }
}
