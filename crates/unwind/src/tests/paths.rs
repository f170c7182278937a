//! Call paths and names of real programs.

use super::program::{Folder, compile, has, named, output, paths, run};
use crate::{CallPath, End, FoundBy, Frame, Mapping, Named, Names, NoName, Process, State};
use std::path::Path;

/// Compares the named frames of the program's source with the calls that it noted; returns how many stacks were compared.
#[track_caller]
fn compare(program: &Path, arguments: &[&str]) -> usize {
    let output = output(program, arguments);
    let found = paths(&output);
    let mut names = Names::default();
    for (noted, path) in output.stacks.iter().zip(&found.paths) {
        let all = named(&found, path, &mut names);
        let own: Vec<_> = all.iter().filter(|one| one.1.ends_with("/program.cpp")).collect();
        let scenario = &noted.scenario;
        let lines: Vec<u32> = own.iter().map(|one| one.2).collect();
        let expected: Vec<u32> = noted.calls.iter().map(|call| call.1).collect();
        assert_eq!(lines, expected, "{program:?}, {scenario}: {all:#?} {path:?}");
        for (one, call) in own.iter().zip(&noted.calls) {
            assert!(one.0.contains(&call.0), "{program:?}, {scenario}: {one:?}, {call:?}");
        }
        assert_eq!(path.end, End::Complete, "{program:?}, {scenario}: {all:#?}");
        let guessed = path.frames.iter().any(|frame| frame.found_by == FoundBy::FramePointer);
        assert_eq!(guessed, scenario == "generated", "{program:?}, {scenario}");
    }
    output.stacks.len()
}

/// All that the program runs.
const STACKS: usize = 16;

#[test]
fn paths_with_frame_pointers() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O0 -fno-omit-frame-pointer");
        assert_eq!(compare(&program, &[]), STACKS);
    }
}

#[test]
fn paths_of_optimised_code() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        assert_eq!(compare(&program, &[]), STACKS);
    }
}

#[test]
fn paths_without_frame_pointers_at_fixed_addresses() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O3 -fomit-frame-pointer -no-pie -gdwarf-4");
        assert_eq!(compare(&program, &[]), STACKS);
    }
}

#[test]
fn paths_through_a_stripped_library() {
    if has("g++") {
        let folder = Folder::new();
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/library.cpp");
        let options = format!("-O2 -shared -fPIC -s {} -o libcalled.so", library.display());
        run(&folder, "g++", &options);
        let program = compile(&folder, "program", "-O2 -DWITH_LIBRARY -L. -lcalled -gz=zlib");
        assert_eq!(compare(&program, &[]), STACKS + 1);
        let output = output(&program, &[]);
        let found = paths(&output);
        let all = named(&found, found.paths.last().unwrap(), &mut Names::default());
        let exported = all.iter().filter(|one| one.0 == "call_back(void (*)(int), int)");
        assert_eq!(exported.count(), 1, "{all:#?}");
    }
}

#[test]
fn paths_without_table_of_frames() {
    if has("g++") {
        let folder = Folder::new();
        // Exceptions need the table.
        let program = compile(&folder, "program", "-O2 -Wl,--no-eh-frame-hdr");
        assert_eq!(compare(&program, &["no exceptions"]), STACKS - 2);
    }
}

#[test]
fn paths_without_sections() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        let mut bytes = std::fs::read(&program).unwrap();
        // Position, count and names of the sections.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        std::fs::write(&program, &bytes).unwrap();
        let output = output(&program, &[]);
        let found = paths(&output);
        assert!(
            found.paths.iter().all(|path| path.end == End::Complete),
            "{:?}",
            found.paths
        );
        let depth: Vec<usize> = found.paths.iter().map(|path| path.frames.len()).collect();
        assert!(
            depth
                .iter()
                .zip(&output.stacks)
                .any(|(depth, noted)| noted.scenario == "recursion" && *depth > 20)
        );
    }
}

#[test]
fn debug_frame_is_used() {
    if has("gcc") {
        let folder = Folder::new();
        let source = "
            #include <stdio.h>
            __asm__(\".text\\n.globl mark\\nmark: movq (%rsp), %rdi\\nleaq 8(%rsp), %rsi\\nmovq %rbp, %rdx\\njmp save\\n\");
            void mark(void);
            static unsigned long base;
            void save(unsigned long ip, unsigned long sp, unsigned long bp) {
                printf(\"stack %lx %lx %lx \", ip, sp, bp);
                for (unsigned char *at = (unsigned char *)sp; (unsigned long)at < base + 64; ++at) printf(\"%02x\", *at);
                printf(\"\\ncall inner 13\\ncall outer 14\\ncall main 15\\nend frames\\n\");
            }
            __attribute__((noinline)) void inner(volatile int *n) { int m[*n]; mark(); m[0] = *n; *n = m[0]; }
            __attribute__((noinline)) int outer(int n) { inner(&n); return n; }
            int main(int n, char **a) { base = (unsigned long)__builtin_frame_address(0); outer(n);
                FILE *maps = fopen(\"/proc/self/maps\", \"r\"); char line[4096];
                while (fgets(line, sizeof line, maps)) fputs(line, stdout); }";
        std::fs::write(folder.file("frames.c"), source).unwrap();
        let options = "-O2 -g -Wl,--build-id -fno-asynchronous-unwind-tables -fno-unwind-tables frames.c -o frames";
        run(&folder, "gcc", options);
        let output = output(&folder.file("frames"), &[]);
        let found = paths(&output);
        let all = named(&found, &found.paths[0], &mut Names::default());
        let functions: Vec<&str> = all.iter().map(|one| one.0.as_str()).collect();
        assert!(functions.starts_with(&["inner", "outer", "main"]), "{all:?}");
        let by_table = |frame: &Frame| frame.found_by == FoundBy::Cfi;
        assert!(found.paths[0].frames[1..3].iter().all(by_table));
    }
}

#[test]
fn split_debug_information_is_found() {
    if has("g++") && has("objcopy") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        let build_id = crate::elf::Elf::open(&program).unwrap().build_id;
        let (output, whole) = {
            let output = output(&program, &[]);
            let found = paths(&output);
            let names: Vec<_> = found
                .paths
                .iter()
                .map(|path| named(&found, path, &mut Names::default()))
                .collect();
            (found.paths, names)
        };
        let offset = output[0].frames[0].offset;
        run(&folder, "objcopy", "--only-keep-debug program program.debug");
        run(
            &folder,
            "objcopy",
            "--strip-all --add-gnu-debuglink=program.debug program stripped",
        );
        let stripped = folder.file("stripped");
        let by_link = Names::default().name(&stripped, &build_id, offset).unwrap();
        assert_eq!((&by_link[0].function, by_link[0].line), (&whole[0][0].0, whole[0][0].2));
        // By the build-id.
        let digits = build_id
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let by_id = folder.file(&format!("debug/.build-id/{}/{}.debug", &digits[..2], &digits[2..]));
        std::fs::create_dir_all(by_id.parent().unwrap()).unwrap();
        std::fs::rename(folder.file("program.debug"), &by_id).unwrap();
        let mut names = Names::new(vec![folder.file("debug")]);
        assert_eq!(names.name(&stripped, &build_id, offset), Ok(by_link));
        // Debug information of another build is not used: nothing is known of this function then.
        compile(&folder, "other", "-O0");
        run(&folder, "objcopy", "--only-keep-debug other program.debug");
        let none = Names::default().name(&stripped, &build_id, offset);
        assert_eq!(none, Err(NoName::NoSymbol));
    }
}

#[test]
fn symbols_name_functions_without_debug_information() {
    if has("g++") && has("strip") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        run(&folder, "strip", "--strip-debug program");
        let output = output(&program, &[]);
        let found = paths(&output);
        let plain = named(&found, &found.paths[0], &mut Names::default());
        let functions: Vec<&str> = plain.iter().map(|one| one.0.as_str()).collect();
        assert!(
            functions[0].starts_with("direct()") && functions[1].starts_with("plain(int)"),
            "{plain:?}"
        );
        assert!(functions.contains(&"main"), "{plain:?}");

        let symbols = std::process::Command::new("nm").arg(&program).output().unwrap();
        let symbols = String::from_utf8(symbols.stdout).unwrap();
        let main = symbols.lines().find_map(|line| line.strip_suffix(" T main")).unwrap();
        let main = u64::from_str_radix(main, 16).unwrap();
        let mut names = Names::default();
        let of_main = found.paths[0].frames.iter().filter_map(|frame| {
            let module = found.files.module(frame.module?)?;
            let named = names.name(&module.path, &module.build_id, frame.offset).ok()?;
            (named[0].function == "main").then(|| (frame.offset - main, named[0].distance))
        });
        let of_main: Vec<(u64, u64)> = of_main.collect();
        assert!(
            matches!(of_main[..], [(expected, distance)] if expected == distance && distance > 0),
            "{of_main:?}"
        );
    }
}

#[test]
fn changed_and_deleted_files_are_not_used() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        let mut output = output(&program, &[]);
        let before = paths(&output);
        let frame = before.paths[0].frames[0];
        let module = before.files.module(frame.module.unwrap()).unwrap().clone();
        assert_eq!(
            (module.state, &module.path, &module.opened),
            (State::Same, &program, &program)
        );
        // The linker writes a new file.
        std::fs::rename(&program, folder.file("old")).unwrap();
        compile(&folder, "program", "-O0");
        let after = paths(&output);
        let changed = after.files.module(after.paths[0].frames[0].module.unwrap()).unwrap();
        assert_eq!((changed.state, changed.build_id.len()), (State::Changed, 0));
        let other = Names::default().name(&program, &module.build_id, frame.offset);
        assert!(matches!(other, Err(NoName::OtherBuild { found }) if !found.is_empty()));
        std::fs::remove_file(&program).unwrap();
        let missing = paths(&output);
        let missing = missing
            .files
            .module(missing.paths[0].frames[0].module.unwrap())
            .unwrap();
        assert_eq!(missing.state, State::Missing);
        let none = Names::default().name(&program, &module.build_id, frame.offset);
        assert_eq!(none, Err(NoName::Missing));
        // As /proc/PID/maps shows a removed file; another one has its name. A process in a container finds its own.
        compile(&folder, "program", "-O0");
        for mapping in &mut output.mappings {
            if mapping.path == program {
                mapping.path = format!("{} (deleted)", program.display()).into();
            }
        }
        let deleted = paths(&output);
        let deleted = deleted
            .files
            .module(deleted.paths[0].frames[0].module.unwrap())
            .unwrap();
        assert_eq!(deleted.state, State::Changed);
        let below = folder.file("root").join(program.strip_prefix("/").unwrap());
        std::fs::create_dir_all(below.parent().unwrap()).unwrap();
        std::fs::rename(folder.file("old"), &below).unwrap();
        let mut process = Process::new(Some(folder.file("root")));
        output.mappings.iter().for_each(|mapping| process.map(mapping.clone()));
        let mut files = crate::Files::new();
        let path = process.call_path(&output.stacks[0].stack(), &mut files);
        let module = files.module(path.frames[0].module.unwrap()).unwrap();
        assert_eq!((module.state, &module.opened), (State::Same, &below));
        assert_eq!(path.frames[0].offset, frame.offset);
    }
}

#[test]
fn paths_of_cut_stacks_are_prefixes() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        let output = output(&program, &[]);
        let (mut process, mut files) = (Process::new(None), crate::Files::new());
        output.mappings.iter().for_each(|mapping| process.map(mapping.clone()));
        for noted in &output.stacks {
            let whole = process.call_path(&noted.stack(), &mut files);
            let mut cut = noted.clone();
            let mut shortest = usize::MAX;
            for len in (0..noted.bytes.len().min(4096)).rev().step_by(7) {
                cut.bytes.truncate(len);
                let path = process.call_path(&cut.stack(), &mut files);
                let frames = path.frames.len();
                assert_eq!(path.frames, whole.frames[..frames], "{} at {len}", noted.scenario);
                // A missing frame pointer is an end too, where the function needs it.
                let ends = [End::Cut, End::NoInformation];
                assert!(frames == whole.frames.len() || ends.contains(&path.end), "{path:?}");
                shortest = shortest.min(frames);
            }
            assert_eq!(shortest, 1);
        }
    }
}

#[test]
fn later_mappings_replace_what_they_overlap() {
    let mapping = |start, end, offset| Mapping {
        start,
        end,
        offset,
        device: 0,
        inode: 0,
        path: "/does/not/exist".into(),
    };
    let mut process = Process::new(None);
    process.map(mapping(0x1000, 0x9000, 0));
    process.map(mapping(0x3000, 0x5000, 0x10_0000));
    process.map(mapping(0x8000, 0xa000, 0x20_0000));
    process.map(mapping(0x100, 0x100, 7));
    let mut files = crate::Files::new();
    let mut offset = |ip| {
        let stack = crate::Stack {
            ip,
            sp: 0x7000_0000,
            bp: 0,
            bytes: &[],
        };
        let CallPath { frames, end, unmapped } = process.call_path(&stack, &mut files);
        assert_eq!(unmapped, frames[0].module.is_none().then_some(ip - 1));
        (frames[0].module.is_some(), frames[0].offset, end)
    };
    // A file that is missing: positions in it.
    let none = End::NoInformation;
    assert_eq!(offset(0x1001), (true, 0, none));
    assert_eq!(offset(0x3000), (true, 0x1fff, none));
    assert_eq!(offset(0x3001), (true, 0x10_0000, none));
    assert_eq!(offset(0x5001), (true, 0x4000, none));
    assert_eq!(offset(0x8001), (true, 0x20_0000, none));
    assert_eq!(offset(0xa001), (false, 0xa000, End::Damaged));
    assert_eq!(offset(0x1000), (false, 0xfff, End::Damaged));
    assert_eq!(files.modules().len(), 1);
}

#[test]
fn many_offsets_are_named_as_one() {
    if has("g++") {
        let folder = Folder::new();
        let program = compile(&folder, "program", "-O2");
        let output = output(&program, &[]);
        let found = paths(&output);
        let mut offsets: Vec<u64> = Vec::new();
        let own = |frame: &&Frame| found.files.module(frame.module.unwrap()).unwrap().path == program;
        for path in &found.paths {
            let frames = path.frames.iter().filter(|frame| frame.module.is_some());
            offsets.extend(frames.filter(own).map(|frame| frame.offset));
        }
        offsets.push(1);
        let build_id = crate::elf::Elf::open(&program).unwrap().build_id;
        let mut names = Names::default();
        let each: Vec<Result<Vec<Named>, NoName>> = offsets
            .iter()
            .map(|offset| names.name(&program, &build_id, *offset))
            .collect();
        assert_eq!(Names::default().all(&program, &build_id, &offsets), each);
        assert_eq!(each.last(), Some(&Err(NoName::NoSymbol)));
        assert_eq!(names.all(&program, b"other", &[1]).len(), 1);
    }
}

/// The small program of the fuzzers, as 150 files: more than stay open.
fn many_files(folder: &Folder) -> Vec<std::path::PathBuf> {
    let program = include_bytes!("../../../../fuzz/programs/dwarf-5");
    let paths: Vec<_> = (0..150).map(|n| folder.file(&format!("program-{n}"))).collect();
    for path in &paths {
        std::fs::write(path, program).unwrap();
    }
    paths
}

fn open_files() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let targets = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("/program-"))
        .count()
}

#[test]
fn few_of_many_files_stay_open() {
    let folder = Folder::new();
    let paths = many_files(&folder);
    let build_id = crate::elf::Elf::open(&paths[0]).unwrap().build_id;
    let mut names = Names::default();
    for _ in 0..2 {
        for path in &paths {
            // A function that is inlined into another.
            let named = names.name(path, &build_id, 0x40_016f).unwrap();
            let functions: Vec<&str> = named.iter().map(|one| one.function.as_str()).collect();
            assert_eq!(functions, ["inner", "outer(int)"], "{named:?}");
            assert!(named[0].file.ends_with("/tiny.cpp") && named[0].line == 2, "{named:?}");
        }
        assert_eq!(open_files(), 64);
    }
    drop(names);
    let (mut process, mut files) = (Process::new(None), crate::Files::new());
    for (at, path) in (1u64..).zip(&paths) {
        process.map(Mapping {
            start: at << 32,
            end: (at << 32) + 0x1000,
            offset: 0,
            device: 1,
            inode: 0,
            path: path.clone(),
        });
    }
    for _ in 0..2 {
        for at in 1..=150u64 {
            // After the call in `_start`, which has no frame.
            let stack = crate::Stack {
                ip: (at << 32) + 0x187,
                sp: 0x1000,
                bp: 0,
                bytes: &[0; 64],
            };
            let path = process.call_path(&stack, &mut files);
            assert_eq!((path.frames.len(), path.end), (1, End::Complete));
            assert_eq!(path.frames[0].offset, 0x40_0186);
        }
        assert_eq!(open_files(), 128);
    }
    assert_eq!(files.modules().len(), 150);
}
