//! Messages of MPI, matched as MPI matches them: what a rank receives takes the first message to it, in the order of its
//! sender, that fits by communicator, source and tag. What is sent to a rank and what it receives is therefore known from
//! the order of the calls of each rank, however long they took.
//!
//! It is certain only if no call is unknown on either side, and if each process calls from one thread. From a call on that is
//! not known, nothing more of that rank is matched. A receive from any rank is matched once all ranks are known to have gone
//! beyond it, if one rank alone had sent what fits. If several had, as many messages as receives settle it: then none of
//! these is matched, and what follows is.

use super::{Collective, Collectives, Key, MAX_OPEN, Part, pack};
use crate::fx_hash::FastMap;
use roctop_ring::record::mpi::{ANY, NO_RANK};
use roctop_trace::item::{Act, Communication, Datatype, Message, Nanos, ProcessId, ThreadId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Calls of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Caller {
    /// MPI's start is recorded: there are no messages before.
    has_begun: bool,
    /// From some call on, something is not known.
    is_unknown: bool,
    /// The thread that sends and receives.
    thread: Option<ThreadId>,
    /// All calls that began before are known.
    seen: Nanos,
}

/// A message that was sent, by the rank.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u32,
    call: Message,
}

/// What is sent to a rank of a communicator, and what it receives.
#[derive(Clone, Debug, Default)]
struct Inbox {
    /// Messages that no receive has taken, in the order of each sender.
    sent: Vec<Sent>,
    /// Receives that no message has met, in their order.
    posted: Vec<Message>,
    /// Receives that have ended, of which the first is from any rank: which messages they took is not known yet.
    doubtful: Vec<Message>,
    /// Receives after these.
    later: VecDeque<Message>,
    /// Nothing more is matched.
    is_unknown: bool,
}

/// What happens to an inbox next.
enum Step {
    /// A message and a receive are the same.
    Met(Sent, Message),
    /// This many calls are not matched.
    Settled(u64),
    /// It goes on when this process has gone on; `None`: when something comes.
    Rests(Option<u32>),
    /// Nothing more is known.
    Unknown,
}

const fn takes(receive: &Message, sent: &Sent) -> bool {
    (receive.peer == ANY || receive.peer == sent.from.cast_signed())
        && (receive.tag == ANY || receive.tag == sent.call.tag)
}

impl Inbox {
    fn len(&self) -> usize {
        self.sent.len() + self.posted.len() + self.doubtful.len() + self.later.len()
    }

    /// Takes the next receive.
    fn admit(&mut self, receive: Message) -> Step {
        let blocks = receive.operation.awaits_message();
        if !self.doubtful.is_empty() || receive.peer == ANY {
            self.doubtful.push(receive);
            return if blocks { Step::Settled(0) } else { Step::Unknown };
        }
        if let Some(at) = self.sent.iter().position(|sent| takes(&receive, sent)) {
            return Step::Met(self.sent.remove(at), receive);
        }
        self.posted.push(receive);
        Step::Settled(0)
    }
}

/// Messages between ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    callers: FastMap<u32, Caller>,
    /// By communicator and receiver.
    inboxes: FastMap<u64, Inbox>,
    /// Inboxes that go on when a process has gone on.
    resting: BTreeMap<u64, u32>,
    /// Number of the last message from a rank to another one, by communicator.
    sequences: FastMap<(u32, u32, u32), u32>,
    /// Communicators of processes with calls that came before they were known.
    strays: BTreeSet<u64>,
}

impl Messages {
    /// A communicator is not matched any more.
    pub(super) fn forget(&mut self, communicator: u32) -> u64 {
        let is_of_it = |key: u64| (key >> 32) as u32 == communicator;
        let all = self.inboxes.iter().filter(|(key, _)| is_of_it(**key));
        let calls = all.map(|(_, inbox)| inbox.len() as u64).sum();
        self.inboxes.retain(|key, _| !is_of_it(*key));
        self.resting.retain(|key, _| !is_of_it(*key));
        calls
    }
}

impl Collectives {
    /// A call that has to do with messages returned.
    pub fn message(&mut self, call: &Message) {
        let process = call.process.0;
        let caller = self.messages.callers.entry(process).or_default();
        match call.act {
            Act::Begins => caller.has_begun = true,
            Act::Ends => {
                caller.seen = Nanos::MAX;
                self.resume(process);
            }
            Act::Unknown => self.misses_calls(call.process),
            Act::Sends | Act::Receives | Act::Exchanges => {
                caller.is_unknown |= *caller.thread.get_or_insert(call.thread) != call.thread;
                self.passes(call);
                self.gone_on(call.process, call.thread, call.span.end);
            }
        }
    }

    /// Some calls of a process are not known from now on.
    pub fn misses_calls(&mut self, process: ProcessId) {
        self.messages.callers.entry(process.0).or_default().is_unknown = true;
        self.resume(process.0);
    }

    /// A thread has come so far: its calls until then are known.
    pub(super) fn gone_on(&mut self, process: ProcessId, thread: ThreadId, at: Nanos) {
        if let Some(caller) = self.messages.callers.get_mut(&process.0)
            && caller.thread == Some(thread)
        {
            caller.seen = caller.seen.max(at);
            self.resume(process.0);
        }
    }

    /// Continues with inboxes that rest until a process has gone on.
    fn resume(&mut self, process: u32) {
        if self.messages.resting.is_empty() {
            return;
        }
        let due = self.messages.resting.iter().filter(|(_, of)| **of == process);
        for key in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.messages.resting.remove(&key);
            self.proceed(key);
        }
    }

    fn passes(&mut self, call: &Message) {
        let own = pack(call.process.0, call.communicator);
        let Some(local) = self.locals.get(&own).copied() else {
            if self.messages.strays.len() < MAX_OPEN {
                self.messages.strays.insert(own);
            }
            return;
        };
        let is_nobody = call.peer == NO_RANK;
        if local.is_ignored || (is_nobody && call.act != Act::Exchanges) {
            self.unmatched += u64::from(local.is_ignored);
            return;
        }
        let size = self.communicators[local.communicator as usize].size;
        let is_known = self.messages.callers.get(&call.process.0);
        let is_known = is_known.is_some_and(|caller| caller.has_begun && !caller.is_unknown);
        let peer = u32::try_from(call.peer).ok().filter(|peer| *peer < size);
        let is_any = call.peer == ANY && call.act == Act::Receives;
        if !is_known || self.messages.strays.contains(&own) || (peer.is_none() && !is_any && !is_nobody) {
            // What it sends or receives later would have another number.
            self.misses_calls(call.process);
            self.unmatched += 1;
            return;
        }
        if call.act != Act::Receives
            && let Some(peer) = peer
        {
            self.sends(pack(local.communicator, peer), local.rank, call);
        }
        let inbox = pack(local.communicator, local.rank);
        match call.act {
            Act::Receives => self.receives(inbox, call),
            Act::Exchanges => self.gives_up(inbox),
            _ => {}
        }
    }

    fn sends(&mut self, key: u64, from: u32, call: &Message) {
        let inbox = self.messages.inboxes.entry(key).or_default();
        let sent = Sent { from, call: *call };
        match inbox.posted.iter().position(|receive| takes(receive, &sent)) {
            Some(at) => {
                let receive = inbox.posted.remove(at);
                self.met(key, &sent, &receive);
            }
            None if inbox.is_unknown => self.unmatched += 1,
            None => {
                inbox.sent.push(sent);
                self.bounded(key);
            }
        }
    }

    fn receives(&mut self, key: u64, call: &Message) {
        let inbox = self.messages.inboxes.entry(key).or_default();
        if inbox.is_unknown {
            self.unmatched += 1;
            return;
        }
        inbox.later.push_back(*call);
        self.proceed(key);
        self.bounded(key);
    }

    /// A rank whose messages nobody takes, as that of a program of which one rank is recorded.
    fn bounded(&mut self, key: u64) {
        if self
            .messages
            .inboxes
            .get(&key)
            .is_some_and(|inbox| inbox.len() > MAX_OPEN)
        {
            self.drops(key);
        }
    }

    /// From now on, what a rank receives is not known. Messages to receives before that still take them.
    fn gives_up(&mut self, key: u64) {
        let inbox = self.messages.inboxes.entry(key).or_default();
        let posted = std::mem::take(&mut inbox.posted);
        self.drops(key);
        self.messages.inboxes.entry(key).or_default().posted = posted;
    }

    /// Nothing more that a rank receives is known.
    fn drops(&mut self, key: u64) {
        let inbox = self.messages.inboxes.entry(key).or_default();
        self.unmatched += inbox.len() as u64;
        *inbox = Inbox {
            is_unknown: true,
            ..Inbox::default()
        };
        self.messages.resting.remove(&key);
    }

    /// Takes the receives of an inbox in their order, as far as they are certain.
    fn proceed(&mut self, key: u64) {
        loop {
            let Some(mut inbox) = self.messages.inboxes.remove(&key) else {
                return;
            };
            let step = self.step(key, &mut inbox);
            self.messages.inboxes.insert(key, inbox);
            match step {
                Step::Met(sent, receive) => self.met(key, &sent, &receive),
                Step::Settled(calls) => self.unmatched += calls,
                Step::Rests(process) => {
                    if let Some(process) = process {
                        self.messages.resting.insert(key, process);
                    }
                    return;
                }
                Step::Unknown => return self.gives_up(key),
            }
        }
    }

    fn step(&self, key: u64, inbox: &mut Inbox) -> Step {
        if inbox.is_unknown {
            return Step::Rests(None);
        }
        let Some(end) = inbox.doubtful.iter().map(|receive| receive.span.end).max() else {
            return match inbox.later.pop_front() {
                Some(receive) => inbox.admit(receive),
                None => Step::Rests(None),
            };
        };
        let own = inbox.doubtful[0].process;
        let communicator = (key >> 32) as u32;
        let row = &self.communicators[communicator as usize];
        let error = self.clocks.error(row.ranks.values().copied());
        let end = self.clocks.aligned(own, end).saturating_add(error);
        for rank in 0..row.size {
            // A rank that is not recorded may be later, and then its calls come.
            let Some(process) = row.ranks.get(&rank) else {
                return Step::Rests(Some(own.0));
            };
            let caller = self.messages.callers.get(&process.0).copied().unwrap_or_default();
            if caller.is_unknown {
                return Step::Unknown;
            }
            // The receiver's calls before the receive are known.
            if *process != own && self.clocks.aligned(*process, caller.seen) <= end {
                return Step::Rests(Some(process.0));
            }
        }
        let fits = |sent: &Sent| {
            let begin = self.clocks.aligned(sent.call.process, sent.call.span.begin);
            begin <= end && inbox.doubtful.iter().any(|receive| takes(receive, sent))
        };
        let found: Vec<usize> = (0..inbox.sent.len()).filter(|at| fits(&inbox.sent[*at])).collect();
        let is_of_one = found.iter().all(|at| inbox.sent[*at].from == inbox.sent[found[0]].from);
        match (found.len(), inbox.doubtful.len()) {
            (1.., 1) if is_of_one => Step::Met(inbox.sent.remove(found[0]), inbox.doubtful.remove(0)),
            (messages, receives) if messages == receives => {
                found.iter().rev().for_each(|at| _ = inbox.sent.remove(*at));
                inbox.doubtful.clear();
                Step::Settled((messages + receives) as u64)
            }
            // More were received than had been sent: something is not known.
            (messages, receives) if messages < receives => Step::Unknown,
            _ => match inbox.later.pop_front() {
                Some(receive) => inbox.admit(receive),
                None => Step::Rests(None),
            },
        }
    }

    /// A message and the receive that took it.
    fn met(&mut self, inbox: u64, sent: &Sent, receive: &Message) {
        let (communicator, to) = ((inbox >> 32) as u32, inbox as u32);
        let error = self.clocks.error([sent.call.process, receive.process].into_iter());
        let is_before = !receive.operation.awaits_message() || error == u64::MAX || {
            let begin = self.clocks.aligned(sent.call.process, sent.call.span.begin);
            begin
                <= self
                    .clocks
                    .aligned(receive.process, receive.span.end)
                    .saturating_add(error)
        };
        let has_room = sent
            .call
            .bytes
            .zip(receive.bytes)
            .is_none_or(|(bytes, room)| bytes <= room);
        if !is_before || !has_room {
            // It cannot be: calls are missing that nobody knows of.
            self.unmatched += 2;
            return self.drops(inbox);
        }
        let sequence = self
            .messages
            .sequences
            .entry((communicator, sent.from, to))
            .or_default();
        *sequence += 1;
        let key = Key {
            communicator,
            sequence: *sequence,
            pair: Some((sent.from, to)),
        };
        let part = |rank: u32, peer: u32, call: &Message| Part {
            rank,
            call: Communication {
                process: call.process,
                thread: call.thread,
                correlation: call.correlation,
                start: call.span.begin,
                communicator: call.communicator,
                operation: call.operation,
                sequence: key.sequence,
                datatype: Datatype(u8::MAX),
                reduction: u8::MAX,
                peer: Some(peer),
                ..Communication::default()
            },
            returned: Some(call.span.end),
            is_counted: true,
            ..Part::default()
        };
        let parts = vec![part(sent.from, to, &sent.call), part(to, sent.from, receive)];
        self.open.insert(
            key,
            Collective {
                key,
                size: 2,
                parts,
                is_checked: true,
            },
        );
        self.close(key);
    }

    /// Counts calls whose other side has not come.
    pub(super) fn left_over(&mut self) {
        let calls: usize = self.messages.inboxes.values().map(Inbox::len).sum();
        self.unmatched += calls as u64;
        self.messages.inboxes.clear();
        self.messages.resting.clear();
    }
}
