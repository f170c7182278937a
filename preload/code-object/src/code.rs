//! A hash of a kernel's code that a change of other code in the file leaves as it is.
//!
//! FNV-1a over 32-bit words. Words that the loader writes, and distances to other code and data, are left out. A
//! function whose address the code computes is part of the kernel's code, if a symbol says where it is.

use crate::Object;
use crate::elf::{File, Function, Source};
use std::collections::BTreeMap;

/// Maximum bytes of one function.
const MAX_CODE: u64 = 8 << 20;
/// Maximum number of functions that are part of a kernel's code.
const MAX_CALLED: usize = 256;
/// Words after `s_getpc_b64` in which its result is used.
const MAX_GETPC_DISTANCE: usize = 12;
/// A source operand that stands for the next word, and one for the next two (gfx1250).
const LITERAL: u32 = 0xff;
const LITERAL_64: u32 = 0xfe;
/// Encoding of instructions with two scalar sources, and their numbers: `s_add_u32`, `s_addc_u32`, `s_add_nc_u64`.
const SOP2: u32 = 0b10;
const ADD: u32 = 0;
const ADD_WITH_CARRY: u32 = 4;
const ADD_64: u32 = 0x53;

const START: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: u64, word: u32) -> u64 {
    (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3)
}

/// `s_getpc_b64` of a target's generation, without its destination.
fn getpc(target: &str) -> u32 {
    let digits = target.rsplit_once("gfx").map_or("", |(_, rest)| rest);
    let digits = digits.split([':', '-']).next().unwrap_or("");
    // Generic targets have a dash after the generation: gfx9-4-generic.
    let major = match digits.len() {
        0..=2 => digits,
        length => digits.get(..length - 2).unwrap_or(""),
    };
    let operation: u32 = match major {
        "10" => 0x1f,
        "11" | "12" | "13" => 0x47,
        _ => 0x1c,
    };
    0xbe80_0000 | operation << 8
}

/// A function's own part of a hash.
#[derive(Clone)]
struct Own {
    hash: u64,
    bytes: u64,
    /// Functions whose addresses it computes, by number, in order.
    called: Vec<usize>,
}

/// Fills code sizes and hashes.
pub(crate) fn hash<S: Source + ?Sized>(file: &File<'_, S>, object: &mut Object) {
    let functions = file.functions();
    let by_name: BTreeMap<&str, usize> = functions.iter().enumerate().map(|(at, one)| (&*one.name, at)).collect();
    let relocated = file.relocated();
    let getpc = getpc(&object.target);
    let mut known: BTreeMap<usize, Option<Own>> = BTreeMap::new();
    let mut code = Vec::new();
    for kernel in &mut object.kernels {
        let Some(&first) = by_name.get(&*kernel.name) else {
            continue;
        };
        // Functions in the order in which they are first named.
        let mut all = vec![first];
        let (mut sum, mut bytes, mut at) = (START, 0u64, 0);
        while let Some(&number) = all.get(at) {
            let own = known
                .entry(number)
                .or_insert_with(|| own(file, &functions, &relocated, getpc, number, &mut code));
            let Some(own) = own.as_ref().filter(|_| all.len() <= MAX_CALLED) else {
                (sum, bytes) = (0, 0);
                break;
            };
            sum = mix(mix(sum, own.hash as u32), (own.hash >> 32) as u32);
            bytes = bytes.saturating_add(own.bytes);
            for called in &own.called {
                let place = all.iter().position(|known| known == called).unwrap_or_else(|| {
                    all.push(*called);
                    all.len() - 1
                });
                sum = mix(sum, place as u32);
            }
            at += 1;
        }
        (kernel.hash, kernel.code_bytes) = (sum, bytes);
    }
}

fn own<S: Source + ?Sized>(
    file: &File<'_, S>,
    functions: &[Function],
    relocated: &[u64],
    getpc: u32,
    number: usize,
    code: &mut Vec<u8>,
) -> Option<Own> {
    let function = functions.get(number)?;
    if function.size == 0 || function.size > MAX_CODE {
        return None;
    }
    code.clear();
    code.resize(function.size as usize, 0);
    if !file.read_at(function.address, code) {
        return None;
    }
    let words: Vec<u32> = code
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    let mut left_out: Vec<usize> = Vec::new();
    let from = relocated.partition_point(|at| *at < function.address);
    let own = relocated.iter().skip(from).map(|at| at - function.address);
    left_out.extend(own.take_while(|at| *at < function.size).map(|at| (at / 4) as usize));
    let mut called = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word & 0xff80_ffff != getpc {
            continue;
        }
        let distance = distance(words.get(at + 1..).unwrap_or_default(), word >> 16 & 0x7f);
        left_out.extend(distance.iter().flatten().map(|(place, _)| at + 1 + place));
        if let [Some((_, low)), Some((_, high))] = distance {
            let next = function.address.wrapping_add(4 * (at as u64 + 1));
            let target = next.wrapping_add(u64::from(high) << 32 | u64::from(low));
            let found = functions.partition_point(|one| one.address < target);
            called.extend(functions.get(found).filter(|one| one.address == target).map(|_| found));
        }
    }
    left_out.sort_unstable();
    let mut left_out = left_out.into_iter().peekable();
    let mut hash = START;
    for (at, word) in words.iter().enumerate() {
        let mut is_left_out = false;
        while left_out.next_if(|place| *place <= at).is_some() {
            is_left_out = true;
        }
        hash = mix(hash, if is_left_out { 0 } else { *word });
    }
    Some(Own {
        hash,
        bytes: function.size,
        called,
    })
}

/// What is added to a program counter: places and values of the lower and the upper half.
type Distance = [Option<(usize, u32)>; 2];

/// Literals that the code adds to the register pair from `register`.
fn distance(words: &[u32], register: u32) -> Distance {
    let mut out = Distance::default();
    for (at, word) in words.iter().enumerate().take(MAX_GETPC_DISTANCE) {
        let (operation, destination) = (word >> 23 & 0x7f, word >> 16 & 0x7f);
        let has = |literal: u32| word & 0xff == literal || word >> 8 & 0xff == literal;
        let literal = |after: usize| words.get(at + after).map(|value| (at + after, *value));
        if word >> 30 != SOP2 {
            continue;
        }
        let [low, high] = &mut out;
        match operation {
            ADD if destination == register && has(LITERAL) => *low = low.or_else(|| literal(1)),
            ADD_WITH_CARRY if destination == register + 1 && has(LITERAL) => *high = high.or_else(|| literal(1)),
            ADD_64 if destination == register && has(LITERAL_64) => {
                *low = low.or_else(|| literal(1));
                *high = high.or_else(|| literal(2));
            }
            _ => {}
        }
        if out.iter().all(Option::is_some) {
            break;
        }
    }
    out
}
