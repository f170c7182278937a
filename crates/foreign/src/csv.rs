//! rocprofv3's CSV files: `…kernel_trace.csv`, with `…hip_api_trace.csv` beside it.

use crate::Error;
use crate::tally::Tally;
use std::collections::HashMap;
use std::io::BufRead;

/// Maximum bytes of a line.
const MAX_LINE: u64 = 1 << 20;

/// A line without its end; `None` at the end of the file. The second value says whether the line has an end.
fn line(input: &mut impl BufRead, room: &mut Vec<u8>) -> Result<Option<bool>, Error> {
    room.clear();
    std::io::Read::take(&mut *input, MAX_LINE).read_until(b'\n', room)?;
    if room.is_empty() {
        return Ok(None);
    }
    let has_end = room.last() == Some(&b'\n');
    if !has_end && room.len() as u64 == MAX_LINE {
        return Err(Error::Unknown);
    }
    while matches!(room.last(), Some(b'\n' | b'\r')) {
        room.pop();
    }
    Ok(Some(has_end))
}

/// Cells of a line; quotes in cells are doubled.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = cells.len() - 1;
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells[last].push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cells[last].push(other),
        }
    }
    cells
}

/// The processes of threads, as calls have them.
#[derive(Debug, Default)]
pub(crate) struct Threads(HashMap<u64, u64>);

/// Maximum number of threads whose process is kept.
const MAX_THREADS: usize = 1 << 18;

/// Adds a file to what is known; whether it ends early.
pub(crate) fn read(mut input: impl BufRead, tally: &mut Tally, threads: &mut Threads) -> Result<bool, Error> {
    let mut room = Vec::new();
    line(&mut input, &mut room)?;
    let head = cells(&String::from_utf8_lossy(&room));
    let at = |name: &str| head.iter().position(|known| known == name);
    let (begin, end) = (at("Start_Timestamp"), at("End_Timestamp"));
    let (kernel, function) = (at("Kernel_Name"), at("Function"));
    let (correlation, dispatch) = (at("Correlation_Id"), at("Dispatch_Id"));
    let (process, thread) = (at("Process_Id"), at("Thread_Id"));
    if begin.is_none() || end.is_none() || (kernel.is_none() && function.is_none()) {
        return Err(Error::Unknown);
    }
    let mut is_cut = false;
    while let Some(has_end) = line(&mut input, &mut room)? {
        let row = cells(&String::from_utf8_lossy(&room));
        if row.len() != head.len() {
            is_cut = true;
            continue;
        }
        is_cut |= !has_end;
        let number = |at: Option<usize>| at.and_then(|at| row[at].parse::<u64>().ok());
        let time = |at| number(at).unwrap_or_default() as i64;
        if let Some(kernel) = kernel {
            let name = tally.name(&row[kernel]);
            // rocprofv3's own files of kernels have no column of it, and that of the thread that launched.
            let of_thread = || threads.0.get(&number(thread)?).copied();
            let process = number(process).or_else(of_thread);
            tally.kernel(name, [time(begin), time(end)], process, number(correlation));
            if let Some(thread) = process.zip(number(thread)) {
                tally.launched_by(thread, number(correlation));
            }
            tally.dispatch(process.unwrap_or_default(), number(dispatch).unwrap_or_default());
        } else if let Some(function) = function {
            let thread = (number(process).unwrap_or_default(), number(thread).unwrap_or_default());
            if threads.0.len() < MAX_THREADS {
                threads.0.insert(thread.1, thread.0);
            }
            tally.called(thread, number(correlation));
            tally.call(&row[function], thread, time(begin), number(correlation));
        }
    }
    Ok(is_cut)
}
