//! Things that are drawn, one file each.

pub(crate) mod activity;
pub(crate) mod axis;
pub(crate) mod canvas;
pub(crate) mod chart;
pub(crate) mod column;
pub(crate) mod flame;
pub(crate) mod footer;
pub(crate) mod header;
pub(crate) mod histogram;
pub(crate) mod history;
pub(crate) mod lanes;
pub(crate) mod launch_ruler;
pub(crate) mod list;
pub(crate) mod look;
pub(crate) mod marks;
pub(crate) mod open;
pub(crate) mod overlay;
pub(crate) mod panes;
pub(crate) mod plot;
pub(crate) mod popup;
pub(crate) mod row_cache;
pub(crate) mod rows;
mod slice;
pub(crate) mod stat_column;
pub(crate) mod table;
