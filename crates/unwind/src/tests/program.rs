//! Builds the programs of the tests, runs them, and reads what they print.

use crate::{CallPath, Files, Mapping, Names, Process, Stack};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its owner.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("roctop-unwind-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a tool is installed; if not, the reason is printed.
pub(super) fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// Runs a tool in a folder.
pub(super) fn run(folder: &Folder, tool: &str, arguments: &str) {
    let mut command = Command::new(tool);
    command.args(arguments.split_whitespace()).current_dir(&folder.0);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{tool} {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles the program with these options to `name`.
pub(super) fn compile(folder: &Folder, name: &str, options: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/program.cpp");
    let source = source.display();
    run(
        folder,
        "g++",
        &format!("-std=c++20 -g -pthread -Wl,--build-id {source} -o {name} {options}"),
    );
    folder.file(name)
}

/// A copied stack, and the calls that the program noted: function and line, innermost first.
#[derive(Clone)]
pub(super) struct Noted {
    pub(super) scenario: String,
    pub(super) registers: [u64; 3],
    pub(super) bytes: Vec<u8>,
    pub(super) calls: Vec<(String, u32)>,
}

impl Noted {
    pub(super) fn stack(&self) -> Stack<'_> {
        let [ip, sp, bp] = self.registers;
        Stack {
            ip,
            sp,
            bp,
            bytes: &self.bytes,
        }
    }
}

/// What a program printed.
pub(super) struct Output {
    pub(super) stacks: Vec<Noted>,
    pub(super) mappings: Vec<Mapping>,
}

/// Runs a program that [`compile`] made.
pub(super) fn output(path: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(path)
        .args(arguments)
        .env("LD_LIBRARY_PATH", path.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {:?}", path.display(), output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut stacks, mut mappings): (Vec<Noted>, Vec<Mapping>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "stack" => {
                let digits: Vec<u8> = words[4]
                    .bytes()
                    .map(|c| (c as char).to_digit(16).unwrap() as u8)
                    .collect();
                stacks.push(Noted {
                    scenario: String::new(),
                    registers: [1, 2, 3].map(|at| u64::from_str_radix(words[at], 16).unwrap()),
                    bytes: digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect(),
                    calls: Vec::new(),
                });
            }
            "call" => {
                let last = stacks.last_mut().unwrap();
                last.calls.push((words[1].to_owned(), words[2].parse().unwrap()));
            }
            "end" => words[1].clone_into(&mut stacks.last_mut().unwrap().scenario),
            _ => mappings.extend(mapping(line)),
        }
    }
    Output { stacks, mappings }
}

/// A line of /proc/PID/maps, if it is of code.
fn mapping(line: &str) -> Option<Mapping> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = hexadecimal(words.next()?);
    let (major, minor) = words.next()?.split_once(':')?;
    Some(Mapping {
        start: hexadecimal(start),
        end: hexadecimal(end),
        offset,
        device: hexadecimal(major) << 20 | hexadecimal(minor),
        inode: words.next()?.parse().unwrap(),
        path: words.next().unwrap_or_default().trim().into(),
    })
    .filter(|_| rights.contains('x'))
}

/// Paths, with the files that they refer to.
pub(super) struct Found {
    pub(super) paths: Vec<CallPath>,
    pub(super) files: Files,
}

/// The paths of all stacks of a program.
pub(super) fn paths(output: &Output) -> Found {
    let (mut process, mut files) = (Process::new(None), Files::new());
    output.mappings.iter().for_each(|mapping| process.map(mapping.clone()));
    let stacks = output.stacks.iter();
    Found {
        paths: stacks
            .map(|noted| process.call_path(&noted.stack(), &mut files))
            .collect(),
        files,
    }
}

/// Names of a path's frames: function, file and line; frames without any are left out.
pub(super) fn named(found: &Found, path: &CallPath, names: &mut Names) -> Vec<(String, String, u32)> {
    let mut all = Vec::new();
    for frame in &path.frames {
        let Some(module) = frame.module.and_then(|id| found.files.module(id)) else {
            continue;
        };
        if let Ok(named) = names.name(&module.path, &module.build_id, frame.offset) {
            all.extend(named.into_iter().map(|one| (one.function, one.file, one.line)));
        }
    }
    all
}
