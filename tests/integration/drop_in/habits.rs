//! Clients that use the interface as rocmProfileData, Kineto and TAU do, in programs that know nothing of them.

use super::{Rig, number, program, text};
use crate::kit::rig::{Truth, read_truth};
use roctop::kernel_name::demangle;
use std::collections::BTreeMap;
use std::path::Path;

/// Counts by kind and name.
type Counts = BTreeMap<(String, String), u64>;

/// The kernels of features.hip that a graph launches. TAU does not learn their names: no launch call has them.
const IN_GRAPHS: u64 = 5;
/// The copies and fills of that graph. Newer HIP makes them by kernels of its own, and reports these as kernels.
const MOVED_IN_GRAPHS: u64 = 25;
const INTERNAL: &str = "__amd_rocclr_";

/// Calls that every client counts and every release reports.
const CALLS: [&str; 9] = [
    "hipMalloc",
    "hipFree",
    "hipMemcpy",
    "hipMemcpyAsync",
    "hipLaunchKernel",
    "hipStreamAddCallback",
    "hipStreamSynchronize",
    "hipDeviceSynchronize",
    "hipGraphLaunch",
];

fn read(place: &Path, name: &str, count_first: bool) -> Counts {
    let text = std::fs::read_to_string(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let row = |line: &str| {
        let (first, rest) = line.split_once(' ').unwrap();
        if !count_first {
            return (("api".to_owned(), first.to_owned()), number(rest));
        }
        let (count, name) = rest.split_once(' ').unwrap();
        ((first.to_owned(), name.to_owned()), number(count))
    };
    text.lines().map(row).collect()
}

fn check(client: &str, app: &str, own: &Counts, app_counts: &Counts, truth: &[Truth]) {
    let what = format!("{client} in {app}");
    let get = |kind: &str, name: &str| own.get(&(kind.to_owned(), name.to_owned())).copied().unwrap_or(0);
    let all = |kind: &str| {
        own.iter()
            .filter(|((of, _), _)| of == kind)
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    assert_eq!(get("done", "-"), 1, "{what}");
    assert_eq!(
        (all("failed"), all("backwards"), get("strangers", "-")),
        (0, 0, 0),
        "{what}: {own:?}"
    );

    let kernels = || {
        truth
            .iter()
            .filter(|row| row.kind == "dispatch" && !row.name.is_empty() && !row.name.starts_with(INTERNAL))
    };
    let mut logged: BTreeMap<&str, u64> = BTreeMap::new();
    for row in kernels() {
        *logged.entry(&row.name).or_default() += 1;
    }
    let is_graphs = app == "features";
    let moved = if is_graphs && moves_by_kernels() {
        MOVED_IN_GRAPHS
    } else {
        0
    };
    assert_eq!(all("kernel"), logged.values().sum::<u64>() + moved, "{what}: {own:?}");
    let unnamed = if is_graphs && client == "tau" {
        IN_GRAPHS + moved
    } else {
        0
    };
    assert_eq!(get("kernel", "-"), unnamed, "{what}: {own:?}");
    if unnamed == 0 {
        let internal = own
            .iter()
            .filter(|((of, name), _)| of == "kernel" && name.starts_with(INTERNAL));
        assert_eq!(internal.map(|(_, count)| count).sum::<u64>(), moved, "{what}: {own:?}");
        for (name, count) in &logged {
            // Newer HIP has the names of graphs' kernels demangled.
            let found = get("kernel", name) + get("kernel", &demangle(name));
            assert_eq!(found, *count, "{what}: {name}");
        }
    }
    let time: u64 = kernels().map(|row| row.end - row.begin).sum();
    // HIP's record of a cooperative launch reaches from a kernel of HIP's own to the barrier behind the launched kernel, which
    // may come late: at most until the next such launch, or the end of all work.
    let until_next = |row: &Truth| {
        let others = truth
            .iter()
            .filter(|next| next.queue == row.queue && next.name == row.name);
        let next = others.map(|next| next.begin).filter(|begin| *begin > row.begin).min();
        next.or(truth.iter().map(|row| row.end).max()).unwrap_or(row.end) - row.begin
    };
    let own_time: u64 = truth
        .iter()
        .filter(|row| row.name.starts_with(INTERNAL))
        .map(|row| match row.name.starts_with("__amd_rocclr_gwsInit") {
            true => until_next(row),
            false if moved > 0 => row.end - row.begin,
            false => 0,
        })
        .sum();
    let slack = 2 * all("kernel");
    let told = get("time", "kernels");
    assert!(
        (time - slack..=time + own_time + slack).contains(&told),
        "{what}: {told}, logged {time} and {own_time} of HIP's own"
    );

    for name in CALLS {
        let expected = app_counts
            .get(&("api".to_owned(), name.to_owned()))
            .copied()
            .unwrap_or(0);
        // Kineto waits for the GPU once more at the end.
        let waits = u64::from(client == "kineto" && name == "hipDeviceSynchronize");
        assert_eq!(get("api", name), expected + waits, "{what}: {name}");
        if client == "tau" {
            assert_eq!(get("entered", name), expected, "{what}: {name}");
        }
    }
}

/// Does this release make the copies and fills of graphs by kernels, and report them?
fn moves_by_kernels() -> bool {
    crate::kit::rig::release().is_some_and(|release| release != "5.7.1")
}

fn run(client: &str) {
    let Some((rig, library)) = program(&format!("lib{client}_habit.so")) else {
        return;
    };
    let rig = rig.behind(&library);
    for words in [&["matrix_transpose", "3"][..], &["many_streams"], &["features"]] {
        let place = Rig::place(&format!("drop-in-{client}-{}", words[0]));
        let mut command = rig.command(&place, &[], words);
        let output = Rig::ended(command.env("CLIENT_COUNTS", place.join("client")));
        assert!(
            output.status.success(),
            "{client} in {words:?}: {}: {}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        );
        let (own, app_counts) = (read(&place, "client", true), read(&place, "counts", false));
        check(client, words[0], &own, &app_counts, &read_truth(&place));
    }
}

#[test]
fn a_client_like_rpd_tracer_sees_everything() {
    run("rpd");
}

#[test]
fn a_client_like_kineto_sees_everything() {
    run("kineto");
}

#[test]
fn a_client_like_tau_sees_everything() {
    run("tau");
}
