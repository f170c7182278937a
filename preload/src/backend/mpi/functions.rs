//! The functions of MPI that are recorded, and what their arguments mean. A row's number is its operation in records:
//! rows are appended only.

use std::ffi::CStr;

/// How much data a call moves, by its arguments. Numbers are those of arguments, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// Not known from the arguments, or none.
    None,
    /// Elements of a type.
    Elements {
        /// Argument with their number.
        count: u8,
        /// Argument with their type.
        datatype: u8,
    },
    /// As `Elements`, unless the buffer is `MPI_IN_PLACE`: then the other side's.
    Either {
        /// Argument that may be `MPI_IN_PLACE`.
        buffer: u8,
        /// Number and type.
        usual: [u8; 2],
        /// Number and type in place; `None`: they are several.
        in_place: Option<[u8; 2]>,
    },
}

/// How a test says that it found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is no test.
    Certain,
    /// This argument points to a number: 0 for nothing.
    At(u8),
}

/// What a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Nothing.
    Nothing,
    /// The communicator whose handle is where the first argument points.
    Communicator,
    /// MPI.
    Mpi,
}

/// A communicator that a call makes of another one, if all ranks of that one make it in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Makes {
    /// None, or one of which other ranks need not know.
    Nothing,
    /// One for all ranks, whose handle is stored where this argument points.
    One(u8),
    /// One for each number that ranks pass in this argument, stored where the other one points.
    Several {
        /// Argument with the number.
        color: u8,
        /// Argument with the place of the handle.
        place: u8,
    },
}

/// Whose name of a function it is, and who calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// The name of C.
    C,
    /// A name of Fortran: arguments are addresses, a return code is stored in the last one, and nothing is returned.
    Fortran,
    /// The name of C, in a library that has the functions of Fortran and calls those of C for them.
    Inside,
}

impl Binding {
    pub(super) const ALL: [Self; 3] = [Self::C, Self::Fortran, Self::Inside];
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    pub(super) name: &'static CStr,
    /// Number of its arguments, all of them words.
    pub(super) words: u8,
    pub(super) data: Data,
    /// Whether each rank of the communicator gives or gets that much.
    pub(super) is_by_rank: bool,
    pub(super) communicator: Option<u8>,
    pub(super) peer: Option<u8>,
    pub(super) tag: Option<u8>,
    pub(super) root: Option<u8>,
    pub(super) operator: Option<u8>,
    pub(super) outcome: Outcome,
    pub(super) ends: Ends,
    /// Its place in `mpi::COLLECTIVES` plus one; 0 if it is not matched across ranks.
    pub(super) collective: u8,
    /// What it makes for all ranks of its communicator.
    pub(super) makes: Makes,
    /// Whether its calls are recorded, and not only watched.
    pub(super) is_recorded: bool,
}

const fn row(name: &'static CStr, words: u8) -> Function {
    Function {
        name,
        words,
        data: Data::None,
        is_by_rank: false,
        communicator: None,
        peer: None,
        tag: None,
        root: None,
        operator: None,
        outcome: Outcome::Certain,
        ends: Ends::Nothing,
        collective: 0,
        makes: Makes::Nothing,
        is_recorded: true,
    }
}

impl Function {
    const fn data(mut self, count: u8, datatype: u8) -> Self {
        self.data = Data::Elements { count, datatype };
        self
    }
    const fn either(mut self, buffer: u8, usual: [u8; 2], in_place: Option<[u8; 2]>) -> Self {
        self.data = Data::Either {
            buffer,
            usual,
            in_place,
        };
        self
    }
    const fn by_rank(mut self) -> Self {
        self.is_by_rank = true;
        self
    }
    const fn comm(mut self, at: u8) -> Self {
        self.communicator = Some(at);
        self
    }
    const fn peer(mut self, at: u8) -> Self {
        self.peer = Some(at);
        self
    }
    const fn tag(mut self, at: u8) -> Self {
        self.tag = Some(at);
        self
    }
    const fn root(mut self, at: u8) -> Self {
        self.root = Some(at);
        self
    }
    const fn operator(mut self, at: u8) -> Self {
        self.operator = Some(at);
        self
    }
    const fn tests(mut self, at: u8) -> Self {
        self.outcome = Outcome::At(at);
        self
    }
    const fn ends(mut self, what: Ends) -> Self {
        self.ends = what;
        self
    }
    const fn makes(mut self, what: Makes) -> Self {
        self.makes = what;
        self
    }
    const fn matched(mut self, number: u8) -> Self {
        self.collective = number;
        self
    }
    const fn watched(mut self) -> Self {
        self.is_recorded = false;
        self
    }
    /// A message: buffer, count, type, peer, tag, communicator.
    const fn message(self) -> Self {
        self.data(1, 2).peer(3).tag(4).comm(5)
    }
}

/// All functions.
pub(super) static FUNCTIONS: [Function; 133] = [
    row(c"MPI_Init", 2),
    row(c"MPI_Init_thread", 4),
    row(c"MPI_Finalize", 0).ends(Ends::Mpi),
    row(c"MPI_Send", 6).message(),
    row(c"MPI_Bsend", 6).message(),
    row(c"MPI_Ssend", 6).message(),
    row(c"MPI_Rsend", 6).message(),
    row(c"MPI_Isend", 7).message(),
    row(c"MPI_Ibsend", 7).message(),
    row(c"MPI_Issend", 7).message(),
    row(c"MPI_Irsend", 7).message(),
    row(c"MPI_Recv", 7).message(),
    row(c"MPI_Irecv", 7).message(),
    row(c"MPI_Sendrecv", 12).data(1, 2).peer(3).tag(4).comm(10),
    row(c"MPI_Sendrecv_replace", 9).data(1, 2).peer(3).tag(4).comm(7),
    row(c"MPI_Probe", 4).peer(0).tag(1).comm(2),
    row(c"MPI_Iprobe", 5).peer(0).tag(1).comm(2).tests(3),
    row(c"MPI_Mprobe", 5).peer(0).tag(1).comm(2),
    row(c"MPI_Improbe", 6).peer(0).tag(1).comm(2).tests(3),
    row(c"MPI_Mrecv", 5),
    row(c"MPI_Imrecv", 5),
    row(c"MPI_Start", 1),
    row(c"MPI_Startall", 2),
    row(c"MPI_Wait", 2),
    row(c"MPI_Waitall", 3),
    row(c"MPI_Waitany", 4),
    row(c"MPI_Waitsome", 5),
    row(c"MPI_Test", 3).tests(1),
    row(c"MPI_Testall", 4).tests(2),
    row(c"MPI_Testany", 5).tests(3),
    row(c"MPI_Testsome", 5).tests(2),
    row(c"MPI_Barrier", 1).comm(0).matched(1),
    row(c"MPI_Ibarrier", 2).comm(0),
    row(c"MPI_Bcast", 5).data(1, 2).root(3).comm(4).matched(2),
    row(c"MPI_Ibcast", 6).data(1, 2).root(3).comm(4),
    row(c"MPI_Gather", 8)
        .either(0, [1, 2], Some([4, 5]))
        .root(6)
        .comm(7)
        .matched(3),
    row(c"MPI_Igather", 9).either(0, [1, 2], Some([4, 5])).root(6).comm(7),
    row(c"MPI_Gatherv", 9)
        .either(0, [1, 2], None)
        .root(7)
        .comm(8)
        .matched(4),
    row(c"MPI_Igatherv", 10).either(0, [1, 2], None).root(7).comm(8),
    row(c"MPI_Scatter", 8)
        .either(3, [4, 5], Some([1, 2]))
        .root(6)
        .comm(7)
        .matched(5),
    row(c"MPI_Iscatter", 9).either(3, [4, 5], Some([1, 2])).root(6).comm(7),
    row(c"MPI_Scatterv", 9)
        .either(4, [5, 6], None)
        .root(7)
        .comm(8)
        .matched(6),
    row(c"MPI_Iscatterv", 10).either(4, [5, 6], None).root(7).comm(8),
    row(c"MPI_Allgather", 7)
        .either(0, [1, 2], Some([4, 5]))
        .comm(6)
        .matched(7),
    row(c"MPI_Iallgather", 8).either(0, [1, 2], Some([4, 5])).comm(6),
    row(c"MPI_Allgatherv", 8).either(0, [1, 2], None).comm(7).matched(8),
    row(c"MPI_Iallgatherv", 9).either(0, [1, 2], None).comm(7),
    row(c"MPI_Alltoall", 7)
        .either(0, [1, 2], Some([4, 5]))
        .comm(6)
        .by_rank()
        .matched(9),
    row(c"MPI_Ialltoall", 8)
        .either(0, [1, 2], Some([4, 5]))
        .comm(6)
        .by_rank(),
    row(c"MPI_Alltoallv", 9).comm(8).matched(10),
    row(c"MPI_Ialltoallv", 10).comm(8),
    row(c"MPI_Alltoallw", 9).comm(8).matched(11),
    row(c"MPI_Ialltoallw", 10).comm(8),
    row(c"MPI_Reduce", 7).data(2, 3).operator(4).root(5).comm(6).matched(12),
    row(c"MPI_Ireduce", 8).data(2, 3).operator(4).root(5).comm(6),
    row(c"MPI_Allreduce", 6).data(2, 3).operator(4).comm(5).matched(13),
    row(c"MPI_Iallreduce", 7).data(2, 3).operator(4).comm(5),
    row(c"MPI_Reduce_scatter", 6).operator(4).comm(5).matched(14),
    row(c"MPI_Ireduce_scatter", 7).operator(4).comm(5),
    row(c"MPI_Reduce_scatter_block", 6)
        .data(2, 3)
        .operator(4)
        .comm(5)
        .by_rank()
        .matched(15),
    row(c"MPI_Ireduce_scatter_block", 7)
        .data(2, 3)
        .operator(4)
        .comm(5)
        .by_rank(),
    row(c"MPI_Scan", 6).data(2, 3).operator(4).comm(5).matched(16),
    row(c"MPI_Iscan", 7).data(2, 3).operator(4).comm(5),
    row(c"MPI_Exscan", 6).data(2, 3).operator(4).comm(5).matched(17),
    row(c"MPI_Iexscan", 7).data(2, 3).operator(4).comm(5),
    row(c"MPI_Neighbor_allgather", 7).data(1, 2).comm(6),
    row(c"MPI_Ineighbor_allgather", 8).data(1, 2).comm(6),
    row(c"MPI_Neighbor_allgatherv", 8).data(1, 2).comm(7),
    row(c"MPI_Ineighbor_allgatherv", 9).data(1, 2).comm(7),
    row(c"MPI_Neighbor_alltoall", 7).comm(6),
    row(c"MPI_Ineighbor_alltoall", 8).comm(6),
    row(c"MPI_Neighbor_alltoallv", 9).comm(8),
    row(c"MPI_Ineighbor_alltoallv", 10).comm(8),
    row(c"MPI_Neighbor_alltoallw", 9).comm(8),
    row(c"MPI_Ineighbor_alltoallw", 10).comm(8),
    row(c"MPI_Win_fence", 2),
    row(c"MPI_Win_start", 3),
    row(c"MPI_Win_complete", 1),
    row(c"MPI_Win_post", 3),
    row(c"MPI_Win_wait", 1),
    row(c"MPI_Win_test", 2).tests(1),
    row(c"MPI_Win_lock", 4).peer(1),
    row(c"MPI_Win_unlock", 2).peer(0),
    row(c"MPI_Win_lock_all", 2),
    row(c"MPI_Win_unlock_all", 1),
    row(c"MPI_Win_flush", 2).peer(0),
    row(c"MPI_Win_flush_all", 1),
    row(c"MPI_Win_flush_local", 2).peer(0),
    row(c"MPI_Win_flush_local_all", 1),
    row(c"MPI_Win_sync", 1),
    row(c"MPI_Win_create", 6).comm(4),
    row(c"MPI_Win_allocate", 6).comm(3),
    row(c"MPI_Win_free", 1),
    row(c"MPI_File_open", 5).comm(0),
    row(c"MPI_File_close", 1),
    row(c"MPI_File_read", 5).data(2, 3),
    row(c"MPI_File_write", 5).data(2, 3),
    row(c"MPI_File_read_at", 6).data(3, 4),
    row(c"MPI_File_write_at", 6).data(3, 4),
    row(c"MPI_File_read_all", 5).data(2, 3),
    row(c"MPI_File_write_all", 5).data(2, 3),
    row(c"MPI_File_read_at_all", 6).data(3, 4),
    row(c"MPI_File_write_at_all", 6).data(3, 4),
    row(c"MPI_File_read_shared", 5).data(2, 3),
    row(c"MPI_File_write_shared", 5).data(2, 3),
    row(c"MPI_File_read_ordered", 5).data(2, 3),
    row(c"MPI_File_write_ordered", 5).data(2, 3),
    row(c"MPI_File_iread", 5).data(2, 3),
    row(c"MPI_File_iwrite", 5).data(2, 3),
    row(c"MPI_File_iread_at", 6).data(3, 4),
    row(c"MPI_File_iwrite_at", 6).data(3, 4),
    row(c"MPI_File_iread_all", 5).data(2, 3),
    row(c"MPI_File_iwrite_all", 5).data(2, 3),
    row(c"MPI_File_iread_at_all", 6).data(3, 4),
    row(c"MPI_File_iwrite_at_all", 6).data(3, 4),
    row(c"MPI_File_sync", 1),
    row(c"MPI_Comm_dup", 2).comm(0).makes(Makes::One(1)),
    row(c"MPI_Comm_idup", 3).comm(0),
    row(c"MPI_Comm_split", 4)
        .comm(0)
        .makes(Makes::Several { color: 1, place: 3 }),
    row(c"MPI_Comm_split_type", 5).comm(0),
    row(c"MPI_Comm_create", 3).comm(0),
    row(c"MPI_Comm_create_group", 4).comm(0),
    row(c"MPI_Cart_create", 6).comm(0).makes(Makes::One(5)),
    row(c"MPI_Graph_create", 6).comm(0).makes(Makes::One(5)),
    row(c"MPI_Dist_graph_create", 9).comm(0),
    row(c"MPI_Dist_graph_create_adjacent", 10).comm(0),
    row(c"MPI_Intercomm_create", 6).comm(0),
    row(c"MPI_Intercomm_merge", 3).comm(0),
    row(c"MPI_Comm_free", 1).ends(Ends::Communicator),
    row(c"MPI_Comm_disconnect", 1).ends(Ends::Communicator),
    // What libraries of other languages call, in place of the functions above.
    row(c"PMPI_Comm_free", 1).ends(Ends::Communicator).watched(),
    row(c"PMPI_Comm_disconnect", 1).ends(Ends::Communicator).watched(),
    row(c"PMPI_Finalize", 0).ends(Ends::Mpi).watched(),
];

/// What Fortran adds to names, and behind that up to two underscores: `mpi_f08`, with and without descriptors of
/// arrays, and the form of a function that returns an address as one.
const ENDS: [&[u8]; 3] = [b"_f08ts", b"_f08", b"_cptr"];

/// Number of the function of this name in the imports of the program, or of a library that has functions of Fortran.
pub(super) fn named(name: &CStr, is_inside: bool) -> Option<(usize, Binding)> {
    let name = name.to_bytes();
    let number_of = |name: &[u8]| FUNCTIONS.iter().position(|function| function.name.to_bytes() == name);
    if is_inside {
        let number = number_of(name.strip_prefix(b"P").unwrap_or(name))?;
        return Some((number, Binding::Inside));
    }
    number_of(name)
        .map(|number| (number, Binding::C))
        .or_else(|| Some((number_of_fortran(name)?, Binding::Fortran)))
}

/// Number of the function of a name of Fortran, in small or large letters.
fn number_of_fortran(name: &[u8]) -> Option<usize> {
    let mut name = name;
    for end in [&b"_"[..], b"_"].iter().chain(&ENDS) {
        name = name.strip_suffix(*end).unwrap_or(name);
    }
    let is_it = |function: &Function| function.is_recorded && function.name.to_bytes().eq_ignore_ascii_case(name);
    FUNCTIONS.iter().position(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::record::mpi::COLLECTIVES;

    #[test]
    fn arguments_are_among_those_of_the_function() {
        for function in &FUNCTIONS {
            let Function {
                communicator,
                peer,
                tag,
                root,
                operator,
                ..
            } = *function;
            let data = match function.data {
                Data::None => Vec::new(),
                Data::Elements { count, datatype } => vec![count, datatype],
                Data::Either {
                    buffer,
                    usual,
                    in_place,
                } => [buffer]
                    .into_iter()
                    .chain(usual)
                    .chain(in_place.into_iter().flatten())
                    .collect(),
            };
            let outcome = match function.outcome {
                Outcome::At(at) => Some(at),
                Outcome::Certain => None,
            };
            let named = [communicator, peer, tag, root, operator, outcome].into_iter().flatten();
            let mut all: Vec<u8> = named.chain(data).collect();
            assert!(all.iter().all(|at| *at < function.words), "{:?}", function.name);
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{:?}: an argument has two meanings", function.name);
        }
    }

    #[test]
    fn names_are_distinct_and_found() {
        for (number, function) in FUNCTIONS.iter().enumerate() {
            assert_eq!(named(function.name, false), Some((number, Binding::C)));
        }
        assert_eq!(named(c"MPI_Wtime", false), None);
        let found = |name, is_inside| {
            let (number, binding) = named(name, is_inside)?;
            Some((FUNCTIONS.get(number)?.name, binding))
        };
        let of_fortran = [
            c"mpi_send_",
            c"mpi_send",
            c"mpi_send__",
            c"MPI_SEND",
            c"mpi_send_f08_",
            c"mpi_send_f08ts_",
        ];
        for name in of_fortran {
            assert_eq!(found(name, false), Some((c"MPI_Send", Binding::Fortran)), "{name:?}");
            assert_eq!(found(name, true), None, "{name:?}");
        }
        let allocate = Some((c"MPI_Win_allocate", Binding::Fortran));
        assert_eq!(found(c"mpi_win_allocate_cptr_", false), allocate);
        for name in [c"mpi_send_init_", c"mpi_send_f08ts_large_", c"MPI_Send_c", c"PMPI_Send"] {
            assert_eq!(found(name, false), None, "{name:?}");
        }
        for name in [c"MPI_Comm_free", c"PMPI_Comm_free"] {
            assert_eq!(found(name, true), Some((c"MPI_Comm_free", Binding::Inside)));
        }
        let matched = FUNCTIONS.iter().filter(|function| function.collective != 0);
        let mut matched: Vec<_> = matched.map(|function| (function.collective, function.name)).collect();
        matched.sort_unstable();
        let names = matched.iter().map(|(_, name)| name.to_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), COLLECTIVES);
    }
}
