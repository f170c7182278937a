//! The fields of the filter language.

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number without unit.
    Plain,
    /// A time.
    Time,
    /// A size.
    Bytes,
    /// A bandwidth.
    Bandwidth,
    /// A text.
    Text,
}

macro_rules! fields {
    ($($Name:ident $word:literal $kind:ident $help:literal)*) => {
        /// A field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $(#[doc = $help] $Name,)*
            /// `total` with a percent sign: share of the whole.
            Share,
        }

        impl Field {
            /// All fields, each with a short help text.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$Name, $word, $help),)*];

            /// Type of its value.
            pub const fn kind(self) -> Kind {
                match self {
                    $(Self::$Name => Kind::$kind,)*
                    Self::Share => Kind::Plain,
                }
            }

            /// Whether each launch, copy or call of a row has its own value.
            pub const fn is_of_each(self) -> bool {
                matches!(
                    self,
                    Self::Dur | Self::Qdly | Self::Bytes | Self::Bw | Self::Err | Self::Grid | Self::Wg | Self::Lds | Self::Scratch
                        | Self::Occ | Self::Limit | Self::Fill | Self::Tid | Self::Thread | Self::Site | Self::File
                ) || self.is_of_place()
            }

            /// Whether it is a number of the whole row that a launch, copy, call or range belongs to.
            pub const fn is_of_row(self) -> bool {
                matches!(
                    self,
                    Self::Calls | Self::Total | Self::Share | Self::Avg | Self::Min | Self::Max | Self::P50 | Self::P95
                        | Self::P99
                )
            }

            /// Whether it names a place of execution: GPU, queue, stream, process.
            pub const fn is_of_place(self) -> bool {
                matches!(self, Self::Dev | Self::Stream | Self::Queue | Self::Pid | Self::Rank)
            }

            /// Whether it names a place's process or GPU.
            pub const fn is_of_owner(self) -> bool {
                matches!(self, Self::Dev | Self::Pid | Self::Rank)
            }

            /// The field of this name.
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().find(|field| field.1 == word).map(|field| field.0)
            }

            /// Its name in a filter.
            pub fn word(self) -> &'static str {
                Self::ALL.iter().find(|field| field.0 == self).map_or("total", |field| field.1)
            }
        }
    };
}

fields! {
    Name "name" Text "name of a kernel, operation, marker or process"
    Mangled "mangled" Text "mangled name of a kernel"
    Dur "dur" Time "duration of one call, kernel, copy or range"
    Dev "dev" Plain "number of the GPU"
    Stream "stream" Plain "number of the stream"
    Queue "queue" Plain "number of the queue"
    Pid "pid" Plain "process id"
    Rank "rank" Plain "MPI rank"
    Tid "tid" Plain "thread id"
    Thread "thread" Text "name of the thread"
    Dir "dir" Text "direction of a copy: h2d, d2h, d2d, h2h, fill"
    Engine "engine" Text "engine of a copy: sdma, blit, call (the call that made it)"
    Bytes "bytes" Bytes "size of a copy"
    Bw "bw" Bandwidth "bandwidth of a copy"
    Err "err" Plain "errors returned"
    Domain "domain" Text "domain of an operation: hip, hsa_core, marker"
    Lds "lds" Bytes "LDS of a work-group"
    Vgpr "vgpr" Plain "VGPRs of a work-item"
    Sgpr "sgpr" Plain "SGPRs of a wave"
    Scratch "scratch" Bytes "scratch of a work-item"
    Spills "spills" Plain "registers that the compiler spilled"
    Occ "occ" Plain "wave slots that resources allow, %"
    Limit "limit" Text "what allows no more waves: VGPR, SGPR, LDS, wg, waves, barriers"
    Fill "fill" Plain "places of all rounds that the grid fills, %"
    Grid "grid" Plain "work-items of the grid"
    Wg "wg" Plain "work-items of a work-group"
    Site "site" Text "functions on the way to the call"
    File "file" Text "source files on the way to the call"
    Qdly "qdly" Time "time from submit to begin"
    Calls "calls" Plain "how often"
    Total "total" Time "sum of the durations; with % the share"
    Avg "avg" Time "mean"
    Min "min" Time "shortest"
    Max "max" Time "longest"
    P50 "p50" Time "median"
    P95 "p95" Time "95th percentile"
    P99 "p99" Time "99th percentile"
}
