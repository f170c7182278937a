use super::*;
use crate::tally::Ordered;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::PathBuf;

/// A directory for the files of a test.
fn place(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("roctop-foreign-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    place
}

/// Kernel `number` of a loop: its name, and its begin in µs.
fn kernel(number: u64) -> (String, u64) {
    (format!("gemm<{}>(float*)", number % 3), 1000 + number * 100)
}

/// A Kineto trace with as many launches; `keeps` decides which have their kernel.
fn kineto(launches: u64, keeps: impl Fn(u64) -> bool, shift: impl Fn(u64) -> u64) -> String {
    let mut events = Vec::new();
    for number in 0..launches {
        let (name, begin) = kernel(number);
        let id = number + 1;
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","ts":{},"dur":5,"args":{{"correlation":{id}}}}}"#,
            begin - 50
        ));
        events.push(format!(r#"{{"ph":"s","cat":"ac2g","id":{id},"ts":{begin}}}"#));
        if keeps(number) {
            let ts = begin + shift(number);
            events.push(format!(
                r#"{{"ph":"X","cat":"kernel","name":"{name}","ts":{ts}.25,"dur":50.5,"args":{{"correlation":{id},"stream":1}}}}"#
            ));
            events.push(format!(r#"{{"ph":"f","cat":"ac2g","id":{id},"ts":{ts}}}"#));
        }
    }
    format!(
        "{{\"schemaVersion\":1,\"traceEvents\":[{}],\"more\":[1,{{}}]}}",
        events.join(",\n")
    )
}

fn reference(kernels: u64) -> Reference {
    let mut reference = Reference::default();
    for number in 0..kernels {
        let (name, begin) = kernel(number);
        reference.kernel(&name, begin * 1000 + 7_000_000_000);
    }
    reference.kernel("__amd_rocclr_copyBuffer", 8_000_000_000);
    reference
}

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = place(name).join("trace");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// What is found in a file.
fn found(name: &str, bytes: &[u8], reference: Option<&Reference>) -> Vec<(&'static str, u64)> {
    let trace = Trace::read(&written(name, bytes)).unwrap();
    let report = trace.report(reference);
    report.findings().iter().map(|one| (one.what, one.count)).collect()
}

#[test]
fn a_complete_trace_has_no_finding() {
    let text = kineto(500, |_| true, |_| 0);
    assert_eq!(found("complete", text.as_bytes(), None), []);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let path = written("packed", &packed.finish().unwrap());
    let report = Trace::read(&path).unwrap().report(Some(&reference(500)));
    assert!(report.is_complete(), "{:?}", report.findings());
    let json = report.json();
    assert_eq!(json["kernels"], 500);
    assert_eq!(json["clock_offset_ns"], -7_000_000_000i64 + 250);
}

#[test]
fn deleted_kernels_are_counted() {
    let some = kineto(500, |number| number % 10 != 3, |_| 0);
    assert_eq!(
        found("some", some.as_bytes(), None),
        [("launches_without_kernel", 50), ("open_arrows", 50)]
    );
    assert_eq!(
        found("against", some.as_bytes(), Some(&reference(500))),
        [
            ("launches_without_kernel", 50),
            ("open_arrows", 50),
            ("missing_kernels", 50)
        ]
    );
    assert_eq!(
        found("more", kineto(500, |_| true, |_| 0).as_bytes(), Some(&reference(490))),
        [("added_kernels", 10)]
    );
    let hole = kineto(500, |number| !(100..300).contains(&number), |_| 0);
    let kinds: Vec<&str> = found("hole", hole.as_bytes(), None).iter().map(|one| one.0).collect();
    assert_eq!(kinds, ["launches_without_kernel", "open_arrows", "gap"]);
    let none = kineto(500, |_| false, |_| 0);
    assert_eq!(
        found("none", none.as_bytes(), None)[0],
        ("launches_without_kernel", 500)
    );
}

#[test]
fn captured_launches_need_no_kernel() {
    // Launches 100 to 199 of thread 1 are captured; thread 2 goes on.
    let call = |name: &str, thread: u64, at: u64, id: u64| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"{name}","tid":{thread},"ts":{at},"dur":1,"args":{{"correlation":{id}}}}}"#
        )
    };
    let kernel = |at: u64, id: u64| {
        format!(r#"{{"ph":"X","cat":"kernel","name":"gemm","ts":{at},"dur":5,"args":{{"correlation":{id}}}}}"#)
    };
    let text = |lost: u64| {
        let mut events = vec![
            call("hipStreamBeginCapture", 1, 995, 9000),
            call("hipStreamEndCapture", 1, 1995, 9001),
        ];
        for id in 1..=300 {
            events.push(call("hipLaunchKernel", 1, id * 10, id));
            events.push(call("hipLaunchKernel", 2, id * 10 + 1, id + 1000));
            if !(100..200).contains(&id) {
                events.push(kernel(id * 10 + 2, id));
            }
            if id != lost {
                events.push(kernel(id * 10 + 3, id + 1000));
            }
        }
        format!("[{}]", events.join(","))
    };
    assert_eq!(found("captured", text(0).as_bytes(), None), []);
    assert_eq!(
        found("captured-lost", text(50).as_bytes(), None),
        [("launches_without_kernel", 1)]
    );
    // A capture may take launches of other threads too: these are not judged.
    let path = written("captured-unsure", text(150).as_bytes());
    let report = Trace::read(&path).unwrap().report(None);
    assert_eq!(report.findings(), []);
    let notes = report.json()["notes"].to_string();
    assert!(notes.contains("1 launches without a kernel are not judged"), "{notes}");
}

#[test]
fn kernels_of_another_process_replace_no_missing_one() {
    // Two processes with equal ids; of the second, no kernel is there.
    let call = |pid: u64, id: u64| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":{pid},"tid":{pid},"ts":{id},"dur":1,"args":{{"correlation":{id}}}}}"#
        )
    };
    let kernel = |id: u64| {
        format!(r#"{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"ts":{id},"dur":5,"args":{{"correlation":{id}}}}}"#)
    };
    let text = |processes: u64| {
        let calls = (1..=5).flat_map(|id| [call(100, id), call(200, id)]);
        let kernels = (0..processes).flat_map(|_| (1..=5).map(kernel));
        format!("[{}]", calls.chain(kernels).collect::<Vec<_>>().join(","))
    };
    assert_eq!(found("processes", text(2).as_bytes(), None), []);
    assert_eq!(
        found("processes-lost", text(1).as_bytes(), None),
        [("launches_without_kernel", 5)]
    );
    let calls = "\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
                 \"hipLaunchKernel\",1,1,1,100,200\n\"hipLaunchKernel\",2,2,1,100,200\n";
    for (kernels, expected) in [
        ("\"gemm\",1,1,1,300,400\n\"gemm\",2,1,1,300,400\n", &[][..]),
        (
            "\"gemm\",1,1,1,300,400\n\"gemm\",1,2,2,300,400\n",
            &[("launches_without_kernel", 1)],
        ),
    ] {
        let head =
            "\"Kernel_Name\",\"Process_Id\",\"Dispatch_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
        let place = place("processes-csv");
        std::fs::write(place.join("kernel_trace.csv"), format!("{head}{kernels}")).unwrap();
        std::fs::write(place.join("hip_api_trace.csv"), calls).unwrap();
        let report = Trace::read(&place.join("kernel_trace.csv")).unwrap().report(None);
        let kinds: Vec<(&str, u64)> = report.findings().iter().map(|one| (one.what, one.count)).collect();
        assert_eq!(kinds, expected);
    }
}

#[test]
fn processes_of_rocprofv3_json_have_their_own_numbers() {
    let process = |name: &str, kernels: &[u64]| {
        let record = |more: &str, number: u64| {
            format!(
                r#"{{{more}"correlation_id":{{"internal":{number}}},"start_timestamp":{number}000,"end_timestamp":{number}500}}"#
            )
        };
        let calls: Vec<String> = (1..=3)
            .map(|number| record(r#""kind":0,"operation":0,"#, number))
            .collect();
        let dispatch = |number: &u64| {
            record(
                &format!(r#""dispatch_info":{{"kernel_id":5,"dispatch_id":{number}}},"#),
                *number,
            )
        };
        let kernels: Vec<String> = kernels.iter().map(dispatch).collect();
        format!(
            r#"{{"strings":{{"buffer_records":[{{"operations":["hipLaunchKernel"]}}]}},"kernel_symbols":[{{"kernel_id":5,"kernel_name":"{name}"}}],"buffer_records":{{"hip_api":[{}],"kernel_dispatch":[{}]}}}}"#,
            calls.join(","),
            kernels.join(",")
        )
    };
    let text = |second: &[u64]| {
        let both = [process("first", &[1, 2, 3]), process("second", second)];
        format!(r#"{{"rocprofiler-sdk-tool":[{}]}}"#, both.join(","))
    };
    let trace = Trace::read(&written("tools", text(&[1, 2, 3]).as_bytes())).unwrap();
    assert_eq!(trace.report(None).findings(), []);
    assert_eq!(
        trace.tally.by_name().into_iter().collect::<Vec<_>>(),
        [("first", 3), ("second", 3)]
    );
    assert_eq!(
        found("tools-lost", text(&[3]).as_bytes(), None),
        [("launches_without_kernel", 2), ("missing_dispatches", 2)]
    );
}

#[test]
fn a_long_kernel_leaves_no_gap() {
    // It runs for a minute, while launches go on. The file does not say which kernel belongs to which launch.
    let mut tally = Tally::default();
    let name = tally.name("long");
    tally.kernel(name, [0, 60_000_000_000], Some(0), None);
    for number in 0..600 {
        tally.call("hipLaunchKernel", (0, 1), number * 100_000_000, None);
    }
    assert_eq!(tally.gaps(), []);
    for number in 700..800 {
        tally.call("hipLaunchKernel", (0, 1), number * 100_000_000, None);
    }
    assert_eq!(tally.gaps()[0].launches, 100);
}

#[test]
fn shifted_and_moved_kernels_are_counted() {
    let shifted = kineto(500, |_| true, |number| if number >= 480 { 5000 } else { 0 });
    assert_eq!(
        found("shifted", shifted.as_bytes(), Some(&reference(500))),
        [("shifted", 20)]
    );
    let moved = kineto(500, |_| true, |number| if number == 100 { 120 } else { 0 });
    assert_eq!(found("moved", moved.as_bytes(), Some(&reference(500))), [("order", 2)]);
}

#[test]
fn a_file_that_ends_early_is_incomplete() {
    let text = kineto(500, |_| true, |_| 0);
    let kinds = found("cut", &text.as_bytes()[..text.len() / 2], None);
    assert_eq!(kinds[0], ("truncated", 1));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(
        found("cut-packed", &packed[..packed.len() / 2], None)[0],
        ("truncated", 1)
    );
}

#[test]
fn other_files_are_refused() {
    let deep = "[".repeat(100_000);
    let long = format!("{{\"traceEvents\":[{{\"name\":\"{}\"}}]}}", "x".repeat(17 << 20));
    let refused: [&[u8]; 9] = [
        b"",
        b"hello",
        b"{}",
        b"{\"a\":1}",
        b"{\"traceEvents\":7}",
        deep.as_bytes(),
        long.as_bytes(),
        b"SQLite format 3\0",
        b"\"Kind\",\"Name\"\n1,2\n",
    ];
    for (number, bytes) in refused.into_iter().enumerate() {
        assert!(
            Trace::read(&written(&format!("refused-{number}"), bytes)).is_err(),
            "{number}"
        );
    }
    assert!(Trace::read(&place("refused").join("absent")).is_err());
    let text = kineto(50, |_| true, |_| 0).into_bytes();
    let path = place("flipped").join("trace");
    for at in (0..text.len()).step_by(7) {
        let mut flipped = text.clone();
        flipped[at] ^= 0x15;
        std::fs::write(&path, &flipped).unwrap();
        // Any answer but a panic.
        let _ = Trace::read(&path).map(|trace| trace.report(None).json());
    }
}

#[test]
fn rocprofv3_json_is_read() {
    let dispatch = |number: u64| {
        format!(
            r#"{{"kind":11,"correlation_id":{{"internal":{number},"external":0}},"start_timestamp":{},"end_timestamp":{},"dispatch_info":{{"kernel_id":5,"dispatch_id":{number}}}}}"#,
            number * 1000,
            number * 1000 + 500
        )
    };
    let call = |number: u64| {
        format!(
            r#"{{"kind":1,"operation":1,"correlation_id":{{"internal":{number}}},"start_timestamp":{},"end_timestamp":{}}}"#,
            number * 1000 - 300,
            number * 1000 - 200
        )
    };
    let text = |dispatches: &[u64]| {
        let dispatches: Vec<String> = dispatches.iter().map(|number| dispatch(*number)).collect();
        let calls: Vec<String> = (1..=6).map(call).collect();
        format!(
            r#"{{"rocprofiler-sdk-tool":[{{"metadata":{{"pid":1}},"strings":{{"buffer_records":[{{"kind":"NONE","operations":["NONE"]}},{{"kind":"HIP_RUNTIME_API","operations":["hipInit","hipLaunchKernel"]}}]}},"kernel_symbols":[{{"kernel_id":5,"kernel_name":"_Z4gemmPf.kd","formatted_kernel_name":"gemm(float*)"}}],"buffer_records":{{"kernel_dispatch":[{}],"hip_api":[{}]}}}}]}}"#,
            dispatches.join(","),
            calls.join(",")
        )
    };
    assert_eq!(found("v3", text(&[1, 2, 3, 4, 5, 6]).as_bytes(), None), []);
    assert_eq!(
        found("v3-some", text(&[1, 2, 4, 6]).as_bytes(), None),
        [("launches_without_kernel", 2), ("missing_dispatches", 2)]
    );
    let mut own = Reference::default();
    (0..4).for_each(|number| own.kernel("gemm(float*)", number * 1000));
    assert_eq!(
        found("v3-own", text(&[1, 2, 3, 4]).as_bytes(), Some(&own)),
        [("launches_without_kernel", 2)]
    );
}

#[test]
fn rocprofv3_csv_is_read_with_the_calls_beside_it() {
    let place = place("csv");
    let kernels = "\"Kind\",\"Dispatch_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
                   \"KERNEL_DISPATCH\",1,\"gemm<1, 2>(float*)\",1,1000,2000\n\
                   \"KERNEL_DISPATCH\",2,\"op \"\"x\"\"\",2,2000,1000\n\"KERNEL_DISPATCH\",4";
    let calls = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
                 \"HIP_RUNTIME_API\",\"hipLaunchKernel\",1,1,1,100,200\n\
                 \"HIP_RUNTIME_API\",\"hipLaunchKernel\",1,1,2,300,400\n\
                 \"HIP_RUNTIME_API\",\"hipGraphLaunch\",1,1,3,500,600\n";
    let path = place.join("42_kernel_trace.csv");
    std::fs::write(&path, kernels).unwrap();
    std::fs::write(place.join("42_hip_api_trace.csv"), calls).unwrap();
    let trace = Trace::read(&path).unwrap();
    assert_eq!(trace.tally.name_of(1), "op \"x\"");
    assert_eq!(trace.tally.ordered[0], Ordered { begin: 1000, name: 0 });
    let report = trace.report(None);
    let kinds: Vec<(&str, u64)> = report.findings().iter().map(|one| (one.what, one.count)).collect();
    assert_eq!(kinds, [("truncated", 1), ("graphs_without_kernel", 1), ("reversed", 1)]);
}

#[test]
fn threads_say_which_process_a_kernel_of_csv_is_of() {
    // Two processes with equal ids, in files put together. The graph of the second has three kernels of one id: they replace no
    // kernel of the first.
    let place = place("threads-csv");
    let calls = "\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
                 \"hipLaunchKernel\",1,10,1,100,200\n\"hipGraphLaunch\",2,20,1,100,200\n";
    let head =
        "\"Kernel_Name\",\"Thread_Id\",\"Dispatch_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    let graph = "\"gemm\",20,1,1,300,400\n\"gemm\",20,2,1,400,500\n\"gemm\",20,3,1,500,600\n";
    std::fs::write(place.join("hip_api_trace.csv"), calls).unwrap();
    for (first, expected) in [
        ("\"gemm\",10,1,1,300,400\n", &[][..]),
        ("", &[("launches_without_kernel", 1)]),
    ] {
        std::fs::write(place.join("kernel_trace.csv"), format!("{head}{first}{graph}")).unwrap();
        let report = Trace::read(&place.join("kernel_trace.csv")).unwrap().report(None);
        let kinds: Vec<(&str, u64)> = report.findings().iter().map(|one| (one.what, one.count)).collect();
        assert_eq!(kinds, expected);
    }
}

/// With calls of HSA recorded, rocprofv3 gives a kernel the id of a call of HSA within that of HIP.
#[test]
fn kernels_of_calls_of_hsa_belong_to_the_call_of_hip() {
    let record = |more: &str, thread: u64, id: u64| {
        format!(
            r#"{{{more}"thread_id":{thread},"correlation_id":{{"internal":{id}}},"start_timestamp":{id}000,"end_timestamp":{id}500}}"#
        )
    };
    // Two threads launch in turns, and copy: the copy's kernel is of the copy.
    let calls = [(7, 0, 10), (8, 0, 11), (7, 0, 20), (8, 1, 31)];
    let calls =
        calls.map(|(thread, operation, id)| record(&format!(r#""kind":0,"operation":{operation},"#), thread, id));
    let text = |kernels: &[(u64, u64)]| {
        let kernel = |(thread, id): &(u64, u64)| record(r#""dispatch_info":{"kernel_id":5},"#, *thread, *id);
        let kernels: Vec<String> = kernels.iter().map(kernel).collect();
        format!(
            r#"{{"rocprofiler-sdk-tool":[{{"strings":{{"buffer_records":[{{"operations":["hipLaunchKernel","hipMemcpy"]}}]}},"kernel_symbols":[{{"kernel_id":5,"kernel_name":"gemm"}}],"buffer_records":{{"hip_api":[{}],"kernel_dispatch":[{}]}}}}]}}"#,
            calls.join(","),
            kernels.join(",")
        )
    };
    let all = [(7, 15), (8, 14), (7, 22), (8, 33)];
    assert_eq!(found("hsa", text(&all).as_bytes(), None), []);
    for missing in 0..3 {
        let mut kernels = all.to_vec();
        kernels.remove(missing);
        assert_eq!(
            found("hsa-lost", text(&kernels).as_bytes(), None),
            [("launches_without_kernel", 1)]
        );
    }
}

#[test]
fn arrows_of_waits_need_no_end() {
    let text = |end: &str| {
        let event = |name: &str, id: u64| {
            format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"{name}","pid":1,"tid":1,"ts":{id},"dur":1,"args":{{"correlation":{id}}}}},{{"ph":"s","cat":"ac2g","pid":1,"tid":1,"id":{id},"ts":{id}}}"#
            )
        };
        let calls = [
            event("hipMemcpyAsync", 1),
            event("hipStreamWaitEvent", 2),
            event("hipMemcpyAsync", 3),
        ];
        format!(
            r#"[{},{{"ph":"f","cat":"ac2g","pid":0,"tid":3,"id":1,"ts":5}}{end}]"#,
            calls.join(",")
        )
    };
    let end = r#",{"ph":"f","cat":"ac2g","pid":0,"tid":3,"id":3,"ts":6}"#;
    assert_eq!(found("waits", text(end).as_bytes(), None), []);
    assert_eq!(found("waits-open", text("").as_bytes(), None), [("open_arrows", 1)]);
}

#[test]
fn hostile_tables_end() {
    let place = place("hostile");
    let path = place.join("results.db");
    let _ = std::fs::remove_file(&path);
    let database = rusqlite::Connection::open(&path).unwrap();
    // Views without an end.
    let view = |name: &str, text: &str| {
        format!(
            "CREATE VIEW {name} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT '{text}' AS name, i AS start, \
             i AS \"end\", i AS stack_id, i AS dispatch_id, 1 AS nid, 2 AS pid, 3 AS tid FROM n;"
        )
    };
    database
        .execute_batch(&[view("kernels", "gemm"), view("regions", "hipLaunchKernel")].concat())
        .unwrap();
    drop(database);
    assert!(matches!(Trace::read(&path), Err(Error::Unknown)));
    let kernels = "\"Kernel_Name\",\"Thread_Id\",\"Dispatch_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
                   \"gemm\",1,18446744073709551615,18446744073709551615,18446744073709551615,0\n\"gemm\",1,2,3,4,5\n";
    let path = place.join("kernel_trace.csv");
    for at in 0..kernels.len() {
        let mut flipped = kernels.as_bytes().to_vec();
        flipped[at] ^= 0x0b;
        std::fs::write(&path, &flipped).unwrap();
        // Any answer but a panic.
        let _ = Trace::read(&path).map(|trace| trace.report(None).json());
    }
}

/// A profile of PyTorch of the CPU alone has no kernel and no launch, and is complete.
#[test]
fn a_profile_of_a_cpu_is_complete() {
    let text = r#"{
  "schemaVersion": 1, "deviceProperties": [], "record_shapes": 1, "trace_id": "0F6D2C1A", "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1727740800000000000,
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 71, "tid": 71, "ts": 1066.412, "dur": 84.177,
   "args": {"External id": 2, "Record function id": 0, "Concrete Inputs": ["", ""], "Input Dims": [[8, 16], [4, 16]], "Ev Idx": 1}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 71, "tid": 71, "ts": 1060.1, "dur": 920.5,
   "args": {"External id": 1, "Record function id": 0, "Ev Idx": 0}},
  {"ph": "X", "cat": "python_function", "name": "train.py(12): <module>", "pid": 71, "tid": 71, "ts": 1050, "dur": 1000,
   "args": {"Python parent id": null, "Python id": 1, "Ev Idx": 2}},
  {"ph": "s", "id": 9, "pid": 71, "tid": 71, "ts": 1066.412, "cat": "fwdbwd", "name": "fwdbwd"},
  {"ph": "f", "id": 9, "pid": 71, "tid": 72, "ts": 1500.5, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 71, "tid": 71, "ts": 1066.9,
   "args": {"Total Allocated": 512, "Device Id": -1, "Addr": 94035, "Device Type": 0, "Bytes": 256, "Ev Idx": 3}},
  {"name": "process_name", "ph": "M", "ts": 1050.0, "pid": 71, "tid": 0, "args": {"name": "python"}},
  {"name": "process_labels", "ph": "M", "ts": 1050.0, "pid": 71, "tid": 0, "args": {"labels": "CPU"}},
  {"ph": "X", "cat": "Trace", "ts": 1045, "dur": 1010, "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)",
   "args": {"Op count": 0}},
  {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 2060.5}
  ],
  "traceName": "/tmp/trace.json"
}"#;
    let report = Trace::read(&written("cpu", text.as_bytes())).unwrap().report(None);
    assert!(report.is_complete(), "{:?}", report.findings());
    let notes = report.json()["notes"].to_string();
    assert!(notes.contains("neither a kernel nor a launch"), "{notes}");
    // Beside a recording with kernels it is not.
    let mut other = Reference::default();
    other.kernel("gemm(float*)", 1000);
    assert_eq!(
        found("cpu-other", text.as_bytes(), Some(&other)),
        [("missing_kernels", 1)]
    );
}

/// A field of a message: a number, or bytes.
fn field(number: u64, value: Result<u64, &[u8]>) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    };
    match value {
        Ok(value) => [varint(number << 3), varint(value)].concat(),
        Err(bytes) => [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat(),
    }
}

#[test]
fn perfetto_traces_are_read() {
    let event = |category: u64, name: &str, flow: u64| {
        let flow = [vec![0xf9, 0x02], flow.to_le_bytes().to_vec()].concat();
        [
            field(9, Ok(1)),
            field(3, Ok(category)),
            field(23, Err(name.as_bytes())),
            flow,
        ]
        .concat()
    };
    let packet = |event: &[u8], time: u64, more: Vec<u8>| {
        let body = [field(8, Ok(time)), field(10, Ok(1)), field(11, Err(event)), more].concat();
        field(1, Err(&body))
    };
    let names = ["hip_api", "kernel_dispatch"].iter().zip(1..);
    let names = names.map(|(name, id)| field(1, Err(&[field(1, Ok(id)), field(2, Err(name.as_bytes()))].concat())));
    let names = [field(13, Ok(3)), field(12, Err(&names.collect::<Vec<_>>().concat()))].concat();
    let trace = |kernels: &[u64]| {
        let calls = (1..=6).map(|id| {
            let more = if id == 1 { names.clone() } else { Vec::new() };
            packet(&event(1, "hipLaunchKernel", id << 40), id * 1000, more)
        });
        let kernels = kernels
            .iter()
            .map(|id| packet(&event(2, "gemm(float*)", id << 40), id * 1000 + 100, Vec::new()));
        calls.chain(kernels).collect::<Vec<_>>().concat()
    };
    let whole = trace(&[1, 2, 3, 4, 5, 6]);
    assert_eq!(found("perfetto", &whole, None), []);
    let report = Trace::read(&written("perfetto-report", &whole)).unwrap().report(None);
    assert_eq!(
        (report.json()["kernels"].as_u64(), report.json()["launches"].as_u64()),
        (Some(6), Some(6))
    );
    assert_eq!(
        found("perfetto-some", &trace(&[1, 3, 4, 5]), None),
        [("launches_without_kernel", 2)]
    );
    assert_eq!(
        found("perfetto-cut", &whole[..whole.len() - 3], None)[0],
        ("truncated", 1)
    );
    let path = place("perfetto-flipped").join("trace");
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x51;
        std::fs::write(&path, &flipped).unwrap();
        // Any answer but a panic.
        let _ = Trace::read(&path).map(|trace| trace.report(None).json());
    }
}

/// A number that a variable of the environment gives.
fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Writes a Kineto trace of about as many bytes: launches with arrows, kernels of many names, and operators. Each 1000th kernel is
/// missing. Returns the number of launches, and of kernels.
fn large(out: &mut dyn Write, bytes: u64) -> [u64; 2] {
    let (mut written, mut launches, mut kernels) = (0, 0u64, 0);
    out.write_all(b"{\"schemaVersion\":1,\"traceEvents\":[\n").unwrap();
    let mut text = String::new();
    while written < bytes {
        use std::fmt::Write as _;
        launches += 1;
        let (id, at) = (launches, 100 * launches);
        text.clear();
        let place = r#""pid":71,"tid":71,"#;
        let operator = r#""ph":"X","cat":"cpu_op","name":"aten::linear","#;
        write!(text, r#"{{{operator}{place}"ts":{at}.125,"dur":70.5,"args":{{"External id":{id},"Input Dims":[[8,16],[4,16]]}}}},"#).unwrap();
        let call = r#""ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","#;
        write!(
            text,
            r#"{{{call}{place}"ts":{at},"dur":5,"args":{{"correlation":{id}}}}},"#
        )
        .unwrap();
        writeln!(text, r#"{{"ph":"s","cat":"ac2g",{place}"id":{id},"ts":{at}}},"#).unwrap();
        if launches % 1000 != 999 {
            kernels += 1;
            let name = id.wrapping_mul(0x9e37_79b9) % 100_003;
            let track = r#""pid":0,"tid":3,"#;
            write!(text, r#"{{"ph":"X","cat":"kernel","name":"void gemm<{name}>(float*, float const*)",{track}"ts":{at}.75,"dur":50.25,"args":{{"device":0,"stream":3,"correlation":{id}}}}},"#).unwrap();
            writeln!(text, r#"{{"ph":"f","cat":"ac2g",{track}"id":{id},"ts":{at}}},"#).unwrap();
        }
        out.write_all(text.as_bytes()).unwrap();
        written += text.len() as u64;
    }
    out.write_all(b"{\"ph\":\"i\"}]}\n").unwrap();
    [launches, kernels]
}

/// Reads the file that the environment names: the part of the next test that has a limit of memory.
#[test]
#[ignore = "the next test runs it"]
fn a_named_file_is_read() {
    let path = std::env::var("ROCTOP_CHECK_FILE").unwrap();
    println!("{:#}", Trace::read(path.as_ref()).unwrap().report(None).json());
}

/// A file of 10 GB in .ci/long.
#[test]
fn a_large_file_is_read_within_256_mib() {
    let bytes = number("ROCTOP_CHECK_BYTES", 8_000_000);
    let place = place("large");
    for (name, is_packed) in [("trace.json", false), ("trace.json.gz", true)] {
        let path = place.join(name);
        let file = std::io::BufWriter::new(File::create(&path).unwrap());
        let [launches, kernels] = if is_packed {
            let mut packed = GzEncoder::new(file, Compression::fast());
            let counts = large(&mut packed, bytes);
            packed.finish().unwrap().flush().unwrap();
            counts
        } else {
            let mut file = file;
            let counts = large(&mut file, bytes);
            file.flush().unwrap();
            counts
        };
        // All that a process may write to is within the limit.
        let limited = "ulimit -d 262144 && exec \"$0\" --exact tests::a_named_file_is_read --ignored --nocapture --test-threads 1";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", limited]).arg(std::env::current_exe().unwrap());
        let output = command.env("ROCTOP_CHECK_FILE", &path).output().unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        std::fs::remove_file(&path).unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let report = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        let found = [&report["launches"], &report["kernels"], &report["findings"][0]["count"]];
        assert_eq!(
            found.map(|count| count.as_u64().unwrap()),
            [launches, kernels, launches - kernels],
            "{report:#}"
        );
        println!("{name}: {size} bytes with {launches} launches read within 256 MiB");
    }
}
