//! A compute queue in plain memory, polled at chosen times.

use std::sync::atomic::AtomicU64;

use super::*;
use crate::engine::Creation;
use crate::fault::Faults;
use crate::process;

const PACKETS: usize = 8;
const KERNEL_NS: u64 = 5000;
/// Start time: far enough from zero, and before the real time so that waits end at once.
const START: u64 = 1_000_000;

/// A signal: kind, value, mailbox, event, begin, end, and unused words.
type Signal = [AtomicU64; 8];

struct Rig {
    ring: Vec<AtomicU64>,
    /// Write index, read index, doorbell, and the queue's properties.
    words: Box<[AtomicU64; 8]>,
    queue: AqlQueue,
    context: Context,
}

fn rig() -> Rig {
    let header = |word: usize| {
        AtomicU64::new(if word.is_multiple_of(8) {
            kind::INVALID.into()
        } else {
            0
        })
    };
    let ring: Vec<_> = (0..PACKETS * 8).map(header).collect();
    let profiled = u64::from(ENABLE_PROFILING) << 32;
    let words = Box::new([0, 0, u64::MAX, 0, 0, 0, 0, profiled].map(AtomicU64::new));
    let place = words.as_ptr() as u64;
    let creation = Creation {
        ring: ring.as_ptr() as u64,
        write: place,
        read: place + 8,
        bytes: PACKETS as u64 * PACKET_BYTES,
        kind: 2,
        gpu: 0,
    };
    let queue = AqlQueue::new(Address {
        id: 0,
        creation,
        doorbell: place + 16,
    });
    Rig {
        ring,
        words,
        queue,
        context: Context::new(process::open()),
    }
}

fn handle(signal: &Signal) -> u64 {
    signal.as_ptr() as u64
}

/// The value, read as the host reads it.
fn value(signal: &Signal) -> i64 {
    value_of(handle(signal))
}

fn times(signal: &Signal) -> (u64, u64) {
    let at = |offset| guest::read::<u64>(handle(signal) + offset) * 10;
    (at(signal::BEGIN), at(signal::END))
}

fn armed() -> Signal {
    [1, 1, 0, 0, 0, 0, 0, 0].map(AtomicU64::new)
}

impl Rig {
    fn push(&mut self, header: u64, fields: &[(u64, u64)]) {
        let index = guest::read::<u64>(self.queue.address.creation.write);
        let packet = self.ring.as_ptr() as u64 + index % PACKETS as u64 * PACKET_BYTES;
        (0..8).for_each(|word| guest::write(packet + word * 8, 0_u64));
        for (offset, value) in fields {
            guest::write(packet + offset, *value);
        }
        guest::write(packet, header as u16);
        guest::write(packet + 2, (header >> 16) as u16);
        guest::write(self.queue.address.creation.write, index + 1);
    }

    fn dispatch(&mut self, barrier: u64, signal: &Signal) {
        self.push(
            u64::from(kind::DISPATCH) | barrier,
            &[(4, 0x0001_0001_0040), (12, 0x1_0000_0040), (56, handle(signal))],
        );
    }

    fn ring(&self) {
        guest::write(self.queue.address.doorbell, 0_u64);
    }

    fn poll(&mut self, now: u64) -> Step {
        let step = self.queue.poll_by(&mut self.context, || now);
        self.context.outbox.flush();
        step
    }

    fn read(&self) -> u64 {
        guest::read(self.words.as_ptr() as u64 + 8)
    }
}

const BARRIER: u64 = BARRIER_BIT as u64;

/// A rig with faults, by their variables.
fn hostile(variables: &'static [(&str, &str)]) -> Rig {
    let mut rig = rig();
    let text = |name: &str| {
        let found = variables.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    rig.context.outbox.faults = Box::leak(Box::new(Faults::of(text)));
    rig
}

#[test]
fn nothing_runs_before_the_doorbell_or_ends_too_early() {
    let (mut rig, done) = (rig(), armed());
    rig.dispatch(BARRIER, &done);
    assert!(!rig.poll(START).progress);
    rig.ring();
    assert_eq!(rig.poll(START).wake, START + KERNEL_NS);
    assert_eq!((rig.read(), value(&done)), (1, 1));
    rig.poll(START + KERNEL_NS - 1);
    assert_eq!(value(&done), 1);
    rig.poll(START + KERNEL_NS);
    assert_eq!(value(&done), 0);
    assert_eq!(times(&done), (START, START + KERNEL_NS));
}

#[test]
fn barrier_packets_run_back_to_back_with_a_late_poller() {
    let (mut rig, signals) = (rig(), [(); 4].map(|()| armed()));
    for signal in &signals {
        rig.dispatch(BARRIER, signal);
    }
    rig.ring();
    rig.poll(START);
    rig.poll(START + 100 * KERNEL_NS);
    for (index, signal) in (0..).zip(&signals) {
        assert_eq!(
            times(signal),
            (START + index * KERNEL_NS, START + (index + 1) * KERNEL_NS)
        );
    }
}

#[test]
fn other_packets_overlap_until_the_next_barrier() {
    let (mut rig, signals) = (rig(), [(); 3].map(|()| armed()));
    rig.dispatch(0, &signals[0]);
    rig.dispatch(0, &signals[1]);
    rig.dispatch(BARRIER, &signals[2]);
    rig.ring();
    rig.poll(START);
    rig.poll(START + 100 * KERNEL_NS);
    assert_eq!(times(&signals[0]).0, times(&signals[1]).0);
    assert_eq!(times(&signals[2]).0, START + KERNEL_NS);
}

#[test]
fn a_barrier_and_packet_waits_for_all_and_an_or_packet_for_one() {
    for (packet, ends_early) in [(kind::BARRIER_AND, false), (kind::BARRIER_OR, true)] {
        let (mut rig, one, two, done) = (rig(), armed(), armed(), armed());
        rig.push(
            packet.into(),
            &[(8, handle(&one)), (32, handle(&two)), (56, handle(&done))],
        );
        rig.ring();
        rig.poll(START);
        assert_eq!((rig.read(), value(&done)), (0, 1));
        guest::write(handle(&one) + signal::VALUE, 0_i64);
        rig.poll(START + 1);
        assert_eq!(value(&done), i64::from(!ends_early));
        guest::write(handle(&two) + signal::VALUE, 0_i64);
        rig.poll(START + 2);
        assert_eq!((rig.read(), value(&done)), (1, 0));
        assert!(times(&done).1 > START + 2, "it ends when it was looked at, not earlier");
    }
}

#[test]
fn a_barrier_waits_for_a_kernel_of_its_own_queue() {
    let (mut rig, kernel, done) = (rig(), armed(), armed());
    rig.dispatch(0, &kernel);
    rig.push(kind::BARRIER_AND.into(), &[(8, handle(&kernel)), (56, handle(&done))]);
    rig.ring();
    rig.poll(START);
    assert_eq!(value(&done), 1);
    rig.poll(START + KERNEL_NS);
    rig.poll(START + KERNEL_NS);
    assert_eq!((value(&kernel), value(&done)), (0, 0));
}

#[test]
fn a_value_packet_compares_under_its_mask() {
    for (condition, wanted, holds) in [
        (0, 3, true),
        (0, 4, false),
        (1, 3, false),
        (2, 4, true),
        (3, 3, true),
        (3, 4, false),
    ] {
        let (mut rig, word, done) = (rig(), armed(), armed());
        guest::write(handle(&word) + signal::VALUE, 0x13_i64);
        let header = u64::from(BARRIER_VALUE) << 16;
        let fields = [
            (8, handle(&word)),
            (16, wanted),
            (24, 0xf),
            (32, condition),
            (56, handle(&done)),
        ];
        rig.push(header | u64::from(kind::VENDOR), &fields);
        rig.ring();
        rig.poll(START);
        assert_eq!(value(&done) == 0, holds, "{condition} {wanted}");
    }
}

#[test]
fn indirect_buffers_are_consumed_and_the_ring_goes_round() {
    let (mut rig, done) = (rig(), armed());
    for round in 0..5 {
        for _ in 0..PACKETS - 1 {
            rig.push(1 << 16, &[]);
        }
        rig.ring();
        rig.poll(START + round);
        assert_eq!(rig.read(), (round + 1) * (PACKETS as u64 - 1));
    }
    rig.dispatch(BARRIER, &done);
    rig.poll(2 * START);
    rig.poll(3 * START);
    assert_eq!(value(&done), 0);
    assert!(
        rig.ring
            .iter()
            .step_by(8)
            .take(PACKETS)
            .all(|header| header.load(Ordering::Relaxed) as u16 == kind::INVALID.into())
    );
}

#[test]
fn an_unwritten_header_blocks_later_packets() {
    let (mut rig, first, second) = (rig(), armed(), armed());
    rig.push(
        kind::INVALID.into(),
        &[(4, 0x0001_0001_0040), (12, 0x1_0000_0040), (56, handle(&first))],
    );
    rig.dispatch(BARRIER, &second);
    rig.ring();
    rig.poll(START);
    assert_eq!(rig.read(), 0);
    guest::write(rig.queue.address.creation.ring, u16::from(kind::DISPATCH));
    rig.poll(2 * START);
    rig.poll(3 * START);
    assert_eq!((value(&first), value(&second)), (0, 0));
    assert_eq!(times(&first).0, 2 * START);
}

#[test]
fn an_early_index_is_not_the_packet_of_the_previous_lap() {
    let (mut rig, word, late) = (rig(), armed(), armed());
    rig.push(kind::BARRIER_AND.into(), &[(8, handle(&word))]);
    for _ in 1..PACKETS {
        rig.push(1 << 16, &[]);
    }
    // The ring is full and its first packet waits; a producer has taken the next index and waits for space.
    guest::write(rig.queue.address.creation.write, PACKETS as u64 + 1);
    rig.ring();
    rig.poll(START);
    guest::write(handle(&word) + signal::VALUE, 0_i64);
    rig.poll(START + 1);
    rig.poll(clock::now());
    assert_eq!(rig.read(), PACKETS as u64);
    guest::write(rig.queue.address.creation.write, PACKETS as u64);
    rig.dispatch(BARRIER, &late);
    rig.poll(clock::now());
    rig.poll(clock::now() + START);
    assert_eq!(value(&late), 0);
}

#[test]
fn a_lost_signal_never_changes_and_the_queue_goes_on() {
    let (mut rig, first, second) = (hostile(&[("LOST_SIGNALS", "foreign,every=2")]), armed(), armed());
    rig.dispatch(BARRIER, &first);
    rig.dispatch(BARRIER, &second);
    rig.ring();
    rig.poll(START);
    rig.poll(START + 2 * KERNEL_NS);
    assert_eq!((value(&first), value(&second), times(&second)), (0, 1, (0, 0)));
    assert_eq!(rig.read(), 2);
}

#[test]
fn a_late_signal_has_the_times_of_its_kernel() {
    let (mut rig, done) = (hostile(&[("LATE_SIGNALS", "all")]), armed());
    rig.dispatch(BARRIER, &done);
    rig.ring();
    rig.poll(START);
    let before = clock::now();
    rig.poll(START + KERNEL_NS);
    assert_eq!(value(&done), 1);
    while value(&done) == 1 {
        rig.poll(START + 2 * KERNEL_NS);
    }
    assert!(clock::now() - before >= 5_000_000);
    assert_eq!(times(&done), (START, START + KERNEL_NS));
}

#[test]
fn stale_times_are_those_of_the_last_completion() {
    let (mut rig, done) = (hostile(&[("WRONG_TIMES", "stale=2")]), armed());
    rig.ring();
    for round in 0..3 {
        guest::write(handle(&done) + signal::VALUE, 1_i64);
        guest::write(handle(&done) + signal::BEGIN, [0_u64; 2]);
        rig.dispatch(BARRIER, &done);
        let begin = START * (round + 1);
        rig.poll(begin);
        rig.poll(begin + KERNEL_NS);
        let expected = if round == 1 { START } else { begin };
        assert_eq!((value(&done), times(&done).0), (0, expected), "round {round}");
    }
}

#[test]
fn a_barriers_times_go_wrong_apart_from_those_of_kernels() {
    let (mut rig, kernel, barrier) = (hostile(&[("WRONG_BARRIER_TIMES", "zero=1")]), armed(), armed());
    rig.dispatch(BARRIER, &kernel);
    rig.push(u64::from(kind::BARRIER_AND) | BARRIER, &[(56, handle(&barrier))]);
    rig.ring();
    rig.poll(START);
    rig.poll(START + KERNEL_NS);
    assert_eq!((value(&kernel), value(&barrier)), (0, 0));
    assert_eq!((times(&kernel), times(&barrier)), ((START, START + KERNEL_NS), (0, 0)));
}

#[test]
fn a_shift_moves_both_times() {
    let (mut rig, done) = (hostile(&[("TIMES_SHIFT_NS", "-200000")]), armed());
    rig.dispatch(BARRIER, &done);
    rig.ring();
    rig.poll(START);
    rig.poll(START + KERNEL_NS);
    assert_eq!(times(&done), (START - 200_000, START + KERNEL_NS - 200_000));
}

#[test]
fn a_stop_delays_running_and_waiting_work() {
    const STOP_NS: u64 = 1_000_000;
    let (mut rig, signals) = (rig(), [(); 3].map(|()| armed()));
    rig.dispatch(BARRIER, &signals[0]);
    rig.dispatch(BARRIER, &signals[1]);
    rig.ring();
    rig.poll(START);
    assert!(rig.queue.is_busy());
    let (from, until) = (START + 1000, START + 1000 + STOP_NS);
    rig.queue.stop(from, until);
    rig.dispatch(BARRIER, &signals[2]);
    assert_eq!(rig.poll(until - 1).wake, until);
    assert_eq!(value(&signals[0]), 1);
    rig.poll(until);
    rig.poll(until + 3 * KERNEL_NS);
    let first_end = START + KERNEL_NS + STOP_NS;
    assert_eq!(times(&signals[0]), (START, first_end));
    assert_eq!(times(&signals[1]), (first_end, first_end + KERNEL_NS));
    assert_eq!(times(&signals[2]).1, first_end + 2 * KERNEL_NS);
    assert!(!rig.queue.is_busy());
}

/// A vendor packet of format 3: three clusters of two work-groups of 64 items.
fn push_extended(rig: &mut Rig, dependency: u64, done: &Signal) {
    let header = u64::from(EXTENDED_DISPATCH) << 16 | u64::from(kind::VENDOR) | BARRIER;
    let fields = [
        (4, 0x0001_0001_0040),
        (12, 0x0001_0001_0000_0003),
        (20, 0x0001_0102),
        (48, dependency),
        (56, handle(done)),
    ];
    rig.push(header, &fields);
}

#[test]
fn an_extended_dispatch_runs_a_kernel_in_clusters() {
    let (mut rig, done) = (rig(), armed());
    push_extended(&mut rig, 0, &done);
    let packet = rig.queue.place(0);
    assert_eq!(grid(packet), [3 * 2 * 64, 1, 1]);
    rig.ring();
    assert_eq!(rig.poll(START).wake, START + KERNEL_NS);
    rig.poll(START + KERNEL_NS);
    assert_eq!((value(&done), times(&done)), (0, (START, START + KERNEL_NS)));
}

#[test]
fn an_extended_dispatch_begins_after_its_signal() {
    let (mut rig, gate, done) = (rig(), armed(), armed());
    push_extended(&mut rig, handle(&gate), &done);
    rig.ring();
    rig.poll(START);
    assert_eq!(rig.read(), 0);
    let opened = clock::now();
    guest::write(handle(&gate) + signal::VALUE, 0_i64);
    rig.poll(START + 1);
    rig.poll(clock::now() + START);
    assert_eq!((rig.read(), value(&done)), (1, 0));
    assert!(times(&done).0 >= opened - 10, "{} {opened}", times(&done).0);
}
