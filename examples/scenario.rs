//! The screen on a scenario, replayed as if it were live: for looking at it without a program.
//!
//! `cargo run --example scenario -- tests/scenarios/training.toml [start-seconds]`

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use roctop::item::Item;
use roctop::model::{Options, Store};
use roctop::ui::{Effect, LoopControl};
use roctop_scenario::{BEGIN, Scenario};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| "tests/scenarios/training.toml".into());
    let start: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let scenario = Scenario::parse(&std::fs::read_to_string(path)?)?;
    let options = Options {
        title: scenario.title.clone(),
        ..Options::default()
    };
    let store = Arc::new(Mutex::new(Store::new(options)));
    let (filled, begun) = (store.clone(), Instant::now());
    std::thread::spawn(move || {
        let mut items = scenario.items().into_iter().peekable();
        loop {
            let now = BEGIN + start * 1_000_000_000 + begun.elapsed().as_nanos() as u64;
            if let Ok(mut store) = filled.lock() {
                while let Some((at, item)) = items.next_if(|timed| timed.0 <= now) {
                    store.apply(&Item::Now(at));
                    store.apply(&item);
                }
                if items.peek().is_some() || scenario.ends_never() {
                    store.apply(&Item::Now(now));
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let tty = File::options().read(true).write(true).open("/dev/tty")?;
    roctop::ui::run(tty, &store, &mut |effect| match effect {
        Effect::None | Effect::Idle | Effect::Redraw | Effect::Suspend => LoopControl::Continue,
        Effect::Quit | Effect::Detach | Effect::StopApp => LoopControl::Stop,
        Effect::NameRecording => LoopControl::NameRecording("roctop-recording-1".into()),
        Effect::Export { name, bytes } => LoopControl::Say(format!("would write {name}, {} bytes", bytes.len())),
        other => LoopControl::Say(format!("would do {other:?}")),
    })?;
    Ok(())
}
