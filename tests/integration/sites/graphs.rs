//! Work of graphs: its site is the line where the program captured or added the node.

use crate::kit::rig::{Rig, rig};
use roctop::item::{Copy, Dispatch, Item, OperationId};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::Recording;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the program noted of a launch: its line, and the kernels by their number of groups: line, and whether nothing shows
/// the node.
type Noted = (u32, BTreeMap<u32, (u32, bool)>);

fn noted(text: &str) -> Vec<Noted> {
    let mut launches: Vec<Noted> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        match (words[0], launches.last_mut()) {
            ("launch", _) => launches.push((number(1), BTreeMap::new())),
            (kind, Some((_, nodes))) => drop(nodes.insert(number(1), (number(2), kind == "open"))),
            _ => panic!("{line}"),
        }
    }
    launches
}

#[test]
fn kernels_of_graphs_have_the_site_of_their_node() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("graph-sites");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["graph_sites", "3"]);
    let output = Rig::ended(command.env("APP_GRAPHS", place.join("noted")));
    assert!(output.status.success(), "{output:?}");
    let noted = noted(&std::fs::read_to_string(place.join("noted")).unwrap());

    let (mut store, mut launches, mut dispatches) = (Store::new(Options::default()), Vec::new(), HashMap::new());
    let mut names: HashMap<OperationId, String> = HashMap::new();
    let mut take = |item: &Item| {
        match item {
            Item::Operation(operation) => drop(names.insert(operation.id, operation.name.to_string())),
            Item::Api(call) if names[&call.operation] == "hipGraphLaunch" => launches.push(*call),
            Item::Dispatch(dispatch) => {
                let of_call: &mut Vec<_> = dispatches.entry(dispatch.correlation).or_default();
                of_call.push(*dispatch);
            }
            _ => {}
        }
        store.apply(item);
    };
    let opened = Recording::open(&recording).unwrap();
    opened.items(&mut |items| items.iter().for_each(&mut take)).unwrap();
    launches.sort_by_key(|call| call.span.begin);
    let snap = store.snapshot(Fresh::All);
    let mut sites = snap.sites.as_ref().clone();
    roctop::sites::name(&mut sites);
    let line = |process, site| {
        let path = sites.path_of(process, site)?;
        assert!(!sites.is_ambiguous(path));
        // Of the function `launch<LINE>`, `add<LINE>` or `play<LINE>`.
        let function = &sites.caller(path)?.1.function;
        let (_, rest) = function.split_once('<').unwrap_or_else(|| panic!("{function}"));
        rest.split('>').next()?.parse::<u32>().ok()
    };

    assert_eq!(launches.len(), noted.len());
    let (mut known, mut open, mut wrong) = (0, 0, Vec::new());
    for (number, (call, (launch_line, nodes))) in launches.iter().zip(&noted).enumerate() {
        let own = &dispatches[&call.correlation];
        let process = own[0].process;
        assert_eq!(line(process, call.site), Some(*launch_line), "launch {number}");
        // Fills and copies have other kernels.
        let own = own.iter().filter(|dispatch| !snap.names.is_internal(dispatch.kernel));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), nodes.len(), "launch {number}");
        for dispatch in own {
            let groups = dispatch.grid[0] / 64;
            let (node, is_open) = nodes[&groups];
            let expected = if is_open { *launch_line } else { node };
            let found = line(process, dispatch.site);
            if found != Some(expected) {
                wrong.push(format!("launch {number}: {groups} groups at {found:?}, not {expected}"));
            }
            *(if is_open { &mut open } else { &mut known }) += 1;
        }
    }
    println!(
        "graphs: {} launches, {known} kernels with a node, {open} without, {} wrong",
        launches.len(),
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} of {known}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
    assert!(known > 200 && open > 10);
}

/// What the program noted of a launch: its line, and its fills (true) and copies by their bytes: their line, or 0 where nothing
/// shows the node.
type NotedMoves = (u32, BTreeMap<(bool, u64), u32>);

fn noted_moves(text: &str) -> Vec<NotedMoves> {
    let mut launches: Vec<NotedMoves> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let line = words[words.len() - 1].parse().unwrap();
        if words[0] == "launch" {
            launches.push((line, BTreeMap::new()));
            continue;
        }
        let (_, nodes) = launches.last_mut().unwrap();
        let before = nodes.insert((words[0] == "fill", words[1].parse().unwrap()), line);
        assert_eq!(before, None, "each has its own number of bytes");
    }
    launches
}

/// Bytes of what kernels moved by the size of their grid: the more bytes, the more groups.
fn bytes_by_grid(grids: &BTreeSet<u64>, bytes: &BTreeSet<u64>) -> BTreeMap<u64, u64> {
    assert_eq!(grids.len(), bytes.len(), "{grids:?} {bytes:?}");
    grids.iter().copied().zip(bytes.iter().copied()).collect()
}

#[test]
fn fills_and_copies_of_graphs_have_the_site_of_their_node() {
    let Some(rig) = rig() else { return };
    check_moves(rig, false);
}

/// Later run-times copy pinned memory by kernels, and pageable memory by engines.
#[test]
fn copies_of_pageable_memory_in_graphs_have_that_site_too() {
    let Some(rig) = rig() else { return };
    check_moves(rig, true);
}

fn check_moves(rig: &Rig, is_pageable: bool) {
    let place = Rig::place(if is_pageable {
        "graph-moves-pageable"
    } else {
        "graph-moves"
    });
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(
        &place,
        &options,
        &["graph_moves", "3", if is_pageable { "1" } else { "0" }],
    );
    let output = Rig::ended(command.env("APP_GRAPHS", place.join("noted")));
    assert!(output.status.success(), "{output:?}");
    let noted = noted_moves(&std::fs::read_to_string(place.join("noted")).unwrap());

    let (mut store, mut launches) = (Store::new(Options::default()), Vec::new());
    let (mut dispatches, mut copies): (Vec<Dispatch>, Vec<Copy>) = (Vec::new(), Vec::new());
    let mut names: HashMap<OperationId, String> = HashMap::new();
    let mut take = |item: &Item| {
        match item {
            Item::Operation(operation) => drop(names.insert(operation.id, operation.name.to_string())),
            Item::Api(call) if names[&call.operation] == "hipGraphLaunch" => launches.push(*call),
            Item::Dispatch(dispatch) => dispatches.push(*dispatch),
            Item::Copy(copy) => copies.push(*copy),
            _ => {}
        }
        store.apply(item);
    };
    let opened = Recording::open(&recording).unwrap();
    opened.items(&mut |items| items.iter().for_each(&mut take)).unwrap();
    launches.sort_by_key(|call| call.span.begin);
    assert_eq!(launches.len(), noted.len());
    let snap = store.snapshot(Fresh::All);
    let mut sites = snap.sites.as_ref().clone();
    roctop::sites::name(&mut sites);
    let line = |process, site| {
        let path = sites.path_of(process, site)?;
        // Of the function `fill<LINE>`, `copy<LINE>`, `add_…<LINE>` or `play<LINE>`.
        let function = &sites.caller(path)?.1.function;
        let (_, rest) = function.split_once('<').unwrap_or_else(|| panic!("{function}"));
        rest.split('>').next()?.parse::<u32>().ok()
    };

    // By call: whether it is a fill, bytes, line.
    let mut found: HashMap<u64, Vec<(bool, u64, Option<u32>)>> = HashMap::new();
    for copy in &copies {
        let one = (false, copy.bytes, line(copy.process, copy.site));
        found.entry(copy.correlation).or_default().push(one);
    }
    let by_engines: BTreeSet<u64> = copies.iter().map(|copy| copy.bytes).collect();
    let is_fill = |dispatch: &&Dispatch| {
        let name = &snap.names.kernel(dispatch.kernel).unwrap().kernel.mangled;
        let rest = name.strip_prefix("__amd_rocclr_")?;
        (rest.starts_with("fill") || rest.starts_with("copy")).then(|| rest.starts_with("fill"))
    };
    for fills in [true, false] {
        let own: Vec<&Dispatch> = dispatches.iter().filter(|one| is_fill(one) == Some(fills)).collect();
        let grids = own.iter().map(|dispatch| u64::from(dispatch.grid[0])).collect();
        let all = noted.iter().flat_map(|(_, nodes)| nodes.keys());
        let bytes = all.filter(|(is_fill, bytes)| *is_fill == fills && (fills || !by_engines.contains(bytes)));
        let bytes_of = bytes_by_grid(&grids, &bytes.map(|(_, bytes)| *bytes).collect());
        for dispatch in own {
            let bytes = bytes_of[&u64::from(dispatch.grid[0])];
            let one = (fills, bytes, line(dispatch.process, dispatch.site));
            found.entry(dispatch.correlation).or_default().push(one);
        }
    }
    let (mut known, mut open, mut not_found, mut wrong) = (0, 0, 0, Vec::new());
    for (number, (call, (launch_line, nodes))) in launches.iter().zip(&noted).enumerate() {
        let moves = &found[&call.correlation];
        assert_eq!(moves.len(), nodes.len(), "launch {number}: {moves:?}");
        for (is_fill, bytes, found) in moves {
            let expected = nodes[&(*is_fill, *bytes)];
            match *found {
                Some(line) if line == expected => known += 1,
                Some(line) if line == *launch_line && expected == 0 => open += 1,
                // Remains on the stack may give a path several sites.
                Some(line) if line == *launch_line => not_found += 1,
                other => wrong.push(format!("launch {number}: {bytes} bytes at {other:?}, not {expected}")),
            }
        }
    }
    println!(
        "graphs: {} launches, {known} fills and copies with a node, {open} without, {not_found} not found, {} wrong, {} by engines",
        launches.len(),
        wrong.len(),
        copies.len()
    );
    assert!(wrong.is_empty(), "{:#?}", &wrong[..wrong.len().min(12)]);
    assert!(known > 150 && open > 30 && not_found * 5 < known);
    assert!(!is_pageable || copies.len() > 50, "{} by engines", copies.len());
}
