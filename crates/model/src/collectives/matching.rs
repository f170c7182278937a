//! Calls, their returns and their kernels become parts of collectives.

use super::collective::{PartKey, joined};
use super::{
    Collective, Collectives, FIRST_KERNEL, IN_PROGRESS, Key, MAX_AHEAD, MAX_BEHIND, MAX_INNER, MAX_KEPT, MAX_KERNELS,
    MAX_NESTED, MAX_OPEN, OperationRow, Part, pack,
};
use crate::fx_hash::FastMap;
use roctop_trace::item::{ApiCall, CollectiveOperation as Operation, Communication, Dispatch, Nanos, ProcessId, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Collectives {
    /// A call that communicates began.
    pub fn communication(&mut self, call: &Communication) {
        let process = call.process.0;
        match call.operation {
            Operation::GroupEnd => return self.group_ended(call),
            Operation::Withdrawn => return self.withdrawn(call),
            _ => {}
        }
        let local = self.locals.get(&pack(process, call.communicator)).copied();
        let Some(local) = local.filter(|local| !local.is_ignored && call.sequence != 0) else {
            self.unmatched += 1;
            return;
        };
        let size = self.communicators[local.communicator as usize].size;
        let is_receiver = call.operation == Operation::Receive;
        let pair = match (call.operation, call.peer) {
            (Operation::Send, Some(peer)) if peer < size => Some((local.rank, peer)),
            (Operation::Receive, Some(peer)) if peer < size => Some((peer, local.rank)),
            (Operation::Send | Operation::Receive, _) => {
                self.unmatched += 1;
                return;
            }
            _ => None,
        };
        let key = Key {
            communicator: local.communicator,
            sequence: call.sequence,
            pair,
        };
        let place = PartKey {
            key,
            rank: local.rank,
            is_receiver,
        };
        let before = self
            .reached
            .get(&pack(local.communicator, local.rank))
            .copied()
            .unwrap_or(0);
        if pair.is_none() && call.sequence > before {
            self.reached.insert(pack(local.communicator, local.rank), call.sequence);
        }
        let is_mpi = call.operation.is_mpi();
        if is_mpi {
            self.gone_on(call.process, call.thread, call.start);
        }
        let awaits_kernel = !is_mpi && !self.without_kernels.contains(&process);
        let collective = self.open.entry(key).or_insert_with(|| Collective {
            key,
            size: if pair.is_some() { 2 } else { size },
            ..Collective::default()
        });
        let part = Part {
            rank: local.rank,
            call: *call,
            awaits_kernel,
            ..Part::default()
        };
        let order = |part: &Part| (part.call.operation == Operation::Receive, part.rank);
        match collective.parts.binary_search_by_key(&order(&part), order) {
            // A damaged recording.
            Ok(_) => {
                self.unmatched += 1;
                return;
            }
            Err(at) => collective.parts.insert(at, part),
        }
        self.calls.insert((process, call.correlation), place);
        if !is_mpi && let Some(span) = self.kernels.remove(&(process, call.correlation)) {
            self.ran(process, call.correlation, span);
        }
        if call.group != 0 {
            self.groups
                .entry((process, call.thread.0, call.group))
                .or_default()
                .push(place);
        }
        if pair.is_none() {
            self.passed(place, before, MAX_AHEAD);
        }
        if self.open.len() > MAX_OPEN
            && let Some((_, oldest)) = self.open.first_key_value()
        {
            let key = oldest.key;
            if oldest.has_returned() {
                self.close(key);
            } else if let Some(oldest) = self.open.remove(&key) {
                self.forget(&oldest);
                self.unmatched += oldest.parts.len() as u64;
            }
        }
    }

    /// A group ended: its parts begin with this call.
    fn group_ended(&mut self, call: &Communication) {
        let group = (call.process.0, call.thread.0, call.group);
        let places = self.groups.remove(&group).unwrap_or_default();
        for place in &places {
            if let Some(part) = self.part(*place) {
                part.group_end = call.correlation;
                part.returned = None;
                part.call.start = call.start;
            }
        }
        if !places.is_empty() {
            self.ends.insert((call.process.0, call.correlation), places);
        }
    }

    /// A call failed: RCCL did not take it.
    fn withdrawn(&mut self, call: &Communication) {
        let Some(place) = self.calls.remove(&(call.process.0, call.correlation)) else {
            return;
        };
        let Some(collective) = self.open.get_mut(&place.key) else {
            return;
        };
        collective
            .parts
            .retain(|part| (part.call.process, part.call.correlation) != (call.process, call.correlation));
        if collective.parts.is_empty() {
            self.open.remove(&place.key);
        }
        if place.key.pair.is_none() {
            let reached = self
                .reached
                .entry(pack(place.key.communicator, place.rank))
                .or_default();
            *reached = (*reached).min(place.key.sequence - 1);
        }
    }

    pub(super) fn part(&mut self, place: PartKey) -> Option<&mut Part> {
        let collective = self.open.get_mut(&place.key)?;
        let is_it = |part: &&mut Part| {
            part.rank == place.rank && (part.call.operation == Operation::Receive) == place.is_receiver
        };
        collective.parts.iter_mut().find(is_it)
    }

    /// Parts that begin with a call: its own, or those of the group that it ends.
    fn places(&self, process: u32, correlation: u64) -> impl Iterator<Item = PartKey> + use<> {
        let own = self.calls.get(&(process, correlation)).copied();
        let group = self.ends.get(&(process, correlation)).cloned().unwrap_or_default();
        own.into_iter().chain(group)
    }

    /// A call returned.
    pub fn returned(&mut self, call: &ApiCall) {
        let (process, correlation) = (call.process.0, call.correlation);
        if call.parent != 0 && self.is_part(process, call.parent) {
            self.inside(process, correlation, call.parent);
            return;
        }
        if call.parent != 0
            && let Some(outer) = self.inner.get(&(process, call.parent)).copied()
        {
            self.inside(process, correlation, outer);
            return;
        }
        if call.parent != 0 {
            // The parent returns later, and may be inside of a collective itself, as the end of the group in an AllToAll.
            if self.nested_calls >= MAX_NESTED {
                self.nested.clear();
                self.nested_calls = 0;
            }
            self.nested_calls += 1;
            self.nested.entry((process, call.parent)).or_default().push(correlation);
        }
        // A failed call takes no part: its withdrawal follows. Until then another rank's next collective has its number.
        let is_failed = call.status.is_some_and(|status| status != 0 && status != IN_PROGRESS);
        if is_failed && self.calls.contains_key(&(process, correlation)) {
            return;
        }
        for place in self.places(process, correlation) {
            let Some(part) = self.part(place) else { continue };
            // The end of the group is the part's end.
            if part.call.group == 0 || part.group_end == correlation {
                part.returned = Some(call.span.end.max(part.call.start));
            }
            self.part_ended(place);
            self.complete(place.key);
            // Kernels of a mismatch may never end.
            if let Some(collective) = self.open.get_mut(&place.key)
                && collective.has_returned()
                && !collective.is_checked
            {
                collective.is_checked = true;
                let collective = collective.clone();
                self.check(&collective);
            }
        }
    }

    /// Whether calls and kernels inside of a call are a collective's.
    fn is_part(&self, process: u32, correlation: u64) -> bool {
        let of_kernels = |place: &PartKey| !self.is_mpi(place.key.communicator);
        self.calls.get(&(process, correlation)).is_some_and(of_kernels)
            || self.ends.contains_key(&(process, correlation))
    }

    /// A call inside of one that communicates, which may have launched its kernel.
    fn inside(&mut self, process: u32, correlation: u64, outer: u64) {
        self.inner.insert((process, correlation), outer);
        if let Some(span) = self.kernels.remove(&(process, correlation)) {
            self.ran(process, outer, span);
        }
        let nested = self.nested.remove(&(process, correlation)).unwrap_or_default();
        self.nested_calls -= nested.len();
        for call in nested {
            self.inside(process, call, outer);
        }
    }

    /// A kernel ran.
    pub fn dispatch(&mut self, dispatch: &Dispatch) {
        let (process, correlation) = (dispatch.process.0, dispatch.correlation);
        if correlation == 0 || dispatch.span.end == 0 {
            return;
        }
        if self.is_part(process, correlation) {
            self.ran(process, correlation, dispatch.span);
        } else if let Some(outer) = self.inner.get(&(process, correlation)).copied() {
            self.ran(process, outer, dispatch.span);
        } else {
            let known = self.kernels.entry((process, correlation)).or_insert(dispatch.span);
            *known = joined(*known, dispatch.span);
            self.kernel_order.push_back((process, correlation));
            if self.kernel_order.len() > MAX_KERNELS
                && let Some(oldest) = self.kernel_order.pop_front()
            {
                self.kernels.remove(&oldest);
            }
        }
    }

    fn ran(&mut self, process: u32, correlation: u64, span: Span) {
        self.shows_kernels(process);
        for place in self.places(process, correlation) {
            let Some(part) = self.part(place) else { continue };
            part.kernel = Some(joined(part.kernel.unwrap_or(span), span));
            self.part_ended(place);
            self.complete(place.key);
            let rank = pack(place.key.communicator, place.rank);
            let before = self.reached_by_kernels.get(&rank).copied().unwrap_or(0);
            if place.key.pair.is_none() && place.key.sequence > before {
                self.reached_by_kernels.insert(rank, place.key.sequence);
                self.passed(place, before, MAX_BEHIND);
            }
        }
    }

    /// A process's collectives have kernels.
    fn shows_kernels(&mut self, process: u32) {
        if !self.has_kernels.insert(process) || !self.without_kernels.remove(&process) {
            return;
        }
        for part in self.open.values_mut().flat_map(|collective| &mut collective.parts) {
            part.awaits_kernel |= part.call.process.0 == process && !part.call.operation.is_mpi();
        }
    }

    /// Dispatches are in flight: one of a collective shows that the process has such.
    pub fn in_flight(&mut self, process: ProcessId, dispatches: &[Dispatch]) {
        let process = process.0;
        let is_ours = |dispatch: &Dispatch| {
            self.is_part(process, dispatch.correlation) || self.inner.contains_key(&(process, dispatch.correlation))
        };
        if self.is_active() && !self.has_kernels.contains(&process) && dispatches.iter().any(is_ours) {
            self.shows_kernels(process);
        }
    }

    /// Kernels of a process are not recorded from now on. Records of earlier ones may still come.
    pub fn unrecorded(&mut self, process: ProcessId) {
        self.unrecorded.insert(process.0);
    }

    /// Counts collectives of processes that run and have shown no kernel of theirs, not even in flight: there is none.
    pub fn settle(&mut self, now: Nanos) {
        let is_due = |part: &Part| {
            let has_time = part.returned.is_some_and(|at| at.saturating_add(FIRST_KERNEL) < now);
            let process = part.call.process.0;
            let may_lack = !self.has_kernels.contains(&process) || self.unrecorded.contains(&process);
            has_time && may_lack && part.awaits_kernel && part.kernel.is_none()
        };
        let parts = self.open.values().flat_map(|collective| &collective.parts);
        let due: BTreeSet<u32> = parts
            .filter(|part| is_due(part))
            .map(|part| part.call.process.0)
            .collect();
        if !due.is_empty() {
            self.without_kernels.extend(&due);
            self.await_none(|part| due.contains(&part.call.process.0));
        }
    }

    /// All records have come: what has no kernel gets none.
    pub fn finish(&mut self) {
        self.await_none(|_| true);
        self.left_over();
    }

    /// Stops expecting kernels of parts.
    fn await_none(&mut self, of: impl Fn(&Part) -> bool) {
        let mut places = Vec::new();
        for collective in self.open.values_mut() {
            for part in collective
                .parts
                .iter_mut()
                .filter(|part| part.awaits_kernel && of(part))
            {
                part.awaits_kernel = false;
                places.push(PartKey {
                    key: collective.key,
                    rank: part.rank,
                    is_receiver: part.call.operation == Operation::Receive,
                });
            }
        }
        for place in places {
            self.part_ended(place);
            self.complete(place.key);
        }
    }

    /// Counts a collective if all is known of it.
    fn complete(&mut self, key: Key) {
        let Some(collective) = self.open.get(&key) else { return };
        let is_over = |part: &Part| part.is_complete() || self.is_kernel_lost(key, part);
        if collective.has_returned() && collective.parts.iter().all(is_over) {
            self.close(key);
        }
    }

    /// Whether the rank is so far ahead that the kernel is lost.
    fn is_kernel_lost(&self, key: Key, part: &Part) -> bool {
        let rank = pack(key.communicator, part.rank);
        let is_behind = |reached: &FastMap<u64, u32>, distance: u32| {
            reached
                .get(&rank)
                .is_some_and(|reached| *reached >= key.sequence.saturating_add(distance))
        };
        let is_passed = is_behind(&self.reached_by_kernels, MAX_BEHIND) || is_behind(&self.reached, MAX_AHEAD);
        key.pair.is_none() && is_passed
    }

    /// A rank went on from the collective `before` to one that many further than others, which may lack kernels.
    fn passed(&mut self, place: PartKey, before: u32, distance: u32) {
        let key = |sequence: u32| Key {
            communicator: place.key.communicator,
            sequence,
            pair: None,
        };
        let Some(last) = place.key.sequence.checked_sub(distance) else {
            return;
        };
        let first = before.saturating_sub(distance).saturating_add(1).min(last);
        let passed = self.open.range(key(first)..=key(last)).map(|(key, _)| *key);
        let passed: Vec<Key> = passed.filter(|key| key.pair.is_none()).collect();
        for key in passed {
            self.complete(key);
        }
    }

    pub(super) fn forget(&mut self, collective: &Collective) {
        for part in &collective.parts {
            let process = part.call.process.0;
            self.calls.remove(&(process, part.call.correlation));
            if part.group_end != 0 {
                let end = (process, part.group_end);
                if let Some(places) = self.ends.get_mut(&end) {
                    places.retain(|place| place.key != collective.key);
                    if places.is_empty() {
                        self.ends.remove(&end);
                    }
                }
            }
        }
        // Calls inside of complete ones are needed no more; they go in bulk.
        if self.inner.len() > self.inner_limit.max(MAX_INNER) {
            let (calls, ends) = (&self.calls, &self.ends);
            self.inner.retain(|(process, _), outer| {
                calls.contains_key(&(*process, *outer)) || ends.contains_key(&(*process, *outer))
            });
            self.inner_limit = 2 * self.inner.len();
        }
    }

    pub(super) fn close(&mut self, key: Key) {
        let Some(mut collective) = self.open.remove(&key) else {
            return;
        };
        self.forget(&collective);
        if !collective.is_checked {
            self.check(&collective);
        }
        let operation = collective
            .parts
            .first()
            .map_or(Operation::AllReduce, |part| part.call.operation);
        // Of calls of other functions, nobody knows which ones meet.
        if operation.is_mpi()
            && key.pair.is_none()
            && collective.parts.iter().any(|part| part.call.operation != operation)
        {
            self.unmatched += collective.parts.len() as u64;
            return;
        }
        self.clocks.learn(&collective, operation);
        let Some(times) = self.times(&collective) else { return };
        let waits: Vec<_> = collective
            .parts
            .iter()
            .map(|part| self.wait(&collective, &times, part))
            .collect();
        for (part, wait) in collective.parts.iter_mut().zip(waits) {
            part.wait = wait;
        }
        // Each function of MPI that waits for a message has its own row.
        let is_message = operation.is_message();
        if is_message {
            for part in collective
                .parts
                .iter()
                .filter(|part| part.call.operation.awaits_message())
            {
                let row = self.operations.entry((key.communicator, part.call.operation));
                let row = row.or_insert_with(|| OperationRow::new(key.communicator, part.call.operation));
                row.add_message(part, &times, key.sequence);
            }
        } else {
            let row = self.operations.entry((key.communicator, operation));
            let row = row.or_insert_with(|| OperationRow::new(key.communicator, operation));
            row.add(&collective, &times);
        }
        let has_waited = collective.parts.iter().any(|part| part.wait.rank.is_some());
        let collective = Arc::new(collective);
        if let Some(done) = &mut self.done {
            done.push((collective.clone(), times));
        }
        // Messages are many: those that nobody waited for would push out all else.
        if is_message && !has_waited {
            return;
        }
        self.recent.push_back((collective, times));
        if self.recent.len() > MAX_KEPT {
            self.recent.pop_front();
        }
    }
}
