//! Gauges read from saved trees: one for each published revision of `gpu_metrics`, and hostile ones.

use roctop::gauge::throttle;
use roctop::sysfs::gpu_metrics::{REVISIONS, Table, layout};
use roctop::sysfs::reader::Reader;
use roctop::sysfs::{Absent, Metric, Sample};
use std::path::{Path, PathBuf};

/// A directory that goes with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roctop-gauges-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let tree = Self(path);
        let nodes = "sys/class/kfd/kfd/topology/nodes";
        tree.put(&format!("{nodes}/0/properties"), "cpu_cores_count 8\nsimd_count 0\n");
        tree.put(
            &format!("{nodes}/1/properties"),
            "cpu_cores_count 0\nsimd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\ndrm_render_minor 128\n\
             location_id 768\ndomain 0\n",
        );
        tree.put(&format!("{nodes}/1/gpu_id"), "19745\n");
        tree
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("a place below the root")).expect("a directory of the test's");
        std::fs::write(path, content).expect("a file of the test's");
    }

    fn device(&self, path: &str, content: impl AsRef<[u8]>) {
        self.put(&format!("sys/class/drm/renderD128/device/{path}"), content);
    }

    fn read(&self) -> Sample {
        Reader::new(&self.0).read(1, &[]).remove(0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the kernel's header says of a revision: its size, and the places of some fields.
struct Published {
    revision: (u8, u8),
    size: usize,
    busy: usize,
    power: usize,
    shader_clock: usize,
    memory_clock: usize,
    temperature: usize,
}

const fn published(revision: (u8, u8), size: usize, places: [usize; 5]) -> Published {
    let [busy, power, shader_clock, memory_clock, temperature] = places;
    Published {
        revision,
        size,
        busy,
        power,
        shader_clock,
        memory_clock,
        temperature,
    }
}

/// Offsets as a C compiler lays out `kgd_pp_interface.h`; the temperature is the junction's, an APU's the graphics part's.
const PUBLISHED: [Published; 15] = [
    published((1, 0), 80, [28, 34, 54, 58, 18]),
    published((1, 1), 96, [16, 22, 54, 58, 6]),
    published((1, 2), 104, [16, 22, 54, 58, 6]),
    published((1, 3), 120, [16, 22, 54, 58, 6]),
    published((1, 4), 288, [12, 10, 240, 280, 4]),
    published((1, 5), 360, [12, 10, 312, 352, 4]),
    published((1, 6), 1664, [12, 10, 264, 304, 4]),
    published((1, 7), 2208, [12, 10, 296, 336, 4]),
    published((1, 8), 3872, [12, 10, 296, 336, 4]),
    published((2, 0), 120, [40, 44, 80, 84, 16]),
    published((2, 1), 120, [28, 40, 76, 80, 4]),
    published((2, 2), 128, [28, 40, 76, 80, 4]),
    published((2, 3), 152, [28, 40, 76, 80, 4]),
    published((2, 4), 168, [28, 40, 76, 80, 4]),
    published((3, 0), 264, [42, 112, 174, 186, 4]),
];

/// A table in which everything but its head and the named fields says "not available".
fn table(one: &Published, fields: &[(usize, u16)]) -> Vec<u8> {
    let mut bytes = vec![0xff; one.size];
    bytes[..2].copy_from_slice(&(one.size as u16).to_le_bytes());
    (bytes[2], bytes[3]) = one.revision;
    for (at, value) in fields {
        bytes[*at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

#[test]
fn each_revision_of_gpu_metrics_is_read_where_the_header_puts_its_fields() {
    assert_eq!(PUBLISHED.map(|one| one.revision), REVISIONS);
    for one in &PUBLISHED {
        let tree = Tree::new(&format!("{}-{}", one.revision.0, one.revision.1));
        let is_apu = one.revision.0 > 1;
        let (busy, power, degrees) = match one.revision {
            (2, 4) => (4200, 35_000, 7100),
            (2 | 3, _) => (42, 35_000, 7100),
            _ => (42, 350, 71),
        };
        let mut fields = vec![
            (one.busy, busy),
            (one.power, power),
            (one.shader_clock, 1725),
            (one.memory_clock, 1000),
            (one.temperature, degrees),
        ];
        if one.revision == (3, 0) {
            // A 32-bit number.
            fields.push((one.power + 2, 0));
        }
        tree.device("gpu_metrics", table(one, &fields));
        let sample = tree.read();
        let watts = if is_apu { 35.0 } else { 350.0 };
        let temperature = if is_apu { Metric::EDGE } else { Metric::JUNCTION };
        let seen = [
            Metric::BUSY,
            Metric::POWER,
            Metric::SHADER_CLOCK,
            Metric::MEMORY_CLOCK,
            temperature,
        ]
        .map(|metric| sample.get(metric));
        let expected = [42.0, watts, 1725.0, 1000.0, 71.0].map(Ok);
        assert_eq!(seen, expected, "revision {:?}", one.revision);
        let fan = if one.revision < (1, 4) {
            Absent::NotReported
        } else {
            Absent::NoField
        };
        assert_eq!(sample.get(Metric::FAN), Err(fan), "revision {:?}", one.revision);
    }
}

#[test]
fn text_files_and_sensors_come_before_the_table() {
    let tree = Tree::new("text");
    for (file, content) in [
        ("gpu_busy_percent", "37\n"),
        ("mem_busy_percent", "12\n"),
        ("mem_info_vram_used", "1073741824\n"),
        ("mem_info_vram_total", "17163091968\n"),
        ("mem_info_gtt_used", "4096\n"),
        ("pp_dpm_sclk", "0: 500Mhz\n1: 1725Mhz *\n"),
        ("pp_dpm_fclk", "0: 550Mhz *\n"),
        ("pcie_bw", "100 200 256\n"),
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        ("hwmon/hwmon3/power1_average", "212000000\n"),
        ("hwmon/hwmon3/power1_cap", "300000000\n"),
        ("hwmon/hwmon3/temp1_input", "56000\n"),
        ("hwmon/hwmon3/temp2_input", "61000\n"),
        ("hwmon/hwmon3/fan1_input", "1450\n"),
        ("vcn_busy_percent", "nonsense"),
    ] {
        tree.device(file, content);
    }
    let one = &PUBLISHED[3];
    tree.device(
        "gpu_metrics",
        table(one, &[(one.busy, 99), (112, 1), (114, 0), (116, 16), (118, 0)]),
    );
    let sample = tree.read();
    for (metric, value) in [
        (Metric::BUSY, 37.0),
        (Metric::MEMORY_BUSY, 12.0),
        (Metric::VRAM_USED, 1_073_741_824.0),
        (Metric::GTT_USED, 4096.0),
        (Metric::SHADER_CLOCK, 1725.0),
        (Metric::FABRIC_CLOCK, 550.0),
        (Metric::PCIE_RATE, 76_800.0),
        (Metric::PCIE_SPEED, 16.0),
        (Metric::PCIE_WIDTH, 16.0),
        (Metric::POWER, 212.0),
        (Metric::POWER_CAP, 300.0),
        (Metric::EDGE, 56.0),
        (Metric::JUNCTION, 61.0),
        (Metric::FAN, 1450.0),
    ] {
        assert_eq!(sample.get(metric), Ok(value), "{}", metric.key());
    }
    let bits = sample.get(Metric::THROTTLE).unwrap();
    assert_eq!(throttle::names(bits as u64), "PPT0 TEMP-HOTSPOT");
    assert_eq!(sample.get(Metric::GTT_TOTAL), Err(Absent::NoFile));
}

#[test]
fn rates_and_throttle_reasons_of_running_counts_take_two_samples() {
    let tree = Tree::new("rates");
    let one = &PUBLISHED[6];
    // Power residency, KiB read over the first xGMI link.
    let with = |residency: u16, kib: u16| {
        let mut bytes = table(one, &[(40, residency), (42, 0)]);
        bytes[136..144].copy_from_slice(&u64::from(kib).to_le_bytes());
        bytes
    };
    tree.device("gpu_metrics", with(10, 1000));
    let mut reader = Reader::new(&tree.0);
    let first = reader.read(1_000_000_000, &[]).remove(0);
    assert_eq!(first.get(Metric::XGMI_READ), Err(Absent::NotYet));
    assert_eq!(first.get(Metric::THROTTLE), Err(Absent::NotYet));
    tree.device("gpu_metrics", with(11, 3000));
    let second = reader.read(1_500_000_000, &[]).remove(0);
    assert_eq!(second.get(Metric::XGMI_READ), Ok(2000.0 * 1024.0 * 2.0));
    assert_eq!(throttle::names(second.get(Metric::THROTTLE).unwrap() as u64), "PPT0");
    // The driver was loaded again: no rate.
    tree.device("gpu_metrics", with(11, 5));
    let third = reader.read(2_000_000_000, &[]).remove(0);
    assert_eq!(third.get(Metric::XGMI_READ), Err(Absent::NotYet));
}

#[test]
fn a_process_is_told_by_its_descriptors_and_the_compute_drivers_files() {
    let tree = Tree::new("process");
    let descriptor = |time: u64| {
        format!(
            "pos: 0\ndrm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 5\ndrm-memory-gtt: 4 KiB\n\
             drm-engine-compute: {time} ns\n"
        )
    };
    tree.put("proc/77/fdinfo/3", descriptor(0));
    tree.put("proc/77/fdinfo/4", descriptor(0));
    tree.put("sys/class/kfd/kfd/proc/77/vram_19745", "2097152\n");
    tree.put("sys/class/kfd/kfd/proc/77/sdma_19745", "1000\n");
    tree.put("sys/class/kfd/kfd/proc/77/stats_19745/cu_occupancy", "30\n");
    let mut reader = Reader::new(&tree.0);
    let first = reader.read(1_000_000_000, &[77, 78]);
    assert_eq!(first.len(), 2, "one for the GPU, one for the process that uses it");
    assert_eq!(first[1].get(Metric::PROCESS_COMPUTE), Err(Absent::NotYet));
    tree.put("proc/77/fdinfo/3", descriptor(250_000_000));
    tree.put("proc/77/fdinfo/4", descriptor(250_000_000));
    tree.put("sys/class/kfd/kfd/proc/77/sdma_19745", "101000\n");
    let sample = reader.read(2_000_000_000, &[77]).remove(1);
    assert_eq!(sample.pid, Some(77));
    for (metric, value) in [
        (Metric::PROCESS_VRAM, 2_097_152.0),
        (Metric::PROCESS_GTT, 4096.0),
        (Metric::PROCESS_OCCUPANCY, 30.0),
        (Metric::PROCESS_COMPUTE, 25.0),
        (Metric::PROCESS_SDMA, 10.0),
    ] {
        assert_eq!(sample.get(metric), Ok(value), "{}", metric.key());
    }
    assert_eq!(sample.get(Metric::PROCESS_GRAPHICS), Err(Absent::NoField));
}

#[test]
fn what_is_absent_says_why() {
    let tree = Tree::new("absent");
    assert_eq!(tree.read().get(Metric::POWER), Err(Absent::NoFile));
    tree.device("gpu_metrics", [4, 0, 9, 9]);
    assert_eq!(tree.read().get(Metric::POWER), Err(Absent::UnknownLayout));
    tree.device("gpu_metrics", [120, 0, 1, 3, 0]);
    assert_eq!(tree.read().get(Metric::POWER), Err(Absent::Unreadable));
    let reasons = Absent::ALL.map(Absent::reason);
    assert!(reasons.iter().all(|reason| !reason.is_empty()));
    assert!(Reader::new(Path::new("/nonexistent")).read(1, &[1]).is_empty());
}

#[test]
fn hostile_tables_are_read_without_a_fault() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..60_000 {
        let revision = REVISIONS[round % REVISIONS.len()];
        let size = layout(revision).unwrap().1;
        let length = match random() % 4 {
            0 => random() as usize % (size + 8),
            _ => size,
        };
        let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        if length >= 4 && random() % 8 != 0 {
            bytes[..2].copy_from_slice(&(size as u16).to_le_bytes());
            (bytes[2], bytes[3]) = revision;
        }
        if let Ok(table) = Table::read(&bytes) {
            assert!(bytes.len() >= size);
            let mut sample = Sample::default();
            table.put_into(&mut sample);
            let _ = table.running();
            assert!(
                sample
                    .readings
                    .iter()
                    .all(|(_, reading)| reading.is_ok_and(f64::is_finite) || reading.is_err())
            );
        }
    }
}

#[test]
fn the_emulated_gpus_tree_is_read_like_a_real_one() {
    let Some(emulated) = std::env::var_os("EMULATED_GPU_SO")
        .map(PathBuf::from)
        .filter(|path| path.exists())
    else {
        eprintln!("skipped: no EMULATED_GPU_SO");
        return;
    };
    for (target, units) in [("gfx906", 60), ("gfx90a", 104)] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
            .args(["devices", "--json"])
            .env("LD_PRELOAD", &emulated)
            .env("EMULATED_GPU_TARGET", target)
            .env("EMULATED_GPU_COUNT", "2")
            .output()
            .expect("roctop runs");
        assert!(output.status.success());
        let nodes: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let gpus: Vec<_> = nodes.as_array().expect("a list").iter().skip(1).collect();
        assert_eq!(gpus.len(), 2);
        for gpu in gpus {
            let simds = gpu["properties"]["simd_count"].as_u64().expect("a number");
            assert_eq!(simds / 4, units);
            for (key, value) in [
                ("busy", 42.0),
                ("power", 212.0),
                ("power_cap", 300.0),
                ("shader_clock", 1700.0),
                ("memory_clock", 1000.0),
                ("temperature_junction", 61.0),
                ("fan", 1450.0),
                ("vram_total", 17_179_869_184.0),
                ("vram_used", 4_294_967_296.0),
                ("pcie_speed", 16.0),
            ] {
                let found = gpu["gauges"][key].as_f64();
                assert!(
                    found.is_some_and(|found| (found - value).abs() < 1e-6),
                    "{target} {key}: {found:?}"
                );
            }
            assert_eq!(
                gpu["absent"]["xgmi_read"], "this GPU's gpu_metrics has no such field",
                "{target}"
            );
        }
    }
}
