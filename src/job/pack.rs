//! A recording as bytes of an answer: consecutive files, each with its name and length.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Maximum length of a file's name, bytes.
const MAX_NAME: usize = 64;
/// Maximum number of files of a recording.
const MAX_FILES: usize = 256;
/// Maximum length of a packed recording, bytes.
pub(super) const MAX_PACKED: usize = 256 << 20;

/// Whether a name is that of a file in the folder itself.
fn is_plain(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(is_usual)
}

/// The files of a recording, in pieces: before each file's bytes its name's length (one byte), its name, its length (eight
/// bytes, little endian).
///
/// Errors: a file cannot be read, or it is longer than allowed.
pub(super) fn packed(recording: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", recording.display());
    let mut all = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(recording)
        .with_context(cannot)?
        .collect::<Result<_, _>>()
        .with_context(cannot)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_plain(name)) else {
            continue;
        };
        let bytes = std::fs::read(entry.path()).with_context(cannot)?;
        all.push(name.len() as u8);
        all.extend_from_slice(name.as_bytes());
        all.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        all.extend_from_slice(&bytes);
        if all.len() > MAX_PACKED {
            bail!("the events take more than {} MiB", MAX_PACKED >> 20);
        }
    }
    Ok(all)
}

/// Writes the files of a packed recording into a new folder of mode 0700.
///
/// Errors: the bytes are no recording, or the folder cannot be made.
pub(super) fn unpack(mut bytes: &[u8], folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write {}", folder.display());
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(folder)
        .with_context(cannot)?;
    let mut count = 0;
    while !bytes.is_empty() {
        let next = (|| {
            let (length, rest) = bytes.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            let (length, rest) = rest.split_first_chunk::<8>()?;
            let (content, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            Some((std::str::from_utf8(name).ok()?, content, rest))
        })();
        count += 1;
        let Some((name, content, rest)) = next.filter(|(name, ..)| is_plain(name) && count <= MAX_FILES) else {
            bail!("the node's answer is no recording");
        };
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(name));
        file.and_then(|mut file| file.write_all(content)).with_context(cannot)?;
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_recording_comes_out_as_it_went_in() {
        let place = std::env::temp_dir().join(format!("roctop-pack-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("from")).unwrap();
        let files = [
            ("facts.roctop", vec![1; 9]),
            ("manifest.json", Vec::new()),
            ("segment-1.roctop", vec![7; 3 << 20]),
        ];
        for (name, bytes) in &files {
            std::fs::write(place.join("from").join(name), bytes).unwrap();
        }
        std::fs::write(place.join("from/.hidden"), b"x").unwrap();
        let bytes = packed(&place.join("from")).unwrap();
        let to = place.join("to");
        unpack(&bytes, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
        for (name, bytes) in &files {
            assert!(std::fs::read(to.join(name)).unwrap() == *bytes, "{name}");
        }
        assert!(!to.join(".hidden").exists());
        // Neither a present folder nor bytes that are no recording.
        assert!(unpack(&bytes, &to).is_err());
        let named = |name: &str| [&[name.len() as u8], name.as_bytes(), &0u64.to_le_bytes()].concat();
        let wrong = [
            named("../x"),
            named("a/b"),
            named(""),
            named(".x"),
            [named("a"), named("a")].concat(),
            bytes[..bytes.len() - 1].to_vec(),
            vec![0xff; 20],
            (0..=MAX_FILES)
                .flat_map(|number| named(&format!("f{number}")))
                .collect(),
        ];
        for (number, bytes) in wrong.iter().enumerate() {
            assert!(
                unpack(bytes, &place.join(format!("wrong{number}"))).is_err(),
                "{number}"
            );
        }
        assert!(!place.join("x").exists());
        std::fs::remove_dir_all(place).unwrap();
    }
}
