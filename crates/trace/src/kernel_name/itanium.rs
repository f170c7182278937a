//! Demangler for C++ symbols (Itanium ABI) with the output of libstdc++'s `__cxa_demangle`.

mod parse;
mod print;
mod table;
mod tree;

/// `__cxa_demangle` refuses longer symbols.
const MAX_SYMBOL_BYTES: usize = 1024;

/// Demangles a symbol. `None` if `__cxa_demangle` rejects it, or if the name is longer than `max_bytes`.
pub(super) fn demangle(symbol: &str, max_bytes: usize) -> Option<String> {
    if symbol.len() > MAX_SYMBOL_BYTES || symbol.contains('\0') {
        return None;
    }
    let (tree, root) = parse::symbol(symbol)?;
    print::print(&tree, root, max_bytes)
}
