//! The one background thread: polls the session, feeds the store and the recorder, and looks again sooner the fuller
//! the rings were.

use crate::decode::Decoder;
use crate::item::Exit;
use crate::model::Store;
use crate::raw::{Raw, RawSink, Tee};
use crate::recording::Recorder;
use crate::session::{Live, boottime};
use anyhow::{Result, anyhow};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The soonest next look.
const FASTEST: Duration = Duration::from_millis(1);
/// The usual time between looks while something happens.
const USUAL: Duration = Duration::from_millis(16);
/// The same while a recording is made: rings are emptied before they are half full.
const RECORDING: Duration = Duration::from_millis(4);
/// The time between looks when nothing has happened for two seconds.
const IDLE: Duration = Duration::from_millis(100);
const IDLE_AFTER: Duration = Duration::from_secs(2);

enum Message {
    Exited(u32, Exit),
    Output(Vec<u8>),
    Stop,
}

/// A running pump.
pub struct Pump {
    sender: Sender<Message>,
    thread: JoinHandle<Result<()>>,
}

/// Tells a pump what happens to the program.
#[derive(Clone)]
pub struct PumpSender(Sender<Message>);

impl PumpSender {
    /// The program with this process id ended.
    pub fn exited(&self, pid: u32, exit: Exit) {
        // A pump that is gone needs no news.
        let _ = self.0.send(Message::Exited(pid, exit));
    }

    /// The program wrote to its terminal.
    pub fn output(&self, bytes: Vec<u8>) {
        let _ = self.0.send(Message::Output(bytes));
    }
}

impl Pump {
    /// Starts to read the session at `path` into `store` and, when there is one, `recorder`.
    pub fn start(path: &Path, store: Option<Arc<Mutex<Store>>>, recorder: Option<Recorder>) -> Result<Self> {
        let (sender, receiver) = channel();
        let state = State {
            live: Live::new(path),
            decoder: Decoder::default(),
            recorder,
            store,
        };
        let thread = std::thread::Builder::new()
            .name("pump".into())
            .spawn(move || state.run(&receiver))?;
        Ok(Self { sender, thread })
    }

    /// A handle for other threads.
    pub fn sender(&self) -> PumpSender {
        PumpSender(self.sender.clone())
    }

    /// Reads what is left, finishes the recording and ends the thread.
    pub fn stop(self) -> Result<()> {
        let _ = self.sender.send(Message::Stop);
        self.thread
            .join()
            .map_err(|_| anyhow!("the reading thread ended by a fault of roctop's own"))?
    }
}

struct State {
    live: Live,
    decoder: Decoder,
    recorder: Option<Recorder>,
    store: Option<Arc<Mutex<Store>>>,
}

/// Takes everything and keeps nothing, for runs without a store.
struct Nowhere;

impl RawSink for Nowhere {
    fn take(&mut self, _: crate::item::ProcessId, _: &Raw<'_>) {}
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) -> Result<()> {
        let mut pause = USUAL;
        let mut busy_at = Instant::now();
        loop {
            let message = match messages.recv_timeout(pause) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            };
            let now = boottime();
            match message {
                Some(Message::Exited(pid, exit)) => self.exited(pid, exit, now)?,
                Some(Message::Output(bytes)) => self.with_sink(|_, sink| {
                    sink.take(crate::item::ProcessId(0), &Raw::Output(&bytes));
                    Ok(())
                })?,
                Some(Message::Stop) => {
                    self.poll(now)?;
                    return self.recorder.map_or(Ok(()), Recorder::finish);
                }
                None => {}
            }
            let progress = self.poll(now)?;
            if progress.records > 0 {
                busy_at = Instant::now();
            }
            let usual = if self.recorder.is_some() { RECORDING } else { USUAL };
            pause = match progress.fill {
                0 if busy_at.elapsed() > IDLE_AFTER => IDLE,
                0..60 => usual,
                60..200 => usual / 4,
                _ => FASTEST,
            };
        }
    }

    fn poll(&mut self, now: u64) -> Result<roctop_ring::reader::Progress> {
        self.with_sink(|live, sink| Ok(live.poll(now, sink)?))
    }

    fn exited(&mut self, pid: u32, exit: Exit, now: u64) -> Result<()> {
        self.with_sink(|live, sink| Ok(live.exited(pid, exit, now, sink)?))
    }

    fn with_sink<T>(&mut self, act: impl FnOnce(&mut Live, &mut dyn RawSink) -> Result<T>) -> Result<T> {
        let mut nowhere = Nowhere;
        let recorder: &mut dyn RawSink = match &mut self.recorder {
            Some(recorder) => recorder,
            None => &mut nowhere,
        };
        let Some(store) = &self.store else {
            return act(&mut self.live, recorder);
        };
        let answer = act(&mut self.live, &mut Tee(&mut self.decoder, recorder))?;
        let items = self.decoder.take_items();
        if !items.is_empty() {
            store.lock().unwrap_or_else(PoisonError::into_inner).apply_all(&items);
        }
        Ok(answer)
    }
}
