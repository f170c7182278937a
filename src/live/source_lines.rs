//! Reads the lines of source files that frames on the screen name.
//!
//! Paths come from debug information and from Python code, which are untrusted: only regular files of bounded size are
//! opened, below the root of the process while it runs, never through the links of `/proc`.

use crate::model::output::is_plain;
use crate::recording::hostname;
use crate::ui::source_text::{SourceLine, SourcePlace};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Longer files are not read, bytes: generated code has some MiB.
const MAX_FILE: u64 = 16 << 20;
/// Bytes of a line that are looked at.
const MAX_LINE: usize = 4096;
/// Characters of a line that are kept.
const MAX_TEXT: usize = 240;
/// Magic numbers of file systems whose files may do something when they are read: proc, sysfs, debugfs and tracefs.
const PSEUDO: [u64; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

/// Reads lines; those that cannot be read are missing.
pub(super) fn read(places: Vec<SourcePlace>) -> Vec<(SourcePlace, SourceLine)> {
    let mut files: HashMap<_, Vec<SourcePlace>> = HashMap::new();
    for place in places {
        let key = (place.file.clone(), place.binary.clone(), place.pid, place.host.clone());
        files.entry(key).or_default().push(place);
    }
    let mut lines = Vec::new();
    for places in files.into_values() {
        let Some(file) = places.first().and_then(SourceFile::of) else {
            continue;
        };
        for place in places {
            let Some(text) = line(&file.bytes, place.line) else {
                continue;
            };
            let is_doubtful = file.is_doubtful || place.began == 0 || file.changed > i128::from(place.began);
            let text = text.into();
            lines.push((place, SourceLine { text, is_doubtful }));
        }
    }
    lines
}

/// A source file.
struct SourceFile {
    bytes: Vec<u8>,
    /// When it was changed, CLOCK_REALTIME ns.
    changed: i128,
    /// It may be another one than the program had.
    is_doubtful: bool,
}

impl SourceFile {
    fn of(place: &SourcePlace) -> Option<Self> {
        let root = Root::of(place)?;
        let (file, facts) = root.open(&place.file)?;
        if facts.size > MAX_FILE {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(facts.size).read_to_end(&mut bytes).ok()?;
        // A binary is newer than its source.
        let binary = (!place.binary.is_empty()).then(|| root.open(&place.binary)).flatten();
        let is_newer = binary.is_some_and(|(_, binary)| facts.changed > binary.changed);
        Some(Self {
            bytes,
            changed: facts.changed,
            is_doubtful: is_newer || !root.is_of_process,
        })
    }
}

/// A folder below which paths of a process are opened.
struct Root {
    folder: OwnedFd,
    /// It is this process's root, too.
    is_own: bool,
    /// The files below it are those that the process sees.
    is_of_process: bool,
}

/// What is compared of a file.
#[derive(PartialEq)]
struct Facts {
    device: u64,
    inode: u64,
    size: u64,
    /// When it was changed, CLOCK_REALTIME ns.
    changed: i128,
}

impl Root {
    /// That of the process while it runs, else that of this machine.
    fn of(place: &SourcePlace) -> Option<Self> {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |facts| facts.ino());
        let is_own_namespace = place.pid_namespace == namespace;
        let open = |path: &str| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(CWD, path, flags, Mode::empty()).ok()
        };
        let own = open("/")?;
        if place.pid > 0
            && is_own_namespace
            && let Some(folder) = open(&format!("/proc/{}/root", place.pid))
        {
            return Some(Self {
                is_own: is_same(&folder, &own),
                folder,
                is_of_process: true,
            });
        }
        Some(Self {
            folder: own,
            is_own: true,
            is_of_process: *place.host == hostname() && (is_own_namespace || place.pid_namespace == 0),
        })
    }

    /// Opens a regular file. It is looked at before, because opening a device or a pipe may do something.
    fn open(&self, path: &str) -> Option<(File, Facts)> {
        if !path.starts_with('/') {
            return None;
        }
        let looked = self.opened(path, OFlags::PATH)?;
        let facts = facts(&looked)?;
        let system = fstatfs(&looked).ok()?;
        if PSEUDO.contains(&(system.f_type as u64)) {
            return None;
        }
        let file = self.opened(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        (self::facts(&file)? == facts).then(|| (file.into(), facts))
    }

    fn opened(&self, path: &str, flags: OFlags) -> Option<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        // Links of `/proc` are not followed, others stay below the root.
        match openat2(&self.folder, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            // Linux before 5.6, and filters that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) if self.is_own => openat(CWD, path, flags, Mode::empty()).ok(),
            opened => opened.ok(),
        }
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let (Ok(one), Ok(other)) = (fstat(one), fstat(other)) else {
        return false;
    };
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// None if it is no regular file.
fn facts(file: impl AsFd) -> Option<Facts> {
    let stat = fstat(file).ok()?;
    let size = u64::try_from(stat.st_size).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_regular.then_some(Facts {
        device: stat.st_dev,
        inode: stat.st_ino,
        size,
        changed: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
    })
}

/// A line of a file, safe to draw and without the white space around it; none if there is no such line, or nothing in it.
fn line(bytes: &[u8], number: u32) -> Option<String> {
    let found = bytes
        .split(|byte| *byte == b'\n')
        .nth(number.checked_sub(1)? as usize)?;
    let text = String::from_utf8_lossy(found.get(..MAX_LINE).unwrap_or(found));
    let shown = text.chars().map(|c| if c == '\t' { ' ' } else { c });
    let shown: String = shown.filter(|c| is_plain(*c)).collect();
    let shown: String = shown.trim().chars().take(MAX_TEXT).collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Timespec, Timestamps, futimens};
    use std::path::{Path, PathBuf};

    /// A folder for files of a test.
    fn folder(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("roctop-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).expect("a temporary folder");
        place
    }

    fn write(path: &Path, bytes: &[u8], seconds: i64) {
        std::fs::write(path, bytes).expect("a temporary file");
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        futimens(File::open(path).expect("it was written"), &times).expect("its time is ours");
    }

    fn place(file: &Path, line: u32) -> SourcePlace {
        SourcePlace {
            file: file.display().to_string(),
            line,
            binary: String::new(),
            pid: 0,
            pid_namespace: 0,
            host: hostname().into(),
            began: 2_000_000_000,
        }
    }

    fn text(of: SourcePlace) -> Option<(String, bool)> {
        let lines = read(vec![of]);
        let line = lines.into_iter().next().map(|found| found.1)?;
        Some((line.text.to_string(), line.is_doubtful))
    }

    #[test]
    fn lines_are_read_and_cleaned() {
        let folder = folder("source-lines");
        let file = folder.join("a.cpp");
        let long = "x".repeat(1 << 20);
        let bytes = [
            b"int main() {\r\n".as_slice(),
            b"\tlaunch(a,\tb);\x1b[2J\xff\0\n\n",
            "\u{202e}wörter 語\n".as_bytes(),
            long.as_bytes(),
            b"\nlast",
        ];
        write(&file, &bytes.concat(), 1);
        let line = |number| text(place(&file, number)).map(|found| found.0);
        assert_eq!(line(1).as_deref(), Some("int main() {"));
        assert_eq!(line(2).as_deref(), Some("launch(a, b);[2J\u{fffd}"));
        assert_eq!(line(3), None, "an empty line");
        assert_eq!(line(4).as_deref(), Some("wörter 語"));
        assert_eq!(line(5).map(|text| text.len()), Some(MAX_TEXT));
        assert_eq!(line(6).as_deref(), Some("last"));
        assert_eq!((line(0), line(7), line(u32::MAX)), (None, None, None));
        let both = read(vec![place(&file, 1), place(&file, 6)]);
        assert_eq!(both.len(), 2);
        std::fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn a_file_that_may_have_changed_is_marked() {
        let folder = folder("source-changed");
        let (file, binary) = (folder.join("a.cpp"), folder.join("a.out"));
        let mark = |of: SourcePlace| text(of).map(|found| found.1);
        write(&file, b"launch();", 1);
        assert_eq!(mark(place(&file, 1)), Some(false));
        let built = |seconds| {
            write(&binary, b"", seconds);
            let binary = binary.display().to_string();
            mark(SourcePlace {
                binary,
                ..place(&file, 1)
            })
        };
        assert_eq!(built(1), Some(false));
        assert_eq!(built(0), Some(true), "the source is newer than the binary");
        let other = |of: SourcePlace| mark(SourcePlace { began: 1 << 40, ..of });
        let elsewhere = SourcePlace {
            host: "another".into(),
            ..place(&file, 1)
        };
        assert_eq!(other(elsewhere), Some(true), "another machine");
        let namespaced = SourcePlace {
            pid_namespace: 1,
            ..place(&file, 1)
        };
        assert_eq!(other(namespaced), Some(true), "another container");
        write(&file, b"launch();", 3);
        assert_eq!(mark(place(&file, 1)), Some(true), "changed since the run began");
        std::fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = folder("source-special");
        let read = |path: &Path| text(place(path, 1));
        let pipe = folder.join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let large = folder.join("large");
        File::create(&large)
            .and_then(|file| file.set_len(MAX_FILE + 1))
            .expect("a file with a hole");
        for path in [&pipe, &large, &folder, &folder.join("missing")] {
            assert_eq!(read(path), None, "{path:?}");
        }
        for path in [
            "/dev/zero",
            "/proc/self/status",
            "/proc/self/exe",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ] {
            assert_eq!(read(Path::new(path)), None, "{path}");
        }
        let (file, link) = (folder.join("a.py"), folder.join("link"));
        write(&file, b"launch()", 1);
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert_eq!(read(&link), Some(("launch()".into(), false)));
        assert_eq!(
            text(SourcePlace {
                file: "a.py".into(),
                ..place(&file, 1)
            }),
            None,
            "a relative path"
        );
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
