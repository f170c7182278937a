//! PC sampling: periodic samples of the waves' program counters. A beta feature of the SDK, for MI200 and later.

use super::abi::{
    self, NOT_IMPLEMENTED, RecordHeader, SUCCESS, SamplingConfiguration, Sdk, Status, sampling_method, sampling_unit,
    status_text,
};
use super::counters::OnAgent;
use super::request::{Request, Sampling};
use super::{count_unknown, dispatch, say_missing};
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::thread;
use roctop_ring::record::{self, Domain, PcSample, status};
use std::ffi::{c_int, c_void};

/// Variable that the SDK requires for sampling.
const BETA: &std::ffi::CStr = c"ROCPROFILER_PC_SAMPLING_BETA_ENABLED";
/// Size of the SDK's buffer, and fill level at which it is delivered, bytes.
const BUFFER_BYTES: (usize, usize) = (1 << 20, 1 << 19);
/// `ROCPROFILER_BUFFER_POLICY_LOSSLESS`.
const LOSSLESS: c_int = 2;
/// `ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING`.
const CATEGORY: u32 = 2;
/// `ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE` and `_STOCHASTIC_V0_SAMPLE`.
const HOST_TRAP: u32 = 2;
const STOCHASTIC: u32 = 3;
/// Number of bytes of their records (1.0) that are read.
const HOST_TRAP_BYTES: u64 = 88;
const STOCHASTIC_BYTES: u64 = 104;

/// Configurations that an agent offers.
///
/// Errors: the reason why it offers none.
fn offered(sdk: &Sdk, agent: u64) -> Result<Vec<SamplingConfiguration>, String> {
    let Some(query) = sdk.sampling_configurations else {
        return Err("this rocprofiler-sdk has none".into());
    };
    // SAFETY: both texts are terminated; a value of the user's stays.
    unsafe { libc::setenv(BETA.as_ptr(), c"1".as_ptr(), 0) };
    let mut found: Vec<SamplingConfiguration> = Vec::new();
    // SAFETY: `collect` has the type asked for and gets the address of `found`, which lives meanwhile.
    match unsafe { query(agent, collect, (&raw mut found).cast()) } {
        SUCCESS if found.is_empty() => Err("this GPU offers none".into()),
        SUCCESS => Ok(found),
        answer => Err(why(sdk, answer)),
    }
}

/// Reason of a refusal, with advice.
fn why(sdk: &Sdk, answer: Status) -> String {
    let meaning = status_text(sdk, answer);
    match answer {
        NOT_IMPLEMENTED => {
            format!("{meaning}: it is a beta of rocprofiler-sdk, off while {BETA:?} is off in the environment")
        }
        abi::NOT_AVAILABLE => {
            format!("{meaning}: this GPU has no PC sampling (MI200 and later have), or another process samples it")
        }
        abi::OLD_DRIVER => format!("{meaning}: it takes a newer amdgpu driver"),
        _ => meaning,
    }
}

unsafe extern "C" fn collect(configurations: *const SamplingConfiguration, count: usize, data: *mut c_void) -> Status {
    wall((), || {
        // SAFETY: `data` is the address of the list that `offered` passed, `configurations` that of `count` of them.
        unsafe { &mut *data.cast::<Vec<SamplingConfiguration>>() }
            .extend((0..count.min(64)).map(|at| unsafe { configurations.add(at).read() }));
    });
    SUCCESS
}

/// Emits the configurations of all agents.
pub(super) fn emit(sdk: &Sdk, process: &Process, agents: &[OnAgent]) {
    for agent in agents {
        match offered(sdk, agent.id) {
            Ok(all) => {
                for one in all {
                    let fact = record::SamplingConfiguration {
                        minimum: one.minimum,
                        maximum: one.maximum,
                        flags: one.flags,
                        agent: agent.index,
                        method: one.method as u16,
                        unit: one.unit as u16,
                    };
                    process.fact(record::SamplingConfiguration::head(0, Domain::NONE), &fact.payload());
                }
            }
            Err(reason) => process.say(status::NOTE, 0, &format!("PC sampling: {reason}")),
        }
    }
}

/// Starts sampling. Dispatches then come from the SDK, because samples refer to them.
pub(super) fn begin(sdk: &'static Sdk, request: &'static Request, process: &Process, agents: Vec<OnAgent>) -> bool {
    let Some(wanted) = request.sampling else { return false };
    if sdk.version() < 10_000 {
        say_missing("PC sampling takes rocprofiler-sdk 1.0 or later");
        return false;
    }
    let (Some(create), Some(buffer), Some(sample)) = (sdk.create_context, sdk.create_buffer, sdk.sample) else {
        say_missing("this rocprofiler-sdk has no PC sampling");
        return false;
    };
    let (mut context, mut room) = (0u64, 0u64);
    // SAFETY: room for the answer.
    let mut answer = unsafe { create(&raw mut context) };
    if answer == SUCCESS {
        // SAFETY: the function has the type asked for.
        answer = unsafe {
            buffer(
                context,
                BUFFER_BYTES.0,
                BUFFER_BYTES.1,
                LOSSLESS,
                sampled,
                std::ptr::null_mut(),
                &raw mut room,
            )
        };
    }
    if answer != SUCCESS {
        say_missing(&format!("PC sampling: {}", why(sdk, answer)));
        return false;
    }
    let mut is_any = false;
    for agent in &agents {
        let refused = match offered(sdk, agent.id) {
            Err(reason) => Some(reason),
            Ok(all) if !all.iter().any(|one| wanted.fits(one)) => Some(format!(
                "{} is not offered, but {}",
                wanted.text(),
                all.iter()
                    .map(SamplingConfiguration::text)
                    .collect::<Vec<_>>()
                    .join("; ")
            )),
            Ok(_) => {
                // SAFETY: a plain call; no flags are defined.
                let answer = unsafe { sample(context, agent.id, wanted.method, wanted.unit, wanted.interval, room, 0) };
                (answer != SUCCESS).then(|| why(sdk, answer))
            }
        };
        match refused {
            Some(reason) => say_missing(&format!("PC sampling of GPU {}: {reason}", agent.index)),
            None => is_any = true,
        }
    }
    let is_begun = is_any && dispatch::watch(sdk, request, agents, context);
    if is_begun {
        let text = format!("PC sampling: {}", wanted.text());
        process.say(status::BACKEND, u64::from(sdk.version()), &text);
    }
    is_begun
}

impl Sampling {
    fn fits(&self, offer: &SamplingConfiguration) -> bool {
        (self.method, self.unit) == (offer.method, offer.unit)
            && (offer.minimum..=offer.maximum).contains(&self.interval)
            && (offer.flags & 1 == 0 || self.interval.is_power_of_two())
    }

    fn text(&self) -> String {
        format!(
            "{} every {} {}",
            sampling_method(self.method),
            self.interval,
            sampling_unit(self.unit)
        )
    }
}

impl SamplingConfiguration {
    fn text(&self) -> String {
        let power = if self.flags & 1 != 0 { ", powers of two" } else { "" };
        let (method, unit) = (sampling_method(self.method), sampling_unit(self.unit));
        format!("{method} every {} to {} {unit}{power}", self.minimum, self.maximum)
    }
}

/// Receives a buffer, when it is full or the program ends.
unsafe extern "C" fn sampled(_: u64, _: u64, headers: *mut *mut c_void, count: usize, _: *mut c_void, dropped: u64) {
    wall((), || {
        let _errno = Errno::keep();
        if let Some(process) = process::get().filter(|_| dropped > 0) {
            process.say(
                status::NOTE,
                dropped,
                &format!("PC sampling: {dropped} samples dropped by rocprofiler-sdk"),
            );
        }
        let Some(thread) = thread::current().filter(|_| !headers.is_null()) else {
            return;
        };
        for at in 0..count {
            // SAFETY: the SDK passes the addresses of `count` headers.
            let header = unsafe { headers.add(at).read().cast::<RecordHeader>().read() };
            if header.category != CATEGORY || header.payload.is_null() {
                continue;
            }
            // SAFETY: each record says its size first.
            if let Some(sample) = unsafe { decode(header.kind, header.payload) } {
                thread.push(PcSample::head(0, Domain::NONE), &sample.payload());
            }
        }
    });
}

/// Decodes a sample; `None` if its kind is different or it is too short.
///
/// # Safety
/// `payload` is a record of this kind that begins with its size.
unsafe fn decode(kind: u32, payload: *const u8) -> Option<PcSample> {
    // SAFETY: the size is the first word of all samples, also of those that could not be reported (kind 1).
    let size = unsafe { payload.cast::<u64>().read_unaligned() };
    let least = match kind {
        HOST_TRAP => HOST_TRAP_BYTES,
        STOCHASTIC => STOCHASTIC_BYTES,
        _ => return None,
    };
    if size < least {
        count_unknown("PC samples", size);
        return None;
    }
    // SAFETY: the size above covers every offset below.
    let long = |at: usize| unsafe { payload.add(at).cast::<u64>().read_unaligned() };
    // SAFETY: as above.
    let word = |at: usize| unsafe { payload.add(at).cast::<u32>().read_unaligned() };
    // SAFETY: as above.
    let byte = |at: usize| unsafe { payload.add(at).read() };
    Some(if kind == HOST_TRAP {
        PcSample {
            time: long(40),
            exec_mask: long(32),
            dispatch_id: long(48),
            code_object: long(16),
            offset: long(24),
            correlation: long(56),
            workgroup_x: word(72),
            workgroup_y: word(76),
            workgroup_z: word(80),
            wave: byte(84).into(),
            method: record::sampling::HOST_TRAP,
            hardware_low: word(8),
            hardware_high: word(12),
            ..PcSample::default()
        }
    } else {
        PcSample {
            time: long(64),
            exec_mask: long(40),
            dispatch_id: long(72),
            code_object: long(24),
            offset: long(32),
            correlation: long(80),
            workgroup_x: word(48),
            workgroup_y: word(52),
            workgroup_z: word(56),
            wave_count: word(60),
            snapshot: word(96),
            wave: byte(9).into(),
            issued: u16::from(byte(10) & 1),
            instruction: u16::from(byte(10) >> 1 & 0x1f),
            method: record::sampling::STOCHASTIC,
            hardware_low: word(16),
            hardware_high: word(20),
        }
    })
}
