//! Work on several threads whose results are taken in order, with a bounded number of them in flight.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::collections::VecDeque;
use std::thread;

/// Results in flight beyond one per thread.
const SPARE: usize = 2;

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
        let (work, todo) = unbounded::<(I, Sender<Result<R, E>>)>();
        let map = &map;
        let act = move |todo: Receiver<(I, Sender<Result<R, E>>)>| {
            for (item, done) in todo {
                // Nobody waits for it after an error.
                let _ = done.send(map(item));
            }
        };
        // Without a result its thread has panicked; the end of the scope passes that on.
        let wait = |pending: &mut VecDeque<Receiver<Result<R, E>>>| pending.pop_front()?.recv().ok();
        let (mut pending, mut started) = (VecDeque::new(), 0);
        for item in items {
            if started < threads {
                let todo = todo.clone();
                let thread = thread::Builder::new().spawn_scoped(scope, move || act(todo));
                started += usize::from(thread.is_ok());
            }
            if started == 0 {
                // The system has no thread left.
                take(map(item)?)?;
                continue;
            }
            if pending.len() >= threads + SPARE
                && let Some(result) = wait(&mut pending)
            {
                take(result?)?;
            }
            let (done, result) = bounded(1);
            let _ = work.send((item, done));
            pending.push_back(result);
        }
        drop(work);
        while let Some(result) = wait(&mut pending) {
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
