//! Questions and their answers: one language for a shell, a program and a running roctop. Pure.
//!
//! A [`Question`] is parsed with the column of each error, as a filter is. An [`Answer`] has typed columns and rows, the time
//! that it is about, what was lost, and ids that the screen opens. The rows are those of the screen's lists.

mod answer;
mod id;
pub mod of_job;
mod question;
mod time;
pub mod tool;
mod write;

pub use self::answer::{Answer, Basis, Cell, Column, Loss, Order, Row, SCHEMA, Unit, Window};
pub use self::id::{Id, IdError, Kind};
pub use self::question::{
    Buffers, Clause, Compared, DEFAULT_LIMIT, MAX_LIMIT, MAX_QUESTION, Question, Slow, Top, Verb, When,
};
pub use self::time::window;
pub use self::write::{csv, heading, json, printable, table};
