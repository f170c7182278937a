//! The last events of a rank as a small recording, made beside its roctop, which is not asked for them.

use super::pack::packed;
use crate::clocks::boottime;
use crate::item::Span;
use crate::live::ingest::{Gauging, Ingest, Symbols};
use crate::recording::{Merged, Origin, Recorder, Recording, cut};
use crate::session::{Live, recording_of};
use crate::topology;
use anyhow::{Context, Result};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of records at most, about; the oldest go first.
const MAX_BYTES: u64 = 64 << 20;
/// Longest stretch that is given, seconds.
const MAX_SECONDS: u32 = 60;

/// A private folder that goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new one below the folder for temporary files.
    pub(super) fn new() -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("roctop-events-{}-{next}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where the recording in it is.
    pub(crate) fn recording(&self) -> PathBuf {
        self.0.join("events")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains is private.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The last seconds of a session: of its recording, else what its rings still hold. Packed.
///
/// Errors: neither can be read, or there is no room for a copy.
pub(super) fn last_events(session: &Path, seconds: u32) -> Result<Vec<u8>> {
    let folder = Folder::new()?;
    let copy = folder.recording();
    let recording = recording_of(session).and_then(|path| Recording::open(&path).ok());
    match recording {
        Some(recording) => of_recording(&recording, seconds.clamp(1, MAX_SECONDS), &copy)?,
        None => of_rings(session, &copy)?,
    }
    packed(&copy)
}

fn of_recording(recording: &Recording, seconds: u32, copy: &Path) -> Result<()> {
    let whole = Merged::new(vec![recording])?;
    let origin = Origin {
        host: recording.host().to_owned(),
        boot: recording.boot().to_owned(),
        clock_offset: recording.clock_offset(),
        topologies: recording.topologies(),
        machines: whole.machines(),
    };
    let now = boottime();
    let span = Span {
        begin: now.saturating_sub(u64::from(seconds) * 1_000_000_000),
        end: now,
    };
    let recorder = Recorder::copy(copy, recording.command(), &origin)?.with_limit(Some(MAX_BYTES));
    cut(&whole, Some(span), &mut |_| (), recorder)?;
    Ok(())
}

fn of_rings(session: &Path, copy: &Path) -> Result<()> {
    let recorder = Recorder::create(copy, &[], &topology::read(Path::new("/")))?.with_limit(Some(MAX_BYTES));
    Ingest::start(
        Live::late(session),
        None,
        Some(recorder),
        &Gauging::off(),
        Symbols::Shown,
    )?
    .stop()
}
