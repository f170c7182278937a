//! `roctop keep`: asks the roctop of a session to write what it holds.

use crate::session::SessionDir;
use crate::session::keep::{Answers, Outcome};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks at the answer.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long the other roctop may take to notice the request, on a busy machine too.
const NOTICE_TIME: Duration = Duration::from_secs(30);

/// Asks, and waits until the recording is complete; its directory.
///
/// Errors: the session keeps nothing, its roctop ends or does not answer, or it cannot write.
pub fn keep(session: &Path) -> Result<PathBuf> {
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    let directory = SessionDir::open(session)?;
    if Answers::read(session)?.is_none() {
        bail!("the session {name} holds no records; 'roctop record --keep 30s -o runs -- APP' starts one that does");
    }
    let request = number();
    directory.request_keep(request)?;
    let asked = Instant::now();
    loop {
        let answers = Answers::read(session);
        match answers
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .and_then(|all| all.get(request))
        {
            Some(Outcome::Written(path)) => return Ok(path.clone()),
            Some(Outcome::Refused(why)) => bail!("the roctop of session {name} wrote no recording: {why}"),
            None if !session.exists() => bail!("the session {name} ended before it answered"),
            None if asked.elapsed() > NOTICE_TIME => bail!("the roctop of session {name} does not answer"),
            // Another request took its place.
            None if directory.keep_request() != request => directory.request_keep(request)?,
            Some(Outcome::Begun(_)) | None => {}
        }
        if !session.exists() {
            bail!("the session {name} ended while the recording was being written; its roctop reports the recording");
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// A number that no other request has: process and time. It is not 0.
fn number() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = time.map_or(0, |time| time.as_nanos() as u64);
    u64::from(std::process::id()) << 40 | (nanos >> 10) & 0xff_ffff_ffff | 1
}
