//! Numbers and names of HSA's calls, as the headers of the loaded release number them: consecutively by its core, AMD
//! and image tables.

use crate::loader;
use hsa_sys::function::{self, Function};
use hsa_sys::table::AmdLayout;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of the loaded release's AMD table in bytes; 0 until known.
static AMD_SIZE: AtomicUsize = AtomicUsize::new(0);

/// Number of AMD entries, by the function that a release was the first to export, newest first.
const FIRST_EXPORTS: [(&CStr, usize); 9] = [
    (c"hsa_amd_ais_file_read", 76),
    (c"hsa_amd_portable_export_dmabuf_v2", 74),
    (c"hsa_amd_signal_wait_all", 72),
    (c"hsa_amd_enable_logging", 71),
    (c"hsa_amd_vmem_address_reserve_align", 70),
    (c"hsa_amd_agent_set_async_scratch_limit", 68),
    (c"hsa_amd_vmem_address_reserve", 67),
    (c"hsa_amd_portable_export_dmabuf", 55),
    (c"hsa_amd_spm_acquire", 51),
];
const MIN_AMD_ENTRIES: usize = 48;
/// From this many AMD entries on there are 14 image functions instead of 13.
const WITH_SAMPLER_V2: usize = 72;

const fn size(entries: usize) -> usize {
    16 + 8 * entries
}

/// Sets the layout to that of HSA's tables.
pub(super) fn know(layout: AmdLayout) {
    AMD_SIZE.store(layout.size, Ordering::Release);
}

/// The loaded release's layout, or the newest while none is loaded.
pub(super) fn layout() -> AmdLayout {
    let known = AMD_SIZE.load(Ordering::Acquire);
    if known != 0 {
        return AmdLayout::of_size(known);
    }
    let Some((library, _)) = loader::loaded("libhsa-runtime64.so").into_iter().next() else {
        return AmdLayout::of_size(size(FIRST_EXPORTS[0].1));
    };
    let entries = FIRST_EXPORTS
        .iter()
        .find(|(name, _)| library.symbol(name).is_some())
        .map_or(MIN_AMD_ENTRIES, |(_, entries)| *entries);
    let layout = AmdLayout::of_size(size(entries));
    know(layout);
    layout
}

/// Number of known AMD entries of a layout, without those of newer releases.
fn amd_entries(layout: AmdLayout) -> usize {
    (layout.size.saturating_sub(16) / 8).min(function::AMD.len())
}

/// The number of the first AMD function.
pub(super) const FIRST_AMD: usize = function::CORE.len();

/// The number of the first image function.
pub(super) fn first_image(layout: AmdLayout) -> usize {
    FIRST_AMD + amd_entries(layout)
}

/// The last call's number plus one; the headers name the number after it DISPATCH.
pub(crate) fn count() -> u32 {
    let layout = layout();
    let images = if amd_entries(layout) >= WITH_SAMPLER_V2 {
        function::IMAGE.len()
    } else {
        function::IMAGE.len() - 1
    };
    (first_image(layout) + images + 1) as u32
}

fn of(operation: u32) -> Option<&'static Function> {
    let (layout, operation) = (layout(), operation as usize);
    if operation + 1 >= count() as usize {
        return None;
    }
    if let Some(function) = function::CORE.get(operation) {
        return Some(function);
    }
    if operation < first_image(layout) {
        return function::amd(layout, operation - FIRST_AMD);
    }
    function::IMAGE.get(operation - first_image(layout))
}

/// The call's name; "unknown" for an invalid number, as in the shipped library.
pub(crate) fn name(operation: u32) -> Option<&'static CStr> {
    static NAMES: OnceLock<HashMap<&'static str, CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let all = [&function::CORE[..], &function::AMD[..], &function::IMAGE[..]];
        let terminated = |function: &Function| Some((function.name, CString::new(function.name).ok()?));
        all.iter().copied().flatten().filter_map(terminated).collect()
    });
    let Some(function) = of(operation) else {
        return Some(c"unknown");
    };
    names.get(function.name).map(CString::as_c_str)
}

/// The call with this name.
pub(crate) fn operation(name: &CStr) -> Option<u32> {
    let name = name.to_str().ok()?;
    (0..count()).find(|operation| of(*operation).is_some_and(|function| function.name == name))
}
