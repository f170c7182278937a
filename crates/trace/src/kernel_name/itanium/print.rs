//! Prints the tree. Modifiers of a declarator (`*`, `const`, a function's name) wait on a list until the innermost type
//! is written.

mod expression;
mod modifier;

use super::table::Style;
use super::tree::{Id, Kind, Node, Tree};

/// Maximum nesting of printed nodes.
const MAX_DEPTH: u32 = 400;
/// Maximum number of nodes printed or searched: substitutions without output can double this number, too.
const MAX_STEPS: u32 = 1 << 18;

/// A modifier that waits to be printed around a type.
#[derive(Clone, Copy)]
struct Modifier {
    outer: Option<usize>,
    node: Id,
    is_written: bool,
    scope: Option<usize>,
}

/// Template whose arguments replace parameters.
#[derive(Clone, Copy)]
struct Scope {
    template: Option<Id>,
    outer: Option<usize>,
}

/// State of the printer.
struct Printer<'t, 'a> {
    tree: &'t Tree<'a>,
    out: String,
    max_bytes: usize,
    /// Last byte written, even if it was removed again: `__cxa_demangle` remembers it too.
    last: u8,
    scope: Option<usize>,
    scopes: Vec<Scope>,
    modifier: Option<usize>,
    modifiers: Vec<Modifier>,
    /// Index of the pack element being printed; negative for all.
    pack_index: i32,
    /// Template being printed.
    template: Option<Id>,
    /// One more than the number of parameters in the head of the lambda whose parameters are being printed.
    lambda_parameters: i32,
    /// Number of active visits of each node.
    open: Vec<u8>,
    /// Active nodes, outermost first.
    path: Vec<Id>,
    /// Scopes of template parameters in references, from their first printing.
    first_scopes: Vec<(Id, Option<usize>)>,
    steps: u32,
}

/// Prints a symbol; `None` if the text is longer than `max_bytes` or has no meaning.
pub(super) fn print(tree: &Tree<'_>, root: Id, max_bytes: usize) -> Option<String> {
    let mut printer = Printer {
        tree,
        out: String::with_capacity(256),
        max_bytes,
        last: 0,
        scope: None,
        scopes: Vec::new(),
        modifier: None,
        modifiers: Vec::new(),
        pack_index: 0,
        template: None,
        lambda_parameters: 0,
        open: vec![0; tree.0.len()],
        path: Vec::new(),
        first_scopes: Vec::new(),
        steps: 0,
    };
    printer.node(Some(root))?;
    Some(printer.out)
}

impl Printer<'_, '_> {
    fn text(&mut self, text: &str) -> Option<()> {
        if self.out.len() + text.len() > self.max_bytes {
            return None;
        }
        self.out.push_str(text);
        self.last = text.bytes().last().unwrap_or(self.last);
        Some(())
    }

    fn number(&mut self, number: i32) -> Option<()> {
        self.text(&number.to_string())
    }

    /// Counts one step towards [`MAX_STEPS`].
    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }

    /// Prints a node; a missing one is an error.
    fn node(&mut self, id: Option<Id>) -> Option<()> {
        let id = id?;
        self.step()?;
        let open = self.open.get_mut(id as usize)?;
        if *open > 1 || self.path.len() >= MAX_DEPTH as usize {
            return None;
        }
        *open += 1;
        self.path.push(id);
        self.node_here(id)?;
        self.path.pop();
        self.open[id as usize] -= 1;
        Some(())
    }

    fn node_here(&mut self, id: Id) -> Option<()> {
        let Node { kind, left, right } = *self.tree.node(id);
        match kind {
            Kind::Name(name) | Kind::Standard(name) => self.text(name),
            Kind::Builtin(known) => self.text(known.name),
            Kind::Number(number) => self.number(number),
            Kind::Vendor | Kind::Constructor | Kind::DefaultArgument(_) => self.node(left),
            Kind::Qualified | Kind::Local => self.qualified(left, right),
            Kind::Typed => self.typed(left, right),
            Kind::Template => self.template(id, left, right),
            Kind::Parameter(number) => self.parameter(number),
            Kind::Restrict | Kind::Volatile | Kind::Const => self.type_qualifier(id, kind),
            Kind::Reference | Kind::RvalueReference => self.reference(id, kind),
            Kind::Pointer | Kind::Complex | Kind::Imaginary | Kind::VendorQualifier => self.modified(id, left),
            Kind::MemberPointer | Kind::Vector => self.modified(id, right),
            Kind::Function => self.function(id),
            Kind::Array => self.array(id),
            Kind::List | Kind::TemplateList => self.list(id),
            Kind::Lambda(number) => self.lambda(left, number),
            _ if kind.is_of_function() => self.modified(id, left),
            _ => match affixes(kind) {
                Some((before, between, after)) => {
                    self.text(before)?;
                    self.node(left)?;
                    if !between.is_empty() {
                        self.text(between)?;
                        self.node(right)?;
                    }
                    self.text(after)
                }
                None => self.rare(kind, left, right),
            },
        }
    }

    fn rare(&mut self, kind: Kind<'_>, left: Option<Id>, right: Option<Id>) -> Option<()> {
        match kind {
            Kind::Float(bits, is_extended) => {
                self.text("_Float")?;
                self.number(bits)?;
                self.text(if is_extended { "x" } else { "" })
            }
            Kind::ReferenceTemporary => {
                self.text("reference temporary #")?;
                self.node(right)?;
                self.text(" for ")?;
                self.node(left)
            }
            Kind::Bindings => self.bindings(left, right),
            Kind::TypeParameter => self.text("typename"),
            Kind::Head => self.head(left),
            Kind::FunctionParameter(0) => self.text("this"),
            Kind::FunctionParameter(number) => self.numbered("{parm#", number, "}"),
            Kind::Unnamed(number) => self.numbered("{unnamed type#", number + 1, "}"),
            Kind::Conversion => self.conversion(left),
            _ => self.expression(kind, left, right),
        }
    }

    fn numbered(&mut self, before: &str, number: i32, after: &str) -> Option<()> {
        self.text(before)?;
        self.number(number)?;
        self.text(after)
    }

    fn bindings(&mut self, first: Option<Id>, rest: Option<Id>) -> Option<()> {
        self.text("[")?;
        self.node(first)?;
        let mut rest = rest;
        while let Some(id) = rest {
            self.text(", ")?;
            self.node(self.tree.left(id))?;
            rest = self.tree.right(id);
        }
        self.text("]")
    }

    fn qualified(&mut self, scope: Option<Id>, name: Option<Id>) -> Option<()> {
        self.node(scope)?;
        self.text("::")?;
        let name = self.default_argument(name)?;
        self.node(Some(name))
    }

    /// Prints which default argument a name belongs to; returns the name.
    fn default_argument(&mut self, name: Option<Id>) -> Option<Id> {
        let name = name?;
        let Kind::DefaultArgument(number) = self.tree.kind(name) else {
            return Some(name);
        };
        self.numbered("{default arg#", number + 1, "}::")?;
        self.tree.left(name)
    }

    fn template(&mut self, id: Id, name: Option<Id>, arguments: Option<Id>) -> Option<()> {
        let outer = self.template.replace(id);
        let modifier = self.modifier.take();
        self.node(name)?;
        self.text(if self.last == b'<' { " <" } else { "<" })?;
        self.node(arguments)?;
        self.text(if self.last == b'>' { " >" } else { ">" })?;
        self.modifier = modifier;
        self.template = outer;
        Some(())
    }

    /// Enters the scope of a template.
    fn enter(&mut self, template: Option<Id>) {
        self.scopes.push(Scope {
            template,
            outer: self.scope,
        });
        self.scope = Some(self.scopes.len() - 1);
    }

    fn leave(&mut self) {
        self.scope = self.scope.and_then(|scope| self.scopes[scope].outer);
    }

    /// Template argument for a parameter; for a pack, its current element.
    fn argument(&mut self, number: i32) -> Option<Id> {
        let found = self.argument_or_pack(number)?;
        if self.tree.kind(found) == Kind::TemplateList {
            return self.element(found, self.pack_index);
        }
        Some(found)
    }

    fn argument_or_pack(&mut self, number: i32) -> Option<Id> {
        let template = self.scopes[self.scope?].template?;
        self.element(self.tree.right(template)?, number)
    }

    /// Element `index` of a list; the list itself if the index is negative.
    fn element(&mut self, list: Id, index: i32) -> Option<Id> {
        let mut at = list;
        if index < 0 {
            return Some(list);
        }
        for _ in 0..index {
            self.step()?;
            at = self.tree.right(at)?;
        }
        (self.tree.kind(at) == Kind::TemplateList).then(|| self.tree.left(at))?
    }

    fn parameter(&mut self, number: i32) -> Option<()> {
        if self.lambda_parameters > 0 {
            return self.lambda_parameter(number);
        }
        let argument = self.argument(number)?;
        // The argument may be a parameter of an enclosing template.
        let scope = self.scope;
        self.leave();
        self.node(Some(argument))?;
        self.scope = scope;
        Some(())
    }

    /// Elements, separated by commas. Trailing elements without output, such as empty packs, leave no comma.
    fn list(&mut self, id: Id) -> Option<()> {
        let mut commas = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            self.step()?;
            if self.tree.left(id).is_some() {
                self.node(self.tree.left(id))?;
            }
            at = self.tree.right(id);
            if at.is_some() {
                self.text(", ")?;
                commas.push(self.out.len());
            }
        }
        while commas.pop() == Some(self.out.len()) && self.out.ends_with(", ") {
            self.out.truncate(self.out.len() - 2);
        }
        Some(())
    }

    fn lambda(&mut self, parameters: Option<Id>, number: i32) -> Option<()> {
        self.text("{lambda")?;
        let outer = std::mem::take(&mut self.lambda_parameters);
        let mut parameters = parameters?;
        let head = (self.tree.kind(parameters) == Kind::Head).then_some(parameters);
        self.enter(head);
        if let Some(head) = head {
            self.lambda_head(head)?;
            parameters = self.tree.right(head)?;
        }
        self.lambda_parameters += 1;
        self.text("(")?;
        self.node(Some(parameters))?;
        self.lambda_parameters = outer;
        self.leave();
        self.numbered(")#", number + 1, "}")
    }

    fn lambda_head(&mut self, head: Id) -> Option<()> {
        self.text("<")?;
        let mut next = self.tree.left(head);
        while let Some(id) = next {
            if self.lambda_parameters > 0 {
                self.text(", ")?;
            }
            self.lambda_parameters += 1;
            self.node(Some(id))?;
            self.text(" ")?;
            self.declared_name(id, self.lambda_parameters - 1)?;
            next = self.tree.right(id);
        }
        self.text(">")
    }

    fn head(&mut self, first: Option<Id>) -> Option<()> {
        self.text("<")?;
        let mut next = first;
        while let Some(id) = next {
            self.node(Some(id))?;
            next = self.tree.right(id);
            if next.is_some() {
                self.text(", ")?;
            }
        }
        self.text(">")
    }

    /// Name of a parameter of a lambda's head.
    fn declared_name(&mut self, id: Id, number: i32) -> Option<()> {
        let mut kind = self.tree.kind(id);
        if kind == Kind::PackParameter {
            kind = self.tree.kind(self.tree.left(id)?);
        }
        let name = match kind {
            Kind::TypeParameter => "$T",
            Kind::ValueParameter => "$N",
            Kind::TemplateParameter => "$TT",
            _ => return None,
        };
        self.numbered(name, number, "")
    }

    /// Template parameter in the parameters of a lambda: one of its head, or an `auto`.
    fn lambda_parameter(&mut self, number: i32) -> Option<()> {
        if self.lambda_parameters <= number + 1 {
            return self.numbered("auto:", number + 1, "");
        }
        let mut id = self.tree.left(self.scopes[self.scope?].template?)?;
        for _ in 0..number {
            id = self.tree.right(id)?;
        }
        self.declared_name(id, number)
    }

    /// Conversion operator; its type may refer to parameters of the enclosing template.
    fn conversion(&mut self, to: Option<Id>) -> Option<()> {
        self.text("operator ")?;
        let scope = self.scope;
        if let Some(template) = self.template {
            self.enter(Some(template));
        }
        self.node(to)?;
        self.scope = scope;
        Some(())
    }
}

/// Text before the left child, between two printed children, and after them.
const fn affixes(kind: Kind<'_>) -> Option<(&str, &'static str, &'static str)> {
    Some(match kind {
        Kind::Special(what) => (what, "", ""),
        Kind::Tagged => ("", "[abi:", "]"),
        Kind::Friend => ("", "", "[friend]"),
        Kind::Destructor => ("~", "", ""),
        Kind::ConstructionVtable => ("construction vtable for ", "-in-", ""),
        Kind::VendorOperator(_) => ("operator ", "", ""),
        Kind::VendorExpression => ("", "(", ")"),
        Kind::Decltype => ("decltype (", "", ")"),
        Kind::Clone => ("", " [clone ", "]"),
        Kind::ValueParameter => ("", "", ""),
        Kind::TemplateParameter => ("template", "", " class"),
        Kind::PackParameter => ("", "", "..."),
        _ => return None,
    })
}
