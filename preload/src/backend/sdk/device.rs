//! Device-wide counting: a collector thread reads the counters periodically, without effect on the program's kernels.

use super::abi::{BUSY, FINALIZED, HSA_NOT_LOADED, NOT_IMPLEMENTED, SUCCESS, Sdk, SetConfigFn, Status, status_text};
use super::counters::OnAgent;
use super::request::Request;
use super::values::{counter_of, is_instance};
use super::{rest, say_missing};
use crate::guard::wall;
use crate::process::Process;
use crate::{clock, control, process, thread};
use roctop_ring::record::{CounterValue, counter_source, status};
use std::ffi::c_void;
use std::time::Duration;

/// Size of a record since 1.0, bytes; earlier releases return no records here.
const RECORD: usize = 40;
/// Maximum number of records per sample.
const MAX_RECORDS: usize = 1 << 14;
/// Records are returned by the read, so no buffer receives them.
const NO_BUFFER: u64 = 0;
/// Retry interval of a context that waits for HSA.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Id of the SDK, number of the collector, and the requested instance.
type OnAgentCounter = (u64, u32, Option<(u64, usize)>);

/// Context of an agent.
struct OnDevice {
    context: u64,
    index: u32,
    config: u64,
    chosen: Vec<OnAgentCounter>,
    is_started: bool,
}

/// Configures all agents and starts the thread.
pub(super) fn begin(sdk: &'static Sdk, request: &'static Request, process: &Process, agents: &[OnAgent]) {
    if sdk.version() < 10_000 {
        return say_missing("counting whole agents takes rocprofiler-sdk 1.0 or later");
    }
    let mut devices: Vec<&'static mut OnDevice> = Vec::new();
    for agent in agents {
        let Some(&(_, config)) = agent.configs.first() else {
            continue;
        };
        match configure(sdk, agent, config) {
            Ok(device) => devices.push(device),
            Err(answer) => {
                return say_missing(&format!(
                    "rocprofiler-sdk refused to count whole agents: {}",
                    status_text(sdk, answer)
                ));
            }
        }
    }
    if devices.is_empty() {
        return;
    }
    process.say(
        status::BACKEND,
        u64::from(sdk.version()),
        "counters: rocprofiler-sdk counts whole agents",
    );
    let interval = Duration::from_micros(request.interval);
    // The thread must not receive the program's signals.
    crate::backend::hsa::harvest::without_signals(|| {
        let built = std::thread::Builder::new().name("roctop-counters".into());
        if built.spawn(move || wall((), || run(sdk, devices, interval))).is_err() {
            say_missing("no thread could be started to read them");
        }
    });
}

fn configure(sdk: &Sdk, agent: &OnAgent, config: u64) -> Result<&'static mut OnDevice, Status> {
    let (Some(create), Some(count)) = (sdk.create_context, sdk.count_device) else {
        return Err(NOT_IMPLEMENTED);
    };
    let check = |answer: Status| if answer == SUCCESS { Ok(()) } else { Err(answer) };
    let mut context = 0u64;
    // SAFETY: room for the answer.
    check(unsafe { create(&raw mut context) })?;
    let device = Box::leak(Box::new(OnDevice {
        context,
        index: agent.index,
        config,
        chosen: agent
            .chosen
            .iter()
            .filter(|one| one.pass == 1)
            .map(|one| (one.handle, one.number, one.instance))
            .collect(),
        is_started: false,
    }));
    let config: *mut c_void = std::ptr::from_mut(Box::leak(Box::new(device.config))).cast();
    // SAFETY: the function has the type asked for, and the number that it gets is never freed.
    check(unsafe { count(context, NO_BUFFER, agent.id, choose, config) })?;
    Ok(device)
}

unsafe extern "C" fn choose(context: u64, _agent: u64, set: SetConfigFn, data: *mut c_void) {
    // SAFETY: `data` is the number that `configure` passed.
    let config = unsafe { data.cast::<u64>().read() };
    // SAFETY: the SDK's own function.
    unsafe { set(context, config) };
}

fn run(sdk: &'static Sdk, mut devices: Vec<&'static mut OnDevice>, interval: Duration) {
    let mut records = vec![0u8; RECORD * MAX_RECORDS];
    let mut said = 0;
    let mut rested = false;
    rest::report(false, "of whole agents count");
    loop {
        let waiting = devices.iter().any(|device| !device.is_started);
        std::thread::sleep(if waiting {
            RETRY_INTERVAL.min(interval)
        } else {
            interval
        });
        if process::get().is_none() || thread::current().is_none() {
            return;
        }
        let rest = control::counters_rest();
        if rest != rested {
            rested = rest;
            rest::report(
                rest,
                if rest {
                    "of whole agents rest"
                } else {
                    "of whole agents count"
                },
            );
        }
        for device in &mut devices {
            let answer = match device.is_started {
                false => start(sdk, device),
                // The hardware continues to count, but nothing is read.
                true if rested => SUCCESS,
                true => sample(sdk, device, &mut records),
            };
            if answer == FINALIZED {
                return;
            }
            // While HSA starts, the SDK starts the context by itself.
            if !matches!(answer, SUCCESS | HSA_NOT_LOADED | BUSY) && said != answer {
                said = answer;
                say_missing(&format!(
                    "a whole agent cannot be counted: {}",
                    status_text(sdk, answer)
                ));
            }
        }
    }
}

fn start(sdk: &Sdk, device: &mut OnDevice) -> Status {
    let answer = rest::start(sdk, device.context);
    device.is_started = answer == SUCCESS;
    answer
}

fn sample(sdk: &Sdk, device: &OnDevice, records: &mut [u8]) -> Status {
    let Some(sample) = sdk.sample_device else {
        return NOT_IMPLEMENTED;
    };
    let mut count = records.len() / RECORD;
    let before = clock::now();
    // SAFETY: room for as many records as are said. Flag 0: the values are there when it returns.
    let answer = unsafe { sample(device.context, 0, 0, records.as_mut_ptr(), &raw mut count) };
    let time = before.midpoint(clock::now());
    if answer != SUCCESS {
        return answer;
    }
    for (handle, number, instance) in &device.chosen {
        let mut sum = 0.0;
        for record in records.chunks_exact(RECORD).take(count) {
            let (Some(id), Some(value)) = (record.first_chunk::<8>(), record.get(8..16)) else {
                continue;
            };
            let id = u64::from_le_bytes(*id);
            if counter_of(sdk, id) == *handle && is_instance(sdk, id, *instance) {
                let mut raw = [0u8; 8];
                raw.copy_from_slice(value);
                sum += f64::from_le_bytes(raw);
            }
        }
        crate::collector::counter_value(&CounterValue {
            dispatch_id: 0,
            value: sum.to_bits(),
            time,
            counter: *number,
            agent: device.index,
            source: counter_source::DEVICE,
            pass: 1,
            reserved: 0,
            correlation: 0,
        });
    }
    SUCCESS
}
