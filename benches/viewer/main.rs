//! What the viewer needs to read, decode, store and show records: `cargo bench --bench viewer`. Prints bars and what was
//! measured.
//!
//! `-- reader [LOAD]`, `-- live`, `-- hour [RECORDS]` print one table alone; an hour's worth at a million records a second is
//! `-- hour 3600000000`. `-- digest [RECORDS]` does nothing but read, decode and store, for a profiler to look at.
//!
//! A ring file is written by the collector's own writer; only the program is made up. Times are of the processor, but for
//! those from key to screen.

mod hour;
mod live;
mod program;
mod reader;
mod terminal;

/// An hour at ten thousand records a second.
const RECORDS: u64 = 36_000_000;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` only asks whether this runs.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.iter().any(|word| word == "--test") {
        return Ok(());
    }
    let rest: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let which = words.first().map_or("", String::as_str);
    if matches!(which, "" | "reader") {
        reader::table(&|name| rest.iter().all(|word| name.contains(word)))?;
    }
    if which == "digest" {
        reader::digest(rest.first().map_or(Ok(4_000_000), |word| word.parse())?)?;
    }
    if matches!(which, "" | "live") {
        live::table()?;
    }
    if matches!(which, "" | "hour") {
        hour::table(rest.first().map_or(Ok(RECORDS), |word| word.parse())?)?;
    }
    Ok(())
}
