//! Tables and views of the rocpd schema, version 3. Names and columns equal those of rocprofiler-sdk 1.0.0, so that its
//! readers work. Launches of graphs, and the graphs of kernels and copies, are as in 3.0.2.

/// Version of the schema.
pub(super) const VERSION: &str = "3";

/// Tables with columns: `i` integer, `r` real, `t` text, `j` JSON object; upper case means NOT NULL. Every table has an
/// id, and all except the first have the run's guid.
pub(super) const TABLES: &[(&str, &str)] = &[
    ("metadata", "tag:T value:T"),
    ("string", "string:T"),
    (
        "info_node",
        "hash:I machine_id:T system_name:t hostname:t release:t version:t hardware_name:t domain_name:t",
    ),
    (
        "info_process",
        "nid:I ppid:i pid:I init:i fini:i start:i end:i command:t environment:j extdata:j",
    ),
    ("info_thread", "nid:I ppid:i pid:I tid:I name:t start:i end:i extdata:j"),
    (
        "info_agent",
        "nid:I pid:I type:t absolute_index:i logical_index:i type_index:i uuid:i name:t model_name:t vendor_name:t \
product_name:t user_name:t extdata:j",
    ),
    ("info_queue", "nid:I pid:I name:t extdata:j"),
    ("info_stream", "nid:I pid:I name:t extdata:j"),
    (
        "info_pmc",
        "nid:I pid:I agent_id:i target_arch:t event_code:i instance_id:i name:T symbol:T description:t \
long_description:t component:t units:t value_type:t block:t expression:t is_constant:i is_derived:i extdata:j",
    ),
    (
        "info_code_object",
        "nid:I pid:I agent_id:i uri:t load_base:i load_size:i load_delta:i storage_type:t extdata:j",
    ),
    (
        "info_kernel_symbol",
        "nid:I pid:I code_object_id:I kernel_name:t display_name:t kernel_object:i kernarg_segment_size:i \
kernarg_segment_alignment:i group_segment_size:i private_segment_size:i sgpr_count:i arch_vgpr_count:i \
accum_vgpr_count:i extdata:j",
    ),
    ("track", "nid:I pid:i tid:i name_id:i extdata:j"),
    (
        "event",
        "category_id:i stack_id:i parent_stack_id:i correlation_id:i call_stack:j line_info:j extdata:j",
    ),
    ("arg", "event_id:I position:I type:T name:T value:t extdata:j"),
    ("pmc_event", "event_id:i pmc_id:I value:r extdata:j"),
    (
        "region",
        "nid:I pid:I tid:I start:I end:I name_id:I event_id:i extdata:j",
    ),
    ("sample", "track_id:I timestamp:I event_id:i extdata:j"),
    (
        "kernel_dispatch",
        "nid:I pid:I tid:i agent_id:I kernel_id:I dispatch_id:I queue_id:I stream_id:I \
graph_exec_id:i graph_node_id:i start:I end:I private_segment_size:i group_segment_size:i workgroup_size_x:I workgroup_size_y:I workgroup_size_z:I grid_size_x:I \
grid_size_y:I grid_size_z:I region_name_id:i event_id:i extdata:j",
    ),
    (
        "memory_copy",
        "nid:I pid:I tid:i start:I end:I name_id:I dst_agent_id:i dst_address:i src_agent_id:i src_address:i size:I \
queue_id:i stream_id:i graph_exec_id:i graph_node_id:i region_name_id:i event_id:i extdata:j",
    ),
    (
        "graph_launch",
        "nid:I pid:I tid:i agent_id:i queue_id:I start:I end:I graph_exec_id:I kernel_dispatch_count:I event_id:i extdata:j",
    ),
    (
        "memory_allocate",
        "nid:I pid:I tid:i agent_id:i type:t level:t start:I end:I address:i size:I queue_id:i stream_id:i event_id:i \
extdata:j",
    ),
];

/// Statements that create a table and the view with its plain name. `suffix` is `_` and the run's uuid.
pub(super) fn table(name: &str, columns: &str, suffix: &str, guid: &str) -> String {
    let columns = columns.split_whitespace().filter_map(|column| column.split_once(':'));
    let mut parts = vec!["id INTEGER PRIMARY KEY NOT NULL".to_owned()];
    if name != "metadata" {
        parts.push(format!("guid TEXT NOT NULL DEFAULT '{guid}'"));
    }
    parts.extend(columns.map(|(column, kind)| {
        let kind = match kind {
            "i" => "INTEGER",
            "I" => "INTEGER NOT NULL",
            "r" => "REAL",
            "T" => "TEXT NOT NULL",
            "j" => "TEXT NOT NULL DEFAULT '{}'",
            _ => "TEXT",
        };
        format!("\"{column}\" {kind}")
    }));
    let parts = parts.join(", ");
    format!(
        "CREATE TABLE \"rocpd_{name}{suffix}\" ({parts});\nCREATE VIEW rocpd_{name} AS SELECT * FROM \"rocpd_{name}{suffix}\";\n"
    )
}

/// Views by name: columns and tables. `E` is always the event, `P` the process, `T` the thread.
pub(super) const VIEWS: &[(&str, &str)] = &[
    (
        "code_objects",
        "C.id, C.guid, C.nid, P.pid, A.absolute_index AS agent_abs_index, C.uri, C.load_base, C.load_size, C.load_delta, \
C.storage_type AS storage_type_str, json_extract(C.extdata, '$.size') AS code_object_size, \
json_extract(C.extdata, '$.storage_type') AS storage_type, json_extract(C.extdata, '$.memory_base') AS memory_base, \
json_extract(C.extdata, '$.memory_size') AS memory_size FROM rocpd_info_code_object C \
JOIN rocpd_info_agent A ON A.id = C.agent_id JOIN rocpd_info_process P ON P.id = C.pid",
    ),
    (
        "kernel_symbols",
        "K.id, K.guid, K.nid, P.pid, K.code_object_id, K.kernel_name, K.display_name, K.kernel_object, \
K.kernarg_segment_size, K.kernarg_segment_alignment, K.group_segment_size, K.private_segment_size, K.sgpr_count, \
K.arch_vgpr_count, K.accum_vgpr_count, json_extract(K.extdata, '$.size') AS kernel_symbol_size, \
json_extract(K.extdata, '$.kernel_id') AS kernel_id, \
json_extract(K.extdata, '$.kernel_code_entry_byte_offset') AS kernel_code_entry_byte_offset, \
json_extract(K.extdata, '$.formatted_kernel_name') AS formatted_kernel_name, \
json_extract(K.extdata, '$.demangled_kernel_name') AS demangled_kernel_name, \
json_extract(K.extdata, '$.truncated_kernel_name') AS truncated_kernel_name, \
json_extract(K.extdata, '$.kernel_address.handle') AS kernel_address \
FROM rocpd_info_kernel_symbol K JOIN rocpd_info_process P ON P.id = K.pid",
    ),
    (
        "processes",
        "N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release, N.version AS system_version, \
P.guid, P.ppid, P.pid, P.init, P.start, P.\"end\", P.fini, P.command \
FROM rocpd_info_process P JOIN rocpd_info_node N ON N.id = P.nid",
    ),
    (
        "threads",
        "N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release, N.version AS system_version, \
P.guid, P.ppid, P.pid, T.tid, T.start, T.\"end\", T.name FROM rocpd_info_thread T \
JOIN rocpd_info_process P ON P.id = T.pid JOIN rocpd_info_node N ON N.id = T.nid",
    ),
    (
        "regions",
        "R.id, R.guid, C.string AS category, S.string AS name, R.nid, P.pid, T.tid, R.start, R.\"end\", \
R.\"end\" - R.start AS duration, R.event_id, E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id, E.extdata, \
E.call_stack, E.line_info FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id \
JOIN rocpd_string C ON C.id = E.category_id JOIN rocpd_string S ON S.id = R.name_id \
JOIN rocpd_info_process P ON P.id = R.pid JOIN rocpd_info_thread T ON T.id = R.tid",
    ),
    (
        "region_args",
        "R.id, R.guid, R.nid, P.pid, A.type, A.name, A.value FROM rocpd_region R \
JOIN rocpd_arg A ON A.event_id = R.event_id JOIN rocpd_info_process P ON P.id = R.pid",
    ),
    (
        "samples",
        "R.id, R.guid, C.string AS category, S.string AS name, K.nid, P.pid, T.tid, R.timestamp, R.event_id, E.stack_id, \
E.parent_stack_id, E.correlation_id AS corr_id, E.extdata, E.call_stack, E.line_info FROM rocpd_sample R \
JOIN rocpd_track K ON K.id = R.track_id JOIN rocpd_event E ON E.id = R.event_id \
JOIN rocpd_string C ON C.id = E.category_id JOIN rocpd_string S ON S.id = K.name_id \
JOIN rocpd_info_process P ON P.id = K.pid JOIN rocpd_info_thread T ON T.id = K.tid",
    ),
    (
        "sample_regions",
        "id, guid, category, name, nid, pid, tid, timestamp AS start, timestamp AS \"END\", 0 AS duration, event_id, \
stack_id, parent_stack_id, corr_id, extdata, call_stack, line_info FROM samples",
    ),
    (
        "regions_and_samples",
        "* FROM regions UNION ALL SELECT * FROM sample_regions",
    ),
    (
        "kernels",
        "K.id, K.guid, T.tid, C.string AS category, R.string AS region, S.display_name AS name, K.nid, P.pid, \
A.absolute_index AS agent_abs_index, A.logical_index AS agent_log_index, A.type_index AS agent_type_index, \
A.type AS agent_type, S.code_object_id, K.kernel_id, K.dispatch_id, K.stream_id, K.queue_id, Q.name AS queue, \
M.name AS stream, K.start, K.\"end\", K.\"end\" - K.start AS duration, K.grid_size_x AS grid_x, K.grid_size_y AS grid_y, \
K.grid_size_z AS grid_z, K.workgroup_size_x AS workgroup_x, K.workgroup_size_y AS workgroup_y, \
K.workgroup_size_z AS workgroup_z, K.group_segment_size AS lds_size, K.private_segment_size AS scratch_size, \
S.arch_vgpr_count AS vgpr_count, S.accum_vgpr_count, S.sgpr_count, S.group_segment_size AS static_lds_size, \
S.private_segment_size AS static_scratch_size, E.stack_id, E.parent_stack_id, \
E.correlation_id AS corr_id FROM rocpd_kernel_dispatch K JOIN rocpd_event E ON E.id = K.event_id \
JOIN rocpd_string C ON C.id = E.category_id JOIN rocpd_string R ON R.id = K.region_name_id \
JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id JOIN rocpd_info_agent A ON A.id = K.agent_id \
LEFT JOIN rocpd_info_queue Q ON Q.id = K.queue_id LEFT JOIN rocpd_info_stream M ON M.id = K.stream_id \
JOIN rocpd_info_process P ON P.id = K.pid JOIN rocpd_info_thread T ON T.id = K.tid",
    ),
    (
        "pmc_info",
        "I.id, I.guid, I.nid, P.pid, A.absolute_index AS agent_abs_index, I.is_constant, I.is_derived, I.name, \
I.description, I.block, I.expression FROM rocpd_info_pmc I JOIN rocpd_info_agent A ON A.id = I.agent_id \
JOIN rocpd_info_process P ON P.id = I.pid",
    ),
    (
        "pmc_events",
        "V.id, V.guid, V.pmc_id, V.event_id, K.category, K.name, K.nid, K.pid, K.dispatch_id, K.start, K.\"end\", \
K.duration, I.name AS counter_name, V.value AS counter_value FROM rocpd_pmc_event V \
JOIN rocpd_info_pmc I ON I.id = V.pmc_id JOIN rocpd_kernel_dispatch D ON D.event_id = V.event_id \
JOIN kernels K ON K.id = D.id",
    ),
    (
        "events_args",
        "E.id AS event_id, C.string AS category, E.stack_id, E.parent_stack_id, E.correlation_id, \
A.position AS arg_position, A.type AS arg_type, A.name AS arg_name, A.value AS arg_value, E.call_stack, E.line_info, \
A.extdata FROM rocpd_event E JOIN rocpd_arg A ON A.event_id = E.id JOIN rocpd_string C ON C.id = E.category_id",
    ),
    (
        "stream_args",
        "A.id AS argument_id, A.event_id, A.position AS arg_position, A.type AS arg_type, A.value AS arg_value, \
json_extract(A.extdata, '$.stream_id') AS stream_id, S.nid, P.pid, S.name AS stream_name, S.extdata \
FROM rocpd_arg A JOIN rocpd_info_stream S ON S.id = json_extract(A.extdata, '$.stream_id') \
JOIN rocpd_info_process P ON P.id = S.pid WHERE A.name = 'stream'",
    ),
    (
        "memory_copies",
        "M.id, M.guid, C.string AS category, M.nid, P.pid, T.tid, M.start, M.\"end\", M.\"end\" - M.start AS duration, \
S.string AS name, R.string AS region_name, M.stream_id, M.queue_id, X.name AS stream_name, Q.name AS queue_name, M.size, \
D.name AS dst_device, D.absolute_index AS dst_agent_abs_index, D.logical_index AS dst_agent_log_index, \
D.type_index AS dst_agent_type_index, D.type AS dst_agent_type, M.dst_address, O.name AS src_device, \
O.absolute_index AS src_agent_abs_index, O.logical_index AS src_agent_log_index, \
O.type_index AS src_agent_type_index, O.type AS src_agent_type, M.src_address, E.stack_id, E.parent_stack_id, \
E.correlation_id AS corr_id FROM rocpd_memory_copy M JOIN rocpd_event E ON E.id = M.event_id \
JOIN rocpd_string C ON C.id = E.category_id JOIN rocpd_string S ON S.id = M.name_id \
LEFT JOIN rocpd_string R ON R.id = M.region_name_id JOIN rocpd_info_agent D ON D.id = M.dst_agent_id \
JOIN rocpd_info_agent O ON O.id = M.src_agent_id LEFT JOIN rocpd_info_queue Q ON Q.id = M.queue_id \
LEFT JOIN rocpd_info_stream X ON X.id = M.stream_id JOIN rocpd_info_process P ON P.id = M.pid \
JOIN rocpd_info_thread T ON T.id = M.tid",
    ),
    (
        "memory_allocations",
        "M.id, M.guid, C.string AS category, M.nid, P.pid, T.tid, M.start, M.\"end\", M.\"end\" - M.start AS duration, \
M.type, M.level, A.name AS agent_name, A.absolute_index AS agent_abs_index, A.logical_index AS agent_log_index, \
A.type_index AS agent_type_index, A.type AS agent_type, M.address, M.size, M.queue_id, Q.name AS queue_name, \
M.stream_id, X.name AS stream_name, E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id \
FROM rocpd_memory_allocate M JOIN rocpd_event E ON E.id = M.event_id JOIN rocpd_string C ON C.id = E.category_id \
LEFT JOIN rocpd_info_agent A ON A.id = M.agent_id LEFT JOIN rocpd_info_queue Q ON Q.id = M.queue_id \
LEFT JOIN rocpd_info_stream X ON X.id = M.stream_id JOIN rocpd_info_process P ON P.id = M.pid \
JOIN rocpd_info_thread T ON T.id = M.tid",
    ),
    (
        "scratch_memory",
        "M.id, M.guid, M.nid, P.pid, M.type AS operation, A.name AS agent_name, A.absolute_index AS agent_abs_index, \
A.logical_index AS agent_log_index, A.type_index AS agent_type_index, A.type AS agent_type, M.queue_id, T.tid, \
json_extract(M.extdata, '$.flags') AS alloc_flags, M.start, M.\"end\", M.\"end\" - M.start AS duration, M.size, M.address, \
E.correlation_id, E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id, C.string AS category, \
E.extdata AS event_extdata FROM rocpd_memory_allocate M JOIN rocpd_event E ON E.id = M.event_id \
JOIN rocpd_string C ON C.id = E.category_id LEFT JOIN rocpd_info_agent A ON A.id = M.agent_id \
JOIN rocpd_info_process P ON P.id = M.pid JOIN rocpd_info_thread T ON T.id = M.tid \
WHERE M.level = 'SCRATCH' ORDER BY M.start",
    ),
    (
        "counters_collection",
        "MIN(V.id) AS id, V.guid, K.dispatch_id, K.kernel_id, V.event_id, K.corr_id AS correlation_id, K.stack_id, \
K.parent_stack_id, K.pid, K.tid, D.agent_id, K.agent_abs_index, K.agent_log_index, K.agent_type_index, K.agent_type, \
K.queue_id, K.grid_x AS grid_size_x, K.grid_y AS grid_size_y, K.grid_z AS grid_size_z, \
K.grid_x * K.grid_y * K.grid_z AS grid_size, K.name AS kernel_name, K.region AS kernel_region, \
K.workgroup_x AS workgroup_size_x, K.workgroup_y AS workgroup_size_y, K.workgroup_z AS workgroup_size_z, \
K.workgroup_x * K.workgroup_y * K.workgroup_z AS workgroup_size, K.lds_size AS lds_block_size, K.scratch_size, \
K.vgpr_count, K.accum_vgpr_count, K.sgpr_count, I.name AS counter_name, I.symbol AS counter_symbol, I.component, \
I.description, I.block, I.expression, I.value_type, I.id AS counter_id, SUM(V.value) AS value, K.start, K.\"end\", \
I.is_constant, I.is_derived, K.duration, K.category, K.nid, '{}' AS extdata, K.code_object_id FROM rocpd_pmc_event V \
JOIN rocpd_info_pmc I ON I.id = V.pmc_id JOIN rocpd_kernel_dispatch D ON D.event_id = V.event_id \
JOIN kernels K ON K.id = D.id GROUP BY V.guid, K.dispatch_id, I.name, D.agent_id",
    ),
    // Times are in µs in these two, as upstream, and in ns in the third.
    (
        "top_kernels",
        "S.display_name AS name, COUNT(*) AS total_calls, SUM(K.\"end\" - K.start) / 1000.0 AS total_duration, \
SUM(K.\"end\" - K.start) / COUNT(*) / 1000.0 AS average, \
SUM(K.\"end\" - K.start) * 100.0 / (SELECT SUM(\"end\" - start) FROM rocpd_kernel_dispatch) AS percentage \
FROM rocpd_kernel_dispatch K JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id GROUP BY S.display_name \
ORDER BY total_duration DESC",
    ),
    (
        "top",
        "name, COUNT(*) AS total_calls, SUM(duration) / 1000.0 AS total_duration, \
SUM(duration) / COUNT(*) / 1000.0 AS average, SUM(duration) * 100.0 / (SELECT SUM(duration) FROM \
(SELECT \"end\" - start AS duration FROM rocpd_kernel_dispatch UNION ALL SELECT \"end\" - start FROM rocpd_memory_copy \
UNION ALL SELECT \"end\" - start FROM rocpd_region)) AS percentage FROM \
(SELECT S.display_name AS name, K.\"end\" - K.start AS duration FROM rocpd_kernel_dispatch K \
JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id \
UNION ALL SELECT N.string, M.\"end\" - M.start FROM rocpd_memory_copy M JOIN rocpd_string N ON N.id = M.name_id \
UNION ALL SELECT N.string, R.\"end\" - R.start FROM rocpd_region R JOIN rocpd_string N ON N.id = R.name_id) \
GROUP BY name ORDER BY total_duration DESC",
    ),
    (
        "busy",
        "W.agent_id, A.type, W.GpuTime, X.WallTime, W.GpuTime * 1.0 / X.WallTime AS Busy FROM \
(SELECT agent_id, SUM(\"end\" - start) AS GpuTime FROM (SELECT agent_id, start, \"end\" FROM rocpd_kernel_dispatch \
UNION ALL SELECT dst_agent_id, start, \"end\" FROM rocpd_memory_copy) GROUP BY agent_id) W \
CROSS JOIN (SELECT MAX(\"end\") - MIN(start) AS WallTime FROM (SELECT start, \"end\" FROM rocpd_kernel_dispatch \
UNION ALL SELECT start, \"end\" FROM rocpd_memory_copy)) X JOIN rocpd_info_agent A ON A.id = W.agent_id",
    ),
];
