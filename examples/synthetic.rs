//! Writes a recording of any size, for measurements: `cargo run --release --example synthetic -- DIRECTORY RECORDS`.

#![expect(clippy::unwrap_used, reason = "a tool for measurements")]

#[path = "../tests/integration/kit/made.rs"]
mod made;

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, records] = &words[..] else {
        anyhow::bail!("expected: synthetic DIRECTORY RECORDS");
    };
    let counts = made::make(
        Path::new(path),
        &made::Made {
            records: records.parse()?,
            ..made::Made::default()
        },
    );
    println!("{} records: {counts:?}", counts.records());
    println!("first at {} ns", made::BEGIN);
    Ok(())
}
