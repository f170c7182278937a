//! Kernels of graphs: their site is the line where the program captured or added the node.

use crate::kit::rig::{Rig, rig};
use roctop::item::{Item, OperationId};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::Recording;
use std::collections::{BTreeMap, HashMap};

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
