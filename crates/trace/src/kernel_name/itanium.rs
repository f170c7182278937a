//! Demangling of C++ symbols (Itanium ABI) with the output of `__cxa_demangle` of libstdc++.

mod parse;
mod print;
mod table;
mod tree;

/// `__cxa_demangle` refuses longer symbols.
const MAX_SYMBOL_BYTES: usize = 1024;

/// The demangled name; none if `__cxa_demangle` rejects the symbol, or if the name is longer than `most` bytes.
pub(super) fn demangle(symbol: &str, most: usize) -> Option<String> {
    if symbol.len() > MAX_SYMBOL_BYTES || symbol.contains('\0') {
        return None;
    }
    let (tree, root) = parse::symbol(symbol)?;
    print::print(&tree, root, most)
}
