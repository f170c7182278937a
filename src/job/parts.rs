//! Several reports as the bytes of one message: a roctop may have the processes of several ranks.

/// The reports in one message, each behind its length of four bytes (little endian).
pub(super) fn join(reports: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for report in reports {
        all.extend_from_slice(&(report.len() as u32).to_le_bytes());
        all.extend_from_slice(report);
    }
    all
}

/// The reports of a message; those of a damaged one end where it is damaged.
pub(super) fn split(mut message: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = message.split_first_chunk::<4>()?;
        let (report, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        message = rest;
        Some(report)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_out_as_they_went_in() {
        let reports = [b"one".to_vec(), Vec::new(), vec![7; 9000]];
        let message = join(&reports);
        let found: Vec<&[u8]> = split(&message).collect();
        assert_eq!(found, reports.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(split(&[]).count(), 0);
    }

    #[test]
    fn a_damaged_message_has_the_reports_before_the_damage() {
        let message = join(&[b"one".to_vec(), b"two".to_vec()]);
        for end in 0..message.len() {
            assert!(split(&message[..end]).count() <= 1 + usize::from(end >= 14), "{end}");
        }
        assert_eq!(split(&[0xff; 9]).count(), 0);
    }
}
