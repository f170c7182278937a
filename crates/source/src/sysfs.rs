//! Gauges that drivers publish in files: load, memory, clocks, power, temperatures, links, ports of network cards.
//!
//! Parsers are pure; [`reader::Reader`] opens files below a root that tests can set. A missing value is a reading too:
//! it contains the reason. Hardware counters are not here; they need the collector.
//! [`binding`] reads where processes may run.

mod attributes;
pub mod binding;
pub mod fdinfo;
pub mod gpu_metrics;
mod network;
mod partition;
pub mod reader;
pub mod store;
pub mod text;

pub use roctop_trace::gauge::metric::{Absent, Metric, Reading, Sample, Unit};
