//! Whole-number arithmetic of the shell, as in `$((9 * RATE / 10))`.

use core::iter::Peekable;
use core::str::Chars;

/// Value of an expression of `+ - * / %`, parentheses, numbers and names, whose values `lookup`
/// returns; `None` if it has anything else, overflows or divides by zero.
pub fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut parser = Parser { chars: text.chars().peekable(), lookup, depth: 0 };
    let value = parser.sum()?;
    parser.spaces();
    parser.chars.next().is_none().then_some(value)
}

struct Parser<'a> {
    chars: Peekable<Chars<'a>>,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
    /// Open parentheses.
    depth: u32,
}

/// Largest number of open parentheses: the parser calls itself for each.
const DEPTH_MAX: u32 = 100;

impl Parser<'_> {
    fn spaces(&mut self) {
        while self.chars.next_if(|c| c.is_whitespace()).is_some() {}
    }

    /// Next character if it is one of `wanted`.
    fn operator(&mut self, wanted: &str) -> Option<char> {
        self.spaces();
        self.chars.next_if(|c| wanted.contains(*c))
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(operator) = self.operator("+-") {
            let right = self.product()?;
            value = match operator {
                '+' => value.checked_add(right)?,
                _ => value.checked_sub(right)?,
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while let Some(operator) = self.operator("*/%") {
            let right = self.factor()?;
            value = match operator {
                '*' => value.checked_mul(right)?,
                '/' => value.checked_div(right)?,
                _ => value.checked_rem(right)?,
            };
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        if let Some(sign) = self.operator("+-") {
            let value = self.atom()?;
            return if sign == '-' { value.checked_neg() } else { Some(value) };
        }
        self.atom()
    }

    fn atom(&mut self) -> Option<i64> {
        if self.operator("(").is_some() {
            self.depth += 1;
            let value = if self.depth > DEPTH_MAX { None } else { self.sum() }?;
            self.depth -= 1;
            return self.operator(")").map(|_| value);
        }
        let mut word = alloc::string::String::new();
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            word.push(c);
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            // A leading zero makes a number octal, which nobody means.
            let octal = word.len() > 1 && word.starts_with('0');
            return if octal { None } else { word.parse().ok() };
        }
        (self.lookup)(&word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_and_parentheses_are_those_of_the_shell() {
        let rate = |name: &str| (name == "RATE").then_some(220);
        for (text, value) in [
            ("9*220/10", Some(198)),
            (" 9 * RATE / 10 ", Some(198)),
            ("1 + 2 * 3 - 4", Some(3)),
            ("(1 + 2) * (3 - 4)", Some(-3)),
            ("-7 / 2", Some(-3)),
            ("7 % 4 - -1", Some(4)),
            ("1 / 0", None),
            ("9223372036854775807 + 1", None),
            ("010", None),
            ("NONE", None),
            ("1 << 3", None),
            ("(1", None),
            ("1)", None),
            ("", None),
        ] {
            assert_eq!(evaluate(text, &rate), value, "{text:?}");
        }
        assert_eq!(evaluate(&"(".repeat(1_000_000), &rate), None);
    }
}
