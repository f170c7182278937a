use super::*;
use std::process::Command;

fn agent(name: &str, compute_units: u32) -> Agent {
    Agent {
        name: name.into(),
        compute_units,
        ..Agent::default()
    }
}

fn code(vgpr: u32, wave_size: u32) -> Code {
    Code {
        vgpr: Some(vgpr),
        agpr: Some(0),
        sgpr: Some(32),
        wave_size: Some(wave_size),
        is_wgp: Some(false),
        ..Code::default()
    }
}

fn shape(workgroup: u16, lds: u32, groups: u32) -> Shape {
    Shape {
        grid: [u32::from(workgroup) * groups, 1, 1],
        workgroup: [workgroup, 1, 1],
        group_size: lds,
        private_size: 0,
    }
}

#[test]
fn the_limiter_and_what_would_change_it_are_named() {
    let (gpu, kernel) = (agent("gfx90a", 104), code(32, 64));
    let text = |code: &Code, shape: Shape| Occupancy::of(&gpu, code, &shape).unwrap().limit_text(code, &shape);
    assert_eq!(
        text(&kernel, shape(256, 32 << 10, 1)),
        "LDS 32.0 KiB × 256 allow 2 of 8 waves per SIMD; ≤ 21.0 KiB gives 3"
    );
    assert_eq!(
        text(&code(512, 64), shape(256, 0, 1)),
        "VGPR 512 × 256 allow 1 of 8 waves per SIMD; ≤ 256 gives 2"
    );
    assert_eq!(
        text(&kernel, shape(1024, 0, 1)),
        "wave slots allow 8 of 8 waves per SIMD"
    );
    assert_eq!(
        text(&kernel, shape(576, 0, 1)),
        "work-group 576 allow 6.8 of 8 waves per SIMD"
    );
    assert_eq!(text(&kernel, shape(65, 0, 1)), "wave slots allow 8 of 8 waves per SIMD");
    let gpu = agent("gfx906", 60);
    let found = Occupancy::of(&gpu, &kernel, &shape(65, 0, 1)).unwrap();
    assert_eq!((found.limiter, found.groups), (Limiter::Barriers, 16));
    let scalars = Code {
        sgpr: Some(100),
        ..kernel
    };
    let scalars = Occupancy::of(&gpu, &scalars, &shape(256, 0, 1)).unwrap();
    assert_eq!((scalars.limiter, scalars.groups), (Limiter::Sgpr, 7));
}

#[test]
fn the_named_registers_are_the_most_that_allow_more() {
    let mut named = 0;
    for name in ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"] {
        let gpu = agent(name, 60);
        for (vgprs, items) in (1..=512).flat_map(|vgprs| [64, 128, 192, 256, 576, 1024].map(|items| (vgprs, items))) {
            let groups =
                |vgprs| Occupancy::of(&gpu, &code(vgprs, 64), &shape(items, 0, 1)).map_or(0, |found| found.groups);
            let Some(found) = Occupancy::of(&gpu, &code(vgprs, 64), &shape(items, 0, 1)) else {
                continue;
            };
            let Some((most, more)) = found.next else { continue };
            named += 1;
            assert!(
                most < vgprs && more > found.groups,
                "{name} {vgprs} × {items}: {found:?}"
            );
            assert_eq!(groups(most), more, "{name} {vgprs} × {items}: {found:?}");
            assert_eq!(groups(most + 1), found.groups, "{name} {vgprs} × {items}: {found:?}");
        }
    }
    assert!(named > 5000, "{named}");
}

#[test]
fn a_grid_fills_rounds() {
    let found = Occupancy::of(&agent("gfx942", 304), &code(512, 64), &shape(256, 0, 320)).unwrap();
    assert_eq!(
        found.fill_text().unwrap(),
        "304 CUs, 1 work-group each, 320 work-groups: 2 rounds, 53 % filled, the last 5 %"
    );
    assert_eq!(found.rounds(), Some(2));
}

#[test]
fn unknown_is_blank() {
    let known = shape(256, 0, 1);
    assert!(Occupancy::of(&agent("gfx9999", 1), &code(32, 64), &known).is_none());
    assert!(Occupancy::of(&agent("gfx906", 60), &Code::default(), &known).is_none());
    assert!(Occupancy::of(&agent("gfx906", 60), &code(32, 32), &known).is_none());
    let mode = Code {
        is_wgp: None,
        ..code(32, 32)
    };
    assert!(Occupancy::of(&agent("gfx1100", 96), &mode, &known).is_none());
    assert!(Occupancy::of(&agent("gfx906", 60), &code(32, 64), &shape(0, 0, 1)).is_none());
    let units = Occupancy::of(&agent("gfx906", 0), &code(32, 64), &known).unwrap();
    assert_eq!(units.fill(), None);
    for extreme in [0, 1, u32::MAX] {
        let shape = Shape {
            grid: [extreme; 3],
            workgroup: [extreme as u16; 3],
            group_size: extreme,
            private_size: extreme,
        };
        let code = code(extreme, 64);
        if let Some(found) = Occupancy::of(&agent("gfx942", extreme), &code, &shape) {
            let _ = (found.fill(), found.limit_text(&code, &shape), found.fill_text());
        }
    }
}

/// Kernels of many sizes, against the occupancy that clang's remarks state. `CLANG` names a clang of LLVM 20 or later.
#[test]
#[ignore = "compilers of later releases: .ci/matrix"]
fn occupancy_is_what_llvm_computes() {
    let Some(clang) = std::env::var_os("CLANG") else {
        println!("skipped: CLANG names no compiler");
        return;
    };
    let source = include_str!("kernels.hip");
    let path = std::env::temp_dir().join(format!("roctop-occupancy-{}.hip", std::process::id()));
    std::fs::write(&path, source).unwrap();
    let mut compared = 0;
    let mut differences = Vec::new();
    for target in [
        "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1102",
        "gfx1150", "gfx1151", "gfx1200", "gfx1201",
    ] {
        for (workgroup, lds) in [
            (64, 1),
            (256, 1),
            (256, 2048),
            (256, 8192),
            (512, 4096),
            (1024, 1),
            (192, 5000),
        ] {
            for mode in [&["-mno-cumode"][..], &["-mcumode"], &["-mcumode", "-mwavefrontsize64"]] {
                let is_rdna = target.len() == 7;
                if !is_rdna && mode != ["-mcumode"] {
                    continue;
                }
                let output = Command::new(&clang)
                    .args([
                        "-x",
                        "hip",
                        "--offload-device-only",
                        "-nogpulib",
                        "-nogpuinc",
                        "-O1",
                        "-S",
                        "-o",
                        "-",
                    ])
                    .arg(format!("--offload-arch={target}"))
                    .args(mode.iter().filter(|_| is_rdna))
                    .args([format!("-DW={workgroup}"), format!("-DL={lds}")])
                    .arg("-Rpass-analysis=kernel-resource-usage")
                    .arg(&path)
                    .output()
                    .unwrap();
                let text = String::from_utf8(output.stderr).unwrap();
                assert!(output.status.success(), "{target}: {text}");
                for kernel in text.split("Function Name: ").skip(1) {
                    let value = |key: &str| -> Option<u32> {
                        let line = kernel.lines().find(|line| line.contains(key))?;
                        line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
                    };
                    let vectors = value(" VGPRs: ").unwrap();
                    let accumulators = value(" AGPRs: ").unwrap_or(0);
                    let unit = Unit::of(target).unwrap();
                    let lanes = if is_rdna && mode.len() < 2 { 32 } else { 64 };
                    let code = Code {
                        vgpr: Some(if unit.is_unified && accumulators > 0 {
                            vectors.next_multiple_of(4) + accumulators
                        } else {
                            vectors
                        }),
                        agpr: Some(accumulators),
                        sgpr: value(" TotalSGPRs: "),
                        is_wgp: Some(mode == ["-mno-cumode"]),
                        ..code(0, lanes)
                    };
                    let shape = shape(workgroup, value(" LDS Size ").unwrap(), 1);
                    let expected = value(" Occupancy ").unwrap();
                    let found = Occupancy::of(&agent(target, 1), &code, &shape);
                    // LLVM rounds up to whole waves of a SIMD.
                    let waves = found.map_or(0, |found| (found.groups * found.waves).div_ceil(found.simds));
                    compared += 1;
                    // LLVM does not round LDS up to its blocks.
                    let is_rounded = shape.group_size.is_multiple_of(unit.lds_block);
                    if waves != expected && (is_rounded || found.is_none_or(|found| found.limiter != Limiter::Lds)) {
                        differences.push(format!(
                            "{target} {mode:?} {code:?} {shape:?}: {found:?}, LLVM {expected}"
                        ));
                    }
                }
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
    println!("{compared} compared, {} differ", differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
