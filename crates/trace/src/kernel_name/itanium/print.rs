//! The tree as text. What surrounds a declarator (`*`, `const`, a function's name) waits on a list of modifiers until the
//! innermost type is written.

mod expression;
mod modifier;

use super::table::Style;
use super::tree::{Id, Kind, Node, Tree};

/// How deep nodes may be written within each other.
const DEEPEST: u32 = 400;
/// How many nodes may be written or searched: substitutions that write nothing can double this number, too.
const MAX_STEPS: u32 = 1 << 18;

/// What waits to be written around a type.
#[derive(Clone, Copy)]
struct Modifier {
    outer: Option<usize>,
    node: Id,
    is_written: bool,
    scope: Option<usize>,
}

/// A template whose arguments stand for parameters.
#[derive(Clone, Copy)]
struct Scope {
    template: Option<Id>,
    outer: Option<usize>,
}

/// Where the writer is.
struct Printer<'t, 'a> {
    tree: &'t Tree<'a>,
    out: String,
    most: usize,
    /// The last byte that was written, even if it was taken back: `__cxa_demangle` remembers it too.
    last: u8,
    scope: Option<usize>,
    scopes: Vec<Scope>,
    modifier: Option<usize>,
    modifiers: Vec<Modifier>,
    /// Which argument of a pack is written; all if it is negative.
    pack_index: i32,
    /// The template that is being written.
    template: Option<Id>,
    /// One more than the parameters in the head of the lambda whose parameters are being written.
    lambda_parameters: i32,
    /// How often each node is being written.
    open: Vec<u8>,
    /// Which nodes are, outermost first.
    path: Vec<Id>,
    /// Scopes of template parameters behind references, as of their first writing.
    first_scopes: Vec<(Id, Option<usize>)>,
    steps: u32,
}

/// The text of a symbol; none if it is longer than `most` or means nothing.
pub(super) fn print(tree: &Tree<'_>, root: Id, most: usize) -> Option<String> {
    let mut printer = Printer {
        tree,
        out: String::with_capacity(256),
        most,
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
        if self.out.len() + text.len() > self.most {
            return None;
        }
        self.out.push_str(text);
        self.last = text.bytes().last().unwrap_or(self.last);
        Some(())
    }

    fn number(&mut self, number: i32) -> Option<()> {
        self.text(&number.to_string())
    }

    /// Counts one step towards the bound.
    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }

    /// Writes a node; a missing one is an error.
    fn node(&mut self, id: Option<Id>) -> Option<()> {
        let id = id?;
        self.step()?;
        let open = self.open.get_mut(id as usize)?;
        if *open > 1 || self.path.len() >= DEEPEST as usize {
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

    /// Writes which default argument a name is in; the name itself.
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

    /// Enters a template.
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

    /// The argument that a parameter stands for: one of a pack where it is a pack.
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

    /// One of a list; the list if the index is negative.
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
        // The argument may itself be a parameter of a template further out.
        let scope = self.scope;
        self.leave();
        self.node(Some(argument))?;
        self.scope = scope;
        Some(())
    }

    /// Elements with commas. Those that write nothing at the end, as empty packs do, leave no comma.
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

    /// What stands for a parameter of a lambda's head.
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

    /// A template parameter in the parameters of a lambda: one of its head, or an `auto`.
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

    /// A conversion operator; its type may name parameters of the template around it.
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

/// What is written before the left child, between the children if both are written, and after them.
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
