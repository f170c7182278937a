//! Bytes that are really moved: every program here compares them itself.

use crate::rig::{INSTALLED, Release, releases, scratch, succeed};
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
fn graphs_events_and_mapped_memory_work_on_every_release() {
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

/// Runs a program with a variable set to zero, and returns the log's rows.
fn run_without(variable: &str, release: Release, name: &str, words: &[&str]) -> Vec<truth::Row> {
    let Some(program) = release.program(name) else {
        return Vec::new();
    };
    let place = scratch(&format!("{variable}-{name}-{}-{}", release.0, words.concat()));
    let mut command = release.command(&program);
    command.args(words);
    command.env(variable, "0").env("EMULATED_GPU_LOG", place.join("log"));
    succeed(command, &place);
    truth::read(&place.join("log"))
}

#[test]
fn thread_queues_and_polled_signals_work_on_every_release() {
    for release in releases() {
        for variable in ["AMD_DIRECT_DISPATCH", "HSA_ENABLE_INTERRUPT"] {
            run_without(variable, release, "features", &[]);
            run_without(variable, release, "memcpy_storm", &[]);
        }
    }
}

/// Threads, rounds and lines of a storm of copies without copy engines.
///
/// Where a rectangle is copied line by line, each line is a kernel of ROCr's in a ring of 64 packets, and the run-times that
/// do so (5.2.3, 5.7.1) lose lines when several threads fill it. `BlitKernel::SubmitLinearCopyCommand` takes a packet's place
/// (`AcquireWriteIndex`, which waits for room) and, apart from that, one of 64 argument blocks by a counter
/// (`ObtainAsyncKernelCopyArg`). Threads that wait for room together take blocks in another order than places, so the block
/// 64 turns later can be that of a packet that nobody has read yet: it is written over, and two packets copy one line. Seen
/// in the ring: for each line that was missing two waiting packets named one block. So several threads keep below 64 lines
/// together, and one thread alone, whose places and blocks go in step, fills the ring.
const WITHOUT_ENGINES: [[&str; 3]; 2] = [["4", "2", "15"], ["1", "2", "64"]];

#[test]
fn copies_by_kernels_alone_arrive_whole_on_every_release() {
    for release in releases() {
        let check = |rows: &[truth::Row]| assert!(rows.iter().all(|row| row.kind == "dispatch"));
        check(&run_without("HSA_ENABLE_SDMA", release, "features", &[]));
        for words in WITHOUT_ENGINES {
            check(&run_without("HSA_ENABLE_SDMA", release, "memcpy_storm", &words));
        }
    }
}

#[test]
fn other_kinds_of_gpu_copy_as_well() {
    for target in ["gfx90a", "gfx1030"] {
        let Some(program) = INSTALLED.program_for(target, "features") else {
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
