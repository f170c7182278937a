//! How much of the screen each view uses, and the time of a frame: a table for docs/views.md.
//!
//! `cargo run --example room`; with a view's name it prints the view at each size instead.

#[path = "../tests/screen/room.rs"]
mod room;

use std::time::{Duration, Instant};

use ratatui::buffer::Cell;
use room::{SIZES, blank, draw, scenes, screen};

/// Frames that are timed; the median counts.
const FRAMES: usize = 41;

fn main() {
    let wanted = std::env::args().nth(1);
    let sizes = SIZES.map(|(width, height)| format!(" {width}x{height} |"));
    println!(
        "| view |{} frame at 200x50 |\n| --- |{}",
        sizes.concat(),
        " --- |".repeat(SIZES.len() + 1)
    );
    for scene in scenes() {
        let word = scene.0.row().word;
        if wanted.as_ref().is_some_and(|wanted| wanted != word) {
            continue;
        }
        print!("| {word} |");
        for size in SIZES {
            let ui = screen(&scene, size);
            let buffer = draw(&ui, &scene.2);
            let (rows, cells) = blank(&buffer);
            let all = usize::from(size.0) * usize::from(size.1);
            print!(" {rows} / {} % |", cells * 100 / all);
            if wanted.is_some() {
                println!();
                for row in buffer.content().chunks(usize::from(size.0)) {
                    println!("{}", row.iter().map(Cell::symbol).collect::<String>());
                }
            }
        }
        let ui = screen(&scene, (200, 50));
        let mut times: Vec<Duration> = (0..FRAMES)
            .map(|_| {
                let begun = Instant::now();
                let _ = draw(&ui, &scene.2);
                begun.elapsed()
            })
            .collect();
        times.sort();
        println!(" {:.2} ms |", times[FRAMES / 2].as_secs_f64() * 1e3);
    }
}
