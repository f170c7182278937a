//! Copies and fills by kernels of the run-time: bytes and routes come from the calls that launched them.

use super::check_on;
use crate::kit::rig::{Recorded, release, rig};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::recording::Recording;
use roctop_ring::record::{direction, engine};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Calls and bytes by direction, as the program counts them.
fn counted(recorded: &Recorded) -> BTreeMap<String, (u64, u64)> {
    let text = String::from_utf8_lossy(&recorded.output.stdout);
    let rows = text.lines().filter_map(|line| line.strip_prefix("route "));
    rows.map(|row| {
        let mut words = row.split(' ');
        let name = words.next().unwrap().to_owned();
        let mut number = || words.next().unwrap().parse().unwrap();
        (name, (number(), number()))
    })
    .collect()
}

fn snapshot(recorded: &Recorded) -> Arc<Snapshot> {
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let recording = Recording::open(&recorded.place.join("rec")).unwrap();
    recording.items(&mut |items| store.apply_all(&items)).unwrap();
    store.snapshot(Fresh::All)
}

#[test]
fn kernels_that_copy_have_bytes_and_routes() {
    let Some(rig) = rig() else { return };
    let recorded = check_on(rig, "routes", &["routes", "5"]);
    let counted = counted(&recorded);
    let snapshot = snapshot(&recorded);
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut by_kernels = 0;
    for row in snapshot.values.copies.iter().filter(|row| row.stat.calls > 0) {
        let (name, route) = (direction::name(row.route.direction), row.route);
        let label = snapshot.names.route_label(route.source, route.destination);
        let expected = match name {
            "H2D" => "host→GPU0",
            "D2H" => "GPU0→host",
            "D2D" => "GPU0",
            "fill" => "→GPU0",
            other => panic!("{other} {label} is none of the program's"),
        };
        assert_eq!(label, expected);
        if route.engine == engine::BLIT {
            by_kernels += row.stat.calls;
        }
        let sum = found.entry(name.to_owned()).or_default();
        // A fill may take two kernels; its bytes count once.
        sum.0 += row.sizes.calls;
        sum.1 += row.sizes.total;
    }
    assert_eq!(found, counted);
    // Since 6.4 HIP makes all of them by kernels; before, those that do not leave the GPU.
    let is_recent = release().is_some_and(|release| release != "5.7.1");
    let least = if is_recent {
        counted.values().map(|row| row.0).sum()
    } else {
        counted["D2D"].0 + counted["fill"].0
    };
    assert!(by_kernels >= least, "{by_kernels} of {least}");
}
