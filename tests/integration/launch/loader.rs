//! What the loader loads beside the collector, and programs that it cannot be loaded into.

use super::{executable, place, roctop, run, text, word};
use std::process::Command;

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

/// Programs that choose between devices ask whether a library's function is there.
const ASKS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int hipGetDeviceCount(int *) __attribute__((weak));
int ncclGetVersion(int *) __attribute__((weak));
int of_library(void);
static int (*volatile pointer)(int *) = hipGetDeviceCount;
int main(void) {
  printf("weak: %d %d %d %d\n", hipGetDeviceCount != NULL, ncclGetVersion != NULL, pointer != NULL, of_library());
  const char *names[] = {"hipInit", "hipMalloc", "ncclCommInitAll", "__hipRegisterFatBinary"};
  void *program = dlopen(NULL, RTLD_LAZY);
  for (int i = 0; i < 4; i++)
    printf("%s: %d %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL, dlsym(program, names[i]) != NULL);
  return printf("%d\n", dlsym(program, "printf") != NULL) < 0;
}
"#;

/// A library with a table of weak references, as plug-ins have.
const LIBRARY: &str = r"
int hipMalloc(void **, unsigned long) __attribute__((weak));
int ncclSend(void) __attribute__((weak));
static void *const table[] = {(void *)hipMalloc, (void *)ncclSend};
int of_library(void) {
  int count = (hipMalloc != 0) + (ncclSend != 0);
  for (int i = 0; i < 2; i++) count += *(void *const volatile *)&table[i] != 0;
  return count;
}
";

#[test]
fn functions_of_libraries_that_are_not_loaded_are_not_found() {
    let place = place("asks");
    let program = place.join("asks");
    std::fs::write(place.join("asks.c"), ASKS).unwrap();
    std::fs::write(place.join("library.c"), LIBRARY).unwrap();
    // With what is bound at the start and read-only, and without.
    for (binding, kind) in [("-Wl,-z,relro,-z,now", "-pie"), ("-Wl,-z,lazy", "-no-pie")] {
        let cc = |arguments: &[&str]| {
            let mut compiler = Command::new("cc");
            compiler.current_dir(&place).args(arguments).arg(binding);
            let Ok(status) = compiler.status() else { return false };
            assert!(status.success(), "{compiler:?}");
            true
        };
        let linked = [
            "asks.c",
            "-fPIE",
            kind,
            "-L.",
            "-llibrary",
            "-Wl,-rpath,$ORIGIN",
            "-ldl",
        ];
        if !cc(&["-shared", "-fPIC", "-o", "liblibrary.so", "library.c"])
            || !cc(&[&["-o", word(&program)][..], &linked].concat())
        {
            println!("skipped: needs a C compiler");
            return;
        }
        let plain = Command::new(&program).output().unwrap();
        assert!(
            text(&plain.stdout).starts_with("weak: 0 0 0 0\n"),
            "{}",
            text(&plain.stdout)
        );
        assert!(text(&plain.stdout).contains("hipMalloc: 0 0"));
        let under = run(&["--no-ui", word(&program)]);
        assert_eq!(text(&under.stdout), text(&plain.stdout), "{binding}");
    }
}
