//! Register counts from kernel descriptors, and facts from the notes, on code objects that the compilers of this machine make for each kind of
//! target, against what the compiler itself notes in them (llvm-readelf). A target that no compiler here knows is told
//! and left out.

use roctop::item::Registers;
use roctop::kernel_descriptor::{self, Descriptor};
use roctop_code_object::Kernel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The releases whose compilers may know a target, the installed one first.
const RELEASES: [&str; 3] = ["5.2.3", "6.4.3", "7.2.4"];

/// A code object for `target`; why there is none else.
fn compile(target: &str) -> Result<Vec<u8>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("registers");
    std::fs::create_dir_all(&folder).unwrap();
    let mut said = Vec::new();
    for release in RELEASES {
        let result = folder.join(format!("{target}-{release}.co"));
        let output = Command::new(root.join("tests/runtimes/run"))
            .args(["--chroot", release, "hipcc"])
            .arg(format!("--offload-arch={target}"))
            .args(["--genco", "-nogpulib", "-O2"])
            .arg(root.join("tests/integration/registers/kernels.hip"))
            .arg("-o")
            .arg(&result)
            .envs([("HIP_PLATFORM", "amd"), ("HCC_AMDGPU_TARGET", target)])
            .output();
        match output {
            Ok(output) if output.status.success() => return Ok(unbundle(&std::fs::read(&result).unwrap(), target)),
            Ok(output) => said.push(format!("{release}: {}", last_line(&output.stderr))),
            Err(error) => said.push(format!("{release}: {error}")),
        }
    }
    Err(said.join("; "))
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).into_owned();
    text.lines().last().unwrap_or("no compiler").to_owned()
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// The target's entry of an offload bundle: magic, number of entries, and for each its offset, size, and name.
fn unbundle(bundle: &[u8], target: &str) -> Vec<u8> {
    assert!(bundle.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"), "not a bundle");
    let mut at = 32;
    for _ in 0..word(bundle, 24) {
        let (offset, size, name) = (word(bundle, at), word(bundle, at + 8), word(bundle, at + 16));
        let text = String::from_utf8_lossy(&bundle[at + 24..at + 24 + name]).into_owned();
        if text.ends_with(target) {
            return bundle[offset..offset + size].to_vec();
        }
        at += 24 + name;
    }
    panic!("no entry for {target}");
}

/// The descriptors of a code object by kernel: 64 bytes at the symbol NAME.kd.
fn descriptors(object: &[u8]) -> BTreeMap<String, Descriptor> {
    const DYNAMIC_SYMBOLS: u32 = 11;
    let (table, size) = (word(object, 40), usize::from(short(object, 58)));
    let section = |index: usize| &object[table + size * index..][..size];
    let symbols = (0..usize::from(short(object, 60)))
        .map(section)
        .find(|section| half(section, 4) == DYNAMIC_SYMBOLS)
        .unwrap();
    let names = word(section(half(symbols, 40) as usize), 24);
    let entries = object[word(symbols, 24)..][..word(symbols, 32)].chunks_exact(24);
    entries
        .filter_map(|symbol| {
            let name = object[names + half(symbol, 0) as usize..]
                .split(|byte| *byte == 0)
                .next()?;
            let name = String::from_utf8_lossy(name).strip_suffix(".kd")?.to_owned();
            let owner = section(usize::from(short(symbol, 6)));
            let at = word(owner, 24) + word(symbol, 8) - word(owner, 16);
            let descriptor = Descriptor {
                rsrc1: half(object, at + 48),
                rsrc3: half(object, at + 44),
                properties: short(object, at + 56),
            };
            Some((name, descriptor))
        })
        .collect()
}

/// LLVM's readelf: in PATH, or beside the clang of a hipcc.
fn readelf() -> Option<PathBuf> {
    let beside = std::fs::read_dir("/usr/lib").ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_llvm = path.file_name()?.to_str()?.starts_with("llvm-");
        is_llvm.then(|| path.join("bin/llvm-readelf"))
    });
    let mut all = std::iter::once(PathBuf::from("llvm-readelf")).chain(beside);
    all.find(|path| Command::new(path).arg("--version").output().is_ok())
}

/// What the compiler notes of each kernel.
fn notes(object: &Path) -> BTreeMap<String, Kernel> {
    let output = Command::new(readelf().unwrap())
        .arg("--notes")
        .arg(object)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all = BTreeMap::new();
    // Kernels are the entries of the outermost list.
    for kernel in text.split("\n  - .").skip(1) {
        let kernel = format!("    .{kernel}");
        let value = |key: &str| {
            let found = kernel
                .lines()
                .find_map(|line| line.strip_prefix("    .")?.strip_prefix(key)?.strip_prefix(':'));
            found.map(|value| value.trim().trim_matches('\'').to_owned())
        };
        let number = |key: &str| value(key).map(|value| value.parse().unwrap());
        let flag = |key: &str| value(key).map(|value| value == "1" || value == "true");
        let name = value("name").unwrap();
        let noted = Kernel {
            name: name.clone(),
            vgpr: number("vgpr_count"),
            agpr: number("agpr_count"),
            sgpr: number("sgpr_count"),
            vgpr_spills: number("vgpr_spill_count"),
            sgpr_spills: number("sgpr_spill_count"),
            scratch: number("private_segment_fixed_size"),
            lds: number("group_segment_fixed_size"),
            max_workgroup: number("max_flat_workgroup_size"),
            wave_size: number("wavefront_size"),
            is_uniform: flag("uniform_work_group_size"),
            is_wgp: flag("workgroup_processor_mode"),
            has_dynamic_stack: flag("uses_dynamic_stack") == Some(true),
            ..Kernel::default()
        };
        all.insert(name, noted);
    }
    all
}

/// How a target takes vector registers (LLVM's AMDGPUUsage, "Kernel Descriptor").
#[derive(Clone, Copy)]
enum Vectors {
    /// In granules of so many.
    Plain(u32),
    /// The same, and as many accumulators beside them.
    Beside(u32),
    /// Accumulators behind the others in one file, the first granule for those, the second for all.
    Unified(u32, u32),
}

/// Compares every kernel of a target; false when no compiler here knows it.
fn agrees(target: &str, vectors: Vectors, has_counted_scalars: bool) -> bool {
    let object = match compile(target) {
        Ok(object) => object,
        Err(reason) => {
            println!("skipped: {target}: {reason}");
            return false;
        }
    };
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("registers/{target}.elf"));
    std::fs::write(&path, &object).unwrap();
    let (descriptors, notes) = (descriptors(&object), notes(&path));
    assert!(descriptors.len() >= 4, "{target}: {descriptors:?}");
    assert_eq!(descriptors.len(), notes.len());
    let read = roctop_code_object::read(&object).unwrap();
    assert!(read.target.contains(target), "{}", read.target);
    assert_eq!(read.kernels.len(), notes.len());
    for kernel in read.kernels {
        let (code_bytes, hash) = (kernel.code_bytes, kernel.hash);
        assert!(code_bytes > 0 && hash != 0, "{target}: {kernel:?}");
        let expected = Kernel {
            code_bytes,
            hash,
            ..notes[&kernel.name].clone()
        };
        assert_eq!(kernel, expected, "{target}");
    }
    for (name, descriptor) in descriptors {
        let noted = &notes[&name];
        let noted = Registers {
            vgpr: noted.vgpr.unwrap(),
            agpr: noted.agpr.unwrap_or(0),
            sgpr: noted.sgpr.unwrap(),
        };
        let found = kernel_descriptor::decode(descriptor, target);
        let said = format!("{target} {name}: {found:?}, noted {noted:?}");
        println!("{said}");
        let up = |count: u32, granule: u32| count.max(1).next_multiple_of(granule);
        match vectors {
            Vectors::Plain(granule) => {
                assert_eq!((found.vgpr, found.agpr), (up(noted.vgpr, granule), 0), "{said}");
            }
            Vectors::Beside(granule) => {
                let most = up(noted.vgpr.max(noted.agpr), granule);
                assert_eq!((found.vgpr, found.agpr), (most, most), "{said}");
            }
            // The note's vgpr_count is of both kinds.
            Vectors::Unified(granule, all) => {
                assert_eq!(found.vgpr + found.agpr, up(noted.vgpr, all), "{said}");
                assert_eq!(found.vgpr, up(noted.vgpr - noted.agpr, granule), "{said}");
            }
        }
        if has_counted_scalars {
            assert_eq!(found.sgpr, up(noted.sgpr, 16), "{said}");
        } else {
            assert_eq!(found.sgpr, 128, "every wave has all of them: {said}");
        }
    }
    true
}

#[test]
fn registers_are_those_that_the_compiler_notes() {
    check(&[("gfx906", Vectors::Plain(4), true)]);
}

/// A unit test of `kernel_descriptor` has a descriptor of each kind.
#[test]
#[ignore = "compilers of all releases: .ci/matrix"]
fn registers_of_other_targets_are_those_that_the_compiler_notes() {
    check(&[
        ("gfx908", Vectors::Beside(4), true),
        ("gfx90a", Vectors::Unified(4, 8), true),
        ("gfx942", Vectors::Unified(4, 8), true),
        ("gfx1030", Vectors::Plain(8), false),
        ("gfx1100", Vectors::Plain(8), false),
        ("gfx1200", Vectors::Plain(8), false),
    ]);
}

fn check(targets: &[(&str, Vectors, bool)]) {
    if readelf().is_none() {
        println!("skipped: no llvm-readelf");
        return;
    }
    let known = targets
        .iter()
        .filter(|(target, vectors, scalars)| agrees(target, *vectors, *scalars));
    println!("{} targets of {}", known.count(), targets.len());
}
