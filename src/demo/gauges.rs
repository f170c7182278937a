//! What a driver would say of the demo's GPUs. No driver knows them, so the viewer asks here in place of its files.

use super::workload::GPUS;
use crate::gauge::metric::{Metric, Sample};
use crate::item::Nanos;

/// Period of the slow changes, s.
const PERIOD: f64 = 40.0;

/// A sample of each GPU.
pub fn samples(at: Nanos) -> Vec<Sample> {
    (0..GPUS as u32).map(|number| sample(at, number)).collect()
}

fn sample(at: Nanos, number: u32) -> Sample {
    let seconds = at as f64 / 1e9;
    // The load follows the training loop, heat follows the load, and clocks fall with heat.
    let slow = (seconds / PERIOD * std::f64::consts::TAU + f64::from(number)).sin();
    let fast = (seconds * 1.7 + f64::from(number)).sin();
    let load = 90.0 + 4.0 * slow + 3.0 * fast;
    let mut sample = Sample {
        at,
        node: number + 1,
        number,
        location: u64::from(0x03 + 0x40 * number) << 8,
        ..Sample::default()
    };
    for (metric, value) in [
        (Metric::BUSY, load.round()),
        (Metric::MEMORY_BUSY, (load * 0.6).round()),
        (Metric::VRAM_USED, (44.0 + 0.2 * slow) * 1e9),
        (Metric::VRAM_TOTAL, (192u64 << 30) as f64),
        (Metric::SHADER_CLOCK, (2050.0 - 40.0 * slow).round()),
        (Metric::MEMORY_CLOCK, 1300.0),
        (Metric::FABRIC_CLOCK, 2000.0),
        (Metric::POWER, (560.0 + 50.0 * slow + 20.0 * fast).round()),
        (Metric::POWER_CAP, 750.0),
        (Metric::EDGE, (52.0 + 3.0 * slow).round()),
        (Metric::JUNCTION, (68.0 + 5.0 * slow).round()),
        (Metric::MEMORY_TEMPERATURE, (60.0 + 3.0 * slow).round()),
        (Metric::THROTTLE, 0.0),
        (Metric::PCIE_WIDTH, 16.0),
        (Metric::PCIE_SPEED, 32.0),
        (Metric::PCIE_RATE, 1.5e9 + 2e8 * fast),
        (Metric::XGMI_READ, 4e8 + 5e7 * fast),
        (Metric::XGMI_WRITE, 4e8 - 5e7 * fast),
        (Metric::MEMORY_PEAK, 5.3e12),
    ] {
        sample.put(metric, Ok(value));
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::device::devices;

    #[test]
    fn every_value_of_the_devices_view_is_there() {
        for device in devices(&samples(12_345_678_901)) {
            assert!(device.busy.is_ok() && device.memory_total.is_ok() && device.power_cap.is_ok());
            assert!(device.junction.is_ok() && device.shader_clock.is_ok() && device.throttle.is_ok());
            assert!(device.link_peak.is_ok() && device.xgmi.is_ok(), "{device:?}");
        }
    }
}
