//! Which push/pop ranges enclose a record, found from the times in CSV files.

use crate::kit::table::Table;
use std::collections::BTreeMap;
use std::path::Path;

/// A row of a CSV file with times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) thread: u64,
    pub(crate) id: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Rows of a file; none if there is no such file. `name` is the column of their names.
pub(crate) fn rows(path: &Path, name: &str) -> Vec<Timed> {
    if !path.exists() {
        return Vec::new();
    }
    let table = Table::read(path);
    let threads = if table.header.iter().any(|cell| cell == "Thread_Id") {
        table.numbers("Thread_Id")
    } else {
        vec![0; table.rows.len()]
    };
    let (begins, ends) = (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
    let (names, ids) = (table.column(name), table.numbers("Correlation_Id"));
    let row = |at: usize| Timed {
        name: names[at].to_owned(),
        thread: threads[at],
        id: ids[at],
        begin: begins[at],
        end: ends[at],
    };
    (0..names.len()).map(row).collect()
}

/// Calls and ranges of a run.
pub(crate) struct Ranges {
    ranges: BTreeMap<u64, Vec<Timed>>,
    /// HIP calls, by id.
    pub(crate) calls: BTreeMap<u64, Timed>,
}

impl Ranges {
    /// From the CSV files with this stem.
    pub(crate) fn read(out: &Path, stem: &str) -> Self {
        let mut ranges: BTreeMap<u64, Vec<Timed>> = BTreeMap::new();
        for row in rows(&out.join(format!("{stem}_marker_api_trace.csv")), "Function") {
            if row.end > row.begin {
                ranges.entry(row.thread).or_default().push(row);
            }
        }
        for of_thread in ranges.values_mut() {
            of_thread.sort_by_key(|row| (row.begin, u64::MAX - row.end));
        }
        let calls = rows(&out.join(format!("{stem}_hip_api_trace.csv")), "Function");
        Self {
            ranges,
            calls: calls.into_iter().map(|call| (call.id, call)).collect(),
        }
    }

    /// Ranges around a call, outermost first.
    pub(crate) fn around(&self, call: &Timed) -> Vec<&Timed> {
        let own = self.ranges.get(&call.thread).into_iter().flatten();
        let before = own.take_while(|range| range.begin <= call.begin);
        before.filter(|range| range.end >= call.end).collect()
    }

    /// Ranges around the call that caused work with this correlation id, outermost first.
    pub(crate) fn around_work(&self, id: u64) -> Vec<&Timed> {
        self.calls.get(&id).map_or_else(Vec::new, |call| self.around(call))
    }
}
