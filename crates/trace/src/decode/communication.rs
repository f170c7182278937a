//! Decodes communicators and the calls on them.

use super::Decoder;
use crate::item::{
    Act, ApiCall, CollectiveOperation as Operation, Communication, Communicator, CommunicatorState, Datatype, Item,
    Message, ProcessId,
};
use roctop_ring::arguments::Arguments;
use roctop_ring::record::mpi::{FIRST_COLLECTIVE, OF_MPI, UNKNOWN};
use roctop_ring::record::{self, Domain, MpiCall, communicator};

/// The operation with the number `op`. Two functions of several spellings are one operation.
fn operation(op: u16) -> Option<Operation> {
    Some(match op {
        0 => Operation::AllGather,
        1 | 37 => Operation::AllReduce,
        2 | 39 => Operation::AllToAll,
        3 | 40 => Operation::AllToAllv,
        4 | 38 => Operation::Broadcast,
        5 => Operation::Gather,
        6 => Operation::Reduce,
        7 => Operation::ReduceScatter,
        8 => Operation::Scatter,
        9 => Operation::Send,
        10 => Operation::Receive,
        14 => Operation::GroupEnd,
        communicator::WITHDRAWN => Operation::Withdrawn,
        FIRST_COLLECTIVE.. => return Operation::of_mpi(op - FIRST_COLLECTIVE),
        _ => return None,
    })
}

impl Decoder {
    pub(super) fn communicator(&mut self, process: ProcessId, fact: &record::Communicator) {
        let state = self.state(process);
        if !state.clock.is_ready() {
            state.communicator_facts.push(*fact);
            return;
        }
        self.communicator_times(process);
        self.communicator_at(process, fact);
    }

    /// Emits the communicators that waited for the clock.
    pub(super) fn communicator_times(&mut self, process: ProcessId) {
        for fact in std::mem::take(&mut self.state(process).communicator_facts) {
            self.communicator_at(process, &fact);
        }
    }

    fn communicator_at(&mut self, process: ProcessId, fact: &record::Communicator) {
        let state = match fact.state {
            communicator::CREATED => CommunicatorState::Created,
            communicator::ALL => CommunicatorState::All,
            communicator::SPLIT => CommunicatorState::Split,
            communicator::SHRUNK => CommunicatorState::Shrunk,
            communicator::RELEASED => CommunicatorState::Released,
            _ => CommunicatorState::Seen,
        };
        let item = Communicator {
            process,
            number: fact.number,
            is_mpi: fact.number & OF_MPI != 0,
            is_ambiguous: fact.is_ambiguous != 0,
            identity: (fact.identity != 0).then_some(fact.identity),
            rank: (fact.rank != u32::MAX).then_some(fact.rank),
            size: (fact.size != 0).then_some(fact.size),
            state,
            at: self.state(process).clock.ticks(fact.time),
        };
        self.items.push(Item::Communicator(item));
    }

    /// A call that communicates; `None` for an operation that this reader does not know.
    pub(super) fn communication(
        &mut self,
        process: ProcessId,
        tid: u32,
        found: &record::Communication,
    ) -> Option<Communication> {
        let stream = found
            .stream
            .checked_sub(1)
            .map(|number| self.stream_id(process, number));
        Some(Communication {
            process,
            thread: self.thread_id(process, tid, ""),
            correlation: found.correlation,
            start: self.processes[process.0 as usize].clock.ticks(found.start),
            communicator: found.communicator,
            operation: operation(found.op)?,
            sequence: found.sequence,
            count: found.count,
            datatype: Datatype(found.datatype),
            reduction: found.reduction,
            peer: u32::try_from(found.peer).ok(),
            stream,
            group: found.group,
        })
    }
}

impl Decoder {
    /// A call of MPI that has to do with messages.
    pub(super) fn message(&mut self, call: &ApiCall, op: u16, found: &Arguments) {
        let names = &self.processes[call.process.0 as usize].operation_names;
        let Some(name) = names.get(&(Domain::MPI.0, op)) else {
            return;
        };
        let known = MpiCall::of(found.registers);
        let operation = Operation::of_message(name);
        let has_failed = call.status.is_some_and(|status| status != 0);
        let is_known = known.communicator != 0 && known.peer != UNKNOWN && known.tag != UNKNOWN;
        let act = match (operation, &**name) {
            (Some(_), _) if has_failed || !is_known => Act::Unknown,
            (Some(Operation::MpiSendrecv | Operation::MpiSendrecvReplace), _) => Act::Exchanges,
            (Some(operation), _) if operation.receives() => Act::Receives,
            (Some(_), _) => Act::Sends,
            (None, "MPI_Init" | "MPI_Init_thread") => Act::Begins,
            (None, "MPI_Finalize") => Act::Ends,
            (None, "MPI_Start" | "MPI_Startall") => Act::Unknown,
            _ => return,
        };
        self.items.push(Item::Message(Message {
            act,
            process: call.process,
            thread: call.thread,
            correlation: call.correlation,
            span: call.span,
            operation: operation.unwrap_or_default(),
            communicator: OF_MPI | u32::from(known.communicator),
            peer: known.peer,
            tag: known.tag,
            bytes: known.bytes,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hip_functions::{Domain, find};

    /// Operation numbers are the rows': the same names.
    #[test]
    fn operations_are_those_of_the_rows() {
        let rows = hip_functions::ROWS.iter().filter(|row| row.domain == Domain::Rccl);
        let numbered: Vec<_> = (0..).zip(rows).collect();
        for (op, row) in &numbered {
            if let Some(found) = operation(*op) {
                let name = row.name.trim_start_matches("nccl").to_lowercase();
                let name = name.replace("bcast", "broadcast").replace("withbias", "");
                assert_eq!(name, found.name().to_lowercase());
            }
        }
        let known = (0..64).filter_map(operation).count();
        assert_eq!(known, 16);
        assert!(find("ncclAllReduce").is_some());
    }

    #[test]
    fn sizes_of_types_are_those_of_rccl() {
        let all: Vec<_> = (0..13).map(|number| Datatype(number).bytes()).collect();
        let expected = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1].map(Some);
        assert_eq!((&all[..12], all[12]), (&expected[..], None));
        assert_eq!(Datatype(7).name(), Some("float32"));
    }
}
