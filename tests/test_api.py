"""The listing of public Rust items has what users of a crate can name, and notices changes."""

from pathlib import Path

import pytest

import api

LIB = """//! Crate.
#![cfg_attr(
    test,
    allow(unused)
)]

mod inner;
pub mod outer;

pub use inner::Kept;

/// Adds.
pub fn add(a: u64, b: u64) -> u64 {
    a + b
}

pub(crate) fn hidden() {}

#[cfg(test)]
mod tests {
    pub fn helper() {}
}
"""

INNER = """/// Exported.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Public.
    pub size: u32,
    private: u32,
}

impl Kept {
    /// Creates it.
    pub fn new(
        size: u32,
        private: u32,
    ) -> Kept {
        Kept { size, private }
    }

    fn secret(&self) {}
}

/// Not exported.
pub struct Other;
"""

OUTER = """#[non_exhaustive]
pub enum Choice {
    /// One.
    One,
    Two {
        /// Field.
        x: f64,
    },
}

params! {
    /// Parameters.
    pub struct Params: aqm {
        /// Target
        /// delay.
        target: Span = Span::ms(5),
            [Span::us(1) => Span::s(10)], "T", ["t"];
        ecn: bool = false, [], "", [];
    }
}

impl Default for Choice {
    fn default() -> Choice {
        Choice::One
    }
}
"""

LISTED = """mod crate
    pub use inner::Kept
    pub fn add(a: u64, b: u64) -> u64
    #[derive(Clone, Debug)] pub struct Kept
        pub size: u32
    impl Kept
        pub fn new(size: u32, private: u32) -> Kept
mod outer
    #[non_exhaustive] pub enum Choice
        One
        Two { x: f64 }
    pub struct Params: aqm
        target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "T", ["t"]
        ecn: bool = false, [], "", []
    impl Default for Choice"""


def listing(folder: Path, **files: str) -> list[str]:
    """Return the listing of a crate of these files."""
    for name, text in {"lib": LIB, "inner": INNER, "outer": OUTER, **files}.items():
        (folder / f"{name}.rs").write_text(text)
    return api.Listing(folder).lines


def test_public_items_are_listed_and_others_are_not(tmp_path: Path) -> None:
    """A listing has signatures, fields, variants and parameters."""
    assert listing(tmp_path) == LISTED.split("\n")


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("lib", "b: u64", "b: u32"),
        ("lib", "pub fn add", "fn add"),
        ("inner", "pub size", "size"),
        ("inner", "Clone, Debug", "Debug"),
        ("outer", "#[non_exhaustive]\n", ""),
        ("outer", "x: f64", "x: f32"),
        ("outer", "Span::ms(5)", "Span::ms(6)"),
        ("outer", "=> Span::s(10)", "=> Span::s(20)"),
        ("outer", "impl Default", "impl Copy"),
    ],
)
def test_a_change_is_noticed(tmp_path: Path, file: str, before: str, after: str) -> None:
    """Each change of the interface changes the listing."""
    text = {"lib": LIB, "inner": INNER, "outer": OUTER}[file]
    assert listing(tmp_path, **{file: text.replace(before, after)}) != LISTED.split("\n")


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("lib", "a + b", "b + a"),
        ("inner", "private: u32,\n}", "secret: u32,\n}"),
        ("lib", "Adds", "A"),
    ],
)
def test_other_changes_are_not_listed(tmp_path: Path, file: str, before: str, after: str) -> None:
    """Bodies, private fields and comments are not part of the interface."""
    text = {"lib": LIB, "inner": INNER}[file]
    assert before in text
    assert listing(tmp_path, **{file: text.replace(before, after)}) == LISTED.split("\n")
