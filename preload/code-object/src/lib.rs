//! Facts of the kernels in a code object: registers, spills, scratch and LDS from its notes, and a hash of each kernel's
//! code.
//!
//! Source: LLVM's AMDGPUUsage ("Code Object V3 to V6 Metadata", "ELF Code Object"). All input is untrusted: what is not
//! as expected makes a fact unknown. Tables and code are read in pieces, so that a large code object takes little memory.

#![deny(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
mod code;
mod elf;
mod metadata;

pub use self::elf::Source;

/// Facts of a kernel. `None`: the notes do not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Mangled name, without `.kd`.
    pub name: String,
    /// VGPRs of a work-item, with AGPRs where one file has both.
    pub vgpr: Option<u32>,
    /// AGPRs of a work-item.
    pub agpr: Option<u32>,
    /// SGPRs of a wave.
    pub sgpr: Option<u32>,
    /// Spilled VGPRs.
    pub vgpr_spills: Option<u32>,
    /// Spilled SGPRs.
    pub sgpr_spills: Option<u32>,
    /// Scratch of a work-item, bytes.
    pub scratch: Option<u32>,
    /// Static LDS of a work-group, bytes.
    pub lds: Option<u32>,
    /// Maximum work-items of a work-group.
    pub max_workgroup: Option<u32>,
    /// Lanes of a wave.
    pub wave_size: Option<u32>,
    /// Whether all work-groups have the same size.
    pub is_uniform: Option<bool>,
    /// Whether a work-group runs on both compute units of a work-group processor.
    pub is_wgp: Option<bool>,
    /// Whether it takes more scratch than `scratch` says.
    pub has_dynamic_stack: bool,
    /// Bytes of its code, with the functions that it calls; 0 unknown.
    pub code_bytes: u64,
    /// Hash of that code without relocated and pc-relative words; 0 unknown.
    pub hash: u64,
}

/// The kernels of a code object, and the target that it is for (`amdgcn-amd-amdhsa--gfx90a:xnack-`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The target; empty if the notes do not name it.
    pub target: String,
    /// The kernels.
    pub kernels: Vec<Kernel>,
}

/// Reads a code object; `None` if it has no notes that are understood.
pub fn read(source: &impl Source) -> Option<Object> {
    let file = elf::File::open(source)?;
    let mut object = metadata::parse(&file.notes()?)?;
    code::hash(&file, &mut object);
    Some(object)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]
mod tests;
