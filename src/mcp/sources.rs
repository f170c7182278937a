//! What can be asked: the user's own sessions and jobs, and recordings below directories that the user has named.

use crate::job::{Target, job_names};
use crate::model::ask::tool::{UNTRUSTED, untrusted};
use crate::recording::{MANIFEST, Recording};
use crate::session::sessions;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Recordings that are listed at most.
const MAX_RECORDINGS: usize = 200;
/// Directories that are looked into at most for a list, and how deep.
const MAX_DIRECTORIES: usize = 5_000;
const MAX_DEPTH: usize = 8;

/// Directories below which recordings may be read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Without symbolic links.
    directories: Vec<PathBuf>,
}

/// What a question is put to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A session's directory.
    Session(PathBuf),
    /// Recordings, as one.
    Recordings(Vec<PathBuf>),
    /// The ranks of a job of the user.
    Job(Target),
}

impl Sources {
    /// With recordings below these directories.
    ///
    /// Errors: one is none.
    pub fn new(directories: &[PathBuf]) -> Result<Self> {
        let real = |path: &PathBuf| {
            let cannot = || format!("cannot look into {}", path.display());
            let real = fs::canonicalize(path).with_context(cannot)?;
            if !real.is_dir() {
                bail!("{} is no directory", path.display());
            }
            Ok(real)
        };
        Ok(Self {
            directories: directories.iter().map(real).collect::<Result<_>>()?,
        })
    }

    /// Where a source is; the only session if none is named.
    ///
    /// Errors: there is none, or it is outside.
    pub(super) fn find(&self, source: Option<&str>) -> Result<Place> {
        let Some(source) = source else {
            let mut found = sessions();
            return match found.len() {
                1 => Ok(Place::Session(found.remove(0).path)),
                0 => bail!("no session is running; name a source that 'list' has"),
                count => bail!("{count} sessions are running; name a source that 'list' has"),
            };
        };
        if let Some(target) = Target::of_text(source)? {
            return Ok(Place::Job(target));
        }
        if let Some(path) = self.below(source)? {
            return Ok(Place::Recordings(recordings(&path)?));
        }
        let found = sessions().into_iter().find(|session| {
            let has_pid = |(pid, _): &(u32, String)| pid.to_string() == source;
            session.name() == source || session.processes.iter().any(has_pid)
        });
        match found {
            Some(session) => Ok(Place::Session(session.path)),
            None => bail!("there is no source {source:?}; 'list' has them"),
        }
    }

    /// The path of a source without symbolic links; `None` if there is no such file below the directories.
    ///
    /// Errors: it is outside.
    fn below(&self, source: &str) -> Result<Option<PathBuf>> {
        // An absolute path replaces the directory that it is joined to.
        let named = self.directories.iter().map(|directory| directory.join(source));
        let mut found = named.filter_map(|path| fs::canonicalize(path).ok()).peekable();
        if found.peek().is_none() {
            return Ok(None);
        }
        match found.find(|path| self.has(path)) {
            Some(path) => Ok(Some(path)),
            // The error does not say whether such a file exists.
            None => bail!("there is no source {source:?}; 'list' has them"),
        }
    }

    /// Whether a path without symbolic links is below a directory.
    fn has(&self, real: &Path) -> bool {
        self.directories.iter().any(|directory| real.starts_with(directory))
    }

    /// What can be asked, as JSON.
    pub(super) fn list(&self) -> Value {
        let running = sessions().into_iter().map(|session| {
            let processes = session.processes.iter();
            let processes = processes.map(|(pid, command)| json!({ "pid": pid, "command": untrusted(command) }));
            json!({ "source": session.name(), "processes": processes.collect::<Vec<_>>() })
        });
        let jobs = job_names()
            .into_iter()
            .map(|job| json!({ "source": format!("job:{job}") }));
        let (found, is_all) = self.recordings();
        let recordings = found.iter().filter_map(|path| {
            let recording = Recording::open(path).ok()?;
            Some(json!({
                "source": path.to_str()?,
                "command": untrusted(&recording.command().join(" ")),
                "host": untrusted(recording.host()),
                "bytes": recording.bytes(),
                "kept_because": recording.trigger().map(|trigger| untrusted(&trigger.line())),
            }))
        });
        json!({
            "untrusted": UNTRUSTED,
            "sessions": running.collect::<Vec<_>>(),
            "jobs": jobs.collect::<Vec<_>>(),
            "recordings": recordings.collect::<Vec<_>>(),
            "directories": self.directories.iter().map(|path| untrusted(&path.to_string_lossy())).collect::<Vec<_>>(),
            "complete": is_all,
        })
    }

    /// Recordings below the directories, in order of their paths, and whether these are all. Symbolic links are not followed.
    fn recordings(&self) -> (Vec<PathBuf>, bool) {
        let mut found = Vec::new();
        let mut looked = 0;
        let mut is_all = true;
        let mut open: Vec<(PathBuf, usize)> = self.directories.iter().rev().map(|path| (path.clone(), 0)).collect();
        while let Some((path, depth)) = open.pop() {
            looked += 1;
            if looked > MAX_DIRECTORIES || found.len() >= MAX_RECORDINGS {
                return (found, false);
            }
            if path.join(MANIFEST).is_file() {
                if is_readable(&path) && !found.contains(&path) {
                    found.push(path);
                }
                continue;
            }
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let inside = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
            if depth >= MAX_DEPTH {
                is_all &= inside.is_empty();
                continue;
            }
            inside.sort_by(|a, b| b.cmp(a));
            open.extend(inside.into_iter().map(|path| (path, depth + 1)));
        }
        (found, is_all)
    }
}

/// Whether a recording has ordinary files alone: a link would leave the directory, and a pipe would never end.
fn is_readable(recording: &Path) -> bool {
    let Ok(entries) = fs::read_dir(recording) else {
        return false;
    };
    let is_plain = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()))
    };
    entries.into_iter().all(is_plain)
}

/// The recording at a path, or those right inside of it.
///
/// Errors: there is none, or it has links.
fn recordings(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![path.to_owned()];
    if !path.join(MANIFEST).exists() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let inside = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        found = inside.map(|entry| entry.path()).collect();
        found.retain(|path| path.join(MANIFEST).exists());
        found.sort();
    }
    if found.is_empty() {
        bail!("there is no recording in it; 'list' has them");
    }
    if !found.iter().all(|path| is_readable(path)) {
        bail!("a recording with links or special files is not read");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Tree(PathBuf);

    impl Tree {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("roctop-mcp-sources-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            for recording in [
                "in/run",
                "in/ranks/0",
                "in/ranks/1",
                "out/secret",
                "in/linked",
                "in/piped",
            ] {
                fs::create_dir_all(path.join(recording)).unwrap();
                fs::write(path.join(recording).join(MANIFEST), "{}").unwrap();
            }
            fs::create_dir_all(path.join("in/empty")).unwrap();
            symlink(path.join("out/secret"), path.join("in/away")).unwrap();
            symlink("run", path.join("in/same")).unwrap();
            symlink("..", path.join("in/ranks/up")).unwrap();
            symlink(
                path.join("out/secret").join(MANIFEST),
                path.join("in/linked/segment-0.roctop"),
            )
            .unwrap();
            let pipe = path.join("in/piped/segment-0.roctop");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            Self(fs::canonicalize(path).unwrap())
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_what_is_below_is_found() {
        let tree = Tree::new();
        let at = |name: &str| tree.0.join(name);
        let sources = Sources::new(&[at("in")]).unwrap();
        let found = |source: &str| sources.find(Some(source));
        let one = |name: &str| Place::Recordings(vec![at(name)]);
        assert_eq!(found("run").unwrap(), one("in/run"));
        assert_eq!(found(at("in/run").to_str().unwrap()).unwrap(), one("in/run"));
        assert_eq!(found("same").unwrap(), one("in/run"));
        assert_eq!(found("ranks/../run/.").unwrap(), one("in/run"));
        assert_eq!(
            found("ranks").unwrap(),
            Place::Recordings(vec![at("in/ranks/0"), at("in/ranks/1")])
        );
        for outside in [
            "away",
            "../out/secret",
            "run/../../out/secret",
            at("out/secret").to_str().unwrap(),
            "/",
            "/etc",
            "../../../../../../../etc",
            "missing",
            "run\0",
        ] {
            let error = found(outside).expect_err(outside).to_string();
            assert!(error.contains("there is no source"), "{outside}: {error}");
        }
        for wrong in ["linked", "piped"] {
            let error = found(wrong).expect_err(wrong).to_string();
            assert!(error.contains("special files"), "{wrong}: {error}");
        }
        assert!(found("empty").is_err());
        let (listed, is_all) = sources.recordings();
        assert_eq!(listed, [at("in/ranks/0"), at("in/ranks/1"), at("in/run")]);
        assert!(is_all);
        assert!(Sources::default().find(Some(at("in/run").to_str().unwrap())).is_err());
        assert!(Sources::new(&[at("missing")]).is_err() && Sources::new(&[at("in/run").join(MANIFEST)]).is_err());
    }
}
