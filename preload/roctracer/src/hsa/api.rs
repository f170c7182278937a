//! Numbers and names of HSA's calls: as the headers of the loaded release number them, which is by its tables, core, AMD,
//! image, one behind the other.

use crate::loader;
use hsa_sys::function::{self, Function};
use hsa_sys::table::AmdLayout;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the loaded release's AMD table; 0 not known yet.
static AMD_SIZE: AtomicUsize = AtomicUsize::new(0);

/// AMD entries by the function that a release was the first to export, newest first.
const FIRSTS: [(&CStr, usize); 9] = [
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
const OLDEST: usize = 48;
/// From this many AMD entries on there are 14 image functions, before 13.
const WITH_SAMPLER_V2: usize = 72;

const fn size(entries: usize) -> usize {
    16 + 8 * entries
}

/// The layout is that of the tables that HSA gave us.
pub(super) fn know(layout: AmdLayout) {
    AMD_SIZE.store(layout.size, Ordering::Release);
}

/// The loaded release's layout, the newest while none is loaded.
pub(super) fn layout() -> AmdLayout {
    let known = AMD_SIZE.load(Ordering::Acquire);
    if known != 0 {
        return AmdLayout::of_size(known);
    }
    let Some((library, _)) = loader::loaded("libhsa-runtime64.so").into_iter().next() else {
        return AmdLayout::of_size(size(FIRSTS[0].1));
    };
    let entries = FIRSTS
        .iter()
        .find(|(name, _)| library.symbol(name).is_some())
        .map_or(OLDEST, |(_, entries)| *entries);
    let layout = AmdLayout::of_size(size(entries));
    know(layout);
    layout
}

/// AMD entries that are known of a layout. A newer release's own are not.
fn amd_entries(layout: AmdLayout) -> usize {
    (layout.size.saturating_sub(16) / 8).min(function::AMD.len())
}

/// The number of the first AMD function.
pub(super) const FIRST_AMD: usize = function::CORE.len();

/// The number of the first image function.
pub(super) fn first_image(layout: AmdLayout) -> usize {
    FIRST_AMD + amd_entries(layout)
}

/// One more than the last call's number, and the number behind it that the headers name DISPATCH.
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

/// The call's name; "unknown" for a number that is none, as the shipped library has it.
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

/// The call of this name.
pub(crate) fn operation(name: &CStr) -> Option<u32> {
    let name = name.to_str().ok()?;
    (0..count()).find(|operation| of(*operation).is_some_and(|function| function.name == name))
}
