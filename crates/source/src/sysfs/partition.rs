//! Partitions (XCP) of a GPU: load of each one's compute dies and media engines.
//!
//! `gpu_metrics` 1.6 to 1.8 have `struct amdgpu_xcp_metrics` for eight partitions, of which `num_partition` are in use.
//! 1.9 lists all compute dies consecutively (`kgd_pp_interface.h`).

use super::gpu_metrics::Table;
use super::{Absent, Metric, Sample};

/// Number of partitions in a table.
const MAX_PARTITIONS: usize = 8;
/// `gfx_busy_inst[MAX_XCC]`, 32-bit percentages.
const COMPUTE: std::ops::Range<usize> = 0..32;
/// Size of the 16-bit percentages of the four VCN engines, after those of the JPEG engines.
const VCN_BYTES: usize = 8;

/// End of the engines' percentages for a partition of `size` bytes; `None` for an unknown size.
const fn media_end(size: usize) -> Option<usize> {
    match size {
        // 32 JPEG engines; 40 from 1.8 on.
        168 | 232 => Some(COMPUTE.end + 2 * 32 + VCN_BYTES),
        440 => Some(COMPUTE.end + 2 * 40 + VCN_BYTES),
        _ => None,
    }
}

/// Little-endian numbers of `width` bytes, without those that are all ones (not available).
fn numbers(bytes: &[u8], width: usize) -> impl Iterator<Item = f64> {
    let missing = u64::MAX >> (64 - 8 * width);
    let values = bytes.chunks_exact(width).map(move |chunk| {
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    values.filter(move |value| *value != missing).map(|value| value as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> Result<f64, Absent> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        (sum, count) = (sum + value, count + 1);
    }
    if count == 0 {
        return Err(Absent::NotReported);
    }
    Ok(sum / f64::from(count))
}

/// Adds partition readings of a table to `sample`; nothing if the table has none.
pub(super) fn put_into(table: &Table<'_>, sample: &mut Sample) {
    let used = table.sum("num_partition").ok().map(|count| count as usize);
    let used = used.filter(|count| (1..=MAX_PARTITIONS).contains(count));
    if let Some((bytes, size)) = table.raw("xcp_stats") {
        let Some(end) = media_end(size) else { return };
        let all = bytes.chunks_exact(size).take(used.unwrap_or(MAX_PARTITIONS));
        let busy = all.map(|one| {
            let media = numbers(&one[COMPUTE.end..end], 2);
            (mean(numbers(&one[COMPUTE], 4)), media.reduce(f64::max))
        });
        put(sample, busy, used);
    } else if let (Some((bytes, dies)), Some(used)) = (table.raw("gfx_busy_inst"), used) {
        let width = bytes.len().checked_div(dies).unwrap_or(0);
        if !matches!(width, 1 | 2 | 4 | 8) || dies % used != 0 {
            return;
        }
        let parts = bytes.chunks_exact(width * dies / used);
        put(sample, parts.map(|part| (mean(numbers(part, width)), None)), Some(used));
    }
}

fn put(sample: &mut Sample, partitions: impl Iterator<Item = (Result<f64, Absent>, Option<f64>)>, used: Option<usize>) {
    if let Some(used) = used {
        sample.put(Metric::PARTITIONS, Ok(used as f64));
    }
    for (number, (compute, media)) in (0..).zip(partitions) {
        // Without a number of partitions, those without readings do not exist.
        if used.is_some() || compute.is_ok() {
            sample.put(Metric(Metric::PARTITION_0.0 + number), compute);
        }
        if let Some(media) = media {
            sample.put(Metric(Metric::PARTITION_0_MEDIA.0 + number), Ok(media));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpu_metrics::layout;
    use super::*;

    /// A table in which everything but its head says "not available".
    fn table(revision: (u8, u8)) -> (Vec<u8>, usize, usize) {
        let (fields, size) = layout(revision).unwrap();
        let mut bytes = vec![0xff; size];
        bytes[..2].copy_from_slice(&(size as u16).to_le_bytes());
        (bytes[2], bytes[3]) = revision;
        let offset = |name: &str| fields.iter().find(|field| field.name == name).unwrap().offset;
        let places = (offset("num_partition"), offset("xcp_stats"));
        (bytes, places.0, places.1)
    }

    fn read(bytes: &[u8]) -> Sample {
        let mut sample = Sample::default();
        Table::read(bytes).unwrap().put_into(&mut sample);
        sample
    }

    #[test]
    fn a_partition_has_mean_of_dies_and_busiest_engine() {
        for (minor, size, jpeg) in [(6, 168, 32), (7, 232, 32), (8, 440, 40)] {
            let (mut bytes, count, stats) = table((1, minor));
            bytes[count..count + 2].copy_from_slice(&2u16.to_le_bytes());
            for (partition, die, busy) in [(0, 0, 40u32), (0, 1, 60), (1, 0, 7)] {
                let at = stats + partition * size + 4 * die;
                bytes[at..at + 4].copy_from_slice(&busy.to_le_bytes());
            }
            let vcn = stats + size + 32 + 2 * jpeg + 2;
            bytes[vcn..vcn + 2].copy_from_slice(&33u16.to_le_bytes());
            let sample = read(&bytes);
            assert_eq!(sample.get(Metric::PARTITIONS), Ok(2.0));
            assert_eq!(sample.get(Metric::PARTITION_0), Ok(50.0));
            assert_eq!(sample.get(Metric::PARTITION_1), Ok(7.0));
            assert_eq!(sample.get(Metric::PARTITION_1_MEDIA), Ok(33.0), "1.{minor}");
            assert!(!sample.readings.iter().any(|one| one.0 == Metric::PARTITION_2));
        }
    }

    #[test]
    fn tables_that_say_nothing_of_partitions_have_none() {
        for revision in [(1, 6), (1, 8)] {
            let sample = read(&table(revision).0);
            assert!(
                !sample.readings.iter().any(|one| one.0.is_of_partitions()),
                "{sample:?}"
            );
        }
        let (mut bytes, count, _) = table((1, 7));
        bytes[count..count + 2].copy_from_slice(&9u16.to_le_bytes());
        assert!(!read(&bytes).readings.iter().any(|one| one.0.is_of_partitions()));
    }
}
