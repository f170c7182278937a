//! What C and C++ headers declare: functions, types of functions, and the order of dispatch tables. Reads the text of the
//! headers of HIP, RCCL and HSA; no preprocessor runs, so both branches of an `#if` count.

use std::collections::BTreeMap;

/// What a header says.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// Signatures of functions by name, in the form of the rows.
    pub(crate) signatures: BTreeMap<String, String>,
    /// Functions of the structures that are dispatch tables, by the structure's name, in order.
    pub(crate) tables: BTreeMap<String, Vec<String>>,
    /// Numbers of macros.
    pub(crate) numbers: BTreeMap<String, u32>,
}

impl Header {
    /// Reads a header.
    pub(crate) fn read(text: &str) -> Self {
        let text = without_comments(text);
        let mut header = Self {
            numbers: numbers(&text),
            ..Self::default()
        };
        let code: String = without_directives(&text);
        let mut structure: Vec<Option<String>> = Vec::new();
        let mut rest = code.as_str();
        while let Some(at) = rest.find([';', '{', '}']) {
            let (statement, after) = (rest[..at].trim(), &rest[at + 1..]);
            match rest.as_bytes()[at] {
                b'{' => structure.push(table_name(statement)),
                b'}' => drop(structure.pop()),
                _ => match structure.last() {
                    Some(Some(table)) => {
                        if let Some(name) = entry(statement) {
                            header.tables.entry(table.clone()).or_default().push(name);
                        }
                    }
                    _ => {
                        if let Some((name, signature)) = declared(statement) {
                            header.signatures.entry(name).or_insert(signature);
                        }
                    }
                },
            }
            rest = after;
        }
        header
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        out.push_str(&rest[..at]);
        let (end, skip) = if rest[at..].starts_with("/*") {
            ("*/", 2)
        } else {
            ("\n", 0)
        };
        let from = at + 2;
        rest = match rest[from..].find(end) {
            Some(length) => &rest[from + length + skip..],
            None => "",
        };
        out.push(' ');
    }
    out + rest
}

/// The text without lines of the preprocessor; these may go on behind a backslash.
fn without_directives(text: &str) -> String {
    let mut is_directive = false;
    let mut out = String::new();
    for line in text.lines() {
        is_directive |= line.trim_start().starts_with('#');
        if !is_directive {
            out.push_str(line);
            out.push('\n');
        }
        is_directive &= line.ends_with('\\');
    }
    out
}

fn numbers(text: &str) -> BTreeMap<String, u32> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.trim_start().strip_prefix("#define ")?.split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        let number = match value.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        Some((name.to_owned(), number))
    });
    lines.collect()
}

/// The name of the structure that a statement opens; `None` if it opens something else.
fn table_name(statement: &str) -> Option<String> {
    let (_, name) = statement.rsplit_once("struct ")?;
    let name = name.trim();
    let is_table = name.ends_with("Table") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_table.then(|| name.to_owned())
}

/// The function of a table's entry: `t_hipInit hipInit_fn`, `ncclSend_fn_t ncclSend_fn`, `decltype(hsa_init)* hsa_init_fn`.
fn entry(statement: &str) -> Option<String> {
    let name = statement
        .rsplit(|byte: char| byte.is_whitespace() || byte == '*')
        .next()?;
    name.strip_suffix("_fn").map(str::to_owned)
}

/// The function or type of a function that a statement declares, with its signature.
fn declared(statement: &str) -> Option<(String, String)> {
    let statement = statement.trim();
    let before = opening(statement)?;
    let parameters = &statement[before + 1..statement.len() - 1];
    let head = statement[..before].trim();
    if let Some(kind) = head.strip_prefix("typedef ") {
        // typedef hipError_t (*t_hipInit)(unsigned int flags), typedef ncclResult_t (*ncclSend_fn_t)(...)
        let (returned, name) = kind.strip_suffix(')')?.rsplit_once("(*")?;
        let name = name.trim();
        let name = name.strip_prefix("t_").or_else(|| name.strip_suffix("_fn_t"))?;
        return Some((name.to_owned(), signature(returned, parameters)));
    }
    if ["template", "static", "return", "inline", "using", "="]
        .iter()
        .any(|word| head.contains(word))
    {
        return None;
    }
    let at = head.rfind(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_')? + 1;
    let (returned, name) = head.split_at(at);
    let is_function = ["hip", "__hip", "nccl", "msccl"]
        .iter()
        .any(|begin| name.starts_with(begin));
    // Macros of the compiler stand before the return type.
    let returned = returned.rsplit(')').next()?.trim();
    let is_type = !returned.is_empty()
        && returned
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_ *".contains(&byte));
    (is_function && is_type).then(|| (name.to_owned(), signature(returned, parameters)))
}

/// The parenthesis that the last one of a text closes.
fn opening(text: &str) -> Option<usize> {
    if !text.ends_with(')') {
        return None;
    }
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A signature in the form of the rows.
fn signature(returned: &str, parameters: &str) -> String {
    let returned = returned
        .trim()
        .rsplit_once("extern ")
        .map_or(returned, |(_, kind)| kind);
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for character in parameters.chars() {
        match character {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    let parts = parts.iter().map(|part| parameter(part));
    let parts: Vec<String> = parts.filter(|part| !part.is_empty() && part != "void").collect();
    format!("{}({})", kind(returned), parts.join(", "))
}

/// A parameter without its default value, as `type name`; without a name if it has none.
fn parameter(text: &str) -> String {
    let text = text.split('=').next().unwrap_or_default();
    let text = text.split("__dparm").next().unwrap_or_default().trim();
    let (text, is_array) = match text.split_once('[') {
        Some((text, _)) => (text.trim(), true),
        None => (text, false),
    };
    let at = text.rfind(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
    let (before, name) = at.map_or((text, ""), |at| text.split_at(at + 1));
    // `unsigned int` and `const T` have no name.
    let is_name = !["", "int", "long", "char", "short"].contains(&name) && before.trim() != "const";
    let (before, name) = if is_name { (before, name) } else { (text, "") };
    let star = if is_array { "*" } else { "" };
    let kind = format!("{}{star}", kind(before));
    if name.is_empty() {
        kind
    } else {
        format!("{kind} {name}")
    }
}

/// A type in the form of the rows.
pub(crate) fn kind(text: &str) -> String {
    let spaced = text.replace('*', " * ").replace('&', " & ");
    let words = spaced
        .split_whitespace()
        .filter(|word| !["struct", "enum", "restrict"].contains(word));
    let mut kind = String::new();
    for word in words {
        if !kind.is_empty() && word != "*" && word != "&" {
            kind.push(' ');
        }
        kind.push_str(word);
    }
    match kind.as_str() {
        "unsigned" => "unsigned int".to_owned(),
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_become_signatures() {
        let header = Header::read(
            r#"
            #define HSA_AMD_EXT_API_TABLE_STEP_VERSION 0x0e
            extern "C" {
            /* hipError_t hipGone(int a); */
            hipError_t hipInit(unsigned int flags);
            DEPRECATED(DEPRECATED_MSG)
            const char *hipGetErrorName( hipError_t hip_error );
            hipError_t hipEventCreate(hipEvent_t *event, const struct dim3 sizes[], int n __dparm(0)); // here
            hipError_t hipNothing(void);
            }
            template <typename T> static inline hipError_t hipMalloc(T** p, size_t size) {
                return hipMalloc((void**)p, size);
            }
            typedef hipError_t (*t_hipMalloc)(void** ptr, size_t size);
            struct HipDispatchTable {
                size_t size;
                t_hipInit hipInit_fn;
                t_hipMalloc hipMalloc_fn;
            };
            struct CoreApiTable { ApiTableVersion version; decltype(hsa_init)* hsa_init_fn; };
            "#,
        );
        let signature = |name: &str| header.signatures.get(name).map(String::as_str);
        assert_eq!(signature("hipInit"), Some("hipError_t(unsigned int flags)"));
        assert_eq!(signature("hipGetErrorName"), Some("const char*(hipError_t hip_error)"));
        assert_eq!(
            signature("hipEventCreate"),
            Some("hipError_t(hipEvent_t* event, const dim3* sizes, int n)")
        );
        assert_eq!(signature("hipNothing"), Some("hipError_t()"));
        assert_eq!(signature("hipMalloc"), Some("hipError_t(void** ptr, size_t size)"));
        assert_eq!(signature("hipGone"), None);
        assert_eq!(header.tables["HipDispatchTable"], ["hipInit", "hipMalloc"]);
        assert_eq!(header.tables["CoreApiTable"], ["hsa_init"]);
        assert_eq!(header.numbers["HSA_AMD_EXT_API_TABLE_STEP_VERSION"], 14);
    }
}
