//! Metrics of the driver's files, their units, and why a number is missing.

use crate::id::Nanos;

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// 10^6 per second.
    MegaHertz,
    /// Watts.
    Watts,
    /// Joules.
    Joules,
    /// Degrees Celsius.
    Celsius,
    /// Revolutions per minute.
    TurnsPerMinute,
    /// Millivolts.
    Millivolts,
    /// 10^9 transfers per second.
    GigaTransfers,
    /// Bits that have names, see [`super::throttle`].
    Bits,
    /// A dimensionless number.
    Count,
}

impl Unit {
    /// Unit symbol, as in column heads.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Percent => "%",
            Self::Bytes => "B",
            Self::BytesPerSecond => "B/s",
            Self::MegaHertz => "MHz",
            Self::Watts => "W",
            Self::Joules => "J",
            Self::Celsius => "°C",
            Self::TurnsPerMinute => "rpm",
            Self::Millivolts => "mV",
            Self::GigaTransfers => "GT/s",
            Self::Bits => "bits",
            Self::Count => "",
        }
    }
}

/// A gauge's number. The set is open: numbers are written into recordings and never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Metric(pub u16);

macro_rules! metrics {
    ($($num:literal $NAME:ident $key:literal $title:literal $Unit:ident)*) => {
        impl Metric {
            $(#[doc = concat!("`", $key, "`: ", $title, ".")] pub const $NAME: Self = Self($num);)*

            /// All known metrics, in order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$NAME),*];

            /// Name in files, `unknown` for an unknown number.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$NAME => $key,)* _ => "unknown" }
            }

            /// Name on screen.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$NAME => $title,)* _ => "unknown gauge" }
            }

            /// Unit of its values.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$NAME => Unit::$Unit,)* _ => Unit::Count }
            }
        }
    };
}

metrics! {
    1 BUSY "busy" "busy" Percent
    2 MEMORY_BUSY "memory_busy" "memory busy" Percent
    3 MEDIA_BUSY "media_busy" "media engines busy" Percent
    4 VRAM_USED "vram_used" "VRAM used" Bytes
    5 VRAM_TOTAL "vram_total" "VRAM" Bytes
    6 VISIBLE_USED "visible_vram_used" "visible VRAM used" Bytes
    7 GTT_USED "gtt_used" "GTT used" Bytes
    8 GTT_TOTAL "gtt_total" "GTT" Bytes
    9 SHADER_CLOCK "shader_clock" "shader clock" MegaHertz
    10 MEMORY_CLOCK "memory_clock" "memory clock" MegaHertz
    11 FABRIC_CLOCK "fabric_clock" "fabric clock" MegaHertz
    12 SOC_CLOCK "soc_clock" "SOC clock" MegaHertz
    13 POWER "power" "power" Watts
    14 POWER_CAP "power_cap" "power cap" Watts
    15 ENERGY "energy" "energy" Joules
    16 EDGE "temperature_edge" "edge temperature" Celsius
    17 JUNCTION "temperature_junction" "junction temperature" Celsius
    18 MEMORY_TEMPERATURE "temperature_memory" "memory temperature" Celsius
    19 FAN "fan" "fan" TurnsPerMinute
    20 VOLTAGE "voltage" "graphics voltage" Millivolts
    21 THROTTLE "throttle" "throttle reasons" Bits
    22 THROTTLE_RAW "throttle_raw" "chip-specific throttle bits" Bits
    23 PCIE_WIDTH "pcie_width" "PCIe lanes" Count
    24 PCIE_SPEED "pcie_speed" "PCIe speed" GigaTransfers
    25 PCIE_RATE "pcie_rate" "PCIe traffic" BytesPerSecond
    26 PCIE_REPLAYS "pcie_replays" "PCIe replays" Count
    27 XGMI_WIDTH "xgmi_width" "xGMI lanes" Count
    28 XGMI_SPEED "xgmi_speed" "xGMI speed, Gb/s" Count
    29 XGMI_READ "xgmi_read" "xGMI read" BytesPerSecond
    30 XGMI_WRITE "xgmi_write" "xGMI write" BytesPerSecond
    31 MEMORY_PEAK "memory_peak" "peak memory bandwidth" BytesPerSecond
    32 MEMORY_READ "memory_read" "memory read" BytesPerSecond
    33 MEMORY_WRITE "memory_write" "memory written" BytesPerSecond
    34 PARTITIONS "partitions" "partitions" Count
    40 PARTITION_0 "partition_0_busy" "partition 0 busy" Percent
    41 PARTITION_1 "partition_1_busy" "partition 1 busy" Percent
    42 PARTITION_2 "partition_2_busy" "partition 2 busy" Percent
    43 PARTITION_3 "partition_3_busy" "partition 3 busy" Percent
    44 PARTITION_4 "partition_4_busy" "partition 4 busy" Percent
    45 PARTITION_5 "partition_5_busy" "partition 5 busy" Percent
    46 PARTITION_6 "partition_6_busy" "partition 6 busy" Percent
    47 PARTITION_7 "partition_7_busy" "partition 7 busy" Percent
    48 PARTITION_0_MEDIA "partition_0_media_busy" "partition 0 media engines busy" Percent
    49 PARTITION_1_MEDIA "partition_1_media_busy" "partition 1 media engines busy" Percent
    50 PARTITION_2_MEDIA "partition_2_media_busy" "partition 2 media engines busy" Percent
    51 PARTITION_3_MEDIA "partition_3_media_busy" "partition 3 media engines busy" Percent
    52 PARTITION_4_MEDIA "partition_4_media_busy" "partition 4 media engines busy" Percent
    53 PARTITION_5_MEDIA "partition_5_media_busy" "partition 5 media engines busy" Percent
    54 PARTITION_6_MEDIA "partition_6_media_busy" "partition 6 media engines busy" Percent
    55 PARTITION_7_MEDIA "partition_7_media_busy" "partition 7 media engines busy" Percent
    56 NETWORK_RECEIVED "network_received" "network received" BytesPerSecond
    57 NETWORK_SENT "network_sent" "network sent" BytesPerSecond
    58 NETWORK_ERRORS "network_errors" "network errors" Count
    59 XGMI_ERRORS "xgmi_errors" "xGMI errors" Count
    64 PROCESS_VRAM "process_vram" "VRAM of the process" Bytes
    65 PROCESS_GTT "process_gtt" "GTT of the process" Bytes
    66 PROCESS_COMPUTE "process_compute" "compute engines, the process's share" Percent
    67 PROCESS_GRAPHICS "process_graphics" "graphics engine, the process's share" Percent
    68 PROCESS_SDMA "process_sdma" "SDMA, the process's share" Percent
    69 PROCESS_OCCUPANCY "process_cu_occupancy" "compute units, occupied by the process" Count
    70 PROCESS_EVICTED "process_evicted" "time evicted, ms" Count
}

impl Metric {
    /// Whether only partitioned GPUs have it.
    pub const fn is_of_partitions(self) -> bool {
        self.0 >= Self::PARTITIONS.0 && self.0 <= Self::PARTITION_7_MEDIA.0
    }

    /// Whether it is of the network's ports that are counted at a GPU.
    pub const fn is_of_network(self) -> bool {
        self.0 >= Self::NETWORK_RECEIVED.0 && self.0 <= Self::NETWORK_ERRORS.0
    }
}

/// Reason for a missing number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Absent {
    /// The driver has no such file for this GPU.
    NoFile = 1,
    /// The GPU's `gpu_metrics` file has no such field.
    NoField = 2,
    /// The field is present and marked as not available.
    NotReported = 3,
    /// A rate needs a second sample.
    NotYet = 4,
    /// The file has an unknown layout.
    UnknownLayout = 5,
    /// The driver returned an error.
    Refused = 6,
    /// The driver's answer could not be parsed.
    Unreadable = 7,
    /// This user may not read the file.
    Denied = 8,
    /// There is no port of a network, or it has no such counter.
    NoPort = 9,
}

impl Absent {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::NoFile,
        Self::NoField,
        Self::NotReported,
        Self::NotYet,
        Self::UnknownLayout,
        Self::Refused,
        Self::Unreadable,
        Self::Denied,
        Self::NoPort,
    ];

    /// Reason as a phrase for the screen.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoFile => "the driver publishes no such file for this GPU",
            Self::NoField => "this GPU's gpu_metrics has no such field",
            Self::NotReported => "the driver reports that it is not available",
            Self::NotYet => "a second sample is needed",
            Self::UnknownLayout => "gpu_metrics has a layout that this release does not know",
            Self::Refused => "the driver refused to answer",
            Self::Unreadable => "the driver's answer is not a number",
            Self::NoPort => "no port of InfiniBand, RoCE or Slingshot counts it at this GPU",
            Self::Denied => "this user may not read it; be in the groups render and video",
        }
    }
}

/// A number, or the reason why it is missing.
pub type Reading = Result<f64, Absent>;

/// Readings of a GPU, or of a process on it, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time, CLOCK_BOOTTIME.
    pub at: Nanos,
    /// The machine, see [`crate::id::NodeId::machine`]. Recordings do not contain it, because it depends on which are
    /// read together.
    pub machine: u32,
    /// Node of the GPU in the driver's topology.
    pub node: u32,
    /// Number of the GPU on its machine, from 0.
    pub number: u32,
    /// PCI domain in the upper half; bus, device and function as the topology's `location_id` in the lower.
    pub location: u64,
    /// Process that the readings are about; `None` for the whole GPU.
    pub pid: Option<u32>,
    /// Readings, each metric at most once.
    pub readings: Vec<(Metric, Reading)>,
}

impl Sample {
    /// Reading of a metric; [`Absent::NoFile`] if the sample does not contain it.
    pub fn get(&self, metric: Metric) -> Reading {
        let found = self.readings.iter().find(|one| one.0 == metric);
        found.map_or(Err(Absent::NoFile), |one| one.1)
    }

    /// Adds a reading. The first number wins; among reasons, the most severe.
    pub fn put(&mut self, metric: Metric, reading: Reading) {
        let reading = reading.and_then(|value| {
            if value.is_finite() {
                Ok(value)
            } else {
                Err(Absent::Unreadable)
            }
        });
        match self.readings.iter_mut().find(|one| one.0 == metric) {
            None => self.readings.push((metric, reading)),
            Some((_, known)) => {
                *known = match (*known, reading) {
                    (Ok(value), _) | (_, Ok(value)) => Ok(value),
                    (Err(a), Err(b)) => Err(a.max(b)),
                }
            }
        }
    }
}
