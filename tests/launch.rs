//! The program runs as without roctop: exit codes, signals, input and output, environment; and what goes wrong says so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn roctop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    roctop().args(words).output().unwrap()
}

fn place(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("launch-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path as the command line takes it.
fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn exit_codes_and_signals_are_the_programs_own() {
    for code in [0, 1, 3, 42, 255] {
        let output = run(&["--no-ui", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
    }
    for signal in [1, 2, 6, 9, 11, 13, 15] {
        let output = run(&["--no-ui", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(output.status.signal(), Some(signal));
    }
}

#[test]
fn standard_input_and_output_are_the_programs_own() {
    let place = place("pipe");
    let mut command = roctop();
    command.args(["record", "-o", word(&place.join("rec")), "--", "cat"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through and through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("through and through\n".into(), String::new())
    );
}

#[test]
fn a_signal_to_roctop_goes_to_the_program() {
    let script = "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = roctop()
        .args(["--no-ui", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let told = Command::new("sh")
        .args(["-c", &format!("kill {}", child.id())])
        .status()
        .unwrap();
    assert!(told.success());
    line.clear();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!((line.as_str(), child.wait().unwrap().code()), ("got it\n", Some(7)));
}

#[test]
fn who_sent_the_signal_that_ended_the_program_is_told() {
    let ended = |script: &str| {
        let output = run(&["--no-ui", "--", "sh", "-c", script]);
        text(&output.stderr)
    };
    let foreign = ended("kill -TERM $$");
    assert!(foreign.contains("SIGTERM was not sent by roctop"), "{foreign}");
    let through = ended("kill -TERM $PPID; sleep 20");
    assert!(through.contains("SIGTERM came from process"), "{through}");
    assert!(through.contains("(sh); roctop passed it on"), "{through}");
    let own = ended("kill -SEGV $$");
    assert!(!own.contains("sent"), "{own}");
}

#[test]
fn the_users_preload_stays_in_front() {
    let mut command = roctop();
    command
        .args(["--no-ui", "sh", "-c", "echo $LD_PRELOAD"])
        .env("LD_PRELOAD", "libm.so.6");
    let shown = text(&command.output().unwrap().stdout);
    let mut libraries = shown.trim().split(':');
    assert_eq!(libraries.next(), Some("libm.so.6"));
    assert!(
        libraries
            .next()
            .is_some_and(|library| library.ends_with("libroctop_preload.so")),
        "{shown}"
    );
}

/// Ranges in threads, and in a child that looks for leaks when it ends.
const SANITIZED: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*push)(const char *);
static int (*pop)(void);

static void *work(void *p) {
  for (int i = 0; i < 50; i++) push("a range"), pop();
  return p;
}

int main(void) {
  void *library = dlopen("libroctx64.so.4", RTLD_NOW);
  push = (int (*)(const char *))dlsym(library, "roctxRangePushA");
  pop = (int (*)(void))dlsym(library, "roctxRangePop");
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  int status = 0;
  if (fork() == 0) return work(NULL) != NULL;
  wait(&status);
  char *p = malloc(8);
  free(p);
  return status != 0;
}
"#;

#[test]
fn a_program_with_a_sanitizer_runs_as_it_does_alone() {
    let place = place("sanitizer");
    let (source, program) = (place.join("leaky.c"), place.join("leaky"));
    std::fs::write(&source, SANITIZED).unwrap();
    let mut compiler = Command::new("cc");
    let built = compiler
        .args(["-fsanitize=address", "-o"])
        .arg(&program)
        .arg(&source)
        .args(["-pthread", "-ldl"])
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        println!("skipped: needs a C compiler with the address sanitizer");
        return;
    }
    let output = run(&["--no-ui", word(&program)]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("Sanitizer") && !said.contains("ASan"), "{said}");
    assert!(said.contains(" 200 markers, lost 0"), "{said}");
    // A program that brings none gets none.
    let shown = text(&run(&["--no-ui", "sh", "-c", "echo $LD_PRELOAD"]).stdout);
    assert!(!shown.contains("san"), "{shown}");
}

#[test]
fn the_version_says_what_the_binary_carries() {
    let said = text(&run(&["--version"]).stdout);
    let first = format!("roctop {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(said.lines().next(), Some(&*first));
    assert!(
        said.contains("collector: carried") && said.contains("counters: rocprofiler-sdk"),
        "{said}"
    );
    assert_eq!(text(&run(&["-V"]).stdout), format!("{first}\n"));
}

/// Linked with ROC-TX, whose functions have versions.
const LINKED: &str = r#"
#include <stdio.h>
int roctxRangePushA(const char *);
int roctxRangePop(void);
int main(void) {
  int pushed = roctxRangePushA("a range");
  int popped = roctxRangePop();
  return printf("%d %d\n", pushed, popped) < 0;
}
"#;

#[test]
fn a_program_linked_with_roctx_is_told_nothing_by_the_loader() {
    let place = place("linked");
    let carried = run(&["drop-in", word(&place)]);
    if text(&carried.stderr).contains("carries no drop-in libraries") {
        println!("skipped: {}", text(&carried.stderr));
        return;
    }
    let (source, program) = (place.join("linked.c"), place.join("linked"));
    std::fs::write(&source, LINKED).unwrap();
    let libraries = place.join("lib");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").args([&program, &source]);
    compiler.arg(format!("-L{0}", libraries.display())).arg("-lroctx64");
    compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    let plain = Command::new(&program).output().unwrap();
    let recording = place.join("rec");
    let recorded = run(&["record", "-o", word(&recording), "--", word(&program)]);
    assert_eq!(text(&recorded.stdout), text(&plain.stdout));
    assert_eq!(text(&recorded.stderr), text(&plain.stderr));
    let summary = text(&run(&["summary", word(&recording)]).stdout);
    assert!(summary.contains(" 1 markers, lost 0"), "{summary}");
}

#[test]
fn an_allocator_of_the_users_stays_in_front_and_is_used() {
    let place = place("allocator");
    let (source, library) = (place.join("allocator.c"), place.join("libjemalloc.so.2"));
    // Stands in for an allocator: says that it was called, and leaves the work to the C library's.
    let code = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        void *malloc(size_t n) { static void *(*next)(size_t); static int told;\n\
        if (!next) next = dlsym(RTLD_NEXT, \"malloc\");\n\
        if (!told) { told = 1; if (write(1, \"mine\\n\", 5)) {} }\n return next(n); }\n";
    std::fs::write(&source, code).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl");
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    let mut command = roctop();
    command
        .args(["--no-ui", "sh", "-c", "echo done"])
        .env("LD_PRELOAD", &library);
    let output = command.output().unwrap();
    // roctop itself and each of its programs is told once.
    let shown = text(&output.stdout);
    assert!(shown.starts_with("mine\n") && shown.ends_with("done\n"), "{shown}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_cannot_be_recorded_is_told_and_runs_all_the_same() {
    let place = place("obstacles");
    let source = place.join("plain.c");
    std::fs::write(&source, "int main(void) { return 7; }\n").unwrap();
    let program = place.join("static");
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-static", "-o"]).arg(&program).arg(&source).output();
    if built.is_ok_and(|output| output.status.success()) {
        let output = run(&["--no-ui", word(&program)]);
        assert_eq!(output.status.code(), Some(7));
        assert!(
            text(&output.stderr).contains("linked statically"),
            "{}",
            text(&output.stderr)
        );
        let report = run(&["doctor", word(&program)]);
        assert_eq!(report.status.code(), Some(1));
        assert!(
            text(&report.stdout).contains("BAD   program"),
            "{}",
            text(&report.stdout)
        );
    }
    // A program is told by its loader and its kind, wherever it is made.
    for (name, loader, said) in [
        ("musl", "/lib/ld-musl-x86_64.so.1\0", "linked to musl"),
        ("short", "", "32-bit"),
    ] {
        let path = executable(&place.join(name), &tiny_program(loader));
        let report = run(&["doctor", word(&path)]);
        assert_eq!(report.status.code(), Some(1));
        assert!(text(&report.stdout).contains(said), "{}", text(&report.stdout));
    }
    let setuid = place.join("setuid");
    std::fs::copy("/bin/true", &setuid).unwrap();
    std::fs::set_permissions(&setuid, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let report = run(&["doctor", word(&setuid)]);
    assert!(text(&report.stdout).contains("setuid"), "{}", text(&report.stdout));
}

fn executable(path: &Path, content: &[u8]) -> PathBuf {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.to_owned()
}

#[test]
fn a_script_that_does_not_say_what_runs_it_is_run_as_a_shell_would() {
    let script = executable(&place("nameless").join("script"), b"echo \"$0 got $1\"; exit 5\n");
    let output = run(&["--no-ui", word(&script), "a word"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{} got a word\n", script.display()));
}

#[test]
fn a_home_that_is_closed_and_a_tmpdir_that_is_not_there_are_no_reason_to_refuse() {
    let place = place("closed-home");
    let home = place.join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0)).unwrap();
    // To root no directory is closed, unless it has no capabilities and another owner's is meant.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_roctop")]);
    if !rustix::process::getuid().is_root() {
        command = roctop();
    }
    command.args(["--no-ui", "sh", "-c", "exit 6"]).stdin(Stdio::null());
    command.env("HOME", &home).env("TMPDIR", place.join("nowhere"));
    for unset in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ROCTOP_CONFIG"] {
        command.env_remove(unset);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
}

/// The head of a program that asks for this loader; without one that of a 32-bit program.
fn tiny_program(loader: &str) -> Vec<u8> {
    let mut bytes = vec![0u8; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    if loader.is_empty() {
        bytes[4] = 1;
        return bytes;
    }
    bytes[18] = 62;
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64] = 3;
    bytes[72] = 64 + 56;
    bytes[96] = loader.len() as u8;
    bytes.extend_from_slice(loader.as_bytes());
    bytes
}

#[test]
fn the_doctor_tells_on_one_screen_what_works() {
    let place = place("doctor");
    let mut command = roctop();
    let output = command
        .args(["doctor", "/bin/sh"])
        .env("XDG_CACHE_HOME", place.join("cache"))
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    for subject in [
        "collector",
        "session",
        "clock",
        "terminal",
        "program",
        "HIP calls",
        "kernels",
        "markers",
        "counters",
        "trial",
        "clock error",
    ] {
        assert!(
            shown.lines().any(|line| line[6..].starts_with(subject)),
            "{subject}: {shown}"
        );
    }
    assert!(shown.contains("0 lost") && shown.lines().count() <= 24, "{shown}");
    assert_eq!(output.status.code(), Some(0), "{shown}");
}

#[test]
fn programs_that_cannot_be_started_are_told_as_env_tells_them() {
    let missing = run(&["--no-ui", "no-such-program-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("no-such-program-anywhere"));
    let empty = run(&["--no-ui", ""]);
    assert_eq!(empty.status.code(), Some(127));
    assert!(text(&empty.stderr).contains("name is empty"));
    let plain = run(&["--no-ui", "/etc/passwd"]);
    assert_eq!(plain.status.code(), Some(126));
    let garbage = executable(&place("garbage").join("garbage"), b"\0\x01\x02\x03");
    let refused = run(&["--no-ui", word(&garbage)]);
    assert_eq!(refused.status.code(), Some(126));
    assert!(
        text(&refused.stderr).contains("garbage could not be started"),
        "{}",
        text(&refused.stderr)
    );
    let flag = run(&["--nonsense", "ls"]);
    assert_eq!(flag.status.code(), Some(2));
    assert!(text(&flag.stderr).contains("--nonsense"));
}

#[test]
fn the_binary_alone_carries_everything() {
    let place = place("alone");
    let alone = place.join("roctop");
    std::fs::copy(env!("CARGO_BIN_EXE_roctop"), &alone).unwrap();
    let mut command = Command::new(&alone);
    command
        .args(["demo", "--no-ui", "--seconds", "1"])
        .current_dir(&place)
        .env("XDG_CACHE_HOME", place.join("cache"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lost 0") && said.contains("fmha_fwd"), "{said}");
}

#[test]
fn a_recording_is_exported_and_summed_up() {
    let place = place("files");
    let recording = place.join("rec");
    let mut command = roctop();
    command.args([
        "record",
        "-o",
        word(&recording),
        "--",
        env!("CARGO_BIN_EXE_roctop"),
        "__demo",
    ]);
    let output = command.env("ROCTOP_DEMO_WORKER", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let files = place.join("out");
    let exported = run(&[
        "export",
        word(&recording),
        "--format",
        "CSV",
        "-d",
        word(&files),
        "-o",
        "demo",
    ]);
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    // Columns of rocprofv3, rocprofiler-sdk 1.0.0.
    let api = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp";
    for (name, columns) in [
        (
            "kernel_trace",
            "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,\
End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,\
Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z",
        ),
        (
            "memory_copy_trace",
            "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp",
        ),
        ("hip_api_trace", api),
        ("marker_api_trace", api),
    ] {
        let table = std::fs::read_to_string(files.join(format!("demo_{name}.csv"))).unwrap();
        let header: Vec<String> = columns.split(',').map(|column| format!("\"{column}\"")).collect();
        assert_eq!(table.lines().next(), Some(header.join(",").as_str()), "{name}");
        assert!(table.lines().count() > 10, "{name}");
    }
    assert!(files.join("demo_agent_info.csv").exists());
    let summary = run(&["summary", word(&recording), "--format", "json"]);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert!(summary["totals"]["dispatches"].as_u64() > Some(100));
    assert_eq!(summary["totals"]["lost"], 0);
    assert_eq!(summary["processes"][0]["exit"]["code"], 0);
}

#[test]
fn times_on_screen_and_ranges_of_the_command_line_count_from_the_same_moment() {
    use roctop::item::Item;
    let place = place("range");
    let recording = place.join("rec");
    let mut command = roctop();
    let demo = env!("CARGO_BIN_EXE_roctop");
    command.args(["record", "-o", word(&recording), "--", demo, "__demo"]);
    assert!(
        command
            .env("ROCTOP_DEMO_WORKER", "1")
            .output()
            .unwrap()
            .status
            .success()
    );
    let opened = [roctop::recording::Recording::open(&recording).unwrap()];
    let whole = roctop::recording::Merged::new(opened.iter().collect()).unwrap();
    let mut store = roctop::model::Store::new(roctop::model::Options {
        mode: roctop::model::Mode::Replay,
        ..roctop::model::Options::default()
    });
    let mut dispatches = Vec::new();
    let mut take = |items: Vec<Item>| {
        store.apply_all(&items);
        dispatches.extend(items.iter().filter_map(|item| match item {
            Item::Dispatch(dispatch) => Some(dispatch.span),
            _ => None,
        }));
    };
    whole.items(None, &mut |_| (), &mut take).unwrap();
    let origin = store.snapshot(roctop::model::Fresh::All).origin;
    assert_eq!(whole.beginning().unwrap(), Some(origin));
    // What the screen measures there, and what the files have of it.
    let (from, to) = (origin + 400_000_000, origin + 450_000_000);
    let measured = dispatches
        .iter()
        .filter(|span| span.end >= from && span.begin <= to)
        .count();
    assert!(measured > 10 && measured < dispatches.len() / 2, "{measured}");
    let files = place.join("out");
    let words = [
        "export",
        word(&recording),
        "--format",
        "csv",
        "--range",
        "400ms..450ms",
        "-o",
        "part",
    ];
    let exported = roctop().args(words).args(["-d", word(&files)]).output().unwrap();
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let table = std::fs::read_to_string(files.join("part_kernel_trace.csv")).unwrap();
    assert_eq!(table.lines().count() - 1, measured);
}

#[test]
fn damaged_and_cut_recordings_open_as_far_as_they_are_whole() {
    let place = place("damaged");
    let recording = place.join("rec");
    let mut command = roctop();
    command.args([
        "record",
        "-o",
        word(&recording),
        "--",
        env!("CARGO_BIN_EXE_roctop"),
        "__demo",
    ]);
    command.env("ROCTOP_DEMO_WORKER", "1").output().unwrap();
    let segment = recording.join("segment-000001.roctop");
    let whole = std::fs::read(&segment).unwrap();
    for step in 0..24 {
        let mut bytes = whole.clone();
        if step % 2 == 0 {
            bytes.truncate(whole.len() * step / 24);
        } else {
            let at = whole.len() * step / 24;
            bytes[at] ^= 0x40;
        }
        std::fs::write(&segment, &bytes).unwrap();
        let summary = run(&["summary", word(&recording)]);
        assert_eq!(summary.status.code(), Some(0), "{}", text(&summary.stderr));
        assert!(!summary.stderr.is_empty(), "step {step}: the damage is told");
    }
}

#[test]
fn what_cannot_be_written_or_read_is_told_before_the_program_starts() {
    let place = place("errors");
    std::fs::write(place.join("file"), "in the way").unwrap();
    let marker = place.join("started");
    let touch = format!("touch {}", marker.display());
    for directory in [place.clone(), place.join("file"), place.join("file/below")] {
        let output = run(&["record", "-o", word(&directory), "--", "sh", "-c", &touch]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains(word(&directory)),
            "{}",
            text(&output.stderr)
        );
        assert!(!marker.exists(), "the program was not started");
    }
    let output = run(&["summary", word(&place)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not a recording"));
}

#[test]
fn what_is_typed_wrong_is_told_before_the_program_starts_and_ends_with_2() {
    let place = place("typed-wrong");
    let marker = place.join("started");
    let touch = format!("touch {}", marker.display());
    for (options, said) in [
        (["--no-ui", "--filter", "dur>"], "--filter: "),
        (["--no-ui", "--app-io", "pty"], "--app-io pty: "),
        (["--no-ui", "--app-io", "pipe"], "--app-io pipe: "),
    ] {
        let output = roctop()
            .args(options)
            .args(["--", "sh", "-c", &touch])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let told = text(&output.stderr);
        assert!(told.contains(said) && told.lines().count() == 1, "{told}");
        assert!(!marker.exists(), "the program was not started");
    }
    for words in [&["--no-ui", "--view", "kernels"][..], &["run"][..]] {
        let output = run(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
        assert!(text(&output.stderr).contains("no program was named"), "{words:?}");
    }
    let output = run(&["--theme", "light", "demo"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        text(&output.stderr).contains("roctop demo …"),
        "{}",
        text(&output.stderr)
    );
    for words in [
        ["summary", "--filter", "(", "nowhere"],
        ["export", "--filter", "calls>x", "nowhere"],
    ] {
        let output = run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("(column "), "{}", text(&output.stderr));
    }
}

#[test]
fn a_program_without_the_collector_is_as_it_was() {
    let script = "echo \"[$LD_PRELOAD][$HSA_TOOLS_LIB]\"; tr '\\0' '\\n' < /proc/self/environ | grep -c ^ROCTOP_";
    let output = run(&["--no-ui", "--no-collect", "sh", "-c", script]);
    let told = text(&output.stdout);
    assert!(told.starts_with("[][]\n"), "{told}");
    assert!(
        text(&output.stderr).contains("--no-collect"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn output_goes_where_it_is_wanted() {
    let place = place("app-io");
    let file = place.join("out.txt");
    std::fs::write(&file, "what was there before").unwrap();
    let script = "echo out; echo err >&2; exit 4";
    let output = run(&["--no-ui", "--no-collect", "--app-io", word(&file), "sh", "-c", script]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "out\nerr\n");
    let below = file.join("below");
    let output = run(&["--no-ui", "--app-io", word(&below), "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(word(&below)), "{}", text(&output.stderr));
}

#[test]
fn a_summary_is_of_what_passes_the_filter() {
    let output = run(&["demo", "--no-ui", "--seconds", "1", "--filter", "gemm | fmha"]);
    let told = text(&output.stderr);
    assert!(told.contains("fmha_fwd") && !told.contains("layer_norm"), "{told}");
    assert!(!told.contains("hipLaunchKernel"), "{told}");
    let output = run(&[
        "demo",
        "--no-ui",
        "--seconds",
        "1",
        "--filter",
        "dur > 60min & nothing-has-this-name",
    ]);
    let told = text(&output.stderr);
    assert!(
        told.contains("nothing passes the filter, of ") && !told.contains("nothing was recorded"),
        "{told}"
    );
}

#[test]
fn nothing_is_left_behind() {
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    let child = roctop()
        .args(["demo", "--no-ui", "--seconds", "0.5"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let session = PathBuf::from(format!("/dev/shm/roctop-{uid}/{}", child.id()));
    child.wait().unwrap();
    assert!(!session.exists());
}
