//! `roctop doctor --gpu` over the emulated GPU: its lines, its verdict, the file for an issue, and what later runs take from it.

use crate::kit::directory;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Seconds that all checks may take: this machine may be busy.
const SECONDS: &str = "300";

fn emulated_gpu() -> Option<PathBuf> {
    let beside = std::env::current_exe().unwrap();
    let target = beside.ancestors().nth(3).unwrap().to_owned();
    let built = [
        std::env::var_os("EMULATED_GPU_SO").map(PathBuf::from),
        Some(target.join("release/libemulated_gpu.so")),
    ];
    let found = built.into_iter().flatten().find(|path| path.exists());
    let has_hip = Path::new("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5").exists();
    let reason = match &found {
        None => "the emulated GPU is not built (cargo build -p emulated-gpu --release)",
        Some(_) if !has_hip => "ROCm 5.2.3 is not installed",
        Some(_) => return found,
    };
    assert!(std::env::var_os("ROCTOP_REQUIRE_ROCM").is_none(), "{reason}");
    println!("skipped: {reason}");
    None
}

fn place(name: &str) -> PathBuf {
    let path = directory::place(name);
    std::fs::create_dir(path.join("cache")).unwrap();
    path
}

/// roctop in a place with a cache of that place's.
fn roctop(place: &Path, words: &[&str], machine: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command
        .args(words)
        .current_dir(place)
        .env("XDG_CACHE_HOME", place.join("cache"));
    command.env_remove("ROCTOP_LEVEL").env_remove("LD_PRELOAD");
    command.envs(machine.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

struct Checked {
    place: PathBuf,
    text: String,
    code: i32,
    file: Value,
}

impl Checked {
    fn run(name: &str, machine: &[(&str, &str)]) -> Option<Self> {
        let library = emulated_gpu()?;
        let place = place(name);
        let mut variables = vec![("LD_PRELOAD", library.to_str().unwrap())];
        variables.extend_from_slice(machine);
        let out = roctop(&place, &["doctor", "--gpu", "--seconds", SECONDS], &variables);
        let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8_lossy(&out.stderr);
        let file = std::fs::read_to_string(place.join("roctop-hardware-gfx906.json")).unwrap_or_default();
        Some(Self {
            place,
            code: out.status.code().unwrap(),
            file: serde_json::from_str(&file).unwrap_or(Value::Null),
            text,
        })
    }

    /// Status of the checks of a number.
    fn statuses(&self, id: &str) -> Vec<&str> {
        let checks = self.file["checks"].as_array().unwrap().iter();
        checks
            .filter(|check| check["check"] == id)
            .map(|check| check["status"].as_str().unwrap())
            .collect()
    }

    #[track_caller]
    fn level(&self) -> u64 {
        self.file["verdict"]["level"]
            .as_u64()
            .unwrap_or_else(|| panic!("no level: {}", self.text))
    }

    /// Whether the machine was too busy to decide about levels: then there may be none, and the text says so.
    fn was_undecided(&self) -> bool {
        let is_undecided = self.text.contains("Verdict: undecided ") && self.text.contains(": the machine was busy");
        // A failure that another check has found counts all the same.
        let is_undecided = is_undecided && self.file["verdict"]["level"].is_null();
        if is_undecided {
            assert_eq!(self.given_level(), "level=", "{}", self.text);
            println!("undecided: the machine was busy");
        }
        is_undecided
    }

    /// What a program gets as its level afterwards.
    fn given_level(&self) -> String {
        let out = self.recorded("recording");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// What roctop says when a program starts afterwards.
    fn said_at_start(&self) -> String {
        let out = self.recorded("another-recording");
        String::from_utf8_lossy(&out.stderr).into_owned()
    }

    fn recorded(&self, name: &str) -> Output {
        let library = emulated_gpu().unwrap();
        let machine = [("LD_PRELOAD", library.to_str().unwrap())];
        let recording = self.place.join(name);
        let words = [
            "record",
            "-o",
            recording.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            "echo level=$ROCTOP_LEVEL",
        ];
        roctop(&self.place, &words, &machine)
    }
}

#[test]
fn a_sound_gpu_is_level_0() {
    let Some(checked) = Checked::run("sound", &[("EMULATED_GPU_BY_NAME", "roctop_spin*=20000")]) else {
        return;
    };
    let text = &checked.text;
    // On a busy machine a check may be undecided or late, but sound hardware is never bad.
    assert!(!text.contains("BAD "), "{text}");
    for id in ["D0", "D3", "D7", "D8", "D9", "D11", "D15"] {
        let statuses = checked.statuses(id);
        assert!(
            !statuses.is_empty()
                && statuses
                    .iter()
                    .all(|status| *status == "ok" || text.contains("undecided: ")),
            "{id}: {text}"
        );
    }
    for id in ["D4", "D6", "D13"] {
        assert_eq!(checked.statuses(id), ["note"], "{id}: {text}");
    }
    if checked.was_undecided() {
        return;
    }
    assert_eq!(checked.level(), 0, "{text}");
    assert!(text.contains("Verdict: level 0 on gfx906, kernel "), "{text}");
    assert_eq!(checked.given_level(), "level=0");
    assert!(!checked.said_at_start().contains("timing level"), "nothing is left out");
    // For an issue: nobody's names.
    let file = checked.file.to_string();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for private in [
        checked.place.to_str().unwrap(),
        host.trim(),
        "/tmp",
        "/home",
        env!("CARGO_MANIFEST_DIR"),
    ] {
        assert!(!file.contains(private), "{private}: {file}");
    }
}

#[test]
fn signals_in_a_file_that_never_come_are_level_1() {
    let Some(checked) = Checked::run("file", &[("EMULATED_GPU_LOST_SIGNALS", "file")]) else {
        return;
    };
    if checked.was_undecided() {
        return;
    }
    assert_eq!(checked.statuses("D3"), ["bad"], "{}", checked.text);
    assert_eq!((checked.level(), checked.code), (1, 1), "{}", checked.text);
    assert_eq!(checked.given_level(), "level=1");
    let said = checked.said_at_start();
    let expected = [
        "timing level 1, ",
        "found by 'roctop doctor --gpu' on 20",
        "since D3 fails",
        "rm '",
    ];
    assert!(expected.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn signals_of_our_making_that_never_come_are_level_2() {
    let Some(checked) = Checked::run("foreign", &[("EMULATED_GPU_LOST_SIGNALS", "foreign")]) else {
        return;
    };
    assert_ne!(checked.statuses("D1"), ["bad"], "{}", checked.text);
    if checked.was_undecided() {
        return;
    }
    assert_eq!(checked.statuses("D2")[0], "bad", "{}", checked.text);
    assert!(checked.level() >= 2, "{}", checked.text);
}

#[test]
fn without_a_gpu_the_doctor_says_so() {
    let place = place("none");
    let out = roctop(&place, &["doctor", "--gpu"], &[]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if Path::new("/dev/kfd").exists() {
        println!("skipped: this machine has a GPU");
        return;
    }
    assert!(text.contains("no AMD GPU found"), "{text}");
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn without_a_run_time_the_doctor_says_so() {
    let Some(library) = emulated_gpu() else { return };
    let place = place("no-rocm");
    // A library of that name that cannot be loaded hides the installed one.
    let hidden = place.join("hidden");
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join("libhsa-runtime64.so.1"), "").unwrap();
    let machine = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("LD_LIBRARY_PATH", hidden.to_str().unwrap()),
    ];
    let out = roctop(&place, &["doctor", "--gpu"], &machine);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("libhsa-runtime64.so.1 cannot be loaded"), "{text}");
    assert_eq!(out.status.code(), Some(1));
}
