//! Compares launches with the truth log: each is present with its name, geometry and modelled time.

use std::collections::BTreeMap;

use crate::rig::{INSTALLED, compile, releases, run, scratch, succeed};
use crate::truth::{self, Row};

/// Launches of `many_streams`: number by kernel, grid, work-group and LDS.
fn expected(launches: u64) -> BTreeMap<(u64, u64, u64), usize> {
    (0..launches).fold(BTreeMap::new(), |mut counts, i| {
        let workgroup = 64 * (1 + i % 3);
        *counts
            .entry(((1 + i % 7) * workgroup, workgroup, 256 * (i % 2)))
            .or_default() += 1;
        counts
    })
}

fn geometry(rows: &[Row]) -> BTreeMap<(u64, u64, u64), usize> {
    rows.iter()
        .filter(|row| row.is_program_kernel())
        .fold(BTreeMap::new(), |mut counts, row| {
            *counts.entry((row.grid_x, row.wg_x, row.group_bytes)).or_default() += 1;
            counts
        })
}

fn overlaps(rows: &[Row]) -> bool {
    let mut spans: Vec<_> = rows.iter().filter(|row| row.is_program_kernel()).collect();
    spans.sort_by_key(|row| row.begin_ticks);
    spans.windows(2).any(|pair| pair[1].begin_ticks < pair[0].end_ticks)
}

#[test]
fn thousands_of_launches_are_logged_once_each() {
    for release in releases() {
        let Some(program) = release.program("many_streams") else {
            continue;
        };
        let place = scratch(&format!("streams-{}", release.0));
        let mut command = release.command(&program);
        command
            .args(["4", "16", "20000"])
            .env("EMULATED_GPU_LOG", place.join("log"));
        succeed(command, &place);
        let rows = truth::read(&place.join("log"));
        assert_eq!(geometry(&rows), expected(20000), "{}", release.0);
        let kernels = truth::kernels(&rows);
        assert_eq!(
            kernels.values().copied().collect::<Vec<_>>(),
            [5000; 4],
            "{}: {kernels:?}",
            release.0
        );
        assert!(overlaps(&rows), "queues of {} do not run side by side", release.0);
    }
}

#[test]
fn sixty_four_streams_of_eight_threads_lose_nothing() {
    for release in releases() {
        let Some(program) = release.program("many_streams") else {
            continue;
        };
        let place = scratch(&format!("streams64-{}", release.0));
        let mut command = release.command(&program);
        command
            .args(["8", "64", "40000"])
            .env("EMULATED_GPU_LOG", place.join("log"));
        command.env("EMULATED_GPU_KERNEL_NS", "0");
        succeed(command, &place);
        assert_eq!(
            geometry(&truth::read(&place.join("log"))),
            expected(40000),
            "{}",
            release.0
        );
    }
}

#[test]
fn one_stream_runs_its_kernels_one_after_the_other() {
    let Some(program) = INSTALLED.program("many_streams") else {
        return;
    };
    let place = scratch("one-stream");
    let mut command = INSTALLED.command(&program);
    command
        .args(["1", "1", "2000"])
        .env("EMULATED_GPU_LOG", place.join("log"));
    succeed(command, &place);
    assert!(!overlaps(&truth::read(&place.join("log"))));
}

#[test]
fn durations_follow_name_work_groups_and_the_seeded_jitter() {
    let Some(program) = INSTALLED.program("many_streams") else {
        return;
    };
    let durations = |name: &str, variables: &[(&str, &str)]| {
        let place = scratch(name);
        let mut command = INSTALLED.command(&program);
        command
            .args(["1", "1", "400"])
            .env("EMULATED_GPU_LOG", place.join("log"))
            .envs(variables.iter().copied());
        succeed(command, &place);
        let rows = truth::read(&place.join("log"));
        let kernels = rows.into_iter().filter(Row::is_program_kernel);
        kernels
            .map(|row| (row.name.clone(), row.grid_x / row.wg_x, row.duration_ns()))
            .collect::<Vec<_>>()
    };
    let model = [
        ("EMULATED_GPU_KERNEL_NS", "1000"),
        ("EMULATED_GPU_PER_WORKGROUP_NS", "100"),
        ("EMULATED_GPU_BY_NAME", "plain=7000,*scaleIf*=30000"),
    ];
    for (name, groups, duration) in durations("model", &model) {
        let base = if name.contains("plain") {
            7000
        } else if name.contains("scaleIf") {
            30000
        } else {
            1000
        };
        assert!(
            duration.abs_diff(base + 100 * groups) <= 10,
            "{name} {groups} {duration}"
        );
    }
    let jitter = [
        ("EMULATED_GPU_KERNEL_NS", "10000"),
        ("EMULATED_GPU_JITTER", "20"),
        ("EMULATED_GPU_SEED", "5"),
    ];
    let (one, two) = (durations("jitter1", &jitter), durations("jitter2", &jitter));
    assert!(one.iter().all(|row| (7990..=12010).contains(&row.2)));
    assert!(one.iter().any(|row| row.2 < 9000) && one.iter().any(|row| row.2 > 11000));
    let same = one.iter().zip(&two).all(|(one, two)| one.2.abs_diff(two.2) <= 10);
    assert!(same, "the same seed gives the same durations");
}

#[test]
fn a_kernel_with_a_twin_on_the_host_has_its_effect() {
    let Some(twins) = compile("twins.c", &scratch("twins"), &["-shared", "-fPIC"]) else {
        return;
    };
    for release in releases() {
        let Some(program) = release.program("matrix_transpose") else {
            continue;
        };
        let place = scratch(&format!("twins-{}", release.0));
        let verified = |kernels: &std::path::Path| {
            let mut command = release.command(&program);
            command.args(["2", "--verify"]).env("EMULATED_GPU_KERNELS", kernels);
            run(command, &place).status.success()
        };
        assert!(verified(&twins), "{}", release.0);
        assert!(!verified("".as_ref()), "{}: verified without twins", release.0);
    }
}
