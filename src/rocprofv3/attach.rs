//! `--attach PID`: processes of sessions of roctop can be recorded from now on; of others it is said what is in the way.

use super::settings::{Settings, usage_error};
use crate::clocks::boottime;
use crate::live::ingest::{Gauging, Ingest, Symbols};
use crate::live::run::say;
use crate::recording::Recorder;
use crate::session::{Live, sessions};
use crate::topology;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is to be attached to.
pub(super) struct Attach {
    pub(super) pid: u32,
    session: PathBuf,
    /// For so long; until it ends when none.
    time: Option<Duration>,
}

/// What the settings say of attaching; none when they say nothing.
///
/// Errors: the process is not there, or cannot be attached to, and why.
pub(super) fn read(settings: &Settings) -> Result<Option<Attach>> {
    let Some(text) = settings.value("attach").or_else(|| settings.value("pid")) else {
        if settings.value("attach_duration_msec").is_some() {
            bail!("--attach-duration-msec needs --attach PID");
        }
        return Ok(None);
    };
    let pid: u32 = text
        .parse()
        .ok()
        .filter(|pid| *pid > 0)
        .ok_or_else(|| usage_error(format!("--attach takes a process id, not '{text}'")))?;
    let time = match settings.value("attach_duration_msec") {
        None => None,
        Some(text) => Some(Duration::from_millis(text.parse().ok().ok_or_else(|| {
            usage_error(format!(
                "--attach-duration-msec takes a number of milliseconds, not '{text}'"
            ))
        })?)),
    };
    let found = sessions()
        .into_iter()
        .find(|session| session.processes.iter().any(|(known, _)| *known == pid));
    match found {
        Some(session) => Ok(Some(Attach {
            pid,
            session: session.path,
            time,
        })),
        None => bail!("--attach {pid}: {}", obstacle(pid)),
    }
}

/// What is in the way of attaching to a process that no roctop started.
fn obstacle(pid: u32) -> String {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let maps = match std::fs::read_to_string(place.join("maps")) {
        Ok(maps) => maps,
        Err(_) if !place.exists() => return "there is no such process".to_owned(),
        Err(error) => return format!("it may not be looked at ({error}): it belongs to another user"),
    };
    let command = std::fs::read_to_string(place.join("comm")).unwrap_or_default();
    let command = command.trim();
    if maps.contains("libhsa-runtime64") {
        return format!(
            "{command} runs without roctop's collector, which has to be there before the ROCm run-time is loaded; \
start it under 'roctop' (it can be watched and left at any time)"
        );
    }
    format!(
        "{command} has not loaded a ROCm run-time, and no collector can be put into a process that runs; start it under 'roctop'"
    )
}

impl Attach {
    /// Records the session into `recording` until the process ends or the time is over; false, with a message, when something
    /// is missing.
    pub(super) fn record(&self, recording: &Path) -> Result<bool> {
        let command = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words: Vec<String> = command
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let recorder = Recorder::create(recording, &words, &topology::read(Path::new("/")))?
            .beginning_at(boottime())?
            .reporting(say);
        let ingest = Ingest::start(
            Live::late(&self.session),
            None,
            Some(recorder),
            &Gauging::off(),
            Symbols::Shown,
        )?;
        let begun = Instant::now();
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        while process.exists() && self.session.exists() && self.time.is_none_or(|time| begun.elapsed() < time) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The session may have gone with its roctop: what was read until then is what there is.
        let read = ingest.stop();
        if let Err(error) = &read
            && self.session.exists()
        {
            say(&format!("{error:#}"));
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        match read(&Settings::parse(&words).unwrap().0) {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        assert_eq!(shown("--kernel-trace"), "");
        assert!(shown("--attach 4000000000").contains("no such process"));
        assert!(shown("-p x").contains("'x'") && shown("--pid 0").contains("'0'"));
        assert!(shown("--attach-duration-msec 5").contains("--attach PID"));
        assert!(shown("--attach 1 --attach-duration-msec -5").contains("'-5'"));
        let own = shown(&format!("--attach {}", std::process::id()));
        assert!(own.contains("has not loaded a ROCm run-time"), "{own}");
    }
}
