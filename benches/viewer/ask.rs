//! Questions to a roctop that reads a million records per second: how long answers take over the socket, and for how long a
//! question holds the store, in which ingest can add nothing.

use anyhow::{Context, Result, bail};
use roctop::ask::client;
use roctop::ask::protocol::{Form, Request, Response};
use roctop::ask::server::Server;
use roctop::live::ingest::{Gauging, Ingest, Symbols};
use roctop::model::{Fresh, Options, Store};
use roctop::session::Live;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::live::{RATE, WARM, quantiles, with_program};

/// A question of each kind, narrow and wide.
const QUESTIONS: [&str; 9] = [
    "status",
    "top kernels",
    "top kernels where dur>1us in last 1s by p99",
    "top calls last 10s limit 100",
    "slowest kernels limit 100",
    "gaps last 1s",
    "hang",
    "errors",
    "compare last 1s with 2s ago",
];
/// How often each is asked.
const ROUNDS: usize = 40;
/// Between two questions: more than the age up to which a snapshot is used again.
const PAUSE: Duration = Duration::from_millis(70);

/// The time that an answer takes.
fn asked(session: &Path, question: &str) -> Result<Duration> {
    let request = Request {
        question: question.to_owned(),
        form: Form::Json,
        follow: false,
        rows: None,
    };
    let began = Instant::now();
    let mut response = None;
    client::ask(session, &request, &mut |found| {
        response = Some(found);
        Ok(false)
    })?;
    match response {
        Some(Response::Answer { .. }) => Ok(began.elapsed()),
        other => bail!("{question}: {other:?}"),
    }
}

fn locked(store: &Mutex<Store>) -> Result<MutexGuard<'_, Store>> {
    store.lock().map_err(|_| anyhow::anyhow!("the store"))
}

/// Prints the table.
pub(crate) fn table() -> Result<()> {
    println!(
        "\n{ROUNDS} times each question, while the program of the live table writes; p50 / p99 of the answers, bar 100 ms.\n"
    );
    println!("| question | answered in | lost |");
    println!("| --- | --- | --- |");
    with_program(RATE, |session, orders| {
        let store = Arc::new(Mutex::new(Store::new(Options::default())));
        let ingest = Ingest::start(
            Live::new(session.path()),
            Some(store.clone()),
            None,
            &Gauging::off(),
            Symbols::Shown,
        )?;
        let server = Server::start(session.path(), store.clone(), Vec::new(), None)?;
        let lost = || -> Result<u64> { Ok(locked(&store)?.glance().values.totals.lost.records) };
        std::thread::sleep(WARM);
        let mut all = Vec::new();
        for question in QUESTIONS {
            let before = lost()?;
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                std::thread::sleep(PAUSE);
                times.push(asked(session.path(), question).with_context(|| question.to_owned())?);
            }
            all.extend_from_slice(&times);
            println!("| `{question}` | {} | {} |", quantiles(&mut times), lost()? - before);
        }
        println!("| all | {} | |", quantiles(&mut all));
        // The same as the server does for each question, timed from inside.
        let (mut waits, mut holds) = (Vec::new(), Vec::new());
        for _ in 0..QUESTIONS.len() * ROUNDS {
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            let mut store = locked(&store)?;
            let got = Instant::now();
            let snapshot = store.glance();
            drop(store);
            holds.push(got.elapsed());
            drop(snapshot);
            waits.push(got - began);
        }
        println!("| the question waits for the store | {} | |", quantiles(&mut waits));
        println!("| ingest is held up by a question | {} | |", quantiles(&mut holds));
        drop(server);
        orders.stop.store(true, Ordering::Relaxed);
        while !orders.stopped.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        ingest.stop()?;
        let totals = locked(&store)?.snapshot(Fresh::All).values.totals;
        println!("| records counted | {} | {} |", totals.records(), totals.lost.records);
        Ok(())
    })
}
