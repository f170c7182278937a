//! Formats the arguments of API calls as text. Names, types and positions come from the rows of `hip_functions`; a
//! function has a text only if its row names shown arguments.

use hip_functions::ROWS;
use hip_functions::signature::{ArgumentLocation, Parameter, parameters};
use roctop_ring::arguments::Arguments;
use roctop_ring::record::MpiCall;
use roctop_ring::record::mpi::{ANY, NO_RANK, OWN_OPERATOR, ROOT, SELF, UNKNOWN, WORLD};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Address or handle, in hexadecimal.
    Address,
    /// Address where the function writes a result.
    Result,
    /// Three sizes: `2x3x4`.
    Dim3,
    /// 64-bit unsigned integer.
    Size,
    /// 32-bit signed integer, also an enumeration without names here.
    Signed,
    /// 32-bit unsigned integer.
    Unsigned,
    /// 32-bit flags, in hexadecimal.
    Flags,
    /// Stream handle; `null` for 0.
    Stream,
    /// Enumeration, with its names by value.
    Named(&'static [&'static str]),
}

/// `hipMemcpyKind`, by value.
const COPIES: [&str; 5] = [
    "HostToHost",
    "HostToDevice",
    "DeviceToHost",
    "DeviceToDevice",
    "Default",
];
/// `ncclDataType_t`, by value.
const TYPES: [&str; 10] = [
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
];
/// `ncclRedOp_t`, by value.
const REDUCTIONS: [&str; 5] = ["sum", "prod", "max", "min", "avg"];

impl Kind {
    fn of(parameter: &Parameter<'_>) -> Self {
        if parameter.is_result {
            return Self::Result;
        }
        match parameter.kind {
            pointer if pointer.ends_with('*') => Self::Address,
            "int" | "unsigned int" | "uint32_t" if parameter.name.ends_with("lags") => Self::Flags,
            "int" | "hipDevice_t" | "hipDeviceAttribute_t" | "hipMemoryAdvise" | "hipStreamCaptureMode" => Self::Signed,
            "unsigned int" | "uint32_t" => Self::Unsigned,
            "size_t" => Self::Size,
            "dim3" => Self::Dim3,
            "hipStream_t" => Self::Stream,
            "hipMemcpyKind" => Self::Named(&COPIES),
            "ncclDataType_t" => Self::Named(&TYPES),
            "ncclRedOp_t" => Self::Named(&REDUCTIONS),
            _ => Self::Address,
        }
    }
}

/// One shown argument: name, kind and where its words are.
struct Shown {
    name: &'static str,
    kind: Kind,
    place: ArgumentLocation,
}

/// Shown arguments by function name.
static SHOWN: LazyLock<HashMap<&'static str, Vec<Shown>>> = LazyLock::new(|| {
    let rows = ROWS.iter().filter(|row| !row.shown.is_empty());
    rows.map(|row| {
        let shown = row.shown.split(' ').zip(parameters(row.signature));
        let shown = shown.filter(|(name, _)| *name != "_").map(|(name, parameter)| Shown {
            name,
            kind: Kind::of(&parameter),
            place: parameter.place,
        });
        (row.name, shown.collect())
    })
    .collect()
});

/// How an argument that points to a result is formatted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Results {
    /// The result alone, if it is known.
    #[default]
    Alone,
    /// The address, then the result after [`RESULT_ARROW`].
    Both,
}

/// Separates the address of a result from the result.
pub const RESULT_ARROW: &str = "->";

/// Arguments of a call of `function` as `name=value, …`; `None` if no argument of the function is shown.
pub fn text(function: &str, arguments: &Arguments, results: Results) -> Option<String> {
    let mut text = String::new();
    for Shown { name, kind, place } in SHOWN.get(function)? {
        if !text.is_empty() {
            text.push_str(", ");
        }
        let word = word(arguments, *place, 0)?;
        let value = match kind {
            Kind::Dim3 => {
                let depth = self::word(arguments, *place, 1)?;
                format!("{}x{}x{}", word as u32, word >> 32, depth as u32)
            }
            Kind::Result if arguments.given != 0 => match results {
                Results::Alone => format!("{:#x}", arguments.given),
                Results::Both => format!("{word:#x}{RESULT_ARROW}{:#x}", arguments.given),
            },
            kind => value(*kind, word),
        };
        let _ = write!(text, "{name}={value}");
    }
    Some(text)
}

/// Arguments of a call of MPI as `name=value, …`; `None` if nothing is known of them.
pub fn of_mpi(arguments: &Arguments) -> Option<String> {
    let call = MpiCall::of(arguments.registers);
    let mut text = String::new();
    let mut add = |name: &str, value: &str| {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name}={value}");
    };
    match call.communicator {
        0 if call.size == 0 => {}
        WORLD => add("comm", "world"),
        SELF => add("comm", "self"),
        // It has no number.
        0 => add("comm", "?"),
        number => add("comm", &number.to_string()),
    }
    if call.size > 0 {
        add("rank", &call.rank.to_string());
        add("ranks", &call.size.to_string());
    }
    for (name, number) in [("peer", call.peer), ("root", call.root), ("tag", call.tag)] {
        match number {
            UNKNOWN => {}
            ANY => add(name, "any"),
            NO_RANK if name != "tag" => add(name, "none"),
            ROOT if name == "root" => add(name, "root"),
            number => add(name, &number.to_string()),
        }
    }
    if let Some(bytes) = call.bytes {
        add("bytes", &bytes.to_string());
    }
    match (call.operator_name(), call.operator) {
        (Some(name), _) => add("op", name),
        (None, OWN_OPERATOR) => add("op", "own"),
        _ => {}
    }
    if call.empty_tests > 0 {
        add("empty_tests", &call.empty_tests.to_string());
    }
    (!text.is_empty()).then_some(text)
}

/// Value of an argument in such a text.
pub fn value_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut parts = text.split(", ").filter_map(|part| part.split_once('='));
    parts.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Word `number` of an argument; `None` if the record does not contain it.
fn word(arguments: &Arguments, place: ArgumentLocation, number: usize) -> Option<u64> {
    match place {
        ArgumentLocation::Register(first) => arguments.registers.get(usize::from(first) + number).copied(),
        ArgumentLocation::Stack(first) => arguments.stack.get(usize::from(first) + number).copied(),
        ArgumentLocation::Vector => None,
    }
}

fn value(kind: Kind, word: u64) -> String {
    match kind {
        Kind::Size => word.to_string(),
        Kind::Signed => (word as u32).cast_signed().to_string(),
        Kind::Unsigned => (word as u32).to_string(),
        Kind::Flags => format!("{:#x}", word as u32),
        Kind::Stream => match word {
            0 => "null".to_owned(),
            1 => "legacy".to_owned(),
            2 => "per-thread".to_owned(),
            handle => format!("{handle:#x}"),
        },
        Kind::Named(names) => {
            let known = names.get(word as u32 as usize).map(|name| (*name).to_owned());
            known.unwrap_or_else(|| (word as u32).to_string())
        }
        Kind::Address | Kind::Result | Kind::Dim3 => format!("{word:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_names_and_kinds() {
        let arguments = Arguments {
            registers: [0xd000, 0x5000, 4096, 1, 0, 0],
            ..Arguments::default()
        };
        let shown = text("hipMemcpyAsync", &arguments, Results::Both).unwrap();
        assert_eq!(
            shown,
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
        let shown = |results| text("hipMalloc", &given, results).unwrap();
        assert_eq!(shown(Results::Alone), "ptr=0xbeef, size=64");
        assert_eq!(shown(Results::Both), "ptr=0x7fff->0xbeef, size=64");
        assert_eq!(text("hipNoSuchFunction", &given, Results::Both), None);
    }

    #[test]
    fn an_argument_that_is_not_shown_takes_its_place() {
        let arguments = Arguments {
            registers: [0x7fff, 8, 3, 0, 0, 0],
            given: 0xbeef,
            stack_words: 16,
            ..Arguments::default()
        };
        let shown = text("ncclCommInitRank", &arguments, Results::Alone);
        assert_eq!(shown.as_deref(), Some("comm=0xbeef, ranks=8, rank=3"));
    }

    #[test]
    fn mpi_says_what_is_known() {
        let shown = |call: MpiCall| {
            of_mpi(&Arguments {
                registers: call.words(),
                ..Arguments::default()
            })
        };
        let none = MpiCall::default();
        assert_eq!(shown(none), None);
        let receive = MpiCall {
            communicator: 7,
            size: 4,
            rank: 1,
            peer: ANY,
            tag: -2,
            bytes: Some(80),
            ..none
        };
        let text = shown(receive).unwrap();
        assert_eq!(text, "comm=7, rank=1, ranks=4, peer=any, tag=-2, bytes=80");
        assert_eq!((value_of(&text, "bytes"), value_of(&text, "root")), (Some("80"), None));
        let reduce = MpiCall {
            communicator: WORLD,
            size: 2,
            root: 0,
            operator: 3,
            empty_tests: 9,
            ..none
        };
        assert_eq!(
            shown(reduce).unwrap(),
            "comm=world, rank=0, ranks=2, root=0, op=sum, empty_tests=9"
        );
        let any = Arguments {
            registers: [u64::MAX; 6],
            ..Arguments::default()
        };
        assert!(of_mpi(&any).is_some());
    }

    #[test]
    fn every_row_takes_any_words() {
        for name in SHOWN.keys() {
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
    }
}
