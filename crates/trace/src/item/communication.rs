//! Communication by RCCL and MPI: communicators and the calls on them.

use super::{Nanos, ProcessId, Span, StreamId, ThreadId};
use serde::{Deserialize, Serialize};

/// What happened to a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommunicatorState {
    /// Created from a unique id.
    #[default]
    Created,
    /// Created for all ranks in one process.
    All,
    /// Split from another communicator.
    Split,
    /// Another communicator without some of its ranks.
    Shrunk,
    /// First seen in use: its creation was not recorded, or its handle is garbage.
    Seen,
    /// Released.
    Released,
}

/// A communicator of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Communicator {
    /// Process that has it.
    pub process: ProcessId,
    /// Number in this process.
    pub number: u32,
    /// Whether it is one of MPI, not of RCCL.
    pub is_mpi: bool,
    /// Whether another job's communicator may have the same identity.
    pub is_ambiguous: bool,
    /// Identity, the same in all processes of the communicator; `None` if unknown.
    pub identity: Option<u64>,
    /// Rank of the process in it, if known.
    pub rank: Option<u32>,
    /// Number of ranks, if known.
    pub size: Option<u32>,
    /// What happened to it.
    pub state: CommunicatorState,
    /// When.
    pub at: Nanos,
}

/// An operation of RCCL, whatever its function is called, or a function of MPI that is matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operation {
    /// All ranks get what all ranks have.
    AllGather,
    /// All ranks get the reduction.
    #[default]
    AllReduce,
    /// Each rank sends a part to each.
    AllToAll,
    /// The same with a size for each pair.
    AllToAllv,
    /// All ranks get what the root has.
    Broadcast,
    /// The root gets what all ranks have.
    Gather,
    /// The root gets the reduction.
    Reduce,
    /// Each rank gets a part of the reduction.
    ReduceScatter,
    /// Each rank gets a part of what the root has.
    Scatter,
    /// One rank sends to another.
    Send,
    /// One rank receives from another.
    Receive,
    /// `MPI_Barrier`.
    MpiBarrier,
    /// `MPI_Bcast`.
    MpiBcast,
    /// `MPI_Gather`.
    MpiGather,
    /// `MPI_Gatherv`.
    MpiGatherv,
    /// `MPI_Scatter`.
    MpiScatter,
    /// `MPI_Scatterv`.
    MpiScatterv,
    /// `MPI_Allgather`.
    MpiAllgather,
    /// `MPI_Allgatherv`.
    MpiAllgatherv,
    /// `MPI_Alltoall`.
    MpiAlltoall,
    /// `MPI_Alltoallv`.
    MpiAlltoallv,
    /// `MPI_Alltoallw`.
    MpiAlltoallw,
    /// `MPI_Reduce`.
    MpiReduce,
    /// `MPI_Allreduce`.
    MpiAllreduce,
    /// `MPI_Reduce_scatter`.
    MpiReduceScatter,
    /// `MPI_Reduce_scatter_block`.
    MpiReduceScatterBlock,
    /// `MPI_Scan`.
    MpiScan,
    /// `MPI_Exscan`.
    MpiExscan,
    /// `MPI_Send`.
    MpiSend,
    /// `MPI_Bsend`.
    MpiBsend,
    /// `MPI_Ssend`.
    MpiSsend,
    /// `MPI_Rsend`.
    MpiRsend,
    /// `MPI_Isend`.
    MpiIsend,
    /// `MPI_Ibsend`.
    MpiIbsend,
    /// `MPI_Issend`.
    MpiIssend,
    /// `MPI_Irsend`.
    MpiIrsend,
    /// `MPI_Recv`.
    MpiRecv,
    /// `MPI_Irecv`.
    MpiIrecv,
    /// `MPI_Mprobe`.
    MpiMprobe,
    /// `MPI_Improbe`.
    MpiImprobe,
    /// `MPI_Sendrecv`.
    MpiSendrecv,
    /// `MPI_Sendrecv_replace`.
    MpiSendrecvReplace,
    /// The end of a group: what it contains starts now.
    GroupEnd,
    /// The call with the same correlation id failed and takes no part.
    Withdrawn,
}

impl Operation {
    /// The operations that move data, by their numbers.
    const ALL: [Self; 42] = [
        Self::AllGather,
        Self::AllReduce,
        Self::AllToAll,
        Self::AllToAllv,
        Self::Broadcast,
        Self::Gather,
        Self::Reduce,
        Self::ReduceScatter,
        Self::Scatter,
        Self::Send,
        Self::Receive,
        Self::MpiBarrier,
        Self::MpiBcast,
        Self::MpiGather,
        Self::MpiGatherv,
        Self::MpiScatter,
        Self::MpiScatterv,
        Self::MpiAllgather,
        Self::MpiAllgatherv,
        Self::MpiAlltoall,
        Self::MpiAlltoallv,
        Self::MpiAlltoallw,
        Self::MpiReduce,
        Self::MpiAllreduce,
        Self::MpiReduceScatter,
        Self::MpiReduceScatterBlock,
        Self::MpiScan,
        Self::MpiExscan,
        Self::MpiSend,
        Self::MpiBsend,
        Self::MpiSsend,
        Self::MpiRsend,
        Self::MpiIsend,
        Self::MpiIbsend,
        Self::MpiIssend,
        Self::MpiIrsend,
        Self::MpiRecv,
        Self::MpiIrecv,
        Self::MpiMprobe,
        Self::MpiImprobe,
        Self::MpiSendrecv,
        Self::MpiSendrecvReplace,
    ];

    /// The operation with this number, the inverse of `as`; AllReduce if there is none.
    pub fn of_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// The collective of MPI at this place in `mpi::COLLECTIVES`.
    pub fn of_mpi(at: u16) -> Option<Self> {
        let all = Self::ALL.get(Self::MpiBarrier as usize..=Self::MpiExscan as usize)?;
        all.get(usize::from(at)).copied()
    }

    /// The function of MPI of this name that sends, receives or takes a message.
    pub fn of_message(name: &str) -> Option<Self> {
        let all = Self::ALL.get(Self::MpiSend as usize..)?;
        all.iter().find(|known| known.name() == name).copied()
    }

    /// Whether it is a function of MPI that receives or takes a message.
    pub const fn receives(self) -> bool {
        matches!(
            self,
            Self::MpiRecv | Self::MpiIrecv | Self::MpiMprobe | Self::MpiImprobe
        )
    }

    /// Whether it is a function of MPI that returns when the message has been received, or another rank has begun to receive
    /// it. `MPI_Sendrecv` returns when two messages have; of which one it waited for, nobody knows.
    pub const fn awaits_message(self) -> bool {
        matches!(
            self,
            Self::MpiSend | Self::MpiSsend | Self::MpiRsend | Self::MpiRecv | Self::MpiMprobe
        )
    }

    /// Whether it is a function of MPI.
    pub const fn is_mpi(self) -> bool {
        Self::MpiBarrier as u32 <= self as u32 && self as u32 <= Self::MpiSendrecvReplace as u32
    }

    /// Whether it is a function of MPI for messages.
    pub const fn is_message(self) -> bool {
        Self::MpiSend as u32 <= self as u32 && self as u32 <= Self::MpiSendrecvReplace as u32
    }

    /// Name as RCCL or MPI has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllGather => "AllGather",
            Self::AllReduce => "AllReduce",
            Self::AllToAll => "AllToAll",
            Self::AllToAllv => "AllToAllv",
            Self::Broadcast => "Broadcast",
            Self::Gather => "Gather",
            Self::Reduce => "Reduce",
            Self::ReduceScatter => "ReduceScatter",
            Self::Scatter => "Scatter",
            Self::Send => "Send",
            Self::Receive => "Recv",
            Self::MpiBarrier => "MPI_Barrier",
            Self::MpiBcast => "MPI_Bcast",
            Self::MpiGather => "MPI_Gather",
            Self::MpiGatherv => "MPI_Gatherv",
            Self::MpiScatter => "MPI_Scatter",
            Self::MpiScatterv => "MPI_Scatterv",
            Self::MpiAllgather => "MPI_Allgather",
            Self::MpiAllgatherv => "MPI_Allgatherv",
            Self::MpiAlltoall => "MPI_Alltoall",
            Self::MpiAlltoallv => "MPI_Alltoallv",
            Self::MpiAlltoallw => "MPI_Alltoallw",
            Self::MpiReduce => "MPI_Reduce",
            Self::MpiAllreduce => "MPI_Allreduce",
            Self::MpiReduceScatter => "MPI_Reduce_scatter",
            Self::MpiReduceScatterBlock => "MPI_Reduce_scatter_block",
            Self::MpiScan => "MPI_Scan",
            Self::MpiExscan => "MPI_Exscan",
            Self::MpiSend => "MPI_Send",
            Self::MpiBsend => "MPI_Bsend",
            Self::MpiSsend => "MPI_Ssend",
            Self::MpiRsend => "MPI_Rsend",
            Self::MpiIsend => "MPI_Isend",
            Self::MpiIbsend => "MPI_Ibsend",
            Self::MpiIssend => "MPI_Issend",
            Self::MpiIrsend => "MPI_Irsend",
            Self::MpiRecv => "MPI_Recv",
            Self::MpiIrecv => "MPI_Irecv",
            Self::MpiMprobe => "MPI_Mprobe",
            Self::MpiImprobe => "MPI_Improbe",
            Self::MpiSendrecv => "MPI_Sendrecv",
            Self::MpiSendrecvReplace => "MPI_Sendrecv_replace",
            Self::GroupEnd => "GroupEnd",
            Self::Withdrawn => "Withdrawn",
        }
    }
}

/// Type of the elements, an `ncclDataType_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Datatype(pub u8);

impl Datatype {
    const NAMES: [(&'static str, u64); 12] = [
        ("int8", 1),
        ("uint8", 1),
        ("int32", 4),
        ("uint32", 4),
        ("int64", 8),
        ("uint64", 8),
        ("float16", 2),
        ("float32", 4),
        ("float64", 8),
        ("bfloat16", 2),
        ("fp8_e4m3", 1),
        ("fp8_e5m2", 1),
    ];

    /// Name, if the number is known.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::from(self.0)).map(|known| known.0)
    }

    /// Bytes of an element, if the number is known.
    pub fn bytes(self) -> Option<u64> {
        Self::NAMES.get(usize::from(self.0)).map(|known| known.1)
    }
}

/// A call that communicates, or the end of a group of them. Of MPI, elements have no type, and their number is that of
/// calls with one for all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communication {
    /// Process that called.
    pub process: ProcessId,
    /// Thread that called.
    pub thread: ThreadId,
    /// Correlation id of the call.
    pub correlation: u64,
    /// Enter of the call.
    pub start: Nanos,
    /// Number of the communicator in this process; 0 none.
    pub communicator: u32,
    /// Operation.
    pub operation: Operation,
    /// Number in the communicator, from 1: of its collectives, or of what goes to or comes from this peer; 0 unknown.
    pub sequence: u32,
    /// Number of elements; 0 if the call has several counts.
    pub count: u64,
    /// Type of the elements.
    pub datatype: Datatype,
    /// `ncclRedOp_t`; 255 for none or one of the program's.
    pub reduction: u8,
    /// Root or peer, if any.
    pub peer: Option<u32>,
    /// Stream, if known.
    pub stream: Option<StreamId>,
    /// The group of the thread that contains the call, 0 none.
    pub group: u32,
}

/// What a call of MPI means for the messages of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// MPI begins: no message came before.
    Begins,
    /// MPI ends: no message comes after.
    Ends,
    /// It sends.
    Sends,
    /// It receives, or takes a message that is received later.
    Receives,
    /// It sends, and receives a message that is not known.
    Exchanges,
    /// It sends or receives, or may: what, is not known.
    #[default]
    Unknown,
}

/// A call of MPI that has to do with messages, after its return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What it means.
    pub act: Act,
    /// Process that called.
    pub process: ProcessId,
    /// Thread that called.
    pub thread: ThreadId,
    /// Correlation id of the call.
    pub correlation: u64,
    /// Time of the call.
    pub span: Span,
    /// Its function, if it sends or receives.
    pub operation: Operation,
    /// Number of the communicator in this process.
    pub communicator: u32,
    /// The other rank, or that of any ([`ANY`](roctop_ring::record::mpi::ANY)).
    pub peer: i32,
    /// The tag, or any.
    pub tag: i32,
    /// Bytes that are sent, or room for them.
    pub bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_their_numbers() {
        for operation in Operation::ALL {
            assert_eq!(Operation::of_number(operation as u32), operation);
            assert_eq!(operation.is_mpi(), operation.name().starts_with("MPI_"));
        }
        let of_mpi: Vec<_> = (0..99).map_while(Operation::of_mpi).map(Operation::name).collect();
        assert_eq!(of_mpi, roctop_ring::record::mpi::COLLECTIVES);
        assert_eq!(Operation::of_message("MPI_Recv"), Some(Operation::MpiRecv));
        let others = ["MPI_Barrier", "MPI_Wait", "Send", "MPI_Mrecv"].map(Operation::of_message);
        assert_eq!(others, [None; 4]);
    }
}
