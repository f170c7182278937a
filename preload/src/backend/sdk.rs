//! Hardware counters through rocprofiler-sdk 0.4 to 1.x, loaded at run time if counters are requested.
//!
//! A run-time built with rocprofiler-register passes its tables to [`rocprofiler_set_api_table`] of this library. It
//! passes them on to the SDK and then wraps them (`backend::register`); the SDK finds [`rocprofiler_configure`] and
//! configures us. The two are exported together: with only one, the register library aborts the program. The
//! declarations follow the published ABI; records of unknown size are counted and skipped.
//!
//! Other services of the SDK are not used. Kernels that it counts are serialized, so the screen shows `SERIALIZED`.

#![expect(unsafe_code, reason = "entry points of the register library and calls of the SDK")]

pub(crate) mod abi;
mod counters;
mod device;
mod dispatch;
mod request;
mod rest;
mod sampling;
mod values;

use crate::backend::register;
use crate::collector;
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::real;
use crate::thread;
pub(crate) use rest::follow as follow_the_viewer;

use abi::{Configured, Sdk, status_text};
use request::{Mode, Request};
use roctop_ring::record::status;
use roctop_ring::session::{ENV_COUNTERS, ENV_SDK};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Oldest release whose records are known, as `10000 * major + 100 * minor`.
const OLDEST: u32 = 400;
/// First major version with unknown records.
const NEWEST: u32 = 20_000;
/// Status if nobody wants a table: the run-time continues as without us.
const NOT_WANTED: c_int = 1;

static REQUEST: OnceLock<Option<Request>> = OnceLock::new();
static SDK: OnceLock<Option<Sdk>> = OnceLock::new();
/// 1 once the SDK has called `rocprofiler_configure`.
static CONFIGURED: AtomicU64 = AtomicU64::new(0);
/// 1 once HSA's table was passed on.
static HAS_HSA: AtomicU64 = AtomicU64::new(0);
/// Number of records of unknown size.
static UNKNOWN: AtomicU64 = AtomicU64::new(0);

/// The request; `None` without counters.
fn request() -> Option<&'static Request> {
    let read = || Request::parse(&std::env::var(ENV_COUNTERS).ok()?);
    REQUEST.get_or_init(read).as_ref()
}

/// Whether the SDK is the source of dispatches.
pub(crate) fn is_counting() -> bool {
    collector::are_dispatches_claimed()
}

/// Index of the agent with this position in HSA's order.
pub(crate) fn index_in_order(order: u32, node: u32, kind: u32) -> u32 {
    counters::index_in_order(order, node, kind)
}

fn say_missing(what: &str) {
    if let Some(process) = process::get() {
        process.say(status::UNAVAILABLE, 0, &format!("counters: {what}"));
    }
}

/// The SDK, loaded at the first call. `beside` is an address in the run-time that it must match.
fn sdk(beside: *const c_void) -> Option<&'static Sdk> {
    let load = || {
        let mut tried = Vec::new();
        for path in places(beside) {
            let Some(library) = real::open(&path) else {
                tried.push(path.to_string_lossy().into_owned());
                continue;
            };
            let sdk = Sdk::load(library);
            let version = sdk.version();
            if !(OLDEST..NEWEST).contains(&version) {
                let (major, minor) = (version / 10_000, version / 100 % 100);
                say_missing(&format!(
                    "{} is rocprofiler-sdk {major}.{minor}; this release of roctop knows 0.4 to 1.x",
                    path.to_string_lossy()
                ));
                return None;
            }
            return Some(sdk);
        }
        say_missing(&format!(
            "rocprofiler-sdk was not found ({}); install rocprofiler-sdk of the same ROCm release, or name its library in {ENV_SDK}",
            tried.join(", ")
        ));
        None
    };
    SDK.get_or_init(load).as_ref()
}

/// Possible locations of the SDK: the user's setting, loaded libraries, the run-time's directory, the loader's search
/// path and ROCm's default.
fn places(beside: *const c_void) -> Vec<CString> {
    if let Some(named) = std::env::var(ENV_SDK).ok().filter(|path| !path.is_empty()) {
        return CString::new(named).into_iter().collect();
    }
    let names = ["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"];
    let directory = real::library_of(beside).and_then(|file| {
        let text = file.to_string_lossy().into_owned();
        text.rsplit_once('/').map(|(directory, _)| directory.to_owned())
    });
    let near = directory
        .iter()
        .flat_map(|directory| names.map(|name| format!("{directory}/{name}")));
    let roots = [std::env::var("ROCM_PATH").ok(), Some("/opt/rocm".to_owned())];
    let far = roots.into_iter().flatten().filter(|root| !root.is_empty());
    let far = far.flat_map(|root| names.map(|name| format!("{root}/lib/{name}")));
    let all = near.chain(names.map(str::to_owned)).chain(far);
    let loaded = real::loaded("librocprofiler-sdk.so").map(|(_, path)| path);
    loaded
        .into_iter()
        .chain(all.filter_map(|path| CString::new(path).ok()))
        .collect()
}

/// Whether the program contains another tool that the SDK would serve.
fn has_other_client() -> bool {
    real::next(c"rocprofiler_configure").is_some()
        || std::env::var_os("ROCP_TOOL_LIBRARIES").is_some_and(|libraries| !libraries.is_empty())
}

/// The register library passes a run-time's table. It goes to the SDK first if counters are requested or another tool
/// is present; the status says whether anybody took it.
///
/// # Safety
/// Called by rocprofiler-register with the tables of a run-time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    name: *const c_char,
    version: u64,
    instance: u64,
    tables: *mut *mut c_void,
    count: u64,
) -> c_int {
    let forward = wall(None, || {
        let _errno = Errno::keep();
        let wanted = request().is_some() && thread::current().is_some();
        if !wanted && !has_other_client() {
            return None;
        }
        thread::aside(|| {
            // SAFETY: the register library passes `count` tables, each with its size and then functions.
            let function = unsafe { first_function(tables, count) };
            sdk(function)?.set_api_table
        })
    });
    // SAFETY: null or terminated.
    let is_hsa = unsafe { bytes_of(name) } == b"hsa" && forward.is_some();
    // `pass_on_from_tools_entry` passed it on; a library that gets it twice would call itself.
    let forward = forward.filter(|_| !is_hsa || HAS_HSA.swap(1, Ordering::AcqRel) == 0);
    let theirs = match forward {
        // SAFETY: the SDK's function of the same name and type gets the caller's own arguments.
        Some(set) => unsafe { set(name, version, instance, tables, count) },
        None => NOT_WANTED,
    };
    let ours = wall(NOT_WANTED, || {
        let _errno = Errno::keep();
        // SAFETY: the caller's own arguments.
        unsafe { register::hand_over(name, version, tables, count, theirs == 0) }
    });
    if ours == 0 { ours } else { theirs }
}

/// First function of the first table: an address in the run-time.
unsafe fn first_function(tables: *mut *mut c_void, count: u64) -> *const c_void {
    if tables.is_null() || count == 0 {
        return std::ptr::null();
    }
    // SAFETY: there is at least one table.
    let table = unsafe { tables.read() }.cast::<*const c_void>();
    if table.is_null() {
        return std::ptr::null();
    }
    // SAFETY: word 0 is the table's size, or its version with the size in the upper half.
    let size = unsafe { table.read() } as usize;
    let word = if size >= 24 { 2 } else { 1 };
    // SAFETY: inside the table, which has one function at least.
    unsafe { table.add(word).read() }
}

/// The SDK asks whether to make us its client.
///
/// # Safety
/// Called by the SDK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    version: u32,
    _runtime: *const c_char,
    _priority: u32,
    client: *mut c_void,
) -> *const Configured {
    let wanted = wall(false, || {
        let _errno = Errno::keep();
        // The request comes from this library or from a run-time's first call. Another copy of the SDK may ask again.
        let is_traced = thread::is_aside() || thread::current().is_some();
        request().is_some() && is_traced && CONFIGURED.swap(1, Ordering::AcqRel) == 0
    });
    if !wanted {
        return std::ptr::null();
    }
    if version >= 10_000 && !client.is_null() {
        // SAFETY: from 1.0 on the id is {size, name, handle}; the name is ours to set, and is never freed.
        unsafe { client.cast::<*const c_char>().add(1).write(c"roctop".as_ptr()) };
    }
    &raw const abi::CONFIGURED
}

/// The SDK is ready to be configured.
unsafe extern "C" fn initialize(_finalize: *const c_void, _data: *mut c_void) -> c_int {
    wall((), || {
        let _errno = Errno::keep();
        thread::aside(|| {
            if let (Some(request), Some(process)) = (request(), process::get())
                && let Some(sdk) = SDK.get().and_then(Option::as_ref)
            {
                begin(sdk, request, process);
            }
        });
    });
    0
}

/// Nothing must be done at the end: the SDK holds a lock here.
unsafe extern "C" fn finalize(_data: *mut c_void) {}

fn begin(sdk: &'static Sdk, request: &'static Request, process: &'static Process) {
    counters::define(sdk);
    let found = counters::find(sdk, request, process);
    let counts = request.mode != Mode::Sample && !request.wanted.is_empty();
    if let Some(reason) = lacks_packets().filter(|_| counts) {
        return say_missing(&reason);
    }
    match request.mode {
        Mode::List => sampling::emit(sdk, process, &found),
        Mode::Sample => {
            if sampling::begin(sdk, request, process, found) {
                collector::claim_dispatches();
            }
        }
        Mode::Dispatch => {
            if dispatch::begin(sdk, request, process, found) {
                collector::claim_dispatches();
            }
        }
        Mode::Device => device::begin(sdk, request, process, &found),
    }
}

/// HSA loads the library that makes counter packets by its own name, when the first queue is counted. If it cannot,
/// rocprofiler-sdk (1.0) aborts the program, so it is looked up in advance.
fn lacks_packets() -> Option<String> {
    const NAME: &CStr = c"libhsa-amd-aqlprofile64.so";
    let name = NAME.to_string_lossy();
    // The SDK is linked with a versioned name of it.
    let (_, path) = real::loaded(&name)?;
    let path = path.to_string_lossy();
    let beside = path
        .rsplit_once('/')
        .map(|(directory, _)| format!("{directory}/{name}"));
    let is_there = real::open(NAME).is_some() || beside.is_some_and(|beside| std::fs::exists(beside).unwrap_or(false));
    (!is_there).then(|| {
        format!(
            "HSA loads {name} to count, and it is not there (there is {path}): install its package of the same ROCm release, or \
make a link of that name where the loader looks"
        )
    })
}

/// In a process that was started to list counters: asks the SDK at once, without a run-time.
pub(crate) fn at_load() {
    let is_list = request().is_some_and(|request| request.mode == Mode::List);
    if !is_list || thread::current().is_none() {
        return;
    }
    thread::aside(|| {
        let Some(sdk) = sdk(std::ptr::null()) else { return };
        let Some(force) = sdk.force_configure else {
            return say_missing("this rocprofiler-sdk has no rocprofiler_force_configure");
        };
        // SAFETY: the function has the type asked for.
        let answer = unsafe { force(rocprofiler_configure) };
        if answer != abi::SUCCESS {
            say_missing(&format!("rocprofiler-sdk did not start: {}", status_text(sdk, answer)));
        }
    });
}

/// HSA's table arrives at the tools' entry point, before it is patched. A run-time built without the register passes it
/// to nobody else, so the SDK gets it from here, unless another tool may pass it on.
///
/// # Safety
/// `root` is the run-time's own root table.
pub(crate) unsafe fn pass_on_from_tools_entry(root: *mut c_void, version: u64) {
    if request().is_none() || HAS_HSA.load(Ordering::Acquire) != 0 {
        return;
    }
    if has_other_tool() {
        if let Some(process) = process::get() {
            let text = "counters: HSA has handed its table to nobody; it is left to the other tool of HSA that is here";
            process.say(status::NOTE, 0, text);
        }
        return;
    }
    let set = thread::aside(|| {
        let table = root.cast::<*const c_void>();
        // SAFETY: the root has its version, two words, and then the address of the core table, whose functions come
        // behind its own version.
        let function = unsafe { table.add(2).read().cast::<*const c_void>().add(2).read() };
        sdk(function)?.set_api_table
    });
    let Some(set) = set else { return };
    HAS_HSA.store(1, Ordering::Release);
    let mut tables = [root];
    // SAFETY: the SDK's function gets what the register library would pass.
    thread::aside(|| unsafe { set(c"hsa".as_ptr(), version, 0, tables.as_mut_ptr(), 1) });
}

/// Whether HSA loads a tool other than this library.
fn has_other_tool() -> bool {
    let own = real::library_of(rocprofiler_set_api_table as *const c_void);
    let own = own.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let named = std::env::var("HSA_TOOLS_LIB").unwrap_or_default();
    let is_own = |path: &str| path.is_empty() || path == own || path.ends_with("/libroctop_preload.so");
    !named.split([' ', ':']).all(is_own) || register::has_other_tool()
}

/// Counts a record of unknown size.
fn count_unknown(what: &str, size: u64) {
    let count = UNKNOWN.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_power_of_two()
        && let Some(process) = process::get()
    {
        let text = format!("counters: {count} {what} of an unknown size ({size} bytes) passed over");
        process.say(status::NOTE, count, &text);
    }
}

/// A string of the SDK.
///
/// # Safety
/// `text` is null or terminated.
unsafe fn bytes_of<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
