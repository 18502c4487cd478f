//! Keys of a scenario, declared once each by [`table!`] in the file that reads the table. From the
//! declaration follow the parser's defaults and ranges, the field, its getter, the setter of the
//! builder, the canonical form, the reference (docs/reference/scenario.md, `sojourn list scenario`)
//! and the Python classes.

use serde_json::Value as Json;
use sojourn_aqm::Overhead;
use sojourn_aqm::params::Value;
use sojourn_aqm::units::{Bytes, Rate, Span};

/// Meaning of a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The key is required.
    Required,
    /// Default value, as text.
    Is(&'static str),
    /// Default described in words.
    Means(&'static str),
}

/// Key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Kind of value, as named by [`sojourn_aqm::params::Value::kind`].
    pub kind: &'static str,
    /// Meaning if not given.
    pub default: DefaultValue,
    /// Minimum and maximum, if bounded.
    pub range: Option<(&'static str, &'static str)>,
    /// Description.
    pub description: &'static str,
    /// Example value in TOML.
    pub example: &'static str,
}

/// Table of a scenario.
#[derive(Debug)]
pub struct Table {
    /// Path of the table; NAME stands for a name given by the scenario.
    pub path: &'static str,
    /// Description.
    pub about: &'static str,
    /// Keys in their usual order.
    pub keys: &'static [Key],
}

impl Table {
    /// Key called `name`.
    ///
    /// # Panics
    /// If the table has no such key, which is a bug in the parser.
    pub fn key(&self, name: &str) -> &Key {
        let key = self.keys.iter().find(|key| key.name == name);
        key.unwrap_or_else(|| panic!("{} has no key {name}", self.path))
    }

    /// Default of the key called `name`.
    ///
    /// # Panics
    /// If it has no default.
    pub fn default_of(&self, name: &str) -> Json {
        match self.key(name).default {
            DefaultValue::Is(text) => Json::from(text),
            _ => panic!("{name} has no default"),
        }
    }
}

/// Type of a key whose value stands alone.
pub(crate) trait KeyType: Value + Copy {
    /// As [`Value::kind`].
    const KIND: &'static str;

    /// Returns the value as in the canonical form of a scenario.
    fn to_json(self) -> Json;
}

/// Implements [`KeyType`]: the type, its kind, and the conversion of a value.
macro_rules! key_types {
    ($($Type:ty: $kind:literal, $value:ident => $json:expr;)*) => {
        $(impl KeyType for $Type {
            const KIND: &'static str = $kind;

            fn to_json(self) -> Json {
                let $value = self;
                $json
            }
        })*

        #[cfg(test)]
        fn kinds() -> Vec<(&'static str, String)> {
            vec![$((<$Type as KeyType>::KIND, <$Type as Value>::kind())),*]
        }
    };
}

key_types! {
    Span: "duration", span => span.write().into();
    Rate: "rate", rate => rate.write().into();
    Bytes: "bytes", bytes => bytes.write().into();
    u64: "integer", number => number.into();
    bool: "flag", flag => flag.into();
    Overhead: "overhead", overhead => overhead.write().into();
    // JSON does not have NaN; the parser refuses its text.
    f64: "number", x => if x.is_finite() { x.into() } else { x.write().into() };
}

/// Declares a table of keys. After the description of the table and its path, a key has its
/// description and then `name: TYPE, DEFAULT, [LEAST => LARGEST], EXAMPLE;` (`[]` for any value).
///
/// - TYPE: a [`KeyType`], or the kind in quotes if the value is read and written by hand.
/// - DEFAULT: `required`, `default "VALUE"`, or `optional "what its absence means"`.
/// - A name that is not an identifier follows the field: `bad_loss = "1-h": f64, ...`.
///
/// With `struct Keys of Owner, setters NAME` the keys with a type become the fields of `Keys`, with
/// the functions `read` and `write`. `Owner` has a field `keys` of this type and gets a getter of
/// each key. The macro `NAME!` defines the setters of a builder.
macro_rules! table {
    (@type optional $Type:ty) => { Option<$Type> };
    (@type $rule:ident $Type:ty) => { $Type };

    (@read optional $fields:ident, $key:expr) => { $fields.read($key)? };
    (@read $rule:ident $fields:ident, $key:expr) => { $fields.read_or_default($key)? };

    (@write optional $value:expr, $key:expr, $map:ident) => {
        if let Some(value) = $value {
            let value = $crate::parsing::keys::KeyType::to_json(value);
            $crate::parsing::object::insert($map, $key, value);
        }
    };
    (@write $rule:ident $value:expr, $key:expr, $map:ident) => {
        let value = $crate::parsing::keys::KeyType::to_json($value);
        $crate::parsing::object::insert($map, $key, value);
    };

    (@default required) => { $crate::parsing::keys::DefaultValue::Required };
    (@default default $value:literal) => { $crate::parsing::keys::DefaultValue::Is($value) };
    (@default optional $words:literal) => { $crate::parsing::keys::DefaultValue::Means($words) };

    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };

    (@range) => { None };
    (@range $least:literal $largest:literal) => { Some(($least, $largest)) };

    // A key that is read by hand.
    (@rows $head:tt $fields:tt [$($key:tt)*]
        $(#[doc = $doc:literal])+
        $field:ident $(= $name:literal)?: $kind:literal, $rule:ident $($default:literal)?,
            [$($least:literal => $largest:literal)?], $example:literal;
        $($rest:tt)*
    ) => {
        $crate::parsing::keys::table! { @rows $head $fields [$($key)* {
            [$($doc),+] ($field $($name)?) ($kind) ($rule $($default)?)
            ($($least $largest)?) $example
        }] $($rest)* }
    };
    // A key with a type.
    (@rows $head:tt [$($known:tt)*] [$($key:tt)*]
        $(#[doc = $doc:literal])+
        $field:ident $(= $name:literal)?: $Type:ty, $rule:ident $($default:literal)?,
            [$($least:literal => $largest:literal)?], $example:literal;
        $($rest:tt)*
    ) => {
        $crate::parsing::keys::table! { @rows $head
            [$($known)* { [$($doc),+] $field ($field $($name)?) $rule $Type }]
            [$($key)* {
                [$($doc),+] ($field $($name)?)
                (<$Type as $crate::parsing::keys::KeyType>::KIND) ($rule $($default)?)
                ($($least $largest)?) $example
            }] $($rest)* }
    };
    // The end of the rows.
    (@rows { [$($about:literal),+] $TABLE:ident $path:literal [$($owner:tt)*] } $fields:tt
        [$({
            [$($doc:literal),+] ($($name:tt)+) ($kind:expr) ($($default:tt)+) ($($range:tt)*)
            $example:literal
        })*]
    ) => {
        #[doc = concat!($($about),+)]
        pub(crate) static $TABLE: $crate::parsing::keys::Table = $crate::parsing::keys::Table {
            path: $path,
            about: sojourn_aqm::params::field::described(concat!($($about),+)),
            keys: &[$($crate::parsing::keys::Key {
                name: $crate::parsing::keys::table!(@name $($name)+),
                kind: $kind,
                default: $crate::parsing::keys::table!(@default $($default)+),
                range: $crate::parsing::keys::table!(@range $($range)*),
                description: sojourn_aqm::params::field::described(concat!($($doc),+)),
                example: sojourn_aqm::params::field::described($example),
            }),*],
        };
        $crate::parsing::keys::table! { @fields $($owner)* $fields }
    };

    (@fields $fields:tt) => {};
    (@fields $Keys:ident $Owner:ident $setters:ident
        [$({ [$($doc:literal),+] $field:ident ($($name:tt)+) $rule:ident $Type:ty })*]
    ) => {
        #[doc = concat!("Values of keys of [`", stringify!($Owner), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $Keys {
            $(
                $(#[doc = $doc])+
                pub(crate) $field: $crate::parsing::keys::table!(@type $rule $Type),
            )*
        }

        impl $Keys {
            /// Reads the values.
            ///
            /// # Errors
            /// If a value has the wrong type or is out of range, or a required key is missing.
            pub(crate) fn read(
                fields: &$crate::parsing::parse::KeyReader<'_>,
            ) -> sojourn_aqm::error::Result<$Keys> {
                Ok($Keys {
                    $($field: $crate::parsing::keys::table!(@read $rule fields,
                        $crate::parsing::keys::table!(@name $($name)+)),)*
                })
            }

            /// Writes the values into a table of the canonical form.
            pub(crate) fn write(self, map: &mut serde_json::Map<String, serde_json::Value>) {
                $($crate::parsing::keys::table!(@write $rule self.$field,
                    $crate::parsing::keys::table!(@name $($name)+), map);)*
            }
        }

        impl $Owner {
            $(
                $(#[doc = $doc])+
                pub fn $field(&self) -> $crate::parsing::keys::table!(@type $rule $Type) {
                    self.keys.$field
                }
            )*
        }

        macro_rules! $setters {
            () => {
                $(
                    #[doc = concat!("Sets `", stringify!($field), "`.\n\n", $($doc),+)]
                    #[must_use]
                    pub fn $field(self, $field: $Type) -> Self {
                        self.set(
                            $crate::parsing::keys::table!(@name $($name)+),
                            $crate::parsing::keys::KeyType::to_json($field),
                        )
                    }
                )*
            };
        }
        pub(super) use $setters;
    };

    (
        $(#[doc = $about:literal])+
        static $TABLE:ident at $path:literal
            $(, struct $Keys:ident of $Owner:ident, setters $setters:ident)?;
        $($rows:tt)*
    ) => {
        $crate::parsing::keys::table! { @rows
            { [$($about),+] $TABLE $path [$($Keys $Owner $setters)?] } [] [] $($rows)* }
    };
}
pub(crate) use table;

/// Kind of value and its notation.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Name, as used in [`Key::kind`] and in parameter tables.
    pub name: &'static str,
    /// Notation.
    pub about: &'static str,
    /// Example values in TOML.
    pub examples: &'static [&'static str],
}

/// All kinds of values.
pub(crate) static KINDS: [Kind; 10] = [
    Kind {
        name: "duration",
        about: "a number with ns, us, ms, s, min or h, in quotes",
        examples: &["\"5ms\"", "\"300us\"", "\"1.5s\"", "\"2min\""],
    },
    Kind {
        name: "rate",
        about: "a number with bit, kbit, mbit, gbit or tbit (per second), or with B/s, kB/s, ...; \
                1 kbit is 1000 bit. mbps is refused, because tc means bytes by it and others bits",
        examples: &["\"10mbit\"", "\"2.5gbit\"", "\"10Mbit/s\"", "\"1.25MB/s\""],
    },
    Kind {
        name: "bytes",
        about: "a number with B, kB (1000 B), MB, GB, or KiB (1024 B), MiB, GiB",
        examples: &["\"1500B\"", "\"300kB\"", "\"64KiB\""],
    },
    Kind { name: "size", about: "bytes, or packets", examples: &["\"300kB\"", "\"100p\""] },
    Kind { name: "number", about: "a number without a unit", examples: &["0.02", "1e-6"] },
    Kind { name: "integer", about: "a whole number from 0", examples: &["3"] },
    Kind {
        name: "overhead",
        about: "words of tc-cake(8): bytes, mpu BYTES, atm, ptm, or a name",
        examples: &["\"44 atm\"", "\"18 mpu 64\"", "\"-4\"", "\"docsis\""],
    },
    Kind { name: "flag", about: "true or false", examples: &["true", "false"] },
    Kind {
        name: "auto",
        about: "where the kind allows it: the value follows from other settings, see the text",
        examples: &["\"auto\""],
    },
    Kind {
        name: "distribution",
        about: "where the kind allows it, a random duration, size in bytes or integer: uniform \
                between two values, exponential or (heavy-tailed) pareto, lomax or lognormal with \
                a mean, or the points of a cumulative distribution, or a file of flow sizes, \
                cdf(FILE); web_search, data_mining and others are flow sizes measured in data \
                centres",
        examples: &[
            "\"uniform(40ms, 200ms)\"",
            "\"exponential(1s)\"",
            "\"pareto(mean=10kB, shape=1.2)\"",
            "\"lomax(mean=10kB, shape=1.2)\"",
            "\"lognormal(mean=1ms, sigma=2)\"",
            "\"cdf(0B 0, 10kB 0.5, 1MB 1)\"",
            "\"web_search\"",
        ],
    },
];

#[cfg(test)]
mod tests;
