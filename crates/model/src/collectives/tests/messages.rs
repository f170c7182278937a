//! Messages of MPI: which receive takes which message, who waits, and when that is not known.

use super::*;
use roctop_ring::record::mpi::{ANY, NO_RANK};
use roctop_trace::item::{Act, Message, ThreadId};

/// Ranks with a thread each, in one communicator.
struct Ranks {
    collectives: Collectives,
    correlation: u64,
}

/// A call: rank, what, other rank, tag, begin and end, ms.
type Call = (u32, Operation, i32, i32, u64, u64);

use Operation::{MpiIrecv as Irecv, MpiIsend as Isend, MpiRecv as Recv, MpiSend as Send, MpiSendrecv as Sendrecv};

impl Ranks {
    fn new(ranks: u32) -> Self {
        let mut new = Self {
            collectives: Collectives::keeping_all(),
            correlation: 0,
        };
        for rank in 0..ranks {
            new.collectives.communicator(&Communicator {
                process: ProcessId(rank),
                number: 1,
                is_mpi: true,
                identity: Some(9),
                rank: Some(rank),
                size: Some(ranks),
                ..Communicator::default()
            });
            new.act(Act::Begins, rank);
        }
        new
    }

    fn act(&mut self, act: Act, rank: u32) {
        self.collectives.message(&Message {
            act,
            process: ProcessId(rank),
            thread: ThreadId(rank),
            ..Message::default()
        });
    }

    fn call(&mut self, (rank, operation, peer, tag, begin, end): Call) {
        self.correlation += 1;
        let act = match operation {
            Sendrecv => Act::Exchanges,
            receive if receive.receives() => Act::Receives,
            _ => Act::Sends,
        };
        self.collectives.message(&Message {
            act,
            process: ProcessId(rank),
            thread: ThreadId(rank),
            correlation: self.correlation,
            span: Span {
                begin: begin * MS,
                end: end * MS,
            },
            operation,
            communicator: 1,
            peer,
            tag,
            bytes: Some(8),
        });
    }

    /// The messages that were matched since the last time: sender's and receiver's begin and wait, ms, and for whom the
    /// latter waited.
    fn matched(&mut self) -> Vec<[(u64, u64); 2]> {
        let done = self.collectives.take_done();
        let of = |part: &Part| (part.call.start / MS, part.wait.nanos / MS);
        let both = done
            .iter()
            .map(|(message, _)| [of(&message.parts[0]), of(&message.parts[1])]);
        both.collect()
    }

    fn all(mut self, calls: &[Call]) -> Vec<[(u64, u64); 2]> {
        for call in calls {
            self.call(*call);
        }
        self.matched()
    }
}

#[test]
fn a_receive_waits_for_its_sender_and_a_send_for_its_receiver() {
    // Late sender: from 10 to 30.
    let late = Ranks::new(2).all(&[(1, Recv, 0, 5, 10, 31), (0, Send, 1, 5, 30, 31)]);
    assert_eq!(late, [[(30, 0), (10, 20)]]);
    // Late receiver: the send is there until the receive begins.
    let late = Ranks::new(2).all(&[(0, Send, 1, 5, 10, 41), (1, Recv, 0, 5, 40, 41)]);
    assert_eq!(late, [[(10, 30), (40, 0)]]);
    // It has gone before the receiver comes.
    let eager = Ranks::new(2).all(&[(0, Send, 1, 5, 10, 11), (1, Recv, 0, 5, 40, 41)]);
    assert_eq!(eager, [[(10, 0), (40, 0)]]);
    // Calls that return at once wait for nobody; the others wait for them.
    let posted = Ranks::new(2).all(&[(1, Recv, 0, 5, 10, 31), (0, Isend, 1, 5, 30, 31)]);
    assert_eq!(posted, [[(30, 0), (10, 20)]]);
    let posted = Ranks::new(2).all(&[(1, Irecv, 0, 5, 10, 32), (0, Send, 1, 5, 30, 31)]);
    assert_eq!(posted, [[(30, 0), (10, 0)]]);
}

#[test]
fn functions_that_wait_have_a_row_with_their_longest_wait() {
    let mut ranks = Ranks::new(3);
    for call in [
        (0, Send, 1, 5, 30, 31),
        (1, Recv, 0, 5, 10, 31),
        (2, Isend, 1, 5, 50, 51),
        (1, Recv, 2, 5, 32, 51),
    ] {
        ranks.call(call);
    }
    let values = ranks.collectives.values(60 * MS);
    let rows: Vec<_> = values
        .operations
        .iter()
        .map(|row| (row.operation, row.count, row.max_wait))
        .collect();
    assert_eq!(rows, [(Send, 1, (0, 0)), (Recv, 2, (20 * MS, 1))]);
    assert_eq!(values.operations[1].last, [(0, 1), (2, 1)].into());
    let waits: Vec<_> = values
        .recent
        .iter()
        .map(|(message, _)| message.parts[1].wait.rank)
        .collect();
    assert_eq!((waits, values.unmatched), (vec![Some(0), Some(2)], 0));
}

#[test]
fn tags_and_order_decide_and_not_when_records_come() {
    let calls = [
        (0, Send, 1, 1, 10, 11),
        (0, Send, 1, 2, 12, 13),
        (0, Send, 1, 1, 14, 15),
        (1, Recv, 0, 2, 20, 21),
        (1, Recv, 0, ANY, 22, 23),
        (1, Recv, 0, 1, 24, 25),
    ];
    let right = [(10, 22), (12, 20), (14, 24)];
    // Each rank's calls come in their order; those of several in any.
    for mixed in [[0, 1, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2], [3, 0, 4, 1, 5, 2]] {
        let found = Ranks::new(2).all(&mixed.map(|at: usize| calls[at]));
        let mut found: Vec<_> = found.iter().map(|[sent, taken]| (sent.0, taken.0)).collect();
        found.sort_unstable();
        assert_eq!(found, right, "{mixed:?}");
    }
}

#[test]
fn any_source_is_matched_where_one_rank_alone_had_sent() {
    let mut ranks = Ranks::new(3);
    ranks.call((0, Recv, ANY, ANY, 10, 31));
    ranks.call((1, Send, 0, 7, 30, 31));
    ranks.act(Act::Ends, 1);
    assert!(ranks.matched().is_empty(), "rank 2 may have sent before");
    ranks.call((2, Send, 0, 7, 40, 41));
    assert_eq!(ranks.matched(), [[(30, 0), (10, 20)]]);
    ranks.call((0, Recv, 2, 7, 42, 43));
    assert_eq!(ranks.matched(), [[(40, 0), (42, 0)]]);
}

#[test]
fn several_messages_to_any_source_settle_without_a_match() {
    let mut ranks = Ranks::new(3);
    ranks.call((1, Send, 0, 7, 10, 11));
    ranks.call((2, Send, 0, 7, 10, 11));
    ranks.call((0, Recv, ANY, 7, 20, 21));
    ranks.call((0, Recv, ANY, 7, 22, 23));
    ranks.call((0, Recv, 2, 7, 24, 51));
    ranks.call((1, Send, 0, 8, 60, 61));
    ranks.call((2, Send, 0, 7, 50, 51));
    ranks.act(Act::Ends, 2);
    assert_eq!(ranks.matched(), [[(50, 0), (24, 26)]]);
    assert_eq!(ranks.collectives.values(70 * MS).unmatched, 4);
}

#[test]
fn after_a_call_that_is_not_known_nothing_is_matched() {
    let after = |spoil: &dyn Fn(&mut Ranks)| {
        let mut ranks = Ranks::new(2);
        ranks.call((0, Send, 1, 5, 10, 11));
        ranks.call((1, Recv, 0, 5, 10, 11));
        spoil(&mut ranks);
        ranks.call((0, Send, 1, 5, 20, 21));
        ranks.call((1, Recv, 0, 5, 20, 21));
        ranks.matched().len()
    };
    assert_eq!(after(&|_| {}), 2);
    // A call that failed, or of a persistent request; lost records.
    assert_eq!(after(&|ranks| ranks.act(Act::Unknown, 0)), 1);
    assert_eq!(after(&|ranks| ranks.act(Act::Unknown, 1)), 1);
    assert_eq!(after(&|ranks| ranks.collectives.misses_calls(ProcessId(1))), 1);
    // What the second half of it receives is not known; what it sends is.
    for peer in [0, NO_RANK] {
        assert_eq!(after(&|ranks| ranks.call((1, Sendrecv, peer, 5, 12, 13))), 1);
    }
    // It may be the next message or the one after, and has not ended with its call.
    assert_eq!(after(&|ranks| ranks.call((1, Irecv, ANY, 5, 12, 13))), 1);
    // Without MPI's start, there may have been messages before.
    let mut late = Ranks::new(2);
    late.collectives.messages = Messages::default();
    assert!(late.all(&[(0, Send, 1, 5, 10, 11), (1, Recv, 0, 5, 10, 11)]).is_empty());
}

#[test]
fn two_threads_have_no_order() {
    let mut ranks = Ranks::new(2);
    ranks.call((0, Send, 1, 5, 10, 11));
    ranks.collectives.message(&Message {
        act: Act::Sends,
        process: ProcessId(0),
        thread: ThreadId(7),
        span: Span {
            begin: 10 * MS,
            end: 12 * MS,
        },
        operation: Send,
        communicator: 1,
        peer: 1,
        tag: 5,
        ..Message::default()
    });
    ranks.call((1, Recv, 0, 5, 20, 21));
    ranks.call((1, Recv, 0, 5, 22, 23));
    assert_eq!(ranks.matched().len(), 1);
}

#[test]
fn what_cannot_be_is_no_match() {
    // It ended before the message was sent: calls are missing that nobody counted.
    let mut ranks = Ranks::new(2);
    ranks.call((1, Recv, 0, 5, 10, 11));
    ranks.call((0, Send, 1, 5, 30, 31));
    ranks.call((0, Send, 1, 5, 32, 33));
    ranks.call((1, Recv, 0, 5, 34, 35));
    assert!(ranks.matched().is_empty());
    assert_eq!(ranks.collectives.values(40 * MS).unmatched, 4);
}
