//! Builtin types, operators and abbreviations of the Itanium ABI.

/// Output form of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `(type)digits`.
    Plain,
    /// `digits` and a suffix.
    Suffix(&'static str),
    /// `true` or `false`.
    Bool,
    /// `(type)[digits]`.
    Float,
}

/// A builtin type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Builtin {
    /// Its name.
    pub(super) name: &'static str,
    /// Form of its literals.
    pub(super) style: Style,
}

const fn builtin(name: &'static str, style: Style) -> Builtin {
    Builtin { name, style }
}

/// Builtin types by letter of their code.
static LETTERS: [Option<Builtin>; 26] = [
    Some(builtin("signed char", Style::Plain)),
    Some(builtin("bool", Style::Bool)),
    Some(builtin("char", Style::Plain)),
    Some(builtin("double", Style::Float)),
    Some(builtin("long double", Style::Float)),
    Some(builtin("float", Style::Float)),
    Some(builtin("__float128", Style::Float)),
    Some(builtin("unsigned char", Style::Plain)),
    Some(builtin("int", Style::Suffix(""))),
    Some(builtin("unsigned int", Style::Suffix("u"))),
    None,
    Some(builtin("long", Style::Suffix("l"))),
    Some(builtin("unsigned long", Style::Suffix("ul"))),
    Some(builtin("__int128", Style::Plain)),
    Some(builtin("unsigned __int128", Style::Plain)),
    None,
    None,
    None,
    Some(builtin("short", Style::Plain)),
    Some(builtin("unsigned short", Style::Plain)),
    None,
    Some(builtin("void", Style::Plain)),
    Some(builtin("wchar_t", Style::Plain)),
    Some(builtin("long long", Style::Suffix("ll"))),
    Some(builtin("unsigned long long", Style::Suffix("ull"))),
    Some(builtin("...", Style::Plain)),
];

/// Builtin types by the letter after `D`.
static EXTENDED: [(u8, Builtin); 8] = [
    (b'd', builtin("decimal64", Style::Plain)),
    (b'e', builtin("decimal128", Style::Plain)),
    (b'f', builtin("decimal32", Style::Plain)),
    (b'h', builtin("half", Style::Float)),
    (b'i', builtin("char32_t", Style::Plain)),
    (b'n', builtin(NULLPTR, Style::Plain)),
    (b's', builtin("char16_t", Style::Plain)),
    (b'u', builtin("char8_t", Style::Plain)),
];

/// `DF16b`.
pub(super) static BFLOAT16: Builtin = builtin("std::bfloat16_t", Style::Float);
/// Type whose literal may have no digits.
pub(super) const NULLPTR: &str = "decltype(nullptr)";

/// The builtin type of a letter.
pub(super) fn by_letter(letter: u8) -> Option<&'static Builtin> {
    LETTERS.get(usize::from(letter.checked_sub(b'a')?))?.as_ref()
}

/// The builtin type of the letter after `D`.
pub(super) fn by_extended_letter(letter: u8) -> Option<&'static Builtin> {
    EXTENDED.iter().find(|known| known.0 == letter).map(|known| &known.1)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Operator {
    /// Its two letters.
    pub(super) code: &'static str,
    /// Symbol in the output.
    pub(super) name: &'static str,
    /// Number of operands.
    pub(super) operands: u8,
}

const fn operator(code: &'static str, name: &'static str, operands: u8) -> Operator {
    Operator { code, name, operands }
}

/// Sorted by code.
static OPERATORS: [Operator; 73] = [
    operator("aN", "&=", 2),
    operator("aS", "=", 2),
    operator("aa", "&&", 2),
    operator("ad", "&", 1),
    operator("an", "&", 2),
    operator("at", "alignof ", 1),
    operator("aw", "co_await ", 1),
    operator("az", "alignof ", 1),
    operator("cc", "const_cast", 2),
    operator("cl", "()", 2),
    operator("cm", ",", 2),
    operator("co", "~", 1),
    operator("dV", "/=", 2),
    operator("dX", "[...]=", 3),
    operator("da", "delete[] ", 1),
    operator("dc", "dynamic_cast", 2),
    operator("de", "*", 1),
    operator("di", "=", 2),
    operator("dl", "delete ", 1),
    operator("ds", ".*", 2),
    operator("dt", ".", 2),
    operator("dv", "/", 2),
    operator("dx", "]=", 2),
    operator("eO", "^=", 2),
    operator("eo", "^", 2),
    operator("eq", "==", 2),
    operator("fL", "...", 3),
    operator("fR", "...", 3),
    operator("fl", "...", 2),
    operator("fr", "...", 2),
    operator("ge", ">=", 2),
    operator("gs", "::", 1),
    operator("gt", ">", 2),
    operator("ix", "[]", 2),
    operator("lS", "<<=", 2),
    operator("le", "<=", 2),
    operator("li", "operator\"\" ", 1),
    operator("ls", "<<", 2),
    operator("lt", "<", 2),
    operator("mI", "-=", 2),
    operator("mL", "*=", 2),
    operator("mi", "-", 2),
    operator("ml", "*", 2),
    operator("mm", "--", 1),
    operator("na", "new[]", 3),
    operator("ne", "!=", 2),
    operator("ng", "-", 1),
    operator("nt", "!", 1),
    operator("nw", "new", 3),
    operator("nx", "noexcept", 1),
    operator("oR", "|=", 2),
    operator("oo", "||", 2),
    operator("or", "|", 2),
    operator("pL", "+=", 2),
    operator("pl", "+", 2),
    operator("pm", "->*", 2),
    operator("pp", "++", 1),
    operator("ps", "+", 1),
    operator("pt", "->", 2),
    operator("qu", "?", 3),
    operator("rM", "%=", 2),
    operator("rS", ">>=", 2),
    operator("rc", "reinterpret_cast", 2),
    operator("rm", "%", 2),
    operator("rs", ">>", 2),
    operator("sP", "sizeof...", 1),
    operator("sZ", "sizeof...", 1),
    operator("sc", "static_cast", 2),
    operator("ss", "<=>", 2),
    operator("st", "sizeof ", 1),
    operator("sz", "sizeof ", 1),
    operator("tr", "throw", 0),
    operator("tw", "throw ", 1),
];

/// The operator of a code.
pub(super) fn by_code(code: [u8; 2]) -> Option<&'static Operator> {
    let at = OPERATORS
        .binary_search_by(|known| known.code.as_bytes().cmp(&code))
        .ok()?;
    OPERATORS.get(at)
}

/// An abbreviation of the standard library.
pub(super) struct Abbreviation {
    letter: u8,
    /// As a type.
    pub(super) short: &'static str,
    /// As the class of a constructor or destructor.
    pub(super) whole: &'static str,
    /// The name of that constructor.
    pub(super) last: Option<&'static str>,
}

static ABBREVIATIONS: [Abbreviation; 7] = [
    abbreviation(b't', "std", "std", None),
    abbreviation(b'a', "std::allocator", "std::allocator", Some("allocator")),
    abbreviation(b'b', "std::basic_string", "std::basic_string", Some("basic_string")),
    abbreviation(
        b's',
        "std::string",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        Some("basic_string"),
    ),
    abbreviation(
        b'i',
        "std::istream",
        "std::basic_istream<char, std::char_traits<char> >",
        Some("basic_istream"),
    ),
    abbreviation(
        b'o',
        "std::ostream",
        "std::basic_ostream<char, std::char_traits<char> >",
        Some("basic_ostream"),
    ),
    abbreviation(
        b'd',
        "std::iostream",
        "std::basic_iostream<char, std::char_traits<char> >",
        Some("basic_iostream"),
    ),
];

const fn abbreviation(
    letter: u8,
    short: &'static str,
    whole: &'static str,
    last: Option<&'static str>,
) -> Abbreviation {
    Abbreviation {
        letter,
        short,
        whole,
        last,
    }
}

/// The abbreviation of the letter after `S`.
pub(super) fn by_abbreviation(letter: u8) -> Option<&'static Abbreviation> {
    ABBREVIATIONS.iter().find(|known| known.letter == letter)
}

/// Prefixes of special names after `T` that are followed by a type.
pub(super) const OF_TYPES: [(u8, &str); 6] = [
    (b'V', "vtable for "),
    (b'T', "VTT for "),
    (b'I', "typeinfo for "),
    (b'S', "typeinfo name for "),
    (b'F', "typeinfo fn for "),
    (b'J', "java Class for "),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_order() {
        assert!(OPERATORS.is_sorted_by_key(|known| known.code));
        assert_eq!(by_code(*b"ss").map(|known| known.name), Some("<=>"));
        assert_eq!(by_code(*b"zz"), None);
    }
}
