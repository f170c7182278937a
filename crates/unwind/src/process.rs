//! From a copied stack to a call path.

use crate::cfi::{Memory, Registers, Step};
use crate::files::{Files, ModuleId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Frames of a call path, at most; deeper ones end with [`End::TooDeep`].
const MAX_FRAMES: usize = 256;
/// Mappings of a process, at most: the Linux kernel's own limit (`vm.max_map_count`) is 65 530 by default.
const MAX_MAPPINGS: usize = 1 << 16;

/// An executable mapping of a process, as `/proc/PID/maps` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Position of its first byte in the file, bytes.
    pub offset: u64,
    /// Device of the file. It distinguishes files, and is compared with nothing else.
    pub device: u64,
    /// Inode of the file; 0 if unknown, the file is then not compared.
    pub inode: u64,
    /// Empty, or a name in brackets, for code without a file.
    pub path: PathBuf,
}

/// A copied stack.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The instruction after the call.
    pub ip: u64,
    /// The stack pointer after the call has returned.
    pub sp: u64,
    /// The frame pointer.
    pub bp: u64,
    /// Memory from `sp` upward.
    pub bytes: &'a [u8],
}

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// It is the first.
    Registers,
    /// By its callee's call frame information.
    Cfi,
    /// By the frame pointer, because the callee's file has no rule. Callers may be missing between it and its callee.
    FramePointer,
}

/// A call on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file; `None` for code without a file.
    pub module: Option<ModuleId>,
    /// The call instruction's last byte: the return address less one, as the file's own address. In code that a Unix signal
    /// interrupted it is the next instruction. Without a file it is the address in the process. In a file that was not
    /// used ([`crate::State`]) it is the position in the file.
    pub offset: u64,
    /// The same as an address in the process.
    pub address: u64,
    /// The stack pointer after the call has returned: the frame is from there up to that of its caller.
    pub sp: u64,
    /// How it was found.
    pub found_by: FoundBy,
}

/// Why a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its last frame is the first of the thread.
    Complete,
    /// The copy of the stack is too short.
    Cut,
    /// There is no rule for the last frame, and its frame pointer points to no frame.
    NoInformation,
    /// Rules and stack contradict each other.
    Damaged,
    /// There are more than 256 frames.
    TooDeep,
}

/// The calls that led to a place, from the innermost outward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// At least one.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub end: End,
    /// The address that ended it, if no known mapping contains it. With its mapping the path may be longer.
    pub unmapped: Option<u64>,
}

#[derive(Clone, Debug)]
struct Mapped {
    end: u64,
    offset: u64,
    device: u64,
    inode: u64,
    path: Arc<Path>,
    is_searched: bool,
    /// The file, once it was searched.
    module: Option<ModuleId>,
}

/// Code at an address.
#[derive(Clone, Copy)]
struct Code {
    module: Option<ModuleId>,
    /// The file's own address; `None` if no file was used.
    address: Option<u64>,
    /// Position in the file.
    position: u64,
}

/// Why the frame pointer gives no caller, and the address in no known mapping that it gives instead.
struct NoCaller {
    end: End,
    unmapped: Option<u64>,
}

impl From<End> for NoCaller {
    fn from(end: End) -> Self {
        Self { end, unmapped: None }
    }
}

/// The executable mappings of a process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    root: Option<PathBuf>,
    mappings: BTreeMap<u64, Mapped>,
}

impl Process {
    /// A process without mappings. Files are looked for below `root` first, for example `/proc/PID/root`.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            mappings: BTreeMap::new(),
        }
    }

    /// Adds a mapping. It replaces what it overlaps. Empty ones, and those beyond 65 536, are ignored.
    pub fn map(&mut self, mapping: Mapping) {
        let Mapping { start, end, .. } = mapping;
        if start >= end {
            return;
        }
        let overlapped = self.mappings.range(..end).rev();
        let overlapped: Vec<u64> = overlapped
            .take_while(|(_, old)| old.end > start)
            .map(|(begin, _)| *begin)
            .collect();
        for begin in overlapped {
            let Some(old) = self.mappings.remove(&begin) else {
                continue;
            };
            if old.end > end {
                let right = Mapped {
                    offset: old.offset.saturating_add(end - begin),
                    ..old.clone()
                };
                self.mappings.insert(end, right);
            }
            if begin < start {
                self.mappings.insert(begin, Mapped { end: start, ..old });
            }
        }
        if self.mappings.len() < MAX_MAPPINGS {
            let mapped = Mapped {
                end,
                offset: mapping.offset,
                device: mapping.device,
                inode: mapping.inode,
                path: mapping.path.into(),
                is_searched: false,
                module: None,
            };
            self.mappings.insert(start, mapped);
        }
    }

    /// The code at an address; `None` if nothing executable is mapped there.
    fn code(&mut self, address: u64, files: &mut Files) -> Option<Code> {
        let (start, mapped) = self.mappings.range_mut(..=address).next_back()?;
        if address >= mapped.end {
            return None;
        }
        let position = mapped.offset.saturating_add(address - start);
        // [vdso] and [anon:…] are no files.
        if !mapped.is_searched && mapped.path.is_absolute() {
            let end = mapped.offset.saturating_add(mapped.end - start);
            mapped.module = files.find(self.root.as_deref(), &mapped.path, mapped.device, mapped.inode, end);
        }
        mapped.is_searched = true;
        let module = mapped.module;
        Some(Code {
            module,
            address: module.and_then(|id| files.address(id, position)),
            position,
        })
    }

    /// The calls that led to the top of this stack. It never fails; a path may end early.
    pub fn call_path(&mut self, stack: &Stack<'_>, files: &mut Files) -> CallPath {
        let memory = Memory {
            begin: stack.sp,
            bytes: stack.bytes,
        };
        let mut registers = Registers::new(stack.ip, stack.sp, Some(stack.bp));
        let mut frames = Vec::new();
        let (mut found_by, mut is_interrupted) = (FoundBy::Registers, false);
        let mut unmapped = None;
        let end = loop {
            let ip = registers.ip();
            if ip == 0 && !frames.is_empty() {
                break End::Complete;
            }
            if frames.len() == MAX_FRAMES {
                break End::TooDeep;
            }
            // A return address may be that of the next function, if the call is the last instruction of the caller.
            let inside = if is_interrupted { ip } else { ip.wrapping_sub(1) };
            let code = self.code(inside, files);
            unmapped = code.is_none().then_some(inside);
            if code.is_none() && !frames.is_empty() {
                break End::Damaged;
            }
            frames.push(Frame {
                module: code.and_then(|code| code.module),
                offset: match code {
                    Some(Code {
                        module: Some(_),
                        address,
                        position,
                    }) => address.unwrap_or(position),
                    _ => inside,
                },
                address: inside,
                sp: registers.sp(),
                found_by,
            });
            let Some(code) = code else { break End::Damaged };
            let step = match code {
                Code {
                    module: Some(id),
                    address: Some(address),
                    ..
                } => files.step(id, address, &mut registers, memory),
                _ => Step::NoRule,
            };
            match step {
                Step::Caller {
                    is_interrupted: by_signal,
                } => (found_by, is_interrupted) = (FoundBy::Cfi, by_signal),
                Step::Root => break End::Complete,
                Step::Cut => break End::Cut,
                Step::Damaged => break End::Damaged,
                // Nobody called the first function of a fibre: the return address is the beginning of the one that ends it.
                Step::NoRule
                    if let Code {
                        module: Some(id),
                        address: Some(address),
                        ..
                    } = code
                        && found_by == FoundBy::Cfi
                        && files.has_function_at(id, address.saturating_add(1)) =>
                {
                    break End::Complete;
                }
                Step::NoRule => match self.by_frame_pointer(&registers, memory, found_by, files) {
                    Ok(caller) => (registers, found_by, is_interrupted) = (caller, FoundBy::FramePointer, false),
                    Err(NoCaller { end, unmapped: address }) => {
                        unmapped = address;
                        break end;
                    }
                },
            }
        };
        CallPath { frames, end, unmapped }
    }

    /// The caller by the frame pointer, if what it points to looks like a frame: above the stack pointer, with a return
    /// address after a call instruction.
    fn by_frame_pointer(
        &mut self,
        registers: &Registers,
        memory: Memory<'_>,
        found_by: FoundBy,
        files: &mut Files,
    ) -> Result<Registers, NoCaller> {
        let bp = registers.bp().ok_or(End::NoInformation)?;
        if bp == 0 && found_by == FoundBy::FramePointer {
            // The first frame of a thread has no frame pointer.
            return Err(End::Complete.into());
        }
        if bp < registers.sp() || bp % 8 != 0 {
            return Err(End::NoInformation.into());
        }
        let (Some(caller), Some(ip)) = (memory.word(bp), memory.word(bp.wrapping_add(8))) else {
            let end = if memory.is_above(bp.saturating_add(8)) {
                End::Cut
            } else {
                End::NoInformation
            };
            return Err(end.into());
        };
        if ip == 0 && found_by == FoundBy::FramePointer {
            return Err(End::Complete.into());
        }
        let inside = ip.wrapping_sub(1);
        let code = self.code(inside, files).ok_or(NoCaller {
            end: End::NoInformation,
            unmapped: Some(inside),
        })?;
        if let Some(id) = code.module
            && files.is_after_call(id, code.position.saturating_add(1)) == Some(false)
        {
            return Err(End::NoInformation.into());
        }
        Ok(Registers::new(ip, bp.wrapping_add(16), Some(caller)))
    }
}
