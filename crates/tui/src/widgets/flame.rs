//! A flame graph: call paths from the outermost function down, as wide as their weights.

use std::collections::HashMap;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::theme::Role;
use roctop_trace::units;

/// Maximum number of functions of a path: no screen has more rows.
const MAX_DEPTH: usize = 200;

/// A tree of functions with weights.
#[derive(Debug, Default)]
pub(crate) struct Flame {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    weight: u64,
    children: HashMap<String, Self>,
}

impl Flame {
    /// Adds a path, outermost function first.
    pub(crate) fn add(&mut self, path: &[String], weight: u64) {
        let mut node = &mut self.root;
        node.weight = node.weight.saturating_add(weight);
        for name in path.iter().take(MAX_DEPTH) {
            node = node.children.entry(name.clone()).or_default();
            node.weight = node.weight.saturating_add(weight);
        }
    }

    /// Sum of all weights.
    pub(crate) const fn total(&self) -> u64 {
        self.root.weight
    }

    /// Number of functions on the longest path below a node.
    fn depth(node: &Node) -> usize {
        node.children
            .values()
            .map(|child| 1 + Self::depth(child))
            .max()
            .unwrap_or(0)
    }

    /// The outermost functions with a single way on: they would fill rows and say nothing.
    fn trunk(&self) -> (&Node, usize) {
        let (mut node, mut depth) = (&self.root, 0);
        while let Some((_, only)) = node.children.iter().next().filter(|_| node.children.len() == 1) {
            if only.children.is_empty() {
                break;
            }
            (node, depth) = (only, depth + 1);
        }
        (node, depth)
    }
}

/// A part of a tree: what a function calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    node: &'a Node,
    /// Number of functions above its first callees.
    depth: usize,
    /// Number of functions below the trunk.
    pub(crate) zoom: usize,
}

impl Part<'_> {
    /// Sum of its weights.
    pub(crate) const fn weight(&self) -> u64 {
        self.node.weight
    }

    /// The function above its first callees, on the path along which it was zoomed; `None` for the whole tree.
    pub(crate) fn function<'p>(&self, path: &'p [String]) -> Option<&'p str> {
        path.get(self.depth.checked_sub(1)?).map(String::as_str)
    }
}

impl Flame {
    /// The part below the first function that has several callees, and `zoom` functions further along a path, as far as it has callees.
    pub(crate) fn part(&self, path: &[String], zoom: usize) -> Part<'_> {
        let (mut node, mut depth) = self.trunk();
        let trunk = depth;
        while depth - trunk < zoom {
            let onward = path.get(depth).and_then(|name| node.children.get(name));
            let Some(next) = onward.filter(|next| !next.children.is_empty()) else {
                break;
            };
            (node, depth) = (next, depth + 1);
        }
        Part {
            node,
            depth,
            zoom: depth - trunk,
        }
    }
}

/// Draws a part of a tree; `chosen` is a path to stand out. It fills the area.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, part: Part<'_>, chosen: &[String]) {
    let chosen = chosen.get(part.depth..).unwrap_or(&[]);
    let rows = usize::from(area.height) / Flame::depth(part.node).max(1);
    node_below(canvas, area, part.node, Some(chosen), (rows as u16).max(1));
}

/// Draws the callees of a node at the top of an area, `rows` high, and theirs below.
fn node_below(canvas: &mut Canvas<'_>, area: Rect, node: &Node, chosen: Option<&[String]>, rows: u16) {
    let rows = rows.min(area.height);
    if area.height == 0 || area.width == 0 || node.weight == 0 {
        return;
    }
    let mut children: Vec<(&String, &Node)> = node.children.iter().collect();
    children.sort_by(|a, b| b.1.weight.cmp(&a.1.weight).then(a.0.cmp(b.0)));
    let (mut sum, mut x) = (0u64, area.x);
    for (name, child) in children {
        sum = sum.saturating_add(child.weight);
        let share = u128::from(sum) * u128::from(area.width) / u128::from(node.weight);
        let end = area.x + (share as u16).min(area.width);
        let width = end.saturating_sub(x);
        if width == 0 {
            continue;
        }
        let onward = chosen
            .and_then(|path| path.split_first())
            .filter(|(first, _)| *first == name);
        let onward = onward.map(|(_, rest)| rest);
        let text = format!("▏{}", units::elide(name, usize::from(width.saturating_sub(1))));
        let role = if onward.is_some() {
            Role::Accent
        } else {
            Role::ApiLaunch
        };
        canvas.say(x, area.y, &units::fit(&text, usize::from(width)), width, role);
        for y in area.y + 1..area.y + rows {
            canvas.say(x, y, "▏", 1, role);
        }
        let below = Rect {
            x,
            y: area.y + rows,
            width,
            height: area.height - rows,
        };
        node_below(canvas, below, child, onward, rows);
        x = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn weights_add_up_along_paths() {
        let mut flame = Flame::default();
        flame.add(&path("main train forward gemm"), 30);
        flame.add(&path("main train forward softmax"), 10);
        flame.add(&path("main train backward gemm"), 60);
        assert_eq!(flame.total(), 100);
        let (node, depth) = flame.trunk();
        assert_eq!(depth, 2, "main and train have one callee each");
        let mut below: Vec<_> = node
            .children
            .iter()
            .map(|(name, node)| (name.as_str(), node.weight))
            .collect();
        below.sort_unstable();
        assert_eq!(below, [("backward", 60), ("forward", 40)]);
    }

    #[test]
    fn zoom_follows_a_path_as_far_as_it_has_callees() {
        let mut flame = Flame::default();
        flame.add(&path("main forward gemm launch"), 30);
        flame.add(&path("main backward"), 60);
        let chosen = path("main forward gemm launch");
        let zoomed = |zoom| {
            let part = flame.part(&chosen, zoom);
            (part.zoom, part.weight(), part.function(&chosen))
        };
        assert_eq!(zoomed(0), (0, 90, Some("main")));
        assert_eq!(zoomed(1), (1, 30, Some("forward")));
        assert_eq!(zoomed(9), (2, 30, Some("gemm")), "launch has no callees");
        assert_eq!(flame.part(&path("other"), 3).zoom, 0);
    }

    #[test]
    fn trunk_of_a_single_path_ends_before_its_last_function() {
        let mut flame = Flame::default();
        flame.add(&path("main launch"), 5);
        assert_eq!(flame.trunk().1, 1);
    }
}
