//! Reads all gauges below a root: `/` on a real machine, a saved tree in tests.
//!
//! It uses plain open and read only, so that it reads an emulated driver (a preloaded library) like a real one. Rates
//! need two samples, so the reader keeps the previous one.

use super::fdinfo::{self, Client};
use super::gpu_metrics::{Running, Table};
use super::network::Ports;
use super::{Absent, Metric, Reading, Sample, text};
use roctop_trace::gauge::device::location as location_of;
use roctop_trace::item::Nanos;
use roctop_trace::topology::{self, Node};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a driver file, bytes.
const MAX_FILE: u64 = 64 << 10;
/// Maximum number of descriptors inspected per process.
const MAX_DESCRIPTORS: usize = 4096;

/// Reader of gauges, called periodically.
pub struct Reader {
    root: PathBuf,
    gpus: Vec<Gpu>,
    ports: Ports,
    processes: BTreeMap<(u32, u32), Before>,
}

struct Gpu {
    node: u32,
    number: u32,
    location: u64,
    id: u64,
    address: String,
    units: f64,
    /// Peak bandwidth of the topology's memory bank, bytes/s, at two transfers per clock; 0 if unknown.
    peak: f64,
    device: PathBuf,
    sensors: Option<PathBuf>,
    before: Option<(Nanos, Running)>,
    links: LinkErrors,
}

/// Time from one reading of the errors of a GPU's links to the next, ns: the driver asks the GPU for each.
const LINKS_INTERVAL: Nanos = 10_000_000_000;

/// Errors of the xGMI links of a GPU.
#[derive(Default)]
struct LinkErrors {
    /// Of the last reading.
    at: Option<Nanos>,
    before: Option<f64>,
    /// Errors since the first reading.
    sum: f64,
    now: Option<Reading>,
}

impl LinkErrors {
    fn read(&mut self, device: &Path, at: Nanos) -> Reading {
        if let (Some(last), Some(now)) = (self.at, self.now)
            && at.saturating_sub(last) < LINKS_INTERVAL
        {
            return now;
        }
        // This file's counts are kept by the driver. Reading `xgmi_error` beside it would reset it for others.
        let count = content(&device.join("ras/xgmi_wafl_err_count")).and_then(|text| text::errors(&text));
        let now = count.map(|count| {
            self.sum += (count - self.before.unwrap_or(count)).max(0.0);
            self.before = Some(count);
            self.sum
        });
        (self.at, self.now) = (Some(at), Some(now));
        now
    }
}

/// Cumulative counts of a process at the previous sample.
#[derive(Clone, Copy, Default)]
struct Before {
    at: Nanos,
    compute: Option<u64>,
    graphics: Option<u64>,
    sdma: Option<u64>,
}

impl Reader {
    /// Finds the GPUs below `root`.
    pub fn new(root: &Path) -> Self {
        let nodes = topology::read(root);
        let gpus = nodes.iter().filter(|node| node.is_gpu());
        Self {
            root: root.to_owned(),
            gpus: gpus
                .zip(0..)
                .map(|(node, number)| Gpu::find(root, node, number))
                .collect(),
            ports: Ports::find(root),
            processes: BTreeMap::new(),
        }
    }

    /// Number of GPUs.
    pub fn gpus(&self) -> usize {
        self.gpus.len()
    }

    /// Reads everything: a sample for each GPU, and one for each of the processes `pids` on each GPU that it uses.
    pub fn read(&mut self, at: Nanos, pids: &[u32]) -> Vec<Sample> {
        let mut samples: Vec<Sample> = self.gpus.iter_mut().map(|gpu| gpu.read(at)).collect();
        self.ports.read(&mut samples);
        for pid in pids {
            let clients = clients(&self.root, *pid);
            for gpu in &self.gpus {
                let before = self.processes.entry((*pid, gpu.node)).or_default();
                samples.extend(gpu.read_process(&self.root, *pid, at, &clients, before));
            }
        }
        self.processes.retain(|(pid, _), _| pids.contains(pid));
        samples
    }
}

impl Gpu {
    fn find(root: &Path, node: &Node, number: u32) -> Self {
        let minor = node.property("drm_render_minor");
        let device = root.join(format!("sys/class/drm/renderD{minor}/device"));
        let sensors = std::fs::read_dir(device.join("hwmon"));
        let mut sensors: Vec<PathBuf> = sensors
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        sensors.sort();
        let location = node.property("domain") << 32 | node.property("location_id");
        Self {
            node: node.id,
            number,
            location,
            id: node.gpu_id,
            address: location_of(location).to_string(),
            peak: peak(node),
            units: (node.property("simd_count") / node.property("simd_per_cu").max(1)) as f64,
            device,
            sensors: sensors.into_iter().next(),
            before: None,
            links: LinkErrors::default(),
        }
    }

    fn read(&mut self, at: Nanos) -> Sample {
        let mut sample = Sample {
            at,
            node: self.node,
            number: self.number,
            location: self.location,
            ..Sample::default()
        };
        self.read_files(&mut sample);
        self.read_sensors(&mut sample);
        self.read_table(&mut sample);
        sample.put(Metric::XGMI_ERRORS, self.links.read(&self.device, at));
        if self.peak > 0.0 {
            sample.put(Metric::MEMORY_PEAK, Ok(self.peak));
        }
        sample
    }

    fn read_files(&self, sample: &mut Sample) {
        for (metric, file) in [
            (Metric::BUSY, "gpu_busy_percent"),
            (Metric::MEMORY_BUSY, "mem_busy_percent"),
            (Metric::MEDIA_BUSY, "vcn_busy_percent"),
            (Metric::VRAM_USED, "mem_info_vram_used"),
            (Metric::VRAM_TOTAL, "mem_info_vram_total"),
            (Metric::VISIBLE_USED, "mem_info_vis_vram_used"),
            (Metric::GTT_USED, "mem_info_gtt_used"),
            (Metric::GTT_TOTAL, "mem_info_gtt_total"),
            (Metric::PCIE_REPLAYS, "pcie_replay_count"),
            (Metric::PCIE_WIDTH, "current_link_width"),
        ] {
            sample.put(
                metric,
                content(&self.device.join(file)).and_then(|text| text::number(&text)),
            );
        }
        for (metric, file) in [
            (Metric::SHADER_CLOCK, "pp_dpm_sclk"),
            (Metric::MEMORY_CLOCK, "pp_dpm_mclk"),
            (Metric::FABRIC_CLOCK, "pp_dpm_fclk"),
            (Metric::SOC_CLOCK, "pp_dpm_socclk"),
        ] {
            let level = content(&self.device.join(file)).and_then(|text| text::current_level(&text));
            sample.put(metric, level);
        }
        let rate = content(&self.device.join("pcie_bw")).and_then(|text| text::pcie_rate(&text));
        sample.put(Metric::PCIE_RATE, rate);
        let speed = content(&self.device.join("current_link_speed")).and_then(|text| text::link_speed(&text));
        sample.put(Metric::PCIE_SPEED, speed);
    }

    fn read_sensors(&self, sample: &mut Sample) {
        for (metric, file, scale) in [
            (Metric::POWER, "power1_average", 1e-6),
            (Metric::POWER, "power1_input", 1e-6),
            (Metric::POWER_CAP, "power1_cap", 1e-6),
            (Metric::EDGE, "temp1_input", 1e-3),
            (Metric::JUNCTION, "temp2_input", 1e-3),
            (Metric::MEMORY_TEMPERATURE, "temp3_input", 1e-3),
            (Metric::FAN, "fan1_input", 1.0),
            (Metric::VOLTAGE, "in0_input", 1.0),
            (Metric::SHADER_CLOCK, "freq1_input", 1e-6),
            (Metric::MEMORY_CLOCK, "freq2_input", 1e-6),
        ] {
            let reading = match &self.sensors {
                Some(sensors) => content(&sensors.join(file)).and_then(|text| text::number(&text)),
                None => Err(Absent::NoFile),
            };
            sample.put(metric, reading.map(|value| value * scale));
        }
    }

    fn read_table(&mut self, sample: &mut Sample) {
        let bytes = bytes(&self.device.join("gpu_metrics"));
        let table = bytes
            .as_ref()
            .map_err(|absent| *absent)
            .and_then(|bytes| Table::read(bytes));
        let table = match table {
            Ok(table) => table,
            Err(absent) => {
                let all = Metric::ALL.iter().filter(|metric| metric.0 < Metric::PROCESS_VRAM.0);
                for metric in all.filter(|metric| !metric.is_of_partitions() && !metric.is_of_network()) {
                    sample.put(*metric, Err(absent));
                }
                return;
            }
        };
        table.put_into(sample);
        let running = table.running();
        let before = self.before.replace((sample.at, running.clone()));
        for (metric, now, then) in [
            (
                Metric::XGMI_READ,
                running.xgmi_read,
                before.as_ref().map(|one| one.1.xgmi_read),
            ),
            (
                Metric::XGMI_WRITE,
                running.xgmi_write,
                before.as_ref().map(|one| one.1.xgmi_write),
            ),
        ] {
            let passed = before.as_ref().map(|one| sample.at.saturating_sub(one.0));
            let growth = growth(now, then.flatten(), passed);
            sample.put(metric, growth.map(|kib| kib * 1024.0 * 1e9));
        }
        if running.residencies.is_empty() {
            sample.put(Metric::THROTTLE, Err(Absent::NoField));
        } else if let Some((_, then)) = before {
            let grew = running.residencies.iter().filter(|(bit, value)| {
                let known = then.residencies.iter().find(|other| other.0 == *bit);
                known.is_some_and(|known| *value > known.1)
            });
            let bits = grew.fold(0u64, |bits, (bit, _)| bits | bit);
            sample.put(Metric::THROTTLE, Ok(bits as f64));
        } else {
            sample.put(Metric::THROTTLE, Err(Absent::NotYet));
        }
    }

    /// Readings of a process on a GPU; `None` if no file shows that it uses the GPU.
    fn read_process(
        &self,
        root: &Path,
        pid: u32,
        at: Nanos,
        clients: &Result<Vec<Client>, Absent>,
        before: &mut Before,
    ) -> Option<Sample> {
        let own = root.join(format!("sys/class/kfd/kfd/proc/{pid}"));
        let read = |path: PathBuf| content(&path).and_then(|text| text::number(&text));
        let vram = read(own.join(format!("vram_{}", self.id)));
        let sdma = read(own.join(format!("sdma_{}", self.id)));
        let occupied = read(own.join(format!("stats_{}/cu_occupancy", self.id)));
        let evicted = read(own.join(format!("stats_{}/evicted_ms", self.id)));
        let client = match clients {
            Ok(clients) => fdinfo::of_device(clients, &self.address).ok_or(Absent::NoFile),
            Err(absent) => Err(*absent),
        };
        if client.is_err() && vram.is_err() && sdma.is_err() && occupied.is_err() {
            return None;
        }
        let mut sample = Sample {
            at,
            node: self.node,
            number: self.number,
            location: self.location,
            pid: Some(pid),
            ..Sample::default()
        };
        let memory = |region: &str| -> Reading {
            let client = client.as_ref().map_err(|absent| *absent)?;
            client
                .memory
                .get(region)
                .map(|bytes| *bytes as f64)
                .ok_or(Absent::NoField)
        };
        sample.put(Metric::PROCESS_VRAM, vram);
        sample.put(Metric::PROCESS_VRAM, memory("vram"));
        sample.put(Metric::PROCESS_GTT, memory("gtt"));
        sample.put(
            Metric::PROCESS_OCCUPANCY,
            occupied.map(|units| units.min(self.units.max(1.0))),
        );
        sample.put(Metric::PROCESS_EVICTED, evicted);
        let engine = |name: &str| {
            client
                .as_ref()
                .ok()
                .and_then(|client| client.engines.get(name).copied())
        };
        let passed = (before.at > 0).then(|| at.saturating_sub(before.at));
        // Engines count ns, the driver's SDMA file µs.
        let now = Before {
            at,
            compute: engine("compute"),
            graphics: engine("gfx"),
            sdma: sdma.ok().map(|micros| micros as u64 * 1000),
        };
        for (metric, now, then) in [
            (Metric::PROCESS_COMPUTE, now.compute, before.compute),
            (Metric::PROCESS_GRAPHICS, now.graphics, before.graphics),
            (Metric::PROCESS_SDMA, now.sdma, before.sdma),
        ] {
            sample.put(metric, growth(now, then, passed).map(|share| share * 100.0));
        }
        *before = now;
        Some(sample)
    }
}

/// Peak bandwidth of the memory bank at two transfers per clock, bytes/s.
fn peak(node: &Node) -> f64 {
    let own = node
        .banks
        .iter()
        .filter(|bank| matches!(bank.get("heap_type"), Some(1 | 2)));
    let rates = own.map(|bank| {
        let number = |name: &str| bank.get(name).copied().unwrap_or(0) as f64;
        number("mem_clk_max") * 1e6 * 2.0 * number("width") / 8.0
    });
    rates.fold(0.0, f64::max)
}

/// Growth of a count per ns. One that went backwards was reset or has wrapped, and is read again.
pub(super) fn growth(now: Option<u64>, then: Option<u64>, passed: Option<u64>) -> Reading {
    let now = now.ok_or(Absent::NoField)?;
    match (then, passed) {
        (Some(then), Some(passed @ 1..)) if now >= then => Ok((now - then) as f64 / passed as f64),
        _ => Err(Absent::NotYet),
    }
}

/// GPU clients among a process's descriptors.
fn clients(root: &Path, pid: u32) -> Result<Vec<Client>, Absent> {
    let entries = std::fs::read_dir(root.join(format!("proc/{pid}/fdinfo"))).map_err(|error| why(&error))?;
    let paths = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(MAX_DESCRIPTORS);
    Ok(paths.filter_map(|path| fdinfo::parse(&content(&path).ok()?)).collect())
}

fn why(error: &io::Error) -> Absent {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Absent::NoFile,
        io::ErrorKind::PermissionDenied => Absent::Denied,
        _ => Absent::Refused,
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Absent> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| why(&error))?;
    file.take(MAX_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| why(&error))?;
    Ok(bytes)
}

pub(super) fn content(path: &Path) -> Result<String, Absent> {
    String::from_utf8(bytes(path)?).map_err(|_| Absent::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_links_count_from_the_first_reading_on() {
        let device = std::env::temp_dir().join(format!("roctop-links-{}", std::process::id()));
        std::fs::create_dir_all(device.join("ras")).unwrap();
        let file = device.join("ras/xgmi_wafl_err_count");
        let mut links = LinkErrors::default();
        // Errors of earlier programs are not this one's; between two readings the last one holds; a reset takes nothing away.
        for (seconds, text, expected) in [
            (1, "ue: 1\nce: 6\n", Ok(0.0)),
            (11, "ue: 1\nce: 9\n", Ok(3.0)),
            (12, "ue: 2\nce: 9\n", Ok(3.0)),
            (21, "ue: 2\nce: 9\n", Ok(4.0)),
            (31, "Query failed\n", Err(Absent::Unreadable)),
            (41, "ue: 0\nce: 1\n", Ok(4.0)),
            (51, "ue: 0\nce: 2\n", Ok(5.0)),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(links.read(&device, seconds * 1_000_000_000), expected, "{seconds} s");
        }
        std::fs::remove_dir_all(&device).unwrap();
        assert!(LinkErrors::default().read(&device, 1).is_err());
    }
}
