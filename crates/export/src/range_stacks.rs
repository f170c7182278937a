//! Stacks of the push/pop ranges that are open when work is submitted, numbered: most work shares a few.

use crate::texts::Texts;
use roctop_model::FastMap;
use roctop_trace::item::TextId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Maximum number of stacks; further ranges share one entry in each stack.
const MAX_STACKS: usize = 1 << 20;
/// Text of these ranges.
const OVERFLOW_TEXT: &str = "(other ranges)";

/// Number of a stack; the default is the one without a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct StackId(u32);

/// The innermost push/pop range around a record.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Enclosing {
    /// Correlation id of the range; 0 if there is none, or if it is not selected.
    pub(crate) id: u64,
    /// The range and those around it.
    pub(crate) stack: StackId,
}

/// A range in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Frame {
    around: StackId,
    /// Its text; `None` for the overflow entry.
    text: Option<TextId>,
}

/// All stacks of a process.
#[derive(Debug, Default)]
pub(crate) struct RangeStacks {
    /// Innermost range of each stack, from number 1.
    frames: Vec<Frame>,
    numbers: FastMap<Frame, StackId>,
}

impl RangeStacks {
    /// The stack of a range with this text inside `around`.
    pub(crate) fn inside(&mut self, around: StackId, text: TextId) -> StackId {
        let frame = Frame {
            around,
            text: Some(text),
        };
        if let Some(known) = self.numbers.get(&frame) {
            return *known;
        }
        if self.frames.len() < MAX_STACKS {
            return self.add(frame);
        }
        if self
            .frames
            .get(around.0.wrapping_sub(1) as usize)
            .is_some_and(|frame| frame.text.is_none())
        {
            return around;
        }
        let frame = Frame { around, text: None };
        match self.numbers.get(&frame) {
            Some(known) => *known,
            None => self.add(frame),
        }
    }

    fn add(&mut self, frame: Frame) -> StackId {
        self.frames.push(frame);
        let id = StackId(self.frames.len() as u32);
        self.numbers.insert(frame, id);
        id
    }

    /// Texts of a stack, innermost first.
    pub(crate) fn texts<'a>(
        &'a self,
        stack: StackId,
        texts: &'a Texts,
    ) -> impl Iterator<Item = Cow<'static, str>> + 'a {
        self.ids(stack).map(move |text| range_text(text, texts))
    }

    /// Numbers of the texts of a stack, innermost first; `None` for the overflow entry.
    pub(crate) fn ids(&self, stack: StackId) -> impl Iterator<Item = Option<TextId>> {
        let frame = |stack: StackId| self.frames.get(stack.0.checked_sub(1)? as usize);
        let frames = std::iter::successors(frame(stack), move |inner| frame(inner.around));
        frames.map(|frame| frame.text)
    }
}

/// Text of a range in a stack.
pub(crate) fn range_text(text: Option<TextId>, texts: &Texts) -> Cow<'static, str> {
    match text {
        Some(id) => texts.get(id).map_or("".into(), |text| text.to_string().into()),
        None => OVERFLOW_TEXT.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_number_and_its_texts_from_inside() {
        let mut stacks = RangeStacks::default();
        let outer = stacks.inside(StackId::default(), TextId(5));
        let inner = stacks.inside(outer, TextId(6));
        let other = stacks.inside(StackId::default(), TextId(6));
        assert_ne!(inner, other);
        assert_eq!(stacks.inside(outer, TextId(6)), inner);
        let ids = |stack| stacks.ids(stack).flatten().map(|text| text.0).collect::<Vec<u32>>();
        assert_eq!(
            (ids(inner), ids(other), ids(StackId::default())),
            (vec![6, 5], vec![6], vec![])
        );
    }

    #[test]
    fn stacks_beyond_the_limit_share_an_entry() {
        let mut stacks = RangeStacks::default();
        for text in 0..MAX_STACKS as u32 {
            stacks.inside(StackId::default(), TextId(text));
        }
        let known = stacks.inside(StackId::default(), TextId(7));
        let further = stacks.inside(known, TextId(8));
        assert_eq!(stacks.ids(further).collect::<Vec<_>>(), [None, Some(TextId(7))]);
        assert_eq!(stacks.inside(known, TextId(9)), further);
        assert_eq!(stacks.inside(further, TextId(9)), further);
    }
}
