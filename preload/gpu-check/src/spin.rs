//! The spin kernel: a witness that stores the GPU's clock at its begin and end (`kernels/spin.cl`).

#![expect(unsafe_code, reason = "code objects and the witness's memory")]

use crate::hsa::{Gpu, Hsa, Kind, Lane, dispatch, done};
use hsa_sys::abi::{SignalHandle, info};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Name of the kernel.
pub(crate) const NAME: &std::ffi::CStr = c"roctop_spin";

macro_rules! objects {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../kernels/", $name, ".co")).as_slice()),)*]
    };
}

/// Code objects, by instruction set.
static OBJECTS: &[(&str, &[u8])] = objects! {
    "gfx900" "gfx906" "gfx908" "gfx90a" "gfx942" "gfx950" "gfx1010" "gfx1030" "gfx1100" "gfx1101" "gfx1102" "gfx1103" "gfx1150"
    "gfx1151" "gfx1200" "gfx1201" "gfx9-generic" "gfx9-4-generic" "gfx10-1-generic" "gfx10-3-generic" "gfx11-generic" "gfx12-generic"
};

/// Generic instruction set of a GPU.
fn generic(gfx: &str) -> Option<&'static str> {
    let number = gfx.strip_prefix("gfx")?;
    let generic = match number {
        "902" | "904" | "90c" => "gfx9-generic",
        "1011" | "1012" | "1013" => "gfx10-1-generic",
        _ if number.starts_with("94") || number.starts_with("95") => "gfx9-4-generic",
        _ if number.starts_with("103") => "gfx10-3-generic",
        _ if number.starts_with("11") => "gfx11-generic",
        _ if number.starts_with("120") => "gfx12-generic",
        _ => return None,
    };
    Some(generic)
}

/// Code object for a GPU.
pub(crate) fn object(gfx: &str) -> Result<&'static [u8], String> {
    let find = |name: &str| OBJECTS.iter().find(|(known, _)| *known == name);
    let found = find(gfx).or_else(|| generic(gfx).and_then(find));
    found
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| format!("there is no spin kernel for {gfx}"))
}

/// The kernel's arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) out: u64,
    pub(crate) ticks: u64,
    pub(crate) mark: u64,
    pub(crate) number: u64,
}

/// Words stored by one launch: begin, end, number.
pub(crate) const WITNESS_WORDS: usize = 4;
/// Size of one launch's arguments, bytes.
const ARGUMENT_BYTES: usize = 64;

/// The kernel, loaded with HSA for one GPU, with memory for some launches.
#[derive(Debug)]
pub(crate) struct Spin {
    gpu: Gpu,
    kernel_object: u64,
    sizes: [u32; 2],
    arguments: usize,
    witness: &'static [AtomicU64],
    mark: u64,
    launches: usize,
}

impl Spin {
    /// Loads the kernel.
    pub(crate) fn load(hsa: &'static Hsa, gpu: Gpu, launches: usize) -> Result<Self, String> {
        let bytes = object(&hsa.gfx(gpu))?;
        let (mut reader, mut executable, mut symbol) = (0, 0, 0);
        let call = &hsa.call;
        // SAFETY: the bytes are static; each call has room for its answer; 0 is the base profile's default rounding.
        unsafe {
            done(
                "hsa_code_object_reader_create_from_memory",
                (call.reader_create)(bytes.as_ptr().cast(), bytes.len(), &raw mut reader),
            )?;
            done(
                "hsa_executable_create_alt",
                (call.executable_create)(1, 0, std::ptr::null(), &raw mut executable),
            )?;
            done(
                "hsa_executable_load_agent_code_object",
                (call.executable_load)(executable, gpu.handle, reader, std::ptr::null(), std::ptr::null_mut()),
            )?;
            done(
                "hsa_executable_freeze",
                (call.executable_freeze)(executable, std::ptr::null()),
            )?;
            done(
                "hsa_executable_get_symbol_by_name",
                (call.executable_symbol)(
                    executable,
                    c"roctop_spin.kd".as_ptr(),
                    &raw const gpu.handle,
                    &raw mut symbol,
                ),
            )?;
        }
        let mut kernel_object = 0u64;
        let mut sizes = [0u32; 2];
        // SAFETY: these attributes have 64, 32 and 32 bits.
        unsafe {
            (call.symbol_get_info)(symbol, info::KERNEL_OBJECT, (&raw mut kernel_object).cast());
            (call.symbol_get_info)(symbol, info::PRIVATE_SIZE, (&raw mut sizes[0]).cast());
            (call.symbol_get_info)(symbol, info::GROUP_SIZE, (&raw mut sizes[1]).cast());
        }
        if kernel_object == 0 {
            return Err("HSA names no address of the spin kernel".to_owned());
        }
        let words = (launches + 1) * WITNESS_WORDS;
        let memory = hsa.host_memory(Kind::Kernarg, words * 8)?;
        Ok(Self {
            gpu,
            kernel_object,
            sizes,
            arguments: hsa.host_memory(Kind::Kernarg, launches * ARGUMENT_BYTES)? as usize,
            // SAFETY: memory of this size that stays, aligned to a page, reached through atomics from now on.
            witness: unsafe { std::slice::from_raw_parts(memory.cast(), words) },
            mark: memory as u64 + (launches * WITNESS_WORDS * 8) as u64,
            launches,
        })
    }

    /// Makes the kernel store its marks at this address instead.
    pub(crate) fn mark_at(&mut self, address: u64) {
        self.mark = address;
    }

    /// Launches the kernel for a duration; `launch` is the index of its witness.
    pub(crate) fn launch(
        &self,
        lane: &Lane,
        launch: usize,
        length: Duration,
        signal: SignalHandle,
        limit: Duration,
    ) -> Result<u64, String> {
        assert!(launch < self.launches);
        let arguments = Arguments {
            out: std::ptr::from_ref(&self.witness[launch * WITNESS_WORDS]) as u64,
            ticks: (length.as_secs_f64() * self.gpu.frequency) as u64,
            mark: self.mark,
            number: launch as u64 + 1,
        };
        let place = self.arguments + launch * ARGUMENT_BYTES;
        // SAFETY: there is room for the arguments of each launch, aligned to 64 bytes; its kernel is not running yet.
        unsafe { (place as *mut Arguments).write(arguments) };
        lane.submit(dispatch(self.kernel_object, place as u64, self.sizes, signal), limit)
    }

    /// Begin and end of a launch in ticks of the GPU's clock; `None` if the kernel did not run.
    pub(crate) fn witness(&self, launch: usize) -> Option<[u64; 2]> {
        let words = &self.witness[launch * WITNESS_WORDS..][..3];
        let [begin, end, number] = [0, 1, 2].map(|word| words[word].load(Ordering::Acquire));
        (number == launch as u64 + 1).then_some([begin, end])
    }

    /// Whether a launch has begun, by its first store.
    pub(crate) fn has_begun(&self, launch: usize) -> bool {
        self.witness[launch * WITNESS_WORDS].load(Ordering::Acquire) != 0
    }

    /// Converts GPU ticks to nanoseconds.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e9 / self.gpu.frequency
    }
}

/// The arguments for HIP's launch: a list of addresses.
pub(crate) fn addresses(arguments: &mut Arguments) -> [*mut c_void; 4] {
    [
        (&raw mut arguments.out).cast(),
        (&raw mut arguments.ticks).cast(),
        (&raw mut arguments.mark).cast(),
        (&raw mut arguments.number).cast(),
    ]
}

/// Text of a check where kernels do not run: on an emulated GPU.
pub(crate) const NO_WITNESS: &str = "the kernel did not run; no witness";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_cards_have_a_kernel() {
        for gfx in ["gfx90a", "gfx942", "gfx950", "gfx941", "gfx1032", "gfx1152", "gfx1201"] {
            assert!(object(gfx).is_ok(), "{gfx}");
        }
        assert_eq!(object("gfx1250").unwrap_err(), "there is no spin kernel for gfx1250");
    }

    /// Instruction set of a code object (`EF_AMDGPU_MACH_*` in LLVM's User Guide for AMDGPU Backend).
    #[test]
    fn a_code_object_is_of_the_instruction_set_that_names_it() {
        const MACHINES: [(&str, u8); 22] = [
            ("gfx900", 0x2c),
            ("gfx906", 0x2f),
            ("gfx908", 0x30),
            ("gfx90a", 0x3f),
            ("gfx942", 0x4c),
            ("gfx950", 0x4f),
            ("gfx1010", 0x33),
            ("gfx1030", 0x36),
            ("gfx1100", 0x41),
            ("gfx1101", 0x46),
            ("gfx1102", 0x47),
            ("gfx1103", 0x44),
            ("gfx1150", 0x43),
            ("gfx1151", 0x4a),
            ("gfx1200", 0x48),
            ("gfx1201", 0x4e),
            ("gfx9-generic", 0x51),
            ("gfx9-4-generic", 0x5f),
            ("gfx10-1-generic", 0x52),
            ("gfx10-3-generic", 0x53),
            ("gfx11-generic", 0x54),
            ("gfx12-generic", 0x59),
        ];
        assert_eq!(OBJECTS.len(), MACHINES.len());
        for (name, machine) in MACHINES {
            let bytes = OBJECTS.iter().find(|(known, _)| *known == name).unwrap().1;
            // ELF of 64 bits for AMDGPU, HSA's; version 4 of code objects, or 6 of generic ones.
            let (class, abi, target) = (bytes[4], [bytes[7], bytes[8]], [bytes[18], bytes[19]]);
            let version = if name.ends_with("-generic") { 4 } else { 2 };
            assert_eq!(
                (&bytes[..4], class, abi, target),
                (&b"\x7fELF"[..], 2, [64, version], [224, 0]),
                "{name}"
            );
            assert_eq!(bytes[48], machine, "{name}");
            assert!(
                bytes.windows(NAME.count_bytes()).any(|part| part == NAME.to_bytes()),
                "{name}"
            );
        }
    }
}
