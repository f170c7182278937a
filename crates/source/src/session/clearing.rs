//! Frees the memory of ended processes during a session: a test suite starts hundreds of programs, each of which leaves
//! some 10 MiB of rings on tmpfs.

use roctop_ring::flight::FLIGHT;
use roctop_ring::session::RING;
use roctop_ring::sites::SITES;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files of ended processes that are kept, bytes: for later viewers, and for a recovery.
const MAX_ENDED_BYTES: u64 = 512 << 20;
/// Delay after which the recording and all attached viewers have read a file.
const READ_DELAY: Duration = Duration::from_secs(10);

struct Ended {
    since: Instant,
    files: Vec<PathBuf>,
    bytes: u64,
}

/// Files of ended processes, oldest first.
pub(super) struct Clearing {
    ended: VecDeque<Ended>,
    kept: u64,
    taken: Duration,
}

impl Default for Clearing {
    fn default() -> Self {
        Self {
            ended: VecDeque::new(),
            kept: MAX_ENDED_BYTES,
            taken: READ_DELAY,
        }
    }
}

impl Clearing {
    /// A process has ended whose files in `session` begin with `stem`.
    pub(super) fn ended(&mut self, session: &Path, stem: &str) {
        let Ok(entries) = std::fs::read_dir(session) else {
            return;
        };
        let files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|ending| ending == RING || ending == FLIGHT || ending == SITES)
            })
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                !stem.is_empty() && name.starts_with(stem)
            })
            .collect();
        let sizes = files
            .iter()
            .filter_map(|path| Some(path.metadata().ok()?.blocks() * 512));
        let bytes = sizes.sum();
        self.ended.push_back(Ended {
            since: Instant::now(),
            files,
            bytes,
        });
    }

    /// Removes the oldest files beyond the limit.
    pub(super) fn clear(&mut self) {
        let mut bytes: u64 = self.ended.iter().map(|one| one.bytes).sum();
        while bytes > self.kept
            && let Some(oldest) = self.ended.front()
            && oldest.since.elapsed() >= self.taken
        {
            for file in &oldest.files {
                // If another process removed it, the aim is reached too.
                let _ = std::fs::remove_file(file);
            }
            bytes = bytes.saturating_sub(oldest.bytes);
            self.ended.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_oldest_files_of_ended_processes_are_removed() {
        let place = std::env::temp_dir().join(format!("roctop-clearing-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let make = |name: &str| std::fs::write(place.join(name), vec![1u8; 1 << 20]).unwrap();
        for name in [
            "10-1.ring",
            "10-1.1.ring",
            "10-1.0.flight",
            "10-1.sites",
            "100-1.ring",
            "11-1.ring",
            "control",
        ] {
            make(name);
        }
        let mut clearing = Clearing {
            kept: 4 << 20,
            taken: Duration::ZERO,
            ..Clearing::default()
        };
        clearing.ended(&place, "10-1.");
        clearing.clear();
        assert!(place.join("10-1.ring").exists(), "there is room for it");
        clearing.ended(&place, "11-1.");
        clearing.clear();
        let mut left: Vec<_> = std::fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["100-1.ring", "11-1.ring", "control"]);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
