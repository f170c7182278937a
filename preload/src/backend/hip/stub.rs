//! The exported functions: each loads its index and goes to the gate. Nothing of a call's arguments is touched.

#![expect(unsafe_code, reason = "functions without a signature of their own")]
#![expect(unreachable_pub, reason = "exported by their symbols alone")]

use core::arch::naked_asm;

macro_rules! stubs {
    ($($index:literal $op:literal $domain:ident $symbol:ident $name:literal $returns:ident $arg:ident $stream:ident $effect:ident $words:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $symbol() {
                naked_asm!("mov r11d, {index}", "jmp {gate}", index = const $index, gate = sym super::gate::gate)
            }
        )*

        /// The exported functions, in the order of the table.
        pub(crate) static STUBS: [unsafe extern "C" fn(); hip_sys::function::COUNT] = [$($symbol),*];
    };
}

hip_sys::functions!(stubs);
