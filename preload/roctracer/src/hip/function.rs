//! Functions of the loaded run-time, by name.

/// A function of the run-time, by name.
macro_rules! function {
    ($library:expr, $name:literal) => {
        $library.symbol($name).map(|address| {
            // SAFETY: the symbol of this name has the type that the context says in every release.
            unsafe { std::mem::transmute::<*mut c_void, _>(address) }
        })
    };
}
pub(super) use function;
