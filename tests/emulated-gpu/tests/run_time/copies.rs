//! Bytes that are really moved: every program here compares them itself.

use crate::rig::{INSTALLED, releases, scratch, succeed};
use crate::truth;

#[test]
fn copies_in_every_direction_arrive_whole_on_every_release() {
    for release in releases() {
        for large_bar in ["0", "1"] {
            let Some(program) = release.program("memcpy_storm") else {
                continue;
            };
            let place = scratch(&format!("storm-{}-{large_bar}", release.0));
            let mut command = release.command(&program);
            command
                .args(["2", "1"])
                .env("EMULATED_GPU_LARGE_BAR", large_bar)
                .env("EMULATED_GPU_LOG", place.join("log"));
            succeed(command, &place);
            let rows = truth::read(&place.join("log"));
            assert!(rows.iter().any(|row| row.kind == "sdma_copy" && row.bytes > 0));
        }
    }
}

#[test]
fn graphs_events_managed_and_mapped_memory_work_on_every_release() {
    for release in releases() {
        for gpus in ["1", "2"] {
            let Some(program) = release.program("features") else {
                continue;
            };
            let place = scratch(&format!("features-{}-{gpus}", release.0));
            let mut command = release.command(&program);
            command
                .env("EMULATED_GPU_COUNT", gpus)
                .env("EMULATED_GPU_LOG", place.join("log"));
            let text = succeed(command, &place);
            assert_eq!(text.contains("virtual memory"), release.0 >= "6", "{text}");
            let rows = truth::read(&place.join("log"));
            let used = rows.iter().map(|row| row.gpu).max().unwrap() + 1;
            assert_eq!(used.to_string(), gpus);
        }
    }
}

#[test]
fn copies_by_kernels_alone_and_queues_of_threads_work_on_every_release() {
    for release in releases() {
        for variable in ["HSA_ENABLE_SDMA", "AMD_DIRECT_DISPATCH", "HSA_ENABLE_INTERRUPT"] {
            for name in ["features", "memcpy_storm"] {
                let Some(program) = release.program(name) else { continue };
                let place = scratch(&format!("{variable}-{name}-{}", release.0));
                let mut command = release.command(&program);
                command.env(variable, "0").env("EMULATED_GPU_LOG", place.join("log"));
                succeed(command, &place);
                let rows = truth::read(&place.join("log"));
                assert!(variable != "HSA_ENABLE_SDMA" || rows.iter().all(|row| row.kind == "dispatch"));
            }
        }
    }
}

#[test]
fn other_kinds_of_gpu_copy_as_well() {
    for target in ["gfx90a", "gfx1030"] {
        let Some(program) = INSTALLED.compile("features", target) else {
            return;
        };
        let mut command = INSTALLED.command(&program);
        command.env("EMULATED_GPU_TARGET", target);
        succeed(command, &scratch(&format!("features-{target}")));
    }
}

#[test]
fn a_copy_lasts_as_long_as_its_bandwidth_says() {
    for release in releases() {
        let Some(program) = release.program("matrix_transpose") else {
            continue;
        };
        let place = scratch(&format!("bandwidth-{}", release.0));
        let mut command = release.command(&program);
        command
            .env("EMULATED_GPU_COPY_GBPS", "0.1")
            .env("EMULATED_GPU_LOG", place.join("log"));
        succeed(command, &place);
        let copies = truth::read(&place.join("log"));
        let whole: Vec<_> = copies.iter().filter(|row| row.bytes == 1024 * 1024 * 4).collect();
        assert!(whole.len() >= 2, "{copies:?}");
        // 4 MiB at 0.1 GB/s; memory slower than that cannot be.
        assert!(whole.iter().all(|row| row.duration_ns() >= 41_900_000), "{whole:?}");
    }
}
