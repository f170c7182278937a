//! The exported functions as the collector needs them, computed from the rows of `hip_functions` when it is compiled:
//! where a function's stream and its most relevant argument are, what it returns, how many stack words it takes.

use hip_functions::signature;
pub use hip_functions::{Domain, functions};

/// Return type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// A status code.
    Status,
    /// Another value, or none.
    Other,
}

/// Position of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// Nowhere.
    None,
    /// In an integer register.
    Register(u8),
    /// On the stack, in words after the return address.
    Stack(u8),
    /// The null stream.
    Null,
    /// The per-thread stream.
    PerThread,
    /// In the [`LaunchConfig`] to which the first argument points.
    Config,
}

/// The part of `hipLaunchConfig_t` and `HIP_LAUNCH_CONFIG` (7.0 and later) that is read. The two have grid and block at
/// different offsets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Grid, block, bytes of LDS.
    pub shape: [u64; 4],
    /// The stream.
    pub stream: u64,
    /// The first attribute.
    pub attributes: *const LaunchAttribute,
    /// Attributes.
    pub count: u32,
}

/// `hipLaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    /// See [`LaunchAttribute::COOPERATIVE`].
    pub id: u32,
    /// Reserved.
    pub reserved: u32,
    /// The value; a number is its first word.
    pub value: [u32; 16],
}

impl LaunchAttribute {
    /// Says whether the launch is cooperative.
    pub const COOPERATIVE: u32 = 2;
}

const _: () =
    assert!(std::mem::offset_of!(LaunchConfig, stream) == 32 && std::mem::offset_of!(LaunchConfig, count) == 48);
const _: () = assert!(size_of::<LaunchAttribute>() == 72 && std::mem::offset_of!(LaunchAttribute, value) == 8);

/// Effects of a function that concern the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Stores a new stream through the first argument.
    StreamCreate,
    /// Destroys the stream in the first argument.
    StreamDestroy,
    /// Starts recording on the program's request.
    Start,
    /// Stops recording on the program's request.
    Stop,
    /// Launches a kernel.
    Launch,
    /// Launches a cooperative kernel.
    Cooperative,
    /// Launches a kernel, cooperative if its [`LaunchConfig`] says so.
    Configured,
    /// Launches a graph.
    Graph,
    /// Starts to capture a stream's work into a graph.
    CaptureBegin,
    /// Ends the capture.
    CaptureEnd,
    /// Makes, copies, changes or destroys nodes of a graph, or an executable graph.
    Nodes,
    /// Sets an attribute of a graph's kernel: the second argument names it, the third points to the value.
    NodeAttribute,
    /// Returns after GPU work has completed.
    Wait,
    /// Looks up the function that the first argument names; stores its address through the second.
    Lookup,
    /// Also called by the run-time, by its exported name, when one of its functions fails.
    Shared,
    /// Creates communicators.
    Communicator,
    /// Ends a group of communications; the outermost one starts them.
    GroupEnd,
}

impl Effect {
    /// Whether a successful call launches a kernel.
    #[inline]
    pub const fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::Cooperative | Self::Configured)
    }

    /// Whether the collector must act when the call returns; [`Effect::Wait`] is excluded.
    #[inline]
    pub const fn is_after(self) -> bool {
        matches!(
            self,
            Self::StreamCreate
                | Self::Start
                | Self::Stop
                | Self::Lookup
                | Self::CaptureBegin
                | Self::CaptureEnd
                | Self::Graph
                | Self::Nodes
                | Self::Communicator
                | Self::GroupEnd
        )
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a function, read on the hot path"
)]
pub struct Function {
    /// Exported symbol, with the terminating zero.
    pub symbol: &'static str,
    /// Displayed name.
    pub name: &'static str,
    /// Operation number in its domain.
    pub op: u16,
    /// Domain.
    pub domain: Domain,
    /// Return type.
    pub returns: Returns,
    /// Its most relevant argument.
    pub argument: ArgumentLocation,
    /// Its stream.
    pub stream: ArgumentLocation,
    /// Its null stream is the per-thread stream.
    pub is_per_thread: bool,
    /// Side effect.
    pub effect: Effect,
    /// It stores a resulting handle or address through its first argument.
    pub gives: bool,
    /// Stack words of its arguments, at most [`STACK_WORDS`].
    pub stack_words: u8,
    /// The copy or fill that it requests.
    pub moves: Option<Moves>,
    /// It has an effect, copies or fills memory, or communicates.
    pub is_special: bool,
    /// Its argument is an event that its stream records or waits for.
    pub is_event: bool,
    /// It launches, copies, fills or allocates, or adds such work to a graph: where it is called is of interest.
    pub has_site: bool,
}

/// A row fills a cache line.
const _: () = assert!(size_of::<Function>() == 64);

/// Maximum number of operations of RCCL.
const RCCL_OPERATIONS: usize = 64;

impl Function {
    /// What it does with communicators. Not a field, so that a row fills a cache line.
    #[inline]
    pub fn communication(&self) -> Option<&'static Communication> {
        let known = COMMUNICATIONS.get(usize::from(self.op));
        known.filter(|_| self.domain == Domain::Rccl)?.as_ref()
    }
}

/// Maximum number of stack words of a function's arguments.
pub const STACK_WORDS: u8 = 16;

/// What a row takes from its signature, in one pass: passes over a text cost time when this crate is compiled.
struct Parameters {
    /// Where the recorded argument is.
    argument: ArgumentLocation,
    /// Where the first stream is.
    stream: ArgumentLocation,
    /// Whether a stream records an event or waits for it.
    is_event: bool,
    /// Whether the function returns a handle or an address through the first.
    gives: bool,
    /// Words of the stack that the arguments take.
    stack_words: u8,
}

/// The parameters of a signature; `argument` is the name of the recorded one, or `none`.
const fn parameters(signature: &str, argument: &str) -> Parameters {
    let mut found = Parameters {
        argument: ArgumentLocation::None,
        stream: ArgumentLocation::None,
        is_event: false,
        gives: false,
        stack_words: 0,
    };
    let mut is_missing = !signature::is_same(argument, "none");
    let mut has_event = false;
    let mut is_first = true;
    let mut left = signature::parameters(signature);
    while let Some((parameter, rest)) = left.first() {
        if is_missing && signature::is_same(parameter.name, argument) {
            found.argument = place(parameter.place);
            is_missing = false;
        }
        if signature::is_same(parameter.kind, "hipStream_t") {
            if matches!(found.stream, ArgumentLocation::None) {
                found.stream = place(parameter.place);
            }
        } else if signature::is_same(parameter.kind, "hipEvent_t") {
            has_event |= signature::is_same(parameter.name, "event");
        }
        found.gives |= is_first && parameter.is_result;
        is_first = false;
        left = rest;
    }
    assert!(!is_missing, "the signature has no parameter of this name");
    found.is_event = has_event && !matches!(found.stream, ArgumentLocation::None);
    found.stack_words = left.stack_words();
    found
}

pub(crate) const fn place(place: signature::ArgumentLocation) -> ArgumentLocation {
    match place {
        signature::ArgumentLocation::Register(number) => ArgumentLocation::Register(number),
        signature::ArgumentLocation::Stack(number) => ArgumentLocation::Stack(number),
        signature::ArgumentLocation::Vector => panic!("the collector reads no vector register"),
    }
}

const fn returns(signature: &str) -> Returns {
    let kind = signature::returned(signature);
    if signature::is_same(kind, "hipError_t") || signature::is_same(kind, "ncclResult_t") {
        Returns::Status
    } else {
        Returns::Other
    }
}

/// Beginnings of the names of functions that launch, copy, fill or allocate, or add such work to graphs.
const WITH_SITE: [&str; 21] = [
    "hipLaunch",
    "hipExtLaunch",
    "hipModuleLaunch",
    "hipExtModuleLaunch",
    "hipHccModuleLaunch",
    "hipDrvLaunch",
    "hipGraphLaunch",
    "hipGraphAddKernelNode",
    "hipGraphAddMemcpyNode",
    "hipGraphAddMemsetNode",
    "hipDrvGraphAddMemcpyNode",
    "hipDrvGraphAddMemsetNode",
    "hipGraphAddNode",
    "hipMemcpy",
    "hipMemset",
    "hipDrvMemcpy",
    "hipMalloc",
    "hipHostMalloc",
    "hipHostAlloc",
    "hipMemAlloc",
    "hipExtMalloc",
];

/// Whether a function of this name has a site. `hipLaunchHostFunc` runs nothing on a GPU.
const fn has_site(name: &str) -> bool {
    let mut at = 0;
    while at < WITH_SITE.len() {
        if begins_with(name, WITH_SITE[at]) {
            return !begins_with(name, "hipLaunchHostFunc");
        }
        at += 1;
    }
    signature::is_same(name, "hipMemCreate")
}

pub(crate) const fn begins_with(text: &str, begin: &str) -> bool {
    let (text, begin) = (text.as_bytes(), begin.as_bytes());
    let mut at = 0;
    while at < begin.len() {
        if at == text.len() || text[at] != begin[at] {
            return false;
        }
        at += 1;
    }
    true
}

macro_rules! stream {
    (given $given:expr) => {
        $given
    };
    (none $given:expr) => {
        ArgumentLocation::None
    };
    (null $given:expr) => {
        ArgumentLocation::Null
    };
    (thread $given:expr) => {
        ArgumentLocation::PerThread
    };
    (config $given:expr) => {
        ArgumentLocation::Config
    };
}

macro_rules! table {
    ($($index:literal $op:literal $domain:ident $symbol:ident $name:literal $entry:tt $stream:ident $effect:ident $argument:ident $signature:literal $shown:literal;)*) => {
        /// Number of rows.
        pub const COUNT: usize = [$($index),*].len();

        /// What functions of RCCL do with communicators, by operation number.
        static COMMUNICATIONS: [Option<Communication>; RCCL_OPERATIONS] = {
            let mut all = [None; RCCL_OPERATIONS];
            $(
                if matches!(Domain::$domain, Domain::Rccl) {
                    const OPERATION: usize = if matches!(Domain::$domain, Domain::Rccl) { $op } else { 0 };
                    all[OPERATION] = communication($name, $signature);
                }
            )*
            all
        };

        /// All rows, by index.
        pub static FUNCTIONS: [Function; COUNT] = [$(
            const {
                let moves = moves($name);
                let parameters = parameters($signature, stringify!($argument));
                Function {
                    symbol: concat!(stringify!($symbol), "\0"),
                    name: $name,
                    op: $op,
                    domain: Domain::$domain,
                    returns: returns($signature),
                    argument: parameters.argument,
                    stream: stream!($stream parameters.stream),
                    is_per_thread: ends_with(stringify!($symbol), "_spt"),
                    effect: Effect::$effect,
                    gives: parameters.gives,
                    stack_words: parameters.stack_words,
                    moves,
                    is_event: parameters.is_event,
                    has_site: has_site($name),
                    is_special: !matches!(Effect::$effect, Effect::None | Effect::Shared | Effect::Launch)
                        || moves.is_some()
                        || communication($name, $signature).is_some(),
                }
            },
        )*];
    };
}

const fn ends_with(text: &str, end: &str) -> bool {
    match text.len().checked_sub(end.len()) {
        Some(at) => signature::is_same(text.split_at(at).1, end),
        None => false,
    }
}

functions!(table);

pub use crate::communication::{Communication, Role, communication};
pub use crate::moves::{Moves, moves};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_exceeds_the_copied_stack() {
        assert!(FUNCTIONS.iter().all(|function| function.stack_words <= STACK_WORDS));
    }

    #[test]
    fn launches_copies_and_allocations_have_sites() {
        for function in &FUNCTIONS {
            if function.effect.launches() || function.effect == Effect::Graph || function.moves.is_some() {
                assert!(function.has_site, "{}", function.name);
            }
            assert!(
                !function.has_site || function.domain == Domain::Hip,
                "{}",
                function.name
            );
        }
        let has = |name| FUNCTIONS.iter().find(|one| one.name == name).map(|one| one.has_site);
        for name in [
            "hipMalloc",
            "hipHostMalloc",
            "hipMallocAsync",
            "hipMemcpy3D",
            "hipGraphLaunch",
        ] {
            assert_eq!(has(name), Some(true), "{name}");
        }
        for name in [
            "hipFree",
            "hipLaunchHostFunc",
            "hipStreamSynchronize",
            "hipEventRecord",
            "hipMemGetInfo",
        ] {
            assert_eq!(has(name), Some(false), "{name}");
        }
    }

    #[test]
    fn event_functions_record_the_event() {
        let found = FUNCTIONS.iter().filter(|function| function.is_event);
        let mut names: Vec<&str> = found.map(|function| function.name).collect();
        names.sort_unstable();
        let expected = [
            "hipEventRecord",
            "hipEventRecordWithFlags",
            "hipEventRecord_spt",
            "hipStreamWaitEvent",
            "hipStreamWaitEvent_spt",
        ];
        assert_eq!(names, expected);
        let row = |name| FUNCTIONS.iter().find(|function| function.name == name);
        let place = |name| row(name).map(|function| function.argument);
        assert_eq!(place("hipEventRecord"), Some(ArgumentLocation::Register(0)));
        assert_eq!(place("hipStreamWaitEvent"), Some(ArgumentLocation::Register(1)));
    }

    #[test]
    fn per_thread_functions_use_the_threads_null_stream() {
        let row = |name| FUNCTIONS.iter().find(|function| function.name == name);
        assert!(row("hipMemcpyAsync_spt").is_some_and(|function| function.is_per_thread));
        assert!(row("hipMemcpyAsync").is_some_and(|function| !function.is_per_thread));
    }
}
