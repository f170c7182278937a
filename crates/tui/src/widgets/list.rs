//! A table without the type of its rows: what keys, files and popups ask of any list.

use std::marker::PhantomData;

use super::column::{ColumnId, Heading};
use super::table::{self, AnswerRow, Scene, Table};
use crate::jump::Target;
use roctop_model::ask::Column as AnswerColumn;

/// A list of the screen.
pub(crate) trait List {
    /// Identities of its rows in the order of the screen.
    fn keys(&self, scene: &Scene<'_>) -> Vec<u64>;
    /// Its columns, each with its heading on the screen.
    fn columns(&self) -> Vec<(ColumnId, &'static str)>;
    /// Whether it has this column now.
    fn has_column(&self, scene: &Scene<'_>, id: ColumnId) -> bool;
    /// The column that sorts it at first.
    fn sort(&self) -> ColumnId;
    /// Where Enter leads from its selected row, or its first.
    fn target(&self, scene: &Scene<'_>) -> Target;
    /// Its selected row as a term of a filter.
    fn term(&self, scene: &Scene<'_>) -> Option<String>;
    /// Its selected row as text: the cells in base units, separated by tabs.
    fn copied(&self, scene: &Scene<'_>) -> Option<String>;
    /// The name in its selected row: the text of its widest column.
    fn copied_name(&self, scene: &Scene<'_>) -> Option<String>;
    /// Its rows as comma-separated values.
    fn csv(&self, scene: &Scene<'_>) -> String;
    /// How many of its rows pass the filter, in words.
    fn matches(&self, scene: &Scene<'_>) -> String;
    /// Its columns and rows for an answer: at most `limit` rows, and how many there are; `shown` are columns that say what is
    /// on screen.
    fn answer(&self, scene: &Scene<'_>, shown: &[&str], limit: usize) -> (Vec<AnswerColumn>, Vec<AnswerRow>, usize);
}

/// A table as a list.
pub(crate) struct ListOf<T>(pub(crate) PhantomData<fn() -> T>);

impl<T: Table> List for ListOf<T> {
    fn keys(&self, scene: &Scene<'_>) -> Vec<u64> {
        table::keys::<T>(scene)
    }

    fn columns(&self) -> Vec<(ColumnId, &'static str)> {
        let columns = T::COLUMNS.iter();
        columns.map(|column| (column.id(), column.title.trim())).collect()
    }

    fn has_column(&self, scene: &Scene<'_>, id: ColumnId) -> bool {
        !matches!(T::heading(scene, id), Heading::Absent)
    }

    fn sort(&self) -> ColumnId {
        T::SORT
    }

    fn target(&self, scene: &Scene<'_>) -> Target {
        table::selected::<T>(scene).map_or(Target::Nowhere("nothing to open here"), |row| T::target(&row, scene))
    }

    fn term(&self, scene: &Scene<'_>) -> Option<String> {
        T::term(&table::selected::<T>(scene)?, scene)
    }

    fn copied(&self, scene: &Scene<'_>) -> Option<String> {
        let row = table::selected::<T>(scene)?;
        let cells = T::COLUMNS.iter().map(|column| (column.worth)(&row, scene).raw());
        Some(cells.collect::<Vec<_>>().join("\t"))
    }

    fn copied_name(&self, scene: &Scene<'_>) -> Option<String> {
        let row = table::selected::<T>(scene)?;
        let name = T::COLUMNS.iter().find(|column| column.width == 0)?;
        Some((name.worth)(&row, scene).raw())
    }

    fn csv(&self, scene: &Scene<'_>) -> String {
        table::csv::<T>(scene)
    }

    fn matches(&self, scene: &Scene<'_>) -> String {
        T::matches(scene)
    }

    fn answer(&self, scene: &Scene<'_>, shown: &[&str], limit: usize) -> (Vec<AnswerColumn>, Vec<AnswerRow>, usize) {
        let rows = table::sorted::<T>(scene);
        let columns = table::answer_columns::<T>(scene, shown)
            .into_iter()
            .map(|column| column.1);
        (
            columns.collect(),
            table::answer_rows::<T>(scene, &rows, shown, limit),
            rows.len(),
        )
    }
}
