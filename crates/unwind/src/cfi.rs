//! Call frame information of x86-64: from one frame's registers to its caller's.
//!
//! Rules are evaluated here and not by a ready unwinder, because expressions in hostile tables need a limit of steps, and
//! because the caller must know whether a frame came from a table or is a guess from the frame pointer.

use crate::elf::{Elf, Load, u32_at};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, Evaluation, EvaluationResult, LittleEndian,
    Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindOffset, UnwindSection, UnwindTableRow,
    Value,
};
use std::collections::HashMap;

/// Bytes of a file's tables that are read, at most. A library of 2 GB has some 50 MB.
const MAX_TABLE: u64 = 96 << 20;
/// Steps of an expression. That of a PLT has eight.
const MAX_STEPS: u32 = 256;

/// Length of an entry, bytes. That of a function of 1 MB has some 10 KiB.
const MAX_ENTRY: usize = 256 << 10;

/// DWARF's numbers of registers.
const RBP: u16 = 6;
const RSP: u16 = 7;
const RA: u16 = 16;
/// Registers that a function preserves for its caller.
const PRESERVED: [u16; 6] = [3, RBP, 12, 13, 14, 15];

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The registers of a frame after its call has returned; unknown ones are `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers([Option<u64>; 17]);

impl Registers {
    pub(crate) fn new(ip: u64, sp: u64, bp: Option<u64>) -> Self {
        let mut all = [None; 17];
        all[usize::from(RA)] = Some(ip);
        all[usize::from(RSP)] = Some(sp);
        all[usize::from(RBP)] = bp;
        Self(all)
    }

    fn get(&self, register: u16) -> Option<u64> {
        self.0.get(usize::from(register)).copied().flatten()
    }

    pub(crate) fn ip(&self) -> u64 {
        self.get(RA).unwrap_or(0)
    }

    pub(crate) fn sp(&self) -> u64 {
        self.get(RSP).unwrap_or(0)
    }

    pub(crate) fn bp(&self) -> Option<u64> {
        self.get(RBP)
    }
}

/// The copied part of a stack.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) begin: u64,
    pub(crate) bytes: &'a [u8],
}

impl Memory<'_> {
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Whether the stack continues to this address above the copy.
    pub(crate) fn is_above(&self, address: u64) -> bool {
        let end = self.begin.saturating_add(self.bytes.len() as u64);
        // A word that ends above the copy; stacks of threads have 8 MiB.
        address.saturating_add(8) > end && address < end.saturating_add(8 << 20)
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The registers are those of the caller. It made a call, unless a Unix signal interrupted it.
    Caller { is_interrupted: bool },
    /// This frame has no caller.
    Root,
    /// The copy ends below the frame's return address.
    Cut,
    /// No table has a rule for this address.
    NoRule,
    /// The rule contradicts the stack.
    Damaged,
}

/// The rule of an address, in the form that nearly all have. Offsets are those of DWARF, from the canonical frame address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    base: u16,
    offset: i32,
    return_address: i32,
    /// Of the preserved registers, in their order.
    saved: [Saved; 6],
    is_signal: bool,
}

#[derive(Clone, Copy, Debug)]
enum Saved {
    Unchanged,
    Unknown,
    At(i32),
}

impl Rule {
    fn of(row: &UnwindTableRow<usize>, is_signal: bool) -> Option<Self> {
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let Some(RegisterRule::Offset(return_address)) = row.register(Register(RA)) else {
            return None;
        };
        let mut saved = [Saved::Unchanged; 6];
        for (register, rule) in row.registers() {
            let place = PRESERVED.iter().position(|one| *one == register.0);
            let one = match (rule, place) {
                (RegisterRule::Offset(_), None) if register.0 == RA => continue,
                (RegisterRule::Undefined | RegisterRule::SameValue, None) => continue,
                (RegisterRule::SameValue, Some(_)) => Saved::Unchanged,
                (RegisterRule::Undefined, Some(_)) => Saved::Unknown,
                (RegisterRule::Offset(offset), Some(_)) => Saved::At(i32::try_from(*offset).ok()?),
                _ => return None,
            };
            saved[place?] = one;
        }
        Some(Self {
            base: register.0,
            offset: i32::try_from(*offset).ok()?,
            return_address: i32::try_from(return_address).ok()?,
            saved,
            is_signal,
        })
    }

    pub(crate) fn step(&self, registers: &mut Registers, memory: Memory<'_>) -> Step {
        let Some(base) = registers.get(self.base) else {
            return Step::NoRule;
        };
        let cfa = base.wrapping_add_signed(i64::from(self.offset));
        let at = |offset: i32| cfa.wrapping_add_signed(i64::from(offset));
        let mut caller = match first(registers, memory, cfa, Some(at(self.return_address))) {
            Ok(caller) => caller,
            Err(step) => return step,
        };
        for (register, saved) in PRESERVED.iter().zip(self.saved) {
            caller.0[usize::from(*register)] = match saved {
                Saved::Unchanged => registers.get(*register),
                Saved::Unknown => None,
                Saved::At(offset) => memory.word(at(offset)),
            };
        }
        *registers = caller;
        Step::Caller {
            is_interrupted: self.is_signal,
        }
    }
}

/// The caller's stack pointer, and its instruction pointer from the stack.
fn first(registers: &Registers, memory: Memory<'_>, cfa: u64, place: Option<u64>) -> Result<Registers, Step> {
    // A stack grows down, so a caller's frame is above.
    if cfa <= registers.sp() {
        return Err(Step::Damaged);
    }
    let ip = match place {
        None => 0,
        Some(place) => memory.word(place).ok_or(if memory.is_above(place) {
            Step::Cut
        } else {
            Step::Damaged
        })?,
    };
    Ok(Registers::new(ip, cfa, None))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    EhFrame,
    DebugFrame,
}

/// A section of call frame information.
#[derive(Debug)]
struct Table {
    kind: Kind,
    bytes: Vec<u8>,
    bases: BaseAddresses,
    /// Address of the section.
    address: u64,
    entries: Entries,
}

impl Table {
    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        section
    }

    fn debug_frame(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        section
    }
}

/// Where the entry of an address is found.
#[derive(Debug)]
enum Entries {
    /// `.eh_frame_hdr` in the encoding that linkers write: sorted pairs of 32-bit offsets from its address, after 12 bytes.
    Header { bytes: Vec<u8>, address: u64 },
    /// First addresses of all entries with their positions, sorted.
    Sorted(Vec<(u64, u32)>),
}

impl Entries {
    /// Position of the only entry that may have this address.
    fn find(&self, wanted: u64, section: u64) -> Option<usize> {
        match self {
            Self::Sorted(all) => {
                let after = all.partition_point(|(begin, _)| *begin <= wanted);
                Some(all.get(after.checked_sub(1)?)?.1 as usize)
            }
            Self::Header { bytes, address } => {
                let pair = |at: usize| -> Option<(u64, u64)> {
                    let one = |at| Some(address.wrapping_add_signed(i64::from(u32_at(bytes, at)?.cast_signed())));
                    Some((one(12 + at * 8)?, one(16 + at * 8)?))
                };
                let count = u32_at(bytes, 8)? as usize;
                let (mut low, mut high) = (0, count.min(bytes.len() / 8));
                while low < high {
                    let middle = low.midpoint(high);
                    if pair(middle)?.0 <= wanted {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                let (_, entry) = pair(low.checked_sub(1)?)?;
                usize::try_from(entry.checked_sub(section)?).ok()
            }
        }
    }
}

/// All entries of a section, sorted by address. A damaged section has those before the damage.
fn sorted<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    // Entries share their common part, which is parsed once however long it is.
    let mut common: HashMap<usize, gimli::Result<_>> = HashMap::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let entry = partial.parse(|section, bases, offset| {
            let known = common.entry(UnwindOffset::into(offset));
            known.or_insert_with(|| section.cie_from_offset(bases, offset)).clone()
        });
        if let Ok(entry) = entry {
            all.push((entry.initial_address(), entry.offset() as u32));
        }
    }
    all.sort_unstable();
    all.shrink_to_fit();
    all
}

/// The call frame information of a file.
#[derive(Debug, Default)]
pub(crate) struct Cfi {
    tables: Vec<Table>,
    /// What it occupies in memory, bytes.
    pub(crate) bytes: usize,
}

impl Cfi {
    /// Reads `.eh_frame` and `.debug_frame`; a file may have neither.
    pub(crate) fn read(elf: &Elf) -> Self {
        let mut cfi = Self::default();
        if !elf.is_x86_64 {
            return cfi;
        }
        cfi.tables.extend(eh_frame(elf));
        if let Some(section) = elf.section(".debug_frame")
            && let Some(bytes) = elf.contents(section, MAX_TABLE)
        {
            let bases = BaseAddresses::default();
            let mut frames = DebugFrame::new(&bytes, LittleEndian);
            frames.set_address_size(8);
            let entries = Entries::Sorted(sorted(&frames, &bases));
            cfi.tables.push(Table {
                kind: Kind::DebugFrame,
                bytes,
                bases,
                address: 0,
                entries,
            });
        }
        for table in &cfi.tables {
            let of_entries = match &table.entries {
                Entries::Header { bytes, .. } => bytes.len(),
                Entries::Sorted(all) => all.len() * size_of::<(u64, u32)>(),
            };
            cfi.bytes += table.bytes.len() + of_entries;
        }
        cfi
    }

    /// Whether a function begins at this address.
    pub(crate) fn has_function_at(&self, address: u64) -> bool {
        self.tables.iter().any(|table| {
            let at = table.entries.find(address, table.address);
            at.is_some_and(|at| match table.kind {
                Kind::EhFrame => begins(&table.eh_frame(), table, at.into(), address),
                Kind::DebugFrame => begins(&table.debug_frame(), table, at.into(), address),
            })
        })
    }

    /// The caller of the frame with these registers. `address` is one of the frame's instruction, in the file's addresses.
    /// The rule is returned too if it may be used again for this address.
    pub(crate) fn step(
        &self,
        address: u64,
        registers: &mut Registers,
        memory: Memory<'_>,
        context: &mut UnwindContext<usize>,
    ) -> (Step, Option<Rule>) {
        for table in &self.tables {
            let Some(at) = table.entries.find(address, table.address) else {
                continue;
            };
            let found = match table.kind {
                Kind::EhFrame => {
                    let section = table.eh_frame();
                    step(&section, table, at.into(), address, registers, memory, context)
                }
                Kind::DebugFrame => {
                    let section = table.debug_frame();
                    step(&section, table, at.into(), address, registers, memory, context)
                }
            };
            if let Some(found) = found {
                return found;
            }
        }
        (Step::NoRule, None)
    }
}

/// Whether an entry has this as its first address.
fn begins<'a, S: UnwindSection<Slice<'a>>>(section: &S, table: &Table, at: S::Offset, address: u64) -> bool {
    let entry = section.fde_from_offset(&table.bases, at, S::cie_from_offset);
    entry.is_ok_and(|entry| entry.initial_address() == address)
}

/// `.eh_frame` with its table, by the sections or, in a file without sections, by the program header.
fn eh_frame(elf: &Elf) -> Option<Table> {
    let header = match elf.section(".eh_frame_hdr") {
        Some(section) => Some((section.address, section.offset, section.len)),
        None => elf.frame_header,
    };
    // In the encoding of all linkers: addresses relative to the place or to the table, 32 bits.
    let header = header.and_then(|(address, offset, len)| {
        let bytes = elf.read(offset, len, MAX_TABLE)?;
        bytes.starts_with(&[1, 0x1b, 0x03, 0x3b]).then_some((address, bytes))
    });
    let (address, bytes) = if let Some(section) = elf.section(".eh_frame") {
        (section.address, elf.contents(section, MAX_TABLE)?)
    } else {
        let (place, header) = header.as_ref()?;
        frames_of_header(elf, *place, header)?
    };
    let of = |name| elf.section(name).map_or(0, |section| section.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(address)
        .set_eh_frame_hdr(header.as_ref().map_or(0, |header| header.0))
        .set_text(of(".text"))
        .set_got(of(".got"));
    let entries = if let Some((address, bytes)) = header {
        Entries::Header { bytes, address }
    } else {
        let mut frames = EhFrame::new(&bytes, LittleEndian);
        frames.set_address_size(8);
        Entries::Sorted(sorted(&frames, &bases))
    };
    Some(Table {
        kind: Kind::EhFrame,
        bytes,
        bases,
        address,
        entries,
    })
}

/// Address and bytes of the section that a header at `place` refers to, up to the end of its segment.
fn frames_of_header(elf: &Elf, place: u64, header: &[u8]) -> Option<(u64, Vec<u8>)> {
    let relative = i64::from(u32_at(header, 4)?.cast_signed());
    let address = place.wrapping_add(4).wrapping_add_signed(relative);
    let is_inside = |load: &&Load| address.checked_sub(load.address).is_some_and(|into| into < load.len);
    let load = elf.loads.iter().find(is_inside)?;
    let into = address - load.address;
    let bytes = elf.read(load.offset.checked_add(into)?, load.len - into, MAX_TABLE)?;
    Some((address, bytes))
}

/// A step by the entry at `at`; `None` if it has no rule for the address.
fn step<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    table: &Table,
    at: S::Offset,
    address: u64,
    registers: &mut Registers,
    memory: Memory<'_>,
    context: &mut UnwindContext<usize>,
) -> Option<(Step, Option<Rule>)> {
    let entry = section.fde_from_offset(&table.bases, at, S::cie_from_offset).ok()?;
    if !entry.contains(address) || entry.cie().return_address_register().0 != RA {
        return None;
    }
    if entry.entry_len().max(entry.cie().entry_len()) > MAX_ENTRY {
        return None;
    }
    let is_signal = entry.is_signal_trampoline();
    let encoding = entry.cie().encoding();
    let row = entry
        .unwind_info_for_address(section, &table.bases, context, address)
        .ok()?;
    if let Some(rule) = Rule::of(row, is_signal) {
        return Some((rule.step(registers, memory), Some(rule)));
    }
    let callee = *registers;
    let evaluate = |expression: &UnwindExpression<usize>, initial: Option<u64>| {
        evaluated(expression.get(section).ok()?.0, encoding, initial, &callee, memory)
    };
    Some((
        step_by_row(row, registers, memory, is_signal, evaluate).unwrap_or(Step::NoRule),
        None,
    ))
}

/// A step by any rules; `None` if one cannot be evaluated that is needed.
fn step_by_row(
    row: &UnwindTableRow<usize>,
    registers: &mut Registers,
    memory: Memory<'_>,
    is_signal: bool,
    evaluate: impl Fn(&UnwindExpression<usize>, Option<u64>) -> Option<u64>,
) -> Option<Step> {
    let return_address = row.register(Register(RA))?;
    if return_address == RegisterRule::Undefined {
        return Some(Step::Root);
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => registers.get(register.0)?.wrapping_add_signed(*offset),
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    let place = match &return_address {
        RegisterRule::Offset(offset) => Some(cfa.wrapping_add_signed(*offset)),
        RegisterRule::Expression(expression) => Some(evaluate(expression, Some(cfa))?),
        _ => None,
    };
    // Behind a Unix signal the stack may be another one, below; the copy then does not have it, and the path ends here.
    let mut caller = match first(registers, memory, cfa, place) {
        Ok(caller) => caller,
        Err(step) => return Some(step),
    };
    for register in PRESERVED {
        caller.0[usize::from(register)] = registers.get(register);
    }
    for (register, rule) in row.registers() {
        let value = match rule {
            RegisterRule::SameValue => registers.get(register.0),
            RegisterRule::Offset(offset) => memory.word(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => registers.get(other.0),
            RegisterRule::Expression(expression) => evaluate(expression, Some(cfa)).and_then(|at| memory.word(at)),
            RegisterRule::ValExpression(expression) => evaluate(expression, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        };
        if let Some(known) = caller.0.get_mut(usize::from(register.0)) {
            *known = value;
        }
    }
    caller.get(RA)?;
    if caller.get(RSP)? <= registers.sp() {
        return Some(Step::Damaged);
    }
    *registers = caller;
    Some(Step::Caller {
        is_interrupted: is_signal,
    })
}

/// The value of an expression, within a number of steps.
fn evaluated(
    expression: Slice<'_>,
    encoding: gimli::Encoding,
    initial: Option<u64>,
    registers: &Registers,
    memory: Memory<'_>,
) -> Option<u64> {
    let mut evaluation = Evaluation::new(expression, encoding);
    evaluation.set_max_iterations(MAX_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut result = evaluation.evaluate().ok()?;
    // Resuming restarts nothing: each result takes at least one step.
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0)?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let word = memory.word(address)?;
                let bits = u32::from(size).checked_mul(8).filter(|bits| (8..=64).contains(bits))?;
                let value = word & (u64::MAX >> (64 - bits));
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().last()?.location {
        Location::Address { address } => Some(address),
        Location::Value {
            value: Value::Generic(value),
        } => Some(value),
        _ => None,
    }
}
