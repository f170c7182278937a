//! A filter on the launches of a row: terms that the row decides are resolved; terms that differ by launch remain.

use super::{Expr, Field, Filter, Subject, Value};

/// Which launches of a row pass.
#[derive(Clone, Debug)]
pub enum Launches {
    /// All of them.
    All,
    /// None.
    None,
    /// Those that pass this.
    Some(Filter),
}

/// A term's result before any launch is tested.
enum Reduced {
    Known(Option<bool>),
    Open(Expr),
}

impl Filter {
    /// Which launches of a row pass. The row's value of a field that differs by launch is [`Value::Varies`].
    pub fn launches(&self, row: &dyn Subject) -> Launches {
        match self.expr.as_ref().map(|expr| expr.reduced(row)) {
            None | Some(Reduced::Known(None | Some(true))) => Launches::All,
            Some(Reduced::Known(Some(false))) => Launches::None,
            Some(Reduced::Open(expr)) => Launches::Some(Self {
                expr: Some(expr),
                ..Self::default()
            }),
        }
    }

    /// Whether all fields in the filter pass a test; names and counters always do.
    pub fn asks_only(&self, test: impl Fn(Field) -> bool + Copy) -> bool {
        self.expr.as_ref().is_none_or(|expr| expr.asks_only(test))
    }
}

impl Expr {
    fn asks_only(&self, test: impl Fn(Field) -> bool + Copy) -> bool {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().all(|part| part.asks_only(test)),
            Self::Not(inner) => inner.asks_only(test),
            Self::Name(_) | Self::Counter(..) | Self::Known(_) => true,
            Self::Number(field, ..) | Self::Text(field, ..) => test(*field),
        }
    }

    fn reduced(&self, row: &dyn Subject) -> Reduced {
        match self {
            Self::Number(field, ..) | Self::Text(field, ..) if row.value(*field) == Value::Varies => {
                Reduced::Open(self.clone())
            }
            Self::Not(inner) => match inner.reduced(row) {
                Reduced::Known(said) => Reduced::Known(said.map(|yes| !yes)),
                Reduced::Open(expr) => Reduced::Open(Self::Not(Box::new(expr))),
            },
            Self::Or(parts) => join(parts, row, true),
            Self::And(parts) => join(parts, row, false),
            _ => Reduced::Known(self.test(row)),
        }
    }
}

/// The first part equal to `decisive` decides; parts that do not apply are skipped.
fn join(parts: &[Expr], row: &dyn Subject, decisive: bool) -> Reduced {
    let (mut said, mut open) = (None, Vec::new());
    for part in parts {
        match part.reduced(row) {
            Reduced::Known(Some(yes)) if yes == decisive => return Reduced::Known(Some(decisive)),
            Reduced::Known(known) => said = said.or(known),
            Reduced::Open(expr) => open.push(expr),
        }
    }
    if open.is_empty() {
        return Reduced::Known(said);
    }
    open.extend(said.map(Expr::Known));
    Reduced::Open(if decisive { Expr::Or(open) } else { Expr::And(open) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row;
    impl Subject for Row {
        fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
            test("gemm")
        }
        fn value(&self, field: Field) -> Value<'_> {
            match field {
                Field::Dur | Field::Stream => Value::Varies,
                Field::Calls => Value::Number(10.0),
                _ => Value::None,
            }
        }
    }

    struct Launch(f64, f64);
    impl Subject for Launch {
        fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
            unreachable!("the row has said it")
        }
        fn value(&self, field: Field) -> Value<'_> {
            match field {
                Field::Dur => Value::Number(self.0),
                Field::Stream => Value::Number(self.1),
                _ => Value::None,
            }
        }
    }

    #[test]
    fn row_and_launch_together_say_what_the_filter_says() {
        for (source, passing) in [
            ("gemm", [true, true]),
            ("memset", [false, false]),
            ("dur>1ms", [true, false]),
            ("gemm dur>1ms", [true, false]),
            ("memset | dur>1ms", [true, false]),
            ("gemm | dur>1ms", [true, true]),
            ("memset dur>1ms", [false, false]),
            ("!(dur>1ms)", [false, true]),
            ("!(memset | stream=3)", [true, false]),
            ("calls>5 stream=3 dur<1ms", [false, true]),
            ("calls>50 | stream=3", [false, true]),
            ("bytes>3 dur>1ms", [true, false]),
            ("bytes>3", [true, true]),
        ] {
            let filter = Filter::parse(source).unwrap();
            let found = [Launch(5e6, 1.0), Launch(1e3, 3.0)].map(|launch| match filter.launches(&Row) {
                Launches::All => true,
                Launches::None => false,
                Launches::Some(rest) => rest.accepts(&launch),
            });
            assert_eq!(found, passing, "{source}");
        }
        let Launches::Some(rest) = Filter::parse("gemm dur>1ms stream=2").unwrap().launches(&Row) else {
            panic!("launches differ")
        };
        assert!(rest.asks_only(Field::is_of_each) && !rest.asks_only(Field::is_of_place));
    }
}
