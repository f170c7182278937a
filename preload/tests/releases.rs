//! The table of releases in docs/releases.md, made of the tables of functions by which the collector works.
//!
//! `ROCTOP_GOLDEN=write cargo test -p roctop-preload --test releases` writes it again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hip_sys::entry;
use hip_sys::function::{Domain, FUNCTIONS};
use hsa_sys::function::amd;
use hsa_sys::table::{AmdLayout, amd_entry};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// A release of HSA, by its AMD table: name, bytes, step, how that was verified.
const HSA: [(&str, usize, u32, &str); 8] = [
    ("5.2.3", 400, 0, "run"),
    ("5.5", 424, 0, "read"),
    ("5.6, 5.7", 456, 0, "read"),
    ("6.1.2", 560, 1, "run"),
    ("6.4.3", 592, 5, "run"),
    ("7.2.4", 624, 8, "run"),
    ("ROCr 1.21 at step 14", 688, 0x0e, "read"),
    (
        "ROCr 1.21 at step 18 (ROCm 10)",
        744,
        0x12,
        "stand-in; built from source",
    ),
];

/// A release of HIP, by entries of its dispatch table, and how that was verified.
const HIP: [(&str, usize, &str); 2] = [("7.2.4", 506, "run"), ("10 (step 30)", 541, "built from source")];

fn tables() -> String {
    let mut out = String::from(
        "| HSA | functions | not known | engines of copies | copies in batches | counted queues | queues by descriptors | verified |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, size, step, how) in HSA {
        let layout = AmdLayout { size, step };
        let entries = layout.entries();
        let unknown = (0..entries).filter(|entry| amd(layout, *entry).is_none()).count();
        let known = [
            layout.entry(amd_entry::ASYNC_COPY_ON_ENGINE).is_some(),
            layout.newer(amd_entry::BATCH_COPY).is_some(),
            layout.newer(amd_entry::COUNTED_ACQUIRE).is_some(),
            layout.newer(amd_entry::QUEUE_CREATE).is_some(),
        ];
        let [engines, batches, counted, described] = known.map(|is_there| if is_there { "yes" } else { "-" });
        writeln!(
            out,
            "| {name} | {entries} | {unknown} | {engines} | {batches} | {counted} | {described} | {how} |"
        )
        .unwrap();
    }
    out.push_str("\n| HIP | entries of its dispatch table | not known | verified |\n| --- | --- | --- | --- |\n");
    for (name, entries, how) in HIP {
        let is_known = |index: &usize| entry::hip(*index, 8 + 8 * entries).is_some();
        let unknown = entries - (0..entries).filter(is_known).count();
        writeln!(out, "| {name} | {entries} | {unknown} | {how} |").unwrap();
    }
    let wrapped: BTreeSet<&str> = FUNCTIONS
        .iter()
        .filter(|function| function.domain == Domain::Hip)
        .map(|function| function.name)
        .collect();
    let count = wrapped.len();
    writeln!(
        out,
        "\n{count} functions of HIP are wrapped by their names, on every release that exports them."
    )
    .unwrap();
    out
}

#[test]
fn table_of_releases_is_that_of_the_code() {
    const MARKS: [&str; 2] = ["<!-- releases: made by a test -->\n\n", "\n<!-- end of releases -->"];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/releases.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (found, after) = rest.split_once(MARKS[1]).unwrap();
    let wanted = tables();
    if std::env::var_os("ROCTOP_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, format!("{before}{}{wanted}{}{after}", MARKS[0], MARKS[1])).unwrap();
        return;
    }
    assert_eq!(found, wanted, "docs/releases.md is older than the code");
}
