//! Sorted rows, kept from one frame to the next while nothing that they are made of changes: of ten thousand kernels a screen
//! shows twenty, ten times a second.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use super::table::Scene;
use crate::{Sort, launches};
use roctop_model::snapshot::KernelRow;
use roctop_model::tally::Counting;
use roctop_model::{Names, kernel_counters};
use roctop_trace::item::Nanos;

/// What rows of kernels and their order are made of.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    // Weak: they must not outlive their snapshot for this.
    kernels: Weak<Vec<KernelRow>>,
    names: Weak<Names>,
    /// Which values, where counters are among them: those come without a change of the kernels.
    at: Option<Nanos>,
    filter: String,
    /// What was counted in the recording for the filter.
    counted: Weak<Counting>,
    sort: Sort,
}

impl Basis {
    pub(crate) fn of_kernels(scene: &Scene<'_>, sort: Sort) -> Self {
        let (snap, filter) = (scene.snap, &scene.ui.filter);
        Self {
            kernels: Arc::downgrade(&snap.values.kernels),
            names: Arc::downgrade(&snap.names),
            at: (!kernel_counters::columns(snap).is_empty()).then_some(snap.values.at),
            filter: filter.source.clone(),
            counted: launches::whole(scene).map_or_else(Weak::new, Arc::downgrade),
            sort,
        }
    }
}

impl Basis {
    /// Of ranks of a job.
    pub(crate) fn of_job(scene: &Scene<'_>, sort: Sort) -> Self {
        Self {
            kernels: Weak::new(),
            names: Weak::new(),
            at: scene.snap.job.as_ref().map(|job| job.at),
            filter: scene.ui.filter.source.clone(),
            counted: Weak::new(),
            sort,
        }
    }

    /// Of call sites.
    pub(crate) fn of_sites(scene: &Scene<'_>, sort: Sort) -> Self {
        let snap = scene.snap;
        let known = format!("{} {}", snap.sites.paths().len(), snap.sites.named());
        Self {
            at: Some(snap.values.at),
            ..Self::of_kernels(scene, sort).also(&known)
        }
    }

    /// With something else that decides.
    pub(crate) fn also(mut self, what: &str) -> Self {
        self.filter = format!("{}\n{what}", self.filter);
        self
    }
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        self.kernels.ptr_eq(&other.kernels)
            && self.names.ptr_eq(&other.names)
            && self.counted.ptr_eq(&other.counted)
            && self.at == other.at
            && self.filter == other.filter
            && self.sort == other.sort
    }
}

/// The rows of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowCache {
    rows: RefCell<Option<(Basis, Arc<dyn Any + Send + Sync>)>>,
    /// Somebody asked for them since the last frame.
    is_asked: Cell<bool>,
}

impl RowCache {
    /// The rows that were made of the same.
    pub(crate) fn of<R: Any + Send + Sync>(&self, basis: &Basis) -> Option<Arc<Vec<R>>> {
        self.is_asked.set(true);
        let kept = self.rows.borrow();
        let (_, rows) = kept.as_ref().filter(|kept| kept.0 == *basis)?;
        rows.clone().downcast().ok()
    }

    pub(crate) fn keep<R: Any + Send + Sync>(&self, basis: Basis, rows: Arc<Vec<R>>) {
        *self.rows.borrow_mut() = Some((basis, rows));
    }

    /// A frame was drawn: rows that nobody asked for go, and with them what they hold of an old snapshot.
    pub(crate) fn drawn(&self) {
        if !self.is_asked.replace(false) {
            *self.rows.borrow_mut() = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ui;
    use crate::tab::kernels::KernelTable;
    use crate::widgets::table::{self, Table};
    use roctop_model::query::Filter;
    use roctop_model::{Fresh, Mode, Options, Store};
    use roctop_trace::item::{Dispatch, Item, KernelId, Span};

    #[test]
    fn rows_are_kept_until_something_of_theirs_changes() {
        let mut store = Store::new(Options::default());
        let run = |kernel, nanos: u64| {
            Item::Dispatch(Dispatch {
                kernel: KernelId(kernel),
                span: Span {
                    begin: 1_000,
                    end: 1_000 + nanos,
                },
                ..Dispatch::default()
            })
        };
        store.apply_all(&[run(0, 10), run(1, 20)]);
        let mut ui = Ui::new(Mode::Live);
        let rows = |ui: &Ui, store: &mut Store| {
            let snap = store.snapshot(Fresh::All);
            table::sorted::<KernelTable>(&Scene { ui, snap: &snap })
        };
        let keys = |rows: &[_]| rows.iter().map(KernelTable::key).collect::<Vec<_>>();
        let first = rows(&ui, &mut store);
        assert_eq!(keys(&first), [1, 0]);
        assert!(Arc::ptr_eq(&first, &rows(&ui, &mut store)), "nothing came");
        store.apply(&run(0, 15));
        assert_eq!(keys(&rows(&ui, &mut store)), [0, 1]);
        ui.tables[KernelTable::PANE as usize].sort.ascending = true;
        assert_eq!(keys(&rows(&ui, &mut store)), [1, 0]);
        ui.filter = Filter::parse("other").expect("a filter");
        assert!(rows(&ui, &mut store).is_empty());
        let kept = &ui.tables[KernelTable::PANE as usize].kept;
        kept.drawn();
        assert!(kept.rows.borrow().is_some());
        kept.drawn();
        assert!(kept.rows.borrow().is_none(), "no frame showed them");
    }
}
