//! Foreign text and bytes, with any of the readers: `ROCTOP_PRELOAD_SO=/dev/null cargo +nightly fuzz run parser
//! DIRECTORY`. Writes the valid inputs to the directory, as a start for the fuzzer.
#![no_main]

#[path = "../parsers.rs"]
mod parsers;

use libfuzzer_sys::fuzz_target;
use parsers::PARSERS;

fn begin() {
    let Some(folder) = std::env::args().skip(1).find(|word| !word.starts_with('-')) else {
        return;
    };
    for (number, parser) in PARSERS.iter().enumerate() {
        for (one, honest) in (parser.honest)().into_iter().enumerate() {
            let path = format!("{folder}/honest-{}-{one}", parser.name);
            let _ = std::fs::write(path, [vec![number as u8], honest].concat());
        }
    }
}

fuzz_target!(init: begin(), |bytes: &[u8]| {
    if let Some((which, rest)) = bytes.split_first() {
        (PARSERS[usize::from(*which) % PARSERS.len()].read)(rest);
    }
});
