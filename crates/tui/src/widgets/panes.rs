//! A list and the detail of its selected row: one below the other where there are rows, side by side where there are columns.

use ratatui::layout::Rect;

use super::canvas::{left, top};

/// Columns from which on two panes fit side by side.
const WIDE: u16 = 160;
/// Rows that a list gets at least: four of it, its heading and its frame.
const MIN_LIST: u16 = 7;
/// Rows from which on a detail says something, and from which on two panes fit below one another.
const MIN_SIDE: u16 = 8;
const LOW: u16 = 20;
/// Rows of a detail that need no more.
const ROOMY: u16 = 12;

/// The areas of a list of `rows` rows and of its detail, which takes at least `least` rows below it; no detail where there is no
/// room for it.
pub(crate) fn list_and_detail(area: Rect, rows: usize, least: u16) -> (Rect, Option<Rect>) {
    let wanted = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3);
    let is_low = area.height < LOW && area.height < wanted.saturating_add(ROOMY);
    if area.width >= WIDE && area.height >= MIN_SIDE && is_low {
        let (list, detail) = left(area, area.width / 2);
        return (list, Some(detail));
    }
    if area.height >= least + MIN_LIST {
        let (list, detail) = top(area, wanted.max(4).min(area.height - least));
        return (list, Some(detail));
    }
    (area, None)
}

/// Cuts an area into `count` columns of about the same width.
pub(crate) fn across(area: Rect, count: u16) -> Vec<Rect> {
    let edge = |at: u16| area.x + (u32::from(area.width) * u32::from(at) / u32::from(count.max(1))) as u16;
    (0..count)
        .map(|at| Rect {
            x: edge(at),
            width: edge(at + 1) - edge(at),
            ..area
        })
        .collect()
}

/// Cuts an area into panes of at least `columns` columns, as many side by side as fit, the rows below one another.
pub(crate) fn tiles(area: Rect, count: u16, columns: u16) -> Vec<Rect> {
    let abreast = (area.width / columns.max(1)).clamp(1, count.max(1));
    let lines = count.div_ceil(abreast);
    let edge = |at: u16| area.y + (u32::from(area.height) * u32::from(at) / u32::from(lines.max(1))) as u16;
    let mut out = Vec::new();
    for line in 0..lines {
        let row = Rect {
            y: edge(line),
            height: edge(line + 1) - edge(line),
            ..area
        };
        out.extend(across(row, abreast.min(count - line * abreast)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_stand_below_or_beside() {
        let of = |width, height, rows| list_and_detail(Rect::new(0, 0, width, height), rows, 8);
        let (list, detail) = of(80, 21, 4);
        assert_eq!((list.height, detail.map(|detail| detail.height)), (7, Some(14)));
        let (list, detail) = of(80, 21, 400);
        assert_eq!((list.height, detail.map(|detail| detail.height)), (13, Some(8)));
        let (list, detail) = of(300, 14, 4);
        assert_eq!((list.width, detail.map(|detail| detail.x)), (150, Some(150)));
        assert_eq!(of(300, 17, 4).1.map(|detail| detail.height), Some(17));
        assert_eq!(of(300, 17, 1).1.map(|detail| detail.height), Some(13));
        assert_eq!(of(80, 14, 4).1, None);
    }

    #[test]
    fn tiles_fill_their_area() {
        let all = Rect::new(3, 5, 200, 31);
        for (count, columns) in [(1, 60), (3, 60), (4, 60), (5, 500)] {
            let tiles = tiles(all, count, columns);
            assert_eq!(tiles.len(), usize::from(count));
            let cells: u32 = tiles.iter().map(|tile| tile.area()).sum();
            assert_eq!(cells, all.area(), "{tiles:?}");
        }
    }
}
