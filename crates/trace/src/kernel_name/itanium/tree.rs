//! The parsed symbol: nodes with at most two children, in one list. After a substitution a node has several parents.

use super::table::{Builtin, Operator};

/// Index of a node.
pub(super) type Id = u32;

/// Kind of a node; `left` and `right` are its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// An identifier, or a literal's digits.
    Name(&'a str),
    /// An abbreviation of the standard library, such as `std::allocator`.
    Standard(&'static str),
    /// A type without a name in the symbol.
    Builtin(&'static Builtin),
    /// `_Float16`, `_Float32x`: bits, and whether it is the extended one.
    Float(i32, bool),
    /// Left is a vendor's type.
    Vendor,
    /// Left with the ABI tag right.
    Tagged,
    /// Left is one name of a structured binding, right the next.
    Bindings,
    /// Left is a friend that is defined in its class.
    Friend,
    /// `left::right`.
    Qualified,
    /// `left::right`, where left is a function.
    Local,
    /// Left belongs to the default argument of this number.
    DefaultArgument(i32),
    /// The function or variable left has the type right.
    Typed,
    /// `left<right>`.
    Template,
    /// A template parameter by its number.
    Parameter(i32),
    /// A function parameter by its number; 0 is `this`.
    FunctionParameter(i32),
    /// The constructor of left.
    Constructor,
    /// The destructor of left.
    Destructor,
    /// A text followed by left.
    Special(&'static str),
    /// Left within right.
    ConstructionVtable,
    /// Number right of left.
    ReferenceTemporary,
    /// `restrict` of a type.
    Restrict,
    /// `volatile` of a type.
    Volatile,
    /// `const` of a type.
    Const,
    /// `restrict` of a member function.
    RestrictThis,
    /// `volatile` of a member function.
    VolatileThis,
    /// `const` of a member function.
    ConstThis,
    /// `&` of a member function.
    ReferenceThis,
    /// `&&` of a member function.
    RvalueThis,
    /// `transaction_safe`.
    TransactionSafe,
    /// `noexcept`, with the condition right.
    Noexcept,
    /// `throw`, with the types right.
    Throw,
    /// Left with the vendor's qualifier right.
    VendorQualifier,
    /// `left*`.
    Pointer,
    /// `left&`.
    Reference,
    /// `left&&`.
    RvalueReference,
    /// `left _Complex`.
    Complex,
    /// `left _Imaginary`.
    Imaginary,
    /// A function with the return type left, if that is known, and the parameters right.
    Function,
    /// `right [left]`.
    Array,
    /// `right left::*`.
    MemberPointer,
    /// Vector of left elements of the type right.
    Vector,
    /// Arguments or parameters: one, and the rest of the list.
    List,
    /// As [`Kind::List`], for template arguments.
    TemplateList,
    /// `left{right}`.
    Braces,
    /// An operator.
    Operator(&'static Operator),
    /// A vendor's operator left with as many operands.
    VendorOperator(u8),
    /// Conversion operator to left.
    Conversion,
    /// Cast to left.
    Cast,
    /// Operator left without operands.
    Nullary,
    /// Operator left with operand right.
    Unary,
    /// Operator left with operands right.
    Binary,
    /// Two operands, or the last two of three.
    Operands,
    /// Operator left with three operands: one, and a pair.
    Ternary,
    /// Literal right of the type left.
    Literal,
    /// As [`Kind::Literal`], with a minus sign.
    NegativeLiteral,
    /// `left(right)`.
    VendorExpression,
    /// A number.
    Number(i32),
    /// `decltype (left)`.
    Decltype,
    /// `left...`.
    Expansion,
    /// A lambda with the parameters left, by its number.
    Lambda(i32),
    /// A type without a name, by its number.
    Unnamed(i32),
    /// Left with the suffix right.
    Clone,
    /// Template parameters of a lambda: left is the first, right the function parameters.
    Head,
    /// `typename`; right is the next one.
    TypeParameter,
    /// A value of the type left; right is the next one.
    ValueParameter,
    /// A template with the head left; right is the next one.
    TemplateParameter,
    /// A pack of left; right is the next one.
    PackParameter,
}

impl Kind<'_> {
    /// Whether it qualifies a member function.
    pub(super) const fn is_of_function(self) -> bool {
        matches!(
            self,
            Self::RestrictThis
                | Self::VolatileThis
                | Self::ConstThis
                | Self::ReferenceThis
                | Self::RvalueThis
                | Self::TransactionSafe
                | Self::Noexcept
                | Self::Throw
        )
    }

    /// Whether it is `const`, `volatile` or `restrict` of a type.
    pub(super) const fn is_of_type(self) -> bool {
        matches!(self, Self::Restrict | Self::Volatile | Self::Const)
    }
}

/// One part of a symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) kind: Kind<'a>,
    /// First child.
    pub(super) left: Option<Id>,
    /// Second child.
    pub(super) right: Option<Id>,
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Tree<'a>(pub(super) Vec<Node<'a>>);

impl<'a> Tree<'a> {
    pub(super) fn add(&mut self, kind: Kind<'a>, left: Option<Id>, right: Option<Id>) -> Id {
        self.0.push(Node { kind, left, right });
        (self.0.len() - 1) as Id
    }

    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.0[id as usize]
    }

    pub(super) fn node_mut(&mut self, id: Id) -> &mut Node<'a> {
        &mut self.0[id as usize]
    }

    pub(super) fn kind(&self, id: Id) -> Kind<'a> {
        self.node(id).kind
    }

    /// Its first child.
    pub(super) fn left(&self, id: Id) -> Option<Id> {
        self.node(id).left
    }

    /// Its second child.
    pub(super) fn right(&self, id: Id) -> Option<Id> {
        self.node(id).right
    }
}
