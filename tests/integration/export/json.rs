//! `results.json`: the keys of rocprofiler-sdk 1.0.0, numbers that agree with their tables, and the records of the CSV
//! files.

use crate::kit::demo::export;
use crate::kit::schema;
use crate::kit::table::Table;
use serde_json::Value;
use std::collections::BTreeSet;

fn document(place: &str, options: &[&str]) -> (Value, std::collections::BTreeMap<String, std::path::PathBuf>) {
    let files = export(place, &[&["--format", "json,csv"], options].concat());
    let text = std::fs::read_to_string(&files["results.json"]).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let processes = whole["rocprofiler-sdk-tool"].as_array().unwrap();
    assert_eq!((whole.as_object().unwrap().len(), processes.len()), (1, 1));
    (processes[0].clone(), files)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// How a record is called.
type Name<'a> = &'a dyn Fn(&Value) -> String;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Takes out the list of kernels that the demo had in flight at its end, which upstream's documents do not have.
fn take_in_flight(process: &mut Value) {
    let taken = process.as_object_mut().unwrap().remove("kernels_in_flight");
    for kernel in taken.iter().flat_map(|list| list.as_array().unwrap()) {
        let expected = words("correlation_id submit_timestamp agent_id queue_id kernel_id dispatch_id");
        assert_eq!(keys(kernel), expected);
    }
}

#[test]
fn the_document_has_the_keys_of_its_schema() {
    let (mut process, _) = document("json-keys", &["--stats"]);
    take_in_flight(&mut process);
    assert_eq!(
        keys(&process),
        words(
            "metadata agents counters strings code_objects kernel_symbols host_functions summary callback_records \
             buffer_records"
        )
    );
    let metadata = &process["metadata"];
    assert_eq!(keys(metadata), words("node pid init_time fini_time command config"));
    assert_eq!(
        keys(&metadata["node"]),
        words("id hash machine_id system_name hostname release version hardware_name domain_name")
    );
    assert!(number(&metadata["init_time"]) < number(&metadata["fini_time"]));
    assert_eq!(
        keys(&process["strings"]),
        words(
            "callback_records buffer_records marker_api correlation_id counters pc_sample_instructions \
             pc_sample_comments att_filenames code_object_snapshot_filenames"
        )
    );
    let records = &process["buffer_records"];
    assert_eq!(
        keys(records),
        words(
            "kernel_dispatch hip_api hsa_api marker_api rccl_api memory_copy memory_allocation scratch_memory \
             rocdecode_api rocjpeg_api pc_sample_host_trap pc_sample_stochastic hip_graph graph_launch"
        )
    );
    let first = |name: &str| records[name][0].clone();
    assert_eq!(
        keys(&first("kernel_dispatch")),
        words(
            "size kind operation thread_id correlation_id start_timestamp end_timestamp dispatch_info stream_id \
             graph_exec_id graph_node_id"
        )
    );
    assert_eq!(
        keys(&first("kernel_dispatch")["dispatch_info"]),
        words(
            "size agent_id queue_id kernel_id dispatch_id private_segment_size group_segment_size workgroup_size \
             grid_size"
        )
    );
    assert_eq!(
        keys(&first("hip_api")),
        words("size kind operation correlation_id start_timestamp end_timestamp thread_id args retval stream_id")
    );
    assert_eq!(
        keys(&first("memory_copy")),
        words(
            "size kind operation thread_id correlation_id start_timestamp end_timestamp dst_agent_id src_agent_id \
             bytes stream_id graph_exec_id graph_node_id"
        )
    );
    assert_eq!(
        keys(&first("marker_api")),
        words("size kind operation correlation_id start_timestamp end_timestamp thread_id")
    );
    assert_eq!(
        keys(&first("marker_api")["correlation_id"]),
        words("internal external ancestor")
    );
    let agents = process["agents"].as_array().unwrap();
    let handles: BTreeSet<u64> = agents.iter().map(|agent| number(&agent["id"]["handle"])).collect();
    assert!(handles.len() == agents.len() && !handles.contains(&0));
    for agent in agents {
        assert_eq!(keys(agent).len(), 61, "{:?}", keys(agent));
        assert_eq!(keys(&agent["capability"]).len(), 23);
        assert_eq!(keys(&agent["uuid"]["bytes"]).len(), 16);
    }
    let domains = process["summary"].as_array().unwrap().iter();
    let domains: BTreeSet<&str> = domains.map(|domain| domain["domain"].as_str().unwrap()).collect();
    assert_eq!(
        domains,
        words("HIP_API MARKER_API KERNEL_DISPATCH MEMORY_ALLOCATION MEMORY_COPY")
    );
}

#[test]
fn numbers_agree_with_their_tables() {
    let (process, _) = document("json-tables", &[]);
    let kinds = process["strings"]["buffer_records"].as_array().unwrap();
    let expected = [
        ("hip_api", "HIP_RUNTIME_API_EXT"),
        ("kernel_dispatch", "KERNEL_DISPATCH"),
        ("memory_copy", "MEMORY_COPY"),
        ("marker_api", "MARKER_CORE_RANGE_API"),
    ];
    for (list, kind) in expected {
        for record in process["buffer_records"][list].as_array().unwrap() {
            let known = &kinds[number(&record["kind"]) as usize];
            assert_eq!(known["kind"], kind);
            let operations = known["operations"].as_array().unwrap();
            assert!((number(&record["operation"]) as usize) < operations.len());
            assert!(number(&record["size"]) > 0);
        }
    }
    for (list, id) in [("code_objects", "code_object_id"), ("kernel_symbols", "kernel_id")] {
        for (place, object) in process[list].as_array().unwrap().iter().enumerate() {
            assert_eq!(number(&object[id]), place as u64, "{list}");
        }
    }
    let objects = process["code_objects"].as_array().unwrap().len() as u64;
    for symbol in process["kernel_symbols"].as_array().unwrap() {
        assert!(number(&symbol["code_object_id"]) < objects);
    }
    assert_eq!(process["host_functions"][0]["host_function_id"], 0);
}

#[test]
fn the_records_are_those_of_the_tables() {
    let (process, files) = document("json-csv", &[]);
    let strings = &process["strings"];
    let operation = |record: &Value| {
        let kind = &strings["buffer_records"][number(&record["kind"]) as usize];
        let name = &kind["operations"][number(&record["operation"]) as usize];
        name.as_str().unwrap().to_owned()
    };
    let kernel = |record: &Value| {
        let id = number(&record["dispatch_info"]["kernel_id"]) as usize;
        process["kernel_symbols"][id]["formatted_kernel_name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let messages = strings["marker_api"].as_array().unwrap();
    let message = |record: &Value| {
        let id = &record["correlation_id"]["internal"];
        let found = messages.iter().find(|pair| pair["key"] == *id).unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    let lists: [(&str, &str, &str, Name<'_>); 4] = [
        ("kernel_dispatch", "kernel_trace.csv", "Kernel_Name", &kernel),
        ("hip_api", "hip_api_trace.csv", "Function", &operation),
        ("memory_copy", "memory_copy_trace.csv", "Direction", &operation),
        ("marker_api", "marker_api_trace.csv", "Function", &message),
    ];
    for (list, file, column, name) in lists {
        let table = Table::read(&files[file]);
        let records = process["buffer_records"][list].as_array().unwrap();
        assert_eq!(records.len(), table.rows.len(), "{list}");
        let (ids, begins) = (table.numbers("Correlation_Id"), table.numbers("Start_Timestamp"));
        let (ends, names) = (table.numbers("End_Timestamp"), table.column(column));
        for (at, record) in records.iter().enumerate() {
            let found = [
                number(&record["correlation_id"]["internal"]),
                number(&record["start_timestamp"]),
                number(&record["end_timestamp"]),
            ];
            assert_eq!(found, [ids[at], begins[at], ends[at]], "{list} {at}");
            assert_eq!(name(record), names[at], "{list} {at}");
        }
    }
}

#[test]
fn renamed_kernels_point_to_their_ranges() {
    let (process, _) = document("json-rename", &["--kernel-rename"]);
    let names = process["strings"]["correlation_id"]["external"].as_array().unwrap();
    let known: BTreeSet<u64> = names.iter().map(|pair| number(&pair["key"])).collect();
    let dispatches = process["buffer_records"]["kernel_dispatch"].as_array().unwrap();
    let externals = dispatches
        .iter()
        .map(|record| number(&record["correlation_id"]["external"]));
    assert!(externals.clone().all(|id| id == 0 || known.contains(&id)));
    assert!(externals.filter(|id| *id > 0).count() * 2 > dispatches.len());
}

#[test]
fn documents_fit_the_schema_of_their_layout() {
    for (layout, outline) in [("new", schema::NEW), ("seed", schema::SEED)] {
        let files = export(&format!("schema-{layout}"), &["--format", "json", "--layout", layout]);
        let text = std::fs::read_to_string(&files["results.json"]).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        take_in_flight(&mut document["rocprofiler-sdk-tool"][0]);
        assert_eq!(schema::faults(outline, &document), Vec::<String>::new(), "{layout}");
        // And a schema that finds nothing would be none.
        document["rocprofiler-sdk-tool"][0]["metadata"]["pid"] = "no number".into();
        assert_eq!(schema::faults(outline, &document).len(), 1);
    }
}

#[test]
fn calls_tell_what_they_returned_and_the_stream_of_their_work() {
    let (process, _) = document("json-calls", &[]);
    let records = &process["buffer_records"];
    let calls = records["hip_api"].as_array().unwrap();
    for call in calls {
        assert_eq!(keys(&call["retval"]), words("uint64_t_retval"));
        number(&call["retval"]["uint64_t_retval"]);
    }
    let stream = |record: &Value| number(&record["stream_id"]["handle"]);
    let id = |record: &Value| number(&record["correlation_id"]["internal"]);
    let streams: std::collections::BTreeMap<u64, u64> = calls.iter().map(|call| (id(call), stream(call))).collect();
    let dispatches = records["kernel_dispatch"].as_array().unwrap();
    let on_streams = dispatches.iter().filter(|dispatch| stream(dispatch) != 0);
    let of_calls: Vec<_> = on_streams
        .map(|dispatch| (stream(dispatch), streams.get(&id(dispatch))))
        .collect();
    assert!(
        !of_calls.is_empty() && of_calls.iter().all(|(own, call)| *call == Some(own)),
        "{of_calls:?}"
    );
}

#[test]
fn kernel_symbols_keep_the_ending_of_their_symbols() {
    let (process, _) = document("json-symbols", &[]);
    let symbols = process["kernel_symbols"].as_array().unwrap();
    assert!(symbols.len() > 1);
    for symbol in &symbols[1..] {
        let name = |key: &str| symbol[key].as_str().unwrap();
        if name("kernel_name").starts_with("_Z") {
            assert!(name("demangled_kernel_name").ends_with(" [clone .kd]"), "{symbol}");
            assert!(!name("truncated_kernel_name").contains(".kd"), "{symbol}");
        } else {
            assert_eq!(name("demangled_kernel_name"), name("kernel_name"));
            assert_eq!(name("truncated_kernel_name"), name("kernel_name"));
        }
        assert!(!name("formatted_kernel_name").contains(".kd"), "{symbol}");
    }
}
