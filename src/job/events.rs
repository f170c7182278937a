//! The last events of a rank as a small recording, made beside its roctop, which is not asked for them.

use super::pack::packed;
use crate::clocks::boottime;
use crate::item::Span;
use crate::live::ingest::{Gauging, Ingest, Symbols};
use crate::private_dir::PrivateDir;
use crate::recording::{Merged, Origin, Recorder, Recording, cut};
use crate::session::{Live, recording_of};
use crate::topology;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Bytes of records at most, about; the oldest go first.
const MAX_BYTES: u64 = 64 << 20;
/// Longest stretch that is given, seconds.
const MAX_SECONDS: u32 = 60;

/// A private folder that goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PrivateDir);

impl Folder {
    /// A new one.
    pub(super) fn new() -> Result<Self> {
        PrivateDir::new("events").map(Self)
    }

    /// Where the recording in it is.
    pub(crate) fn recording(&self) -> PathBuf {
        self.0.path().join("events")
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
