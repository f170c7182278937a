//! Work on several threads whose results are taken in order, with a bounded number of them in flight.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

/// Results in flight beyond one per thread.
const SPARE: usize = 2;

/// The mapping of one item. All jobs have one type, so that channels and threads are compiled once.
type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Threads that do jobs.
struct Pool<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    threads: usize,
    started: usize,
    work: Sender<Job<'scope>>,
    todo: Receiver<Job<'scope>>,
}

impl<'scope, 'env> Pool<'scope, 'env> {
    fn new(scope: &'scope Scope<'scope, 'env>, threads: usize) -> Self {
        let (work, todo) = unbounded();
        Self {
            scope,
            threads,
            started: 0,
            work,
            todo,
        }
    }

    /// Starts one more thread, up to the maximum. False if there is none: the system has no thread left.
    fn grow(&mut self) -> bool {
        if self.started < self.threads {
            let todo = self.todo.clone();
            let act = move || todo.into_iter().for_each(|job| job());
            self.started += usize::from(thread::Builder::new().spawn_scoped(self.scope, act).is_ok());
        }
        self.started > 0
    }

    fn begin(&self, job: Job<'scope>) {
        let _ = self.work.send(job);
    }
}

/// A result that another thread is to deliver. A channel of results would be compiled for each type of result.
pub struct Pending<R> {
    result: Arc<Mutex<Option<R>>>,
    kept: Receiver<()>,
}

/// The duty to deliver a result.
pub struct Promise<R> {
    result: Arc<Mutex<Option<R>>>,
    keep: Sender<()>,
}

/// Makes a promise, and the result that it will deliver.
pub fn promise<R>() -> (Promise<R>, Pending<R>) {
    let (keep, kept) = bounded(1);
    let result = Arc::new(Mutex::new(None));
    let promise = Promise {
        result: result.clone(),
        keep,
    };
    (promise, Pending { result, kept })
}

impl<R> Promise<R> {
    /// Delivers the result.
    pub fn keep(self, result: R) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        // Nobody waits for it after an error.
        let _ = self.keep.send(());
    }
}

impl<R> Pending<R> {
    /// Waits for the result; `None` if its thread has panicked.
    pub fn wait(self) -> Option<R> {
        self.kept.recv().ok()?;
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Maps items on up to `threads` threads, and passes the results to `take` in the order of the items. It ends at the first
/// error, so the outcome is the same on any number of threads.
pub fn in_order<I: Send, R: Send, E: Send>(
    threads: usize,
    items: impl IntoIterator<Item = I>,
    map: impl Fn(I) -> Result<R, E> + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let mut items = items.into_iter();
    if threads <= 1 || items.size_hint().1.is_some_and(|most| most <= 1) {
        return items.try_for_each(|item| take(map(item)?));
    }
    thread::scope(|scope| {
        let mut pool = Pool::new(scope, threads);
        let map = &map;
        let mut pending: VecDeque<Pending<Result<R, E>>> = VecDeque::new();
        for item in items {
            if !pool.grow() {
                take(map(item)?)?;
                continue;
            }
            // A panic is passed on by the end of the scope.
            if pending.len() >= threads + SPARE
                && let Some(result) = pending.pop_front().and_then(Pending::wait)
            {
                take(result?)?;
            }
            let (promise, result) = promise();
            pool.begin(Box::new(move || promise.keep(map(item))));
            pending.push_back(result);
        }
        while let Some(result) = pending.pop_front().and_then(Pending::wait) {
            take(result?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_in_order() {
        for threads in [1, 2, 7] {
            let mut taken = Vec::new();
            let slow_if_even = |item: u64| {
                thread::sleep(std::time::Duration::from_micros((item + 1) % 2 * 300));
                Ok::<_, u64>(item * 3)
            };
            let done = in_order(threads, 0..200, slow_if_even, |result| {
                taken.push(result);
                Ok(())
            });
            assert_eq!(done, Ok(()));
            assert_eq!(taken, (0..200).map(|item| item * 3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        for threads in [1, 2, 7] {
            let mut taken = 0;
            let fail = |item: u64| if item >= 50 { Err(item) } else { Ok(()) };
            let done = in_order(threads, 0..200, fail, |()| {
                taken += 1;
                Ok(())
            });
            assert_eq!((done, taken), (Err(50), 50));
        }
    }
}
