//! What is recorded of a call of MPI: six words, in place of the registers of a call with arguments
//! ([`Arguments`](crate::arguments::Arguments)).

/// A rank or tag that is a wildcard.
pub const ANY: i32 = -1;
/// The rank of no process: `MPI_PROC_NULL`.
pub const NO_RANK: i32 = -2;
/// `MPI_ROOT`, of a call between two groups.
pub const ROOT: i32 = -3;
/// A rank or tag that the call does not have, or that is unknown.
pub const UNKNOWN: i32 = i32::MIN;
/// Number of an operator that the program made.
pub const OWN_OPERATOR: u8 = 255;
/// Number of `MPI_COMM_WORLD`.
pub const WORLD: u16 = 1;
/// Number of `MPI_COMM_SELF`.
pub const SELF: u16 = 2;
/// What is added to the number of a communicator of MPI in facts and communications: those of RCCL have numbers, too.
pub const OF_MPI: u32 = 1 << 31;
/// Operation of the first of [`COLLECTIVES`] in communications; RCCL's are below.
pub const FIRST_COLLECTIVE: u16 = 0x100;
/// Functions whose calls are matched across ranks.
pub const COLLECTIVES: [&str; 17] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Exscan",
];
/// Names of operators, by number, from 1.
pub const OPERATORS: [&str; 14] = [
    "max", "min", "sum", "prod", "land", "band", "lor", "bor", "lxor", "bxor", "minloc", "maxloc", "replace", "no_op",
];

/// Arguments of a call of MPI, and what MPI says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiCall {
    /// Number of the communicator in its process, from 1; 0 unknown.
    pub communicator: u16,
    /// Ranks of the communicator (24 bits); 0 unknown.
    pub size: u32,
    /// The process's rank in it (24 bits).
    pub rank: u32,
    /// Rank that the call sends to or receives from, [`ANY`], [`NO_RANK`] or [`UNKNOWN`].
    pub peer: i32,
    /// Root of a collective, [`ROOT`], [`NO_RANK`] or [`UNKNOWN`].
    pub root: i32,
    /// Tag of a message, [`ANY`] or [`UNKNOWN`].
    pub tag: i32,
    /// Bytes that this rank gives, or gets where it gives none.
    pub bytes: Option<u64>,
    /// Number of the operator; 0 none.
    pub operator: u8,
    /// Tests of this thread that found nothing since its last recorded call.
    pub empty_tests: u32,
}

impl Default for MpiCall {
    fn default() -> Self {
        Self {
            communicator: 0,
            size: 0,
            rank: 0,
            peer: UNKNOWN,
            root: UNKNOWN,
            tag: UNKNOWN,
            bytes: None,
            operator: 0,
            empty_tests: 0,
        }
    }
}

const fn two(low: i32, high: i32) -> u64 {
    low.cast_unsigned() as u64 | (high.cast_unsigned() as u64) << 32
}

impl MpiCall {
    /// Communicator, its size and rank as a word.
    pub const fn communicator_word(communicator: u16, size: u32, rank: u32) -> u64 {
        communicator as u64 | (size as u64 & 0xff_ffff) << 16 | (rank as u64 & 0xff_ffff) << 40
    }

    /// With communicator, size and rank from a word.
    #[must_use]
    pub const fn with_communicator(mut self, word: u64) -> Self {
        self.communicator = word as u16;
        self.size = (word >> 16) as u32 & 0xff_ffff;
        self.rank = (word >> 40) as u32;
        self
    }

    /// The words.
    pub const fn words(&self) -> [u64; 6] {
        [
            Self::communicator_word(self.communicator, self.size, self.rank),
            two(self.peer, self.root),
            two(self.tag, self.operator as i32),
            match self.bytes {
                Some(bytes) => bytes,
                None => u64::MAX,
            },
            self.empty_tests as u64,
            0,
        ]
    }

    /// Of words; total.
    pub fn of([communicator, ranks, tag, bytes, tests, _]: [u64; 6]) -> Self {
        let halves = |word: u64| [word as u32, (word >> 32) as u32].map(u32::cast_signed);
        let ([peer, root], [tag, operator]) = (halves(ranks), halves(tag));
        Self {
            peer,
            root,
            tag,
            bytes: (bytes != u64::MAX).then_some(bytes),
            operator: operator as u8,
            empty_tests: tests as u32,
            ..Self::default().with_communicator(communicator)
        }
    }

    /// Name of the operator, if it has one.
    pub fn operator_name(&self) -> Option<&'static str> {
        let at = usize::from(self.operator).checked_sub(1)?;
        OPERATORS.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_encoding() {
        let full = MpiCall {
            communicator: 0xffff,
            size: 0xff_ffff,
            rank: 0xff_fffe,
            peer: NO_RANK,
            root: 7,
            tag: -1,
            bytes: Some(1 << 40),
            operator: OWN_OPERATOR,
            empty_tests: u32::MAX,
        };
        for call in [full, MpiCall::default()] {
            assert_eq!(MpiCall::of(call.words()), call);
        }
        let _ = MpiCall::of([u64::MAX; 6]);
        assert_eq!(full.operator_name(), None);
        assert_eq!(MpiCall { operator: 3, ..full }.operator_name(), Some("sum"));
    }
}
