//! Stubs of the exported functions. While recording is off, a stub jumps to the real function with all registers
//! intact; otherwise it loads its index and enters the gate. It also enters the gate before the control words are
//! mapped or the real function is known.

#![expect(unsafe_code, reason = "functions with the signature of the real ones")]
#![expect(unreachable_pub, reason = "exported by their symbols alone")]

use crate::state::{self, word};
use core::arch::naked_asm;
use roctop_ring::session::control;

macro_rules! stubs {
    ($($index:literal $op:literal $domain:ident $symbol:ident $name:literal $entry:tt $stream:ident $effect:ident $argument:ident $signature:literal $shown:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $symbol() {
                naked_asm!(
                    "mov r10, [rip + {page} + {control}]",
                    "test r10, r10",
                    "jz 3f",
                    "cmp qword ptr [r10 + {recording}], 0",
                    "jne 3f",
                    "2:",
                    "mov r10, [rip + {bare} + 8*{index}]",
                    "test r10, r10",
                    "jz 4f",
                    "jmp r10",
                    "3:",
                    "cmp qword ptr [rip + {page} + {paused}], 0",
                    "jne 2b",
                    "4:",
                    "mov r11d, {index}",
                    "jmp {gate}",
                    ".p2align 6",
                    index = const $index,
                    bare = sym super::gate::BARE,
                    page = sym state::PAGE,
                    control = const word::CONTROL * 8,
                    paused = const word::PAUSED * 8,
                    recording = const control::RECORDING * 8,
                    gate = sym super::gate::gate,
                )
            }
        )*

        /// The exported functions, in the table's order.
        pub(crate) static STUBS: [unsafe extern "C" fn(); hip_sys::function::COUNT] = [$($symbol),*];
    };
}

hip_sys::function::functions!(stubs);
