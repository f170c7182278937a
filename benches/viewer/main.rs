//! Cost of reading, decoding, storing and showing records: `cargo bench --bench viewer`. Prints targets and results.
//!
//! `-- reader [LOAD]`, `-- live [VIEWER…]`, `-- rates [RECORDS/S…]`, `-- ask`, `-- hour [RECORDS [MIB]]` print one table each; an
//! hour at a million records per second is `-- hour 3600000000`, and MIB is the bound of the store's memory. `-- line [SECONDS]
//! [tcp]` shows the demo over a slow line; with `tcp` in a network namespace whose limits apply. `-- job` records eight ranks of a
//! job, `-- node [SECONDS [RECORDS/S]]` eight processes of eight threads. `-- digest [RECORDS]` only reads, decodes and stores, for
//! a profiler. `-- open [GB [STEPS…]]` opens recordings of that size; `ROCTOP_BENCH_PLACE` is where recordings are made,
//! `ROCTOP_BENCH_BINARY` another viewer.
//!
//! The collector's own writer writes the ring file; only the program is synthetic. Times are CPU times, except those
//! from key to screen.

mod ask;
mod hour;
mod job;
mod line;
mod live;
#[expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#[path = "../../tests/integration/kit/made.rs"]
mod made;
mod node;
mod open;
mod program;
mod reader;
mod terminal;

/// An hour at ten thousand records per second.
const RECORDS: u64 = 36_000_000;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` only checks that this runs.
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
        live::table(if which == "live" { &rest } else { &[] })?;
    }
    if which == "rates" {
        let rates = rest.iter().map(|word| word.parse()).collect::<Result<Vec<u64>, _>>()?;
        live::rates(if rates.is_empty() { &[5_000_000] } else { &rates })?;
    }
    if matches!(which, "" | "ask") {
        ask::table()?;
    }
    if matches!(which, "" | "hour") {
        let number = |at: usize| rest.get(at).map(|word| word.parse::<u64>()).transpose();
        hour::table(number(0)?.unwrap_or(RECORDS), number(1)?)?;
    }
    if which == "job" {
        job::table()?;
    }
    if which == job::RANK {
        job::run_rank()?;
    }
    if which == "node" {
        let number = |at: usize| rest.get(at).map(|word| word.parse::<u64>()).transpose();
        node::table(number(0)?.unwrap_or(60), number(1)?.unwrap_or(5_000_000))?;
    }
    if let (node::PROGRAM, [seconds, rate, counts]) = (which, &*rest) {
        node::run_program(seconds, rate, counts)?;
    }
    if let (node::PROCESS, [seconds, rate, count]) = (which, &*rest) {
        node::run_process(seconds, rate, count)?;
    }
    if which == "open" {
        let intervals = rest
            .iter()
            .skip(1)
            .map(|word| word.parse())
            .collect::<Result<Vec<u64>, _>>()?;
        open::table(rest.first().map_or(Ok(1.0), |word| word.parse())?, &intervals)?;
    }
    if which == "line" {
        let seconds = rest.iter().find_map(|word| word.parse().ok());
        line::table(rest.contains(&"tcp"), seconds.unwrap_or(60))?;
    }
    Ok(())
}
