//! The machine as the run-time reports it.

use std::path::Path;

use crate::rig::{INSTALLED, Release, library, releases, scratch, succeed};

fn rocminfo(release: Release, variables: &[(&str, &str)], name: &str) -> Option<String> {
    if release == INSTALLED && std::process::Command::new("rocminfo").arg("--help").output().is_err() {
        println!("skipped: no rocminfo");
        return None;
    }
    let mut command = release.command(Path::new("rocminfo"));
    command.envs(variables.iter().copied());
    Some(succeed(command, &scratch(name)))
}

#[test]
fn rocminfo_lists_one_gpu_on_every_release() {
    for release in releases() {
        let Some(text) = rocminfo(release, &[], &format!("rocminfo-{}", release.0)) else {
            return;
        };
        assert_eq!(
            text.matches("Device Type:             GPU").count(),
            1,
            "{}: {text}",
            release.0
        );
        assert!(
            text.contains("amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-"),
            "{}: {text}",
            release.0
        );
        assert!(text.contains("*** Done ***"));
    }
}

#[test]
fn rocminfo_lists_the_requested_number_of_gpus() {
    for release in releases() {
        let name = format!("rocminfo4-{}", release.0);
        let Some(text) = rocminfo(release, &[("EMULATED_GPU_COUNT", "4")], &name) else {
            return;
        };
        assert_eq!(text.matches("Device Type:             GPU").count(), 4);
        for unique in ["GPU-02106d5ce1a00001", "GPU-02106d5ce1a00004"] {
            assert!(text.contains(unique), "{}: no {unique} in {text}", release.0);
        }
    }
}

#[test]
fn other_kinds_of_gpu_are_what_the_run_time_takes_them_for() {
    for (target, isa, wave) in [
        (
            "gfx90a",
            "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
            "Wavefront Size:          64",
        ),
        ("gfx1030", "amdgcn-amd-amdhsa--gfx1030", "Wavefront Size:          32"),
    ] {
        let name = format!("rocminfo-{target}");
        let Some(text) = rocminfo(INSTALLED, &[("EMULATED_GPU_TARGET", target)], &name) else {
            return;
        };
        assert!(text.contains(isa) && text.contains(wave), "{text}");
    }
}

#[test]
fn a_machine_without_gpus_has_a_driver_all_the_same() {
    let Some(text) = rocminfo(INSTALLED, &[("EMULATED_GPU_COUNT", "0")], "rocminfo0") else {
        return;
    };
    assert_eq!(text.matches("Device Type:             GPU").count(), 0);
}

#[test]
fn a_program_without_hip_notices_nothing() {
    let script = "ls / >/dev/null && cat /proc/self/status >/dev/null && test -d /sys && echo fine";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).env("LD_PRELOAD", library());
    assert_eq!(succeed(command, &scratch("shell")), "fine\n");
}

#[test]
fn shells_see_the_driver_s_files() {
    let script = "test -c /dev/kfd && test -e /dev/dri/renderD128 && cat /sys/class/kfd/kfd/topology/nodes/1/gpu_id && \
                  ls /dev/dri && ls /sys/class/kfd/kfd/topology/nodes";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).env("LD_PRELOAD", library());
    assert_eq!(succeed(command, &scratch("files")), "19745\ncard0\nrenderD128\n0\n1\n");
}
