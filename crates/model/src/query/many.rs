//! A filter on many things at once: whether any of them may pass.

use super::{Bounds, Expr, Field, Filter};

/// What a term may say of some things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct May {
    pass: bool,
    fail: bool,
    /// It may not apply.
    skip: bool,
}

const ANYTHING: May = May {
    pass: true,
    fail: true,
    skip: true,
};

impl Bounds {
    /// Whether the range contains all numbers between `from` and `to`.
    fn covers(self, from: f64, to: f64) -> bool {
        let above = from > self.low || (self.low_included && from >= self.low);
        let below = to < self.high || (self.high_included && to <= self.high);
        above && below
    }
}

impl Filter {
    /// Whether any of some things may pass. `range` has the least and the greatest value of a field that all of them have;
    /// `None` if nothing is known of the field.
    pub fn may_pass(&self, range: &dyn Fn(Field) -> Option<(f64, f64)>) -> bool {
        let may = self.expr.as_ref().map_or(ANYTHING, |expr| expr.may(range));
        may.pass || may.skip
    }
}

impl Expr {
    fn may(&self, range: &dyn Fn(Field) -> Option<(f64, f64)>) -> May {
        match self {
            Self::Or(parts) => join(parts.iter().map(|part| part.may(range)), true),
            Self::And(parts) => join(parts.iter().map(|part| part.may(range)), false),
            Self::Not(inner) => {
                let May { pass, fail, skip } = inner.may(range);
                May {
                    pass: fail,
                    fail: pass,
                    skip,
                }
            }
            Self::Known(yes) => May {
                pass: *yes,
                fail: !*yes,
                skip: false,
            },
            Self::Number(field, bounds, negated) => {
                let Some((from, to)) = range(*field) else {
                    return ANYTHING;
                };
                let within = bounds.iter().any(|bounds| bounds.meets(from, to));
                let outside = !bounds.iter().any(|bounds| bounds.covers(from, to));
                May {
                    pass: if *negated { outside } else { within },
                    fail: if *negated { within } else { outside },
                    skip: false,
                }
            }
            Self::Name(_) | Self::Text(..) | Self::Counter(..) => ANYTHING,
        }
    }
}

/// The first part equal to `decisive` decides; parts that do not apply are skipped.
fn join(parts: impl Iterator<Item = May>, decisive: bool) -> May {
    let of = |may: May| {
        if decisive {
            (may.pass, may.fail)
        } else {
            (may.fail, may.pass)
        }
    };
    let (mut decided, mut other, mut skip) = (false, false, true);
    for part in parts {
        let (decides, says_other) = of(part);
        decided |= decides;
        // Without a part that decides, the others do not all skip.
        other = (other && (says_other || part.skip)) || (skip && says_other);
        skip &= part.skip;
    }
    let (pass, fail) = if decisive { (decided, other) } else { (other, decided) };
    May { pass, fail, skip }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Subject, Value};

    struct One(f64);
    impl Subject for One {
        fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
            test("gemm")
        }
        fn value(&self, field: Field) -> Value<'_> {
            match field {
                Field::Dur => Value::Number(self.0),
                Field::Stream => Value::Number(3.0),
                _ => Value::None,
            }
        }
    }

    /// What may pass has to include all that passes, for every range around it.
    #[test]
    fn what_passes_may_pass() {
        let sources = [
            "dur>10",
            "dur>=10",
            "dur<10",
            "dur=10",
            "dur!=10",
            "dur=5..10",
            "!(dur>10)",
            "!(dur=5..10)",
            "gemm dur>10",
            "!gemm | dur>10",
            "dur>10 | dur<5",
            "!(dur>10 | stream=3)",
            "!(dur<10 stream=4)",
            "bytes>3 dur>10",
            "bytes>3 | dur<5",
            "!(bytes>3) dur>10",
            "dur>5 dur<10 | dur=20",
        ];
        let values = [0.0, 4.0, 5.0, 6.0, 9.0, 10.0, 11.0, 20.0, 30.0];
        for source in sources {
            let filter = Filter::parse(source).unwrap();
            let mut pruned = 0;
            for (first, from) in values.iter().enumerate() {
                for (last, to) in values.iter().enumerate().skip(first) {
                    let range = |field| (field == Field::Dur).then_some((*from, *to));
                    let any = values[first..=last].iter().any(|value| filter.accepts(&One(*value)));
                    assert!(!any || filter.may_pass(&range), "{source}: {from} to {to}");
                    pruned += usize::from(!filter.may_pass(&range));
                }
            }
            let asks_more = source.contains("stream") || source.contains("gemm") || source.contains("bytes");
            assert!(pruned > 0 || asks_more, "{source}");
        }
    }

    #[test]
    fn nothing_passes_outside_of_the_range() {
        let may = |source: &str| {
            let range = |field| (field == Field::Dur).then_some((100.0, 200.0));
            Filter::parse(source).unwrap().may_pass(&range)
        };
        for no in [
            "dur>200",
            "dur<100",
            "gemm dur>1us",
            "stream=3 dur<50",
            "!(dur<1us)",
            "dur=300..400",
        ] {
            assert!(!may(no), "{no}");
        }
        for yes in [
            "",
            "dur>=200",
            "gemm | dur>1us",
            "gemm",
            "dur=150",
            "!(dur>1us)",
            "dur!=150",
        ] {
            assert!(may(yes), "{yes}");
        }
    }
}
