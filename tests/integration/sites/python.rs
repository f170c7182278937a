//! Programs in Python: each call has the path of Python functions and lines that the program noted.
//!
//! Run with `python3`, with each `python3.9` to `python3.15` that is found, and with those that `ROCTOP_PYTHONS` names
//! (separated by colons). An interpreter with a just-in-time compiler runs a second time, with that switched on.

use super::{Read, all_files, read};
use crate::kit::rig::{Rig, rig};
use crate::real_run_time::sites::has_canary;
use roctop::item::{ApiCall, ProcessId};
use roctop::model::sites::PathId;
use roctop_trace::site::SiteFact;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreters that are here, with their versions.
fn interpreters() -> BTreeMap<PathBuf, String> {
    let named = std::env::var("ROCTOP_PYTHONS").unwrap_or_default();
    let named = named.split(':').filter(|name| !name.is_empty()).map(str::to_owned);
    let by_version = (9..=15).map(|minor| format!("python3.{minor}"));
    let all = ["/usr/bin/python3", "/usr/bin/python3.11d"]
        .map(str::to_owned)
        .into_iter();
    let about = "import sys, ctypes; print(sys.executable, '3.%d' % sys.version_info[1])";
    let ask = |name: String| {
        let output = Command::new(name).args(["-c", about]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let (path, version) = text.trim().split_once(' ')?;
        let path = std::fs::canonicalize(path).ok()?;
        output.status.success().then(|| (path, version.to_owned()))
    };
    all.chain(by_version).chain(named).filter_map(ask).collect()
}

/// Whether an interpreter has a just-in-time compiler, which `PYTHON_JIT` switches on.
fn has_compiler(python: &Path) -> bool {
    let about = "import sys; sys.exit(not (hasattr(sys, '_jit') and sys._jit.is_available()))";
    let status = Command::new(python).args(["-c", about]).status();
    status.is_ok_and(|status| status.success())
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/sites.py")
}

/// Records the program: its recording, and the noted path of each call by thread.
fn recorded(
    rig: &Rig,
    name: &str,
    python: &Path,
    rounds: &str,
    is_compiled: bool,
) -> (PathBuf, BTreeMap<u32, Vec<String>>) {
    let place = Rig::place(name);
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let (script, library) = (script(), rig.app("liblaunch.so"));
    let words = [python, &script, &library].map(|path| path.to_str().unwrap());
    let mut command = rig.command(&place, &options, &[&words[..], &[rounds, "2"]].concat());
    command.env("PYTHON_JIT", u8::from(is_compiled).to_string());
    let output = Rig::ended(command.env("APP_SITES", place.join("paths")));
    assert!(output.status.success(), "{output:?}");
    (recording, noted_lines(&place.join("paths")))
}

/// What a program noted of its calls, by thread: lines `thread-id text`.
pub(super) fn noted_lines(path: &Path) -> BTreeMap<u32, Vec<String>> {
    let mut noted: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let (thread, text) = line.split_once(' ').unwrap();
        noted.entry(thread.parse().unwrap()).or_default().push(text.to_owned());
    }
    noted
}

/// The Python functions of a path, as the program notes them.
fn python_path(read: &Read, path: PathId) -> String {
    let of_python = read
        .sites
        .functions(path)
        .filter(|(frame, _)| read.sites.is_python(*frame));
    let frames: Vec<String> = of_python
        .map(|(_, line)| format!("{}:{}", line.function, line.line))
        .collect();
    frames.join(" < ")
}

#[test]
fn calls_of_python_programs_have_the_lines_that_the_program_noted() {
    let Some(rig) = rig().filter(|rig| rig.is_oldest()) else {
        return;
    };
    let both = |(python, version): (PathBuf, String)| {
        let with_compiler = has_compiler(&python).then(|| (python.clone(), version.clone(), true));
        std::iter::once((python, version, false)).chain(with_compiler)
    };
    for (python, version, is_compiled) in interpreters().into_iter().flat_map(both) {
        let how = if is_compiled { "-compiled" } else { "" };
        let name = format!("sites-python-{}{how}", python.file_name().unwrap().to_string_lossy());
        let (recording, noted) = recorded(rig, &name, &python, "20", is_compiled);
        let about = format!("{} ({version}{how})", python.display());
        let found = compare(&recording, &noted, &about, python_path);
        assert!(
            found.calls > 5_000 && found.paths > 100,
            "{about}: {} calls",
            found.calls
        );
        assert!(files_with_a_canary(&recording).is_empty());
    }
}

/// The library of the system's CPython.
fn library_of_python() -> Option<PathBuf> {
    let about =
        "import sysconfig; print(*(sysconfig.get_config_var(name) for name in ('LIBDIR', 'INSTSONAME')), sep='/')";
    let output = Command::new("/usr/bin/python3").args(["-c", about]).output().ok()?;
    let named = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // Debian's Python is not linked with its own library, and names an archive.
    let name = named.file_name()?.to_string_lossy().replace(".a", ".so.1.0");
    let found = ["", "x86_64-linux-gnu"].map(|folder| named.with_file_name(folder).join(&name));
    found.into_iter().find(|path| path.exists())
}

#[test]
fn a_held_lock_of_the_loader_delays_no_launch_and_messages_of_dlopen_stay() {
    let Some(rig) = rig().filter(|rig| rig.is_oldest()) else {
        return;
    };
    let Some(python) = library_of_python() else {
        println!("skipped: no library of CPython (libpython3-dev)");
        return;
    };
    let hip = rig.app("liblaunch.so");
    let holds = rig.app("libcalls_back.so");
    let words = ["embedded".into(), python.clone(), hip, holds];
    let mut words: Vec<&str> = words.iter().map(|path| path.to_str().unwrap()).collect();
    let recorded = |name: &str, words: &[&str], is_at_start: bool| {
        let place = Rig::place(&format!("sites-python-{name}"));
        let recording = place.join("rec");
        let mut command = rig.command(&place, &["record", "-o", recording.to_str().unwrap()], words);
        if is_at_start {
            let others = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
            let others = others.and_then(|(_, value)| value).unwrap().to_os_string();
            let all = [python.as_os_str(), &others].join(std::ffi::OsStr::new(":"));
            command.env("LD_PRELOAD", all);
        }
        let output = Rig::ended(&mut command);
        assert!(output.status.success(), "{name}: {output:?}");
        let read = read(&recording);
        let calls = read.calls.values().flatten();
        let path = |(process, call): &(ProcessId, ApiCall)| read.sites.path_of(*process, call.site);
        let paths = calls.filter_map(path).map(|path| python_path(&read, path));
        let (named, others): (Vec<_>, Vec<_>) = paths.partition(|path| path == "inner:4 < outer:6 < <module>:1");
        (named.len(), others.len())
    };
    // Some are made before the library is pinned.
    let (named, others) = recorded("opened", &words, false);
    assert!(named > 250 && named + others == 322, "{named} and {others}");
    let (named, others) = recorded("at-start", &words, true);
    assert_eq!((named, others), (320, 2));
    words.push("unload");
    let (named, others) = recorded("closed", &words, false);
    assert_eq!((named, others), (0, 81));
}

#[test]
fn files_and_answers_have_python_functions() {
    let Some(rig) = rig().filter(|rig| rig.is_oldest()) else {
        return;
    };
    let Some((python, _)) = interpreters().pop_first() else {
        return;
    };
    let (recording, _) = recorded(rig, "sites-python-exported", &python, "2", false);
    let to = recording.with_file_name("out");
    let roctop = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        let output = Rig::ended(command.args(words));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let place = recording.to_str().unwrap();
    let formats = "collapsed,pprof,pftrace,parquet,csv,json";
    roctop(&["export", "--format", formats, "-d", to.to_str().unwrap(), place]);
    let has = |ending: &str, text: &str| {
        let files = all_files(&to);
        let file = files.iter().find(|path| path.to_string_lossy().ends_with(ending));
        let bytes = std::fs::read(file.unwrap_or_else(|| panic!("no {ending}"))).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    assert!(
        has("sites.collapsed.txt", "main;work;all_paths;two_lines;"),
        "outermost first"
    );
    assert!(has(".pftrace", "sites.py:37 two_lines"));
    assert!(files_with_a_canary(&to).is_empty());
    let answer = roctop(&["ask", place, "top sites where file~sites.py limit 1000"]);
    assert!(
        answer.contains("sites.py:37 two_lines") && answer.contains("generated"),
        "{answer}"
    );
    let answer = roctop(&["ask", place, "top sites where site~über limit 1000"]);
    assert!(
        answer.contains("über_unicode") && !answer.contains("generated"),
        "{answer}"
    );
}

/// What [`compare`] saw.
pub(super) struct Compared {
    pub(super) calls: u64,
    /// Different texts that the program noted.
    pub(super) paths: usize,
}

/// Compares what a program noted of each call with what `text` makes of its path: at most one in a thousand may differ, be
/// ambiguous or not known.
pub(super) fn compare(
    recording: &Path,
    noted: &BTreeMap<u32, Vec<String>>,
    about: &str,
    text: impl Fn(&Read, PathId) -> String,
) -> Compared {
    let read = read(recording);
    let (mut all, mut ambiguous, mut unknown) = (0u64, 0u64, 0u64);
    let mut wrong: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for (thread, noted) in noted {
        let calls = &read.calls[thread];
        let mut calls = calls.iter();
        assert!(calls.len() <= noted.len(), "{about}, thread {thread}");
        for (at, expected) in noted.iter().enumerate() {
            all += 1;
            // A call without a site is not in the list.
            let is_one_missing = calls.len() < noted.len() - at;
            let next = calls.as_slice().first();
            let path = next.and_then(|(process, call)| read.sites.path_of(*process, call.site));
            let found = path.map_or_else(String::new, |path| text(&read, path));
            if found != *expected && is_one_missing {
                unknown += 1;
                continue;
            }
            calls.next();
            let Some(path) = path else {
                unknown += 1;
                continue;
            };
            if read.sites.is_ambiguous(path) {
                ambiguous += 1;
                continue;
            }
            if found != *expected {
                *wrong.entry((expected.clone(), found)).or_default() += 1;
            }
            paths.insert(expected);
        }
    }
    for ((expected, found), count) in wrong.iter().take(5) {
        println!("{about}: {count} calls\n  noted {expected}\n  found {found}");
    }
    let wrong: u64 = wrong.values().sum();
    println!(
        "{about}: {all} calls by {} paths, {wrong} wrong, {unknown} unknown, {ambiguous} ambiguous",
        paths.len()
    );
    for fact in &read.facts {
        if let SiteFact::Missing(missing) = fact {
            println!("{about}: {missing:?}");
        }
    }
    assert!(
        (wrong + unknown + ambiguous) * 1000 <= all,
        "{about}: {wrong} wrong, {unknown} unknown, {ambiguous} ambiguous of {all}"
    );
    Compared {
        calls: all,
        paths: paths.len(),
    }
}

/// Files with the value that a local variable of the program has.
fn files_with_a_canary(place: &Path) -> Vec<PathBuf> {
    let has_one = |path: &PathBuf| has_canary(&std::fs::read(path).unwrap());
    all_files(place).into_iter().filter(has_one).collect()
}
