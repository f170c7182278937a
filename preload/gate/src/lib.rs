//! The path through a wrapped function, for all libraries that put stubs in front of a run-time's functions.
//!
//! A stub loads its index and jumps to a gate: an ordinary frame with unwind tables, so that exceptions and back-traces
//! pass. The gate saves six integer and four vector registers, and `al`, which counts the vector registers of variadic
//! calls. It copies stack arguments for the real function. A call that is not recorded continues with a jump and leaves
//! no frame.
//!
//! x86-64, System V calling convention. No wrapped function returns a value in a vector register.

#![cfg(target_arch = "x86_64")]

/// Bytes of a stub of [`stubs!`].
pub const STUB: usize = 16;

/// The saved registers of a call. The first field, named `passage`, of every gate's frame.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Passage {
    /// rdi, rsi, rdx, rcx, r8 and r9 as the caller set them.
    pub registers: [u64; 6],
    /// Index loaded by the stub.
    pub place: u64,
    rax: u64,
    vectors: [[u64; 2]; 4],
    /// The caller's arguments on the stack.
    pub stack: *const u64,
    /// 0: continue with a jump; else the number of stack words to copy, plus one.
    words: u64,
    /// rax and rdx at the function's return.
    result: [u64; 2],
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Passage>() == 160);
    assert!(offset_of!(Passage, place) == 48 && offset_of!(Passage, rax) == 56 && offset_of!(Passage, vectors) == 64);
    assert!(
        offset_of!(Passage, stack) == 128 && offset_of!(Passage, words) == 136 && offset_of!(Passage, result) == 144
    );
};

impl Passage {
    /// Makes the gate call the function, with a copy of `words` stack words, and then its exit hook.
    #[inline]
    pub fn come_back(&mut self, words: u64) {
        self.words = 1 + words.next_multiple_of(2);
    }

    /// The function's return value.
    #[inline]
    pub fn result(&self) -> u64 {
        let [result, _] = self.result;
        result
    }
}

/// Defines a gate: `gate!(fn name, Frame, enter, exit)`.
///
/// `Frame` is `repr(C, align(16))` and begins with the field `passage: Passage`; its other fields belong to the hooks
/// and are uninitialised. `enter: extern "C" fn(&mut Frame, place: u64) -> *const c_void` returns the real function's
/// address. The gate calls `exit: extern "C" fn(&mut Frame, result: u64)` after the function if `enter` called
/// [`Passage::come_back`]. A hook may omit the second argument, which the frame has too: from a register it is there
/// sooner.
#[macro_export]
macro_rules! gate {
    ($(#[$note:meta])* $visible:vis fn $name:ident, $frame:ty, $enter:path, $exit:path) => {
        const _: () = assert!(core::mem::offset_of!($frame, passage) == 0 && size_of::<$frame>().is_multiple_of(16));

        $(#[$note])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, {frame}",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov [rsp + 48], r11",
                "mov [rsp + 56], rax",
                "movaps [rsp + 64], xmm0",
                "movaps [rsp + 80], xmm1",
                "movaps [rsp + 96], xmm2",
                "movaps [rsp + 112], xmm3",
                "lea rax, [rbp + 16]",
                "mov [rsp + 128], rax",
                "mov qword ptr [rsp + 136], 0",
                "mov rdi, rsp",
                "mov rsi, r11",
                "call {enter}",
                "mov r11, rax",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "movaps xmm0, [rsp + 64]",
                "movaps xmm1, [rsp + 80]",
                "movaps xmm2, [rsp + 96]",
                "movaps xmm3, [rsp + 112]",
                "mov rax, [rsp + 56]",
                "mov r10, [rsp + 136]",
                "test r10, r10",
                "jz 2f",
                "dec r10",
                "jnz 4f",
                "call r11",
                // The stack pointer is unchanged here. It is not taken from rbp, which every function stores and
                // reloads.
                "3:",
                "mov [rsp + 144], rax",
                "mov [rsp + 152], rdx",
                "mov rdi, rsp",
                "mov rsi, rax",
                "call {exit}",
                "mov rax, [rsp + 144]",
                "mov rdx, [rsp + 152]",
                "add rsp, {frame}",
                ".cfi_remember_state",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_restore_state",
                // From last to first word; the first one is behind the return address.
                "4:",
                "push qword ptr [rbp + 8 + 8 * r10]",
                "dec r10",
                "jnz 4b",
                "call r11",
                "lea rsp, [rbp - {frame}]",
                "jmp 3b",
                "2:",
                "add rsp, {frame}",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                "jmp r11",
                ".cfi_endproc",
                frame = const size_of::<$frame>(),
                enter = sym $enter,
                exit = sym $exit,
            )
        }
    };
}

/// Defines `count` stubs, one per index, that jump to a gate: `stubs!(fn name, count, gate)`. The first begins at the
/// next multiple of [`STUB`].
#[macro_export]
macro_rules! stubs {
    (fn $name:ident, $count:expr, $gate:path) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                ".set .Lroctop_place, 0",
                ".rept {count}",
                ".p2align 4",
                // mov r11d, place
                ".byte 0x41, 0xbb",
                ".long .Lroctop_place",
                "jmp {gate}",
                ".set .Lroctop_place, .Lroctop_place + 1",
                ".endr",
                ".p2align 4",
                ".cfi_endproc",
                count = const $count,
                gate = sym $gate,
            )
        }
    };
}
