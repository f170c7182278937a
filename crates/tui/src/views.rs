//! What the table of views in `tab.rs` makes: views, their lists, their keys.

use ratatui::layout::Rect;

use super::key::Key;
use super::widgets::canvas::Canvas;
use super::widgets::table::Scene;
use super::{Pane, Size};

/// A row of the table.
#[derive(Debug)]
pub struct View {
    /// Its key, for the keymap.
    pub(crate) keys: [Key; 1],
    /// The character of that key.
    pub key: char,
    /// Its title on the screen.
    pub title: &'static str,
    /// Its word on the command line, in the palette and in names of files.
    pub word: &'static str,
    /// Its help in a few words.
    pub help: &'static str,
    /// Draws it.
    pub(crate) draw: fn(&mut Canvas<'_>, Rect, &Scene<'_>, Size),
    /// Its lists; the first has the focus at first.
    pub(crate) lists: &'static [Pane],
    /// The least size at which each list is shown, in ascending order.
    pub(crate) from: &'static [Size],
}

impl View {
    /// The lists that are shown at a size.
    pub(crate) fn lists(&self, size: Size) -> &'static [Pane] {
        let count = self.from.partition_point(|from| *from <= size.max(Size::Small));
        &self.lists[..count]
    }
}

/// Makes the enumerations of views and lists, and a [`View`] for each row:
///
/// ```text
/// /// Doc comment.
/// Name 'key' "title" "word" "help" draw_function {
///     /// Doc comment of its list.
///     List "word" Table, LeastSize;
/// } [ListOfAnotherView LeastSize, …]
/// ```
macro_rules! views {
    ($(
        $(#[$view_meta:meta])*
        $View:ident $key:literal $title:literal $word:literal $help:literal $draw:path {
            $($(#[$list_meta:meta])* $List:ident $list_word:literal $Table:ty, $from:ident;)*
        } $([$($Other:ident $other_from:ident),*])?
    )*) => {
        /// A view.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Tab {
            $($(#[$view_meta])* $View,)*
        }

        impl Tab {
            /// All views, in the order of the table.
            pub const ALL: [Self; [$($key),*].len()] = [$(Self::$View),*];

            /// Its row.
            pub const fn row(self) -> &'static View {
                &VIEWS[self as usize]
            }
        }

        /// The table of views.
        pub(crate) static VIEWS: [View; Tab::ALL.len()] = [$(View {
            keys: [Key::Char($key)],
            key: $key,
            title: $title,
            word: $word,
            help: $help,
            draw: $draw,
            lists: &[$(Pane::$List,)* $($(Pane::$Other,)*)?],
            from: &[$(Size::$from,)* $($(Size::$other_from,)*)?],
        }),*];

        /// A list. Its selection and order are the same in each view that shows it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Pane {
            $($($(#[$list_meta])* $List,)*)*
        }

        impl Pane {
            /// All lists, in the order of the table.
            pub const ALL: [Self; [$($($list_word,)*)*].len()] = [$($(Self::$List,)*)*];

            /// Its word in names of files and in the settings.
            pub const fn word(self) -> &'static str {
                match self {
                    $($(Self::$List => $list_word,)*)*
                }
            }

            /// What can be asked of it.
            pub(crate) fn list(self) -> &'static dyn List {
                match self {
                    $($(Self::$List => &ListOf(PhantomData::<fn() -> $Table>),)*)*
                }
            }
        }
    };
}

pub(crate) use views;
