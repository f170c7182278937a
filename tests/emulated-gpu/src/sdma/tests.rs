//! A copy queue in plain memory, with the packets that ROCr writes.

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::*;
use crate::engine::Creation;
use crate::process;

const RING_BYTES: u64 = 1024;

struct Rig {
    ring: Vec<AtomicU64>,
    /// Write index, read index, doorbell.
    words: Box<[AtomicU64; 3]>,
    queue: SdmaQueue,
    context: Context,
}

fn rig() -> Rig {
    let ring: Vec<_> = (0..RING_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
    let words = Box::new([0, 0, u64::MAX].map(AtomicU64::new));
    let place = words.as_ptr() as u64;
    let creation = Creation {
        ring: ring.as_ptr() as u64,
        write: place,
        read: place + 8,
        bytes: RING_BYTES,
        kind: 1,
        gpu: 0,
    };
    let queue = SdmaQueue::new(Address {
        id: 1,
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

impl Rig {
    fn push(&mut self, words: &[u32]) {
        let place = self.words.as_ptr() as u64;
        let mut at: u64 = guest::read(place);
        for word in words {
            guest::write(self.ring.as_ptr() as u64 + at % RING_BYTES, *word);
            at += 4;
        }
        guest::write(place, at);
        guest::write(place + 16, at);
    }

    /// Polls until the queue is empty or waits.
    fn drain(&mut self) -> u64 {
        for _ in 0..1000 {
            let step = self.queue.poll(&mut self.context);
            if !step.progress && step.wake == u64::MAX {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(10));
        }
        self.context.outbox.flush();
        guest::read(self.words.as_ptr() as u64 + 8)
    }
}

fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

fn copy(source: u64, target: u64, bytes: u32) -> [u32; 7] {
    let ([a, b], [c, d]) = (halves(source), halves(target));
    [op::COPY, bytes - 1, 0, a, b, c, d]
}

fn atomic_decrement(address: u64) -> [u32; 8] {
    let [low, high] = halves(address);
    [op::ATOMIC | (47 << 25), low, high, u32::MAX, u32::MAX, 0, 0, 0]
}

#[test]
fn a_copy_arrives_before_its_signal_and_between_its_timestamps() {
    let mut rig = rig();
    let (source, mut target) = (vec![7_u8; 5000], vec![0_u8; 5000]);
    let place = target.as_mut_ptr() as u64;
    let signal = [1, 1, 0, 0, 0, 0, 0, 0].map(AtomicU64::new);
    let signal = signal.as_ptr() as u64;
    let stamp = |offset: u64| {
        let [low, high] = halves(signal + offset);
        [op::TIMESTAMP | (2 << 8), low, high]
    };
    rig.push(&stamp(signal::BEGIN));
    rig.push(&copy(source.as_ptr() as u64, place, 5000));
    rig.push(&stamp(signal::END));
    rig.push(&atomic_decrement(signal + signal::VALUE));
    assert_eq!(rig.drain(), (3 + 7 + 3 + 8) * 4);
    assert_eq!(guest::bytes(place, 5000), source);
    assert_eq!(guest::read::<i64>(signal + signal::VALUE), 0);
    let (begin, end): (u64, u64) = (guest::read(signal + signal::BEGIN), guest::read(signal + signal::END));
    assert!((end - begin) * 10 + 10 >= model().copy_duration(5000));
}

#[test]
fn a_poll_holds_back_what_follows_until_its_value_is_there() {
    let mut rig = rig();
    let words = [5, 0].map(AtomicU32::new);
    let place = words.as_ptr() as u64;
    let [low, high] = halves(place);
    rig.push(&[op::POLL | (3 << 28) | (1 << 31), low, high, 0, u32::MAX, 0]);
    let [low, high] = halves(place + 4);
    rig.push(&[op::FENCE, low, high, 99]);
    assert_eq!(rig.drain(), 0);
    guest::write(place, 0_u32);
    assert_eq!(rig.drain(), 40);
    assert_eq!(guest::read::<u32>(place + 4), 99);
}

#[test]
fn fills_writes_and_rectangles_touch_what_they_name_and_no_more() {
    let mut rig = rig();
    let area: Vec<_> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let place = area.as_ptr() as u64;
    let [low, high] = halves(place + 4);
    rig.push(&[op::FILL | (2 << 30), low, high, 0xabcd, 4 * 4 - 4]);
    let [low, high] = halves(place + 24);
    rig.push(&[op::WRITE, low, high, 1, 11, 12]);
    // Two lines of two dwords, from a pitch of four to one of eight, at column one.
    let [low, high] = halves(place + 4);
    let [to_low, to_high] = halves(place + 128);
    let (from_pitch, to_pitch) = (3 << 13, 7 << 13);
    let header = op::COPY | (4 << 8) | (2 << 29);
    rig.push(&[
        header,
        low,
        high,
        0,
        from_pitch,
        15,
        to_low,
        to_high,
        1,
        to_pitch,
        15,
        1 | (1 << 16),
        0,
    ]);
    rig.drain();
    let seen: Vec<u32> = (0..64).map(|index| guest::read(place + index * 4)).collect();
    assert_eq!(seen[..9], [0, 0xabcd, 0xabcd, 0xabcd, 0xabcd, 0, 11, 12, 0]);
    assert_eq!(seen[32..36], [0, 0xabcd, 0xabcd, 0]);
    assert_eq!(seen[40..44], [0, 0, 11, 0]);
}

#[test]
fn padding_at_the_end_of_the_ring_is_skipped() {
    let mut rig = rig();
    let word = [0, 0].map(AtomicU32::new);
    for round in 1..=10 {
        rig.push(&[0; 200]);
        let [low, high] = halves(word.as_ptr() as u64);
        rig.push(&[op::FENCE, low, high, round]);
        rig.drain();
        assert_eq!(guest::read::<u32>(word.as_ptr() as u64), round);
    }
}
