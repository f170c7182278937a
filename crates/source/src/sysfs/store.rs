//! Encodes samples for recordings: a 32-byte header, then 16 bytes per reading.

use super::{Absent, Metric, Sample};

const HEADER_BYTES: usize = 32;
const READING_BYTES: usize = 16;

/// Encodes consecutive samples.
pub fn encode(samples: &[Sample]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sample in samples {
        bytes.extend(sample.at.to_le_bytes());
        bytes.extend(sample.node.to_le_bytes());
        bytes.extend(sample.pid.unwrap_or(0).to_le_bytes());
        bytes.extend((sample.readings.len() as u32).to_le_bytes());
        bytes.extend(sample.number.to_le_bytes());
        bytes.extend(sample.location.to_le_bytes());
        for (metric, reading) in &sample.readings {
            let absent = reading.err().map_or(0, |absent| absent as u16);
            bytes.extend(metric.0.to_le_bytes());
            bytes.extend(absent.to_le_bytes());
            bytes.extend([0; 4]);
            bytes.extend(reading.unwrap_or(0.0).to_le_bytes());
        }
    }
    bytes
}

/// Decodes samples. Decoding is total: incomplete ones are dropped.
pub fn decode(bytes: &[u8]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut rest = bytes;
    while let Some((head, others)) = rest.split_at_checked(HEADER_BYTES) {
        let pid = word(head, 12) as u32;
        let mut sample = Sample {
            at: word(head, 0),
            machine: 0,
            node: word(head, 8) as u32,
            number: word(head, 20) as u32,
            location: word(head, 24),
            pid: (pid != 0).then_some(pid),
            readings: Vec::new(),
        };
        let size = (word(head, 16) as u32 as usize).checked_mul(READING_BYTES);
        let Some((readings, others)) = size.and_then(|size| others.split_at_checked(size)) else {
            break;
        };
        for raw in readings.as_chunks::<READING_BYTES>().0.iter().take(1024) {
            let absent = raw[2];
            let known = Absent::ALL.into_iter().find(|one| *one as u8 == absent);
            let value = f64::from_bits(word(raw, 8));
            let reading = match (absent, known) {
                (0, _) => Ok(value),
                (_, known) => Err(known.unwrap_or(Absent::Unreadable)),
            };
            sample.put(Metric(u16::from_le_bytes([raw[0], raw[1]])), reading);
        }
        samples.push(sample);
        rest = others;
    }
    samples
}

/// Eight bytes, padded with zeros at the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0u8; 8];
    for (to, from) in raw.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_and_damage_is_left_out() {
        let mut sample = Sample {
            at: 7,
            node: 1,
            pid: Some(9),
            ..Sample::default()
        };
        sample.put(Metric::BUSY, Ok(12.5));
        sample.put(Metric::FAN, Err(Absent::Denied));
        let samples = vec![sample.clone(), Sample { pid: None, ..sample }];
        let bytes = encode(&samples);
        assert_eq!(decode(&bytes), samples);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).len() < 2);
        }
        let mut hostile = bytes.clone();
        hostile[16..20].fill(0xff);
        assert_eq!(decode(&hostile), vec![]);
    }
}
