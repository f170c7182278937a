//! Waiting for a future on a plain thread, with a limit.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The future's output; `None` if it takes longer. For futures that need no runtime, as those of channels.
pub(crate) fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let began = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let rest = limit.checked_sub(began.elapsed())?;
        std::thread::park_timeout(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::channel;

    #[test]
    fn no_wake_up_is_missed() {
        const LIMIT: Duration = Duration::from_secs(30);
        let (sender, mut receiver) = channel::<u32>(1);
        let (back, mut echoed) = channel::<u32>(1);
        let echo = std::thread::spawn(move || {
            while let Some(Some(number)) = within(LIMIT, receiver.recv()) {
                within(LIMIT, back.send(number)).unwrap().unwrap();
            }
        });
        let began = Instant::now();
        for number in 0..20_000 {
            within(LIMIT, sender.send(number)).unwrap().unwrap();
            assert_eq!(within(LIMIT, echoed.recv()).unwrap(), Some(number));
        }
        // One that is missed takes the limit.
        assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
        drop(sender);
        echo.join().unwrap();
        assert_eq!(within(Duration::from_millis(1), std::future::pending::<()>()), None);
    }
}
