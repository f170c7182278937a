//! Builds a device as the screen shows it from the samples of a GPU and of the processes on it.

use super::metric::{self, Absent, Metric, Sample};
use super::{Device, Holder, Reading, throttle};
use crate::item::NodeId;
use std::sync::Arc;

fn reading<T>(reading: metric::Reading, make: impl Fn(f64) -> T) -> Reading<T> {
    reading.map(make).map_err(|absent| absent.reason().into())
}

/// Devices of one round of samples: one for each GPU.
pub fn devices(samples: &[Sample]) -> Vec<Device> {
    let gpus = samples.iter().filter(|sample| sample.pid.is_none());
    gpus.map(|sample| device(sample, samples)).collect()
}

fn device(sample: &Sample, all: &[Sample]) -> Device {
    let share = |metric| reading(sample.get(metric), |percent| percent / 100.0);
    let number = |metric| reading(sample.get(metric), |value| value);
    let bytes = |metric| reading(sample.get(metric), |value| value as u64);
    Device {
        node: NodeId {
            machine: sample.machine,
            node: sample.node,
        },
        number: sample.number,
        name: "".into(),
        product: "".into(),
        location: location(sample.location),
        at: sample.at,
        busy: share(Metric::BUSY),
        memory_busy: share(Metric::MEMORY_BUSY),
        memory_peak: number(Metric::MEMORY_PEAK),
        memory_used: bytes(Metric::VRAM_USED),
        memory_total: bytes(Metric::VRAM_TOTAL),
        power: number(Metric::POWER),
        power_cap: number(Metric::POWER_CAP),
        edge: number(Metric::EDGE),
        junction: number(Metric::JUNCTION),
        memory_temperature: number(Metric::MEMORY_TEMPERATURE),
        shader_clock: number(Metric::SHADER_CLOCK),
        memory_clock: number(Metric::MEMORY_CLOCK),
        fabric_clock: number(Metric::FABRIC_CLOCK),
        throttle: throttle_words(sample),
        link: link(sample),
        link_peak: link_peak(sample),
        xgmi: reading(sum(sample, Metric::XGMI_READ, Metric::XGMI_WRITE), |rate| rate),
        xgmi_errors: number(Metric::XGMI_ERRORS),
        network: reading(sum(sample, Metric::NETWORK_RECEIVED, Metric::NETWORK_SENT), |rate| rate),
        network_errors: number(Metric::NETWORK_ERRORS),
        partitions: partitions(sample),
        holders: holders(sample, all),
    }
}

/// PCI address as `0000:03:00.0`, from domain, bus, device and function.
pub fn location(packed: u64) -> Arc<str> {
    let (domain, place) = (packed >> 32, packed & 0xffff);
    format!(
        "{domain:04x}:{:02x}:{:02x}.{}",
        place >> 8,
        place >> 3 & 0x1f,
        place & 7
    )
    .into()
}

fn throttle_words(sample: &Sample) -> Reading<Arc<str>> {
    let known = reading(sample.get(Metric::THROTTLE), |bits| throttle::names(bits as u64).into());
    // Chip-specific bits still say whether the GPU is throttled.
    known.or_else(|why| match sample.get(Metric::THROTTLE_RAW) {
        Ok(0.0) => Ok("none".into()),
        Ok(bits) => Ok(format!("yes (chip's bits {:#x})", bits as u64).into()),
        Err(_) => Err(why),
    })
}

fn link(sample: &Sample) -> Reading<Arc<str>> {
    let width = sample.get(Metric::PCIE_WIDTH);
    match (sample.get(Metric::PCIE_SPEED), width) {
        (Ok(speed), Ok(width)) => Ok(format!("PCIe {speed:.0} GT/s x{width:.0}").into()),
        (Err(absent), _) | (_, Err(absent)) => Err(absent.reason().into()),
    }
}

/// Each lane carries one bit per transfer. From 8 GT/s on, 128 of 130 bits are payload, before that 8 of 10.
fn link_peak(sample: &Sample) -> Reading<f64> {
    let (speed, width) = (sample.get(Metric::PCIE_SPEED), sample.get(Metric::PCIE_WIDTH));
    let rate = speed.and_then(|speed| {
        let share = if speed >= 8.0 { 128.0 / 130.0 } else { 0.8 };
        width.map(|width| speed * 1e9 * width / 8.0 * share)
    });
    reading(rate, |rate| rate)
}

/// Busy shares of the partitions, in their order.
fn partitions(sample: &Sample) -> Vec<Reading<f64>> {
    let numbers = Metric::PARTITION_0.0..=Metric::PARTITION_7.0;
    let known = sample.readings.iter().filter(|one| numbers.contains(&one.0.0));
    known.map(|one| reading(one.1, |percent| percent / 100.0)).collect()
}

fn sum(sample: &Sample, one: Metric, other: Metric) -> metric::Reading {
    match (sample.get(one), sample.get(other)) {
        (Ok(read), Ok(written)) => Ok(read + written),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(a), Err(b)) => Err(a.max(b).max(Absent::NoFile)),
    }
}

fn holders(sample: &Sample, all: &[Sample]) -> Vec<Holder> {
    let own = all.iter().filter(|other| other.node == sample.node);
    let mut holders: Vec<Holder> = own
        .filter_map(|other| {
            Some(Holder {
                pid: other.pid?,
                name: details(other).into(),
                memory: reading(other.get(Metric::PROCESS_VRAM), |bytes| bytes as u64),
            })
        })
        .collect();
    holders.sort_by_key(|holder| holder.pid);
    holders
}

/// What a process does in addition to holding memory.
fn details(sample: &Sample) -> String {
    let words = [
        (Metric::PROCESS_COMPUTE, "compute", " %"),
        (Metric::PROCESS_GRAPHICS, "graphics", " %"),
        (Metric::PROCESS_SDMA, "SDMA", " %"),
        (Metric::PROCESS_OCCUPANCY, "occupies", " CUs"),
    ];
    let known = words.iter().filter_map(|(metric, word, unit)| {
        let value = sample.get(*metric).ok()?;
        Some(format!("{word} {value:.0}{unit}"))
    });
    known.collect::<Vec<_>>().join("  ")
}
