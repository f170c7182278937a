//! HIP functions for the checks: looked up by name, with every return code kept.

#![expect(unsafe_code, reason = "calls of the run-time")]

use crate::library::{Library, functions};
use crate::spin::{self, Arguments, WITNESS_WORDS};
use std::ffi::{c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// File names of the run-time, newest first.
pub(crate) const NAMES: [&str; 5] = [
    "libamdhip64.so.8",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// `hipError_t`.
type Code = i32;
/// A stream, event, module, function, graph or node.
pub(crate) type Handle = *mut c_void;
/// Argument of `hipModuleLaunchKernel`: grid, work-group, LDS, stream, arguments, extra.
type Launch =
    unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void) -> Code;
type CooperativeLaunch =
    unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void) -> Code;

functions! {
    /// HIP functions.
    Functions {
        get_device_count = c"hipGetDeviceCount": unsafe extern "C" fn(*mut i32) -> Code,
        set_device = c"hipSetDevice": unsafe extern "C" fn(i32) -> Code,
        malloc = c"hipMalloc": unsafe extern "C" fn(*mut *mut c_void, usize) -> Code,
        host_malloc = c"hipHostMalloc": unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> Code,
        memset_async = c"hipMemsetAsync": unsafe extern "C" fn(*mut c_void, i32, usize, Handle) -> Code,
        copy_up = c"hipMemcpyHtoDAsync": unsafe extern "C" fn(*mut c_void, *const c_void, usize, Handle) -> Code,
        copy_across = c"hipMemcpyDtoDAsync": unsafe extern "C" fn(*mut c_void, *mut c_void, usize, Handle) -> Code,
        copy_down = c"hipMemcpyDtoHAsync": unsafe extern "C" fn(*mut c_void, *mut c_void, usize, Handle) -> Code,
        stream_create = c"hipStreamCreateWithFlags": unsafe extern "C" fn(*mut Handle, u32) -> Code,
        stream_synchronize = c"hipStreamSynchronize": unsafe extern "C" fn(Handle) -> Code,
        stream_wait_event = c"hipStreamWaitEvent": unsafe extern "C" fn(Handle, Handle, u32) -> Code,
        device_synchronize = c"hipDeviceSynchronize": unsafe extern "C" fn() -> Code,
        event_create = c"hipEventCreate": unsafe extern "C" fn(*mut Handle) -> Code,
        event_record = c"hipEventRecord": unsafe extern "C" fn(Handle, Handle) -> Code,
        event_elapsed = c"hipEventElapsedTime": unsafe extern "C" fn(*mut f32, Handle, Handle) -> Code,
        module_load = c"hipModuleLoadData": unsafe extern "C" fn(*mut Handle, *const c_void) -> Code,
        module_function = c"hipModuleGetFunction": unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Code,
        module_launch = c"hipModuleLaunchKernel": Launch,
        graph_create = c"hipGraphCreate": unsafe extern "C" fn(*mut Handle, u32) -> Code,
        graph_add_memset = c"hipGraphAddMemsetNode":
            unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const Memset) -> Code,
        graph_instantiate = c"hipGraphInstantiate":
            unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut c_char, usize) -> Code,
        graph_launch = c"hipGraphLaunch": unsafe extern "C" fn(Handle, Handle) -> Code,
    }
}

/// `hipMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memset {
    pub(crate) target: *mut c_void,
    pub(crate) element: u32,
    pub(crate) height: usize,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    pub(crate) width: usize,
}

const _: () = assert!(size_of::<Memset>() == 48);

/// HIP's version, as it reports it.
pub(crate) fn version(library: Library) -> Option<String> {
    let function = library.find(c"hipRuntimeGetVersion")?;
    // SAFETY: the function of this name has this type in every release.
    let get: unsafe extern "C" fn(*mut i32) -> Code = unsafe { std::mem::transmute(function) };
    let mut version = 0;
    // SAFETY: there is room for the answer.
    let code = unsafe { get(&raw mut version) };
    (code == 0).then(|| {
        format!(
            "{}.{}.{}",
            version / 10_000_000,
            version / 100_000 % 100,
            version % 100_000
        )
    })
}

/// HIP, with the return codes of all calls so far.
#[derive(Debug)]
pub(crate) struct Hip {
    pub(crate) call: Functions,
    /// `hipModuleLaunchCooperativeKernel`; `None` before 5.5.
    cooperative: Option<CooperativeLaunch>,
    codes: Mutex<Vec<(&'static str, Code)>>,
}

impl Hip {
    /// Loads HIP.
    pub(crate) fn load() -> Result<Self, String> {
        let library = Library::open(&NAMES)?;
        let cooperative = library.find(c"hipModuleLaunchCooperativeKernel");
        Ok(Self {
            call: Functions::load(library)?,
            // SAFETY: the function of this name has this type in every release that has it.
            cooperative: cooperative.map(|function| unsafe { std::mem::transmute(function) }),
            codes: Mutex::new(Vec::new()),
        })
    }

    /// Stores a return code; true for success.
    pub(crate) fn keep(&self, name: &'static str, code: Code) -> bool {
        if let Ok(mut codes) = self.codes.lock() {
            codes.push((name, code));
        }
        code == 0
    }

    /// All calls so far: their number, a hash of all codes, and the first failure.
    pub(crate) fn codes(&self) -> (usize, u32, Option<(&'static str, Code)>) {
        let Ok(codes) = self.codes.lock() else {
            return (0, 0, None);
        };
        let bytes = codes.iter().flat_map(|(_, code)| code.to_le_bytes());
        let failed = codes.iter().find(|(_, code)| *code != 0).copied();
        (codes.len(), hash(bytes), failed)
    }

    /// Allocates GPU memory.
    pub(crate) fn device_memory(&self, bytes: usize) -> Result<*mut c_void, String> {
        let mut memory = std::ptr::null_mut();
        // SAFETY: there is room for the answer.
        if self.keep("hipMalloc", unsafe { (self.call.malloc)(&raw mut memory, bytes) }) {
            Ok(memory)
        } else {
            Err("hipMalloc failed".to_owned())
        }
    }

    /// Allocates zeroed host memory that the GPU can access.
    pub(crate) fn host_memory(&self, bytes: usize) -> Result<*mut u8, String> {
        let mut memory = std::ptr::null_mut();
        // SAFETY: there is room for the answer.
        if !self.keep("hipHostMalloc", unsafe {
            (self.call.host_malloc)(&raw mut memory, bytes, 0)
        }) {
            return Err("hipHostMalloc failed".to_owned());
        }
        // SAFETY: the memory was just allocated, of this size.
        unsafe { memory.cast::<u8>().write_bytes(0, bytes) };
        Ok(memory.cast())
    }

    /// A stream that does not synchronize with the default one.
    pub(crate) fn stream(&self) -> Handle {
        let mut stream = std::ptr::null_mut();
        // SAFETY: there is room for the answer.
        self.keep("hipStreamCreateWithFlags", unsafe {
            (self.call.stream_create)(&raw mut stream, 1)
        });
        stream
    }

    /// An event.
    pub(crate) fn event(&self) -> Handle {
        let mut event = std::ptr::null_mut();
        // SAFETY: there is room for the answer.
        self.keep("hipEventCreate", unsafe { (self.call.event_create)(&raw mut event) });
        event
    }

    /// Waits for a stream.
    pub(crate) fn wait(&self, stream: Handle) {
        // SAFETY: the stream is HIP's.
        self.keep("hipStreamSynchronize", unsafe {
            (self.call.stream_synchronize)(stream)
        });
    }
}

/// FNV-1a hash of bytes, which fits into a JSON number.
pub(crate) fn hash(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The spin kernel, loaded with HIP.
#[derive(Debug)]
pub(crate) struct Spin<'a> {
    hip: &'a Hip,
    function: Handle,
    /// One witness, shared by all launches.
    witness: &'static [AtomicU64],
    frequency: f64,
}

impl<'a> Spin<'a> {
    /// Loads the kernel for a GPU with this name.
    pub(crate) fn load(hip: &'a Hip, gfx: &str, frequency: f64) -> Result<Self, String> {
        let object = spin::object(gfx)?;
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the bytes are static and a whole code object; there is room for the answers; the name is terminated.
        let is_loaded = unsafe {
            (hip.call.module_load)(&raw mut module, object.as_ptr().cast()) == 0
                && (hip.call.module_function)(&raw mut function, module, spin::NAME.as_ptr()) == 0
        };
        if !is_loaded {
            return Err(format!("HIP does not load the spin kernel for {gfx}"));
        }
        let memory = hip.host_memory((WITNESS_WORDS + 1) * 8)?;
        Ok(Self {
            hip,
            function,
            // SAFETY: memory of this size that stays, aligned to a page, reached through atomics from now on.
            witness: unsafe { std::slice::from_raw_parts(memory.cast(), WITNESS_WORDS + 1) },
            frequency,
        })
    }

    /// Launches the kernel for some microseconds.
    pub(crate) fn launch(&self, stream: Handle, microseconds: f64) -> bool {
        let mut arguments = self.arguments(microseconds);
        let mut addresses = spin::addresses(&mut arguments);
        let nothing = std::ptr::null_mut();
        let launch = self.hip.call.module_launch;
        // SAFETY: the function is the module's, and the list has an address for each of its arguments.
        let code = unsafe {
            launch(
                self.function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                addresses.as_mut_ptr(),
                nothing,
            )
        };
        self.hip.keep("hipModuleLaunchKernel", code)
    }

    /// Launches it cooperatively, if HIP has a function for that.
    pub(crate) fn launch_cooperative(&self, stream: Handle) -> bool {
        let Some(launch) = self.hip.cooperative else {
            return false;
        };
        let mut arguments = self.arguments(5.0);
        let mut addresses = spin::addresses(&mut arguments);
        // SAFETY: as above.
        let code = unsafe { launch(self.function, 1, 1, 1, 1, 1, 1, 0, stream, addresses.as_mut_ptr()) };
        self.hip.keep("hipModuleLaunchCooperativeKernel", code)
    }

    fn arguments(&self, microseconds: f64) -> Arguments {
        Arguments {
            out: self.witness.as_ptr() as u64,
            ticks: (microseconds * self.frequency / 1e6) as u64,
            mark: std::ptr::from_ref(&self.witness[WITNESS_WORDS]) as u64,
            number: 1,
        }
    }

    /// Whether a kernel ran.
    pub(crate) fn has_run(&self) -> bool {
        self.witness[2].load(Ordering::Acquire) != 0
    }
}
