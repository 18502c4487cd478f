//! Snapshots of numbers, texts, and collections of the standard library.

use super::{Reader, Snapshot, Writer, layout};
use crate::error::Result;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::marker::PhantomData;
use core::ops::Range;

/// Implements [`Snapshot`] for types that are replaced as a whole: hash, how a value is saved, and
/// how one is created.
macro_rules! values {
    ($( [$($generics:tt)*] $Type:ty, $layout:expr, $save:expr, $create:expr; )*) => { $(
        impl<$($generics)*> Snapshot for $Type {
            fn layout() -> u64 {
                $layout
            }
            fn layout_of(&self) -> u64 {
                Self::layout()
            }
            fn save_to(&self, out: &mut Writer) -> Result<()> {
                let save: fn(&Self, &mut Writer) -> Result<()> = $save;
                save(self, out)
            }
            fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
                *self = Self::create_from(input)?;
                Ok(())
            }
            fn create_from(input: &mut Reader<'_>) -> Result<Self> {
                let create: fn(&mut Reader<'_>) -> Result<Self> = $create;
                create(input)
            }
        }
    )* };
}

/// Implements [`Snapshot`] for integers.
macro_rules! integers {
    ($($Type:ident $number:literal),*) => { values! { $(
        [] $Type, $number,
        |value, out| {
            out.number(u128::from(*value));
            Ok(())
        },
        |input| $Type::try_from(input.number()?).map_err(|_| input.invalid(stringify!($Type)));
    )* } };
}

integers! { u8 1, u16 2, u32 3, u64 4, u128 5 }

/// Implements [`Snapshot`] for signed integers: 0, -1, 1, -2 and so on are 0, 1, 2, 3.
macro_rules! signed {
    ($($Type:ident $Unsigned:ident $number:literal),*) => { values! { $(
        [] $Type, $number,
        |value, out| {
            let folded = (*value << 1) ^ (*value >> ($Type::BITS - 1));
            folded.cast_unsigned().save_to(out)
        },
        |input| {
            let folded = $Unsigned::create_from(input)?;
            Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
        };
    )* } };
}

signed! { i8 u8 6, i16 u16 7, i32 u32 8, i64 u64 9, i128 u128 10 }

values! {
    [] usize, 11,
    |value, out| {
        out.length(*value);
        Ok(())
    },
    |input| usize::try_from(input.number()?).map_err(|_| input.invalid("usize"));

    [] bool, 12,
    |value, out| {
        out.byte(u8::from(*value));
        Ok(())
    },
    |input| match input.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(input.invalid("bool")),
    };

    [] f64, 13,
    |value, out| {
        out.bytes(&value.to_bits().to_le_bytes());
        Ok(())
    },
    |input| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(input.bytes(8)?);
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    };

    [] String, 14,
    |value, out| {
        out.text(value);
        Ok(())
    },
    |input| input.text().map(String::from);

    [T] PhantomData<T>, 23, |_, _| Ok(()), |_| Ok(PhantomData);

    [T: Snapshot] Arc<[T]>, layout(19, &[T::layout()]),
    |list, out| {
        out.length(list.len());
        list.iter().try_for_each(|value| value.save_to(out))
    },
    |input| Vec::create_from(input).map(Arc::from);

    [T: Snapshot + Ord] BinaryHeap<T>, layout(15, &[T::layout()]),
    |heap, out| {
        // In the order of the array, which is a heap already: it is read in the same order.
        out.length(heap.len());
        heap.iter().try_for_each(|value| value.save_to(out))
    },
    |input| Vec::create_from(input).map(BinaryHeap::from);

    [K: Snapshot + Ord, V: Snapshot] BTreeMap<K, V>, layout(16, &[K::layout(), V::layout()]),
    |map, out| {
        out.length(map.len());
        map.iter().try_for_each(|(key, value)| {
            key.save_to(out)?;
            value.save_to(out)
        })
    },
    |input| {
        let length = input.length()?;
        (0..length).map(|_| Ok((K::create_from(input)?, V::create_from(input)?))).collect()
    };
}

/// Implements [`Snapshot`] for lists: elements that exist are loaded in place.
macro_rules! lists {
    ($($List:ident $number:literal $push:ident),*) => { $(
        impl<T: Snapshot> Snapshot for $List<T> {
            fn layout() -> u64 {
                layout($number, &[T::layout()])
            }
            fn layout_of(&self) -> u64 {
                Self::layout()
            }
            fn save_to(&self, out: &mut Writer) -> Result<()> {
                out.length(self.len());
                self.iter().try_for_each(|value| value.save_to(out))
            }
            fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
                let length = input.length()?;
                self.truncate(length);
                self.iter_mut().try_for_each(|value| value.load_from(input))?;
                for _ in self.len()..length {
                    self.$push(T::create_from(input)?);
                }
                Ok(())
            }
            fn create_from(input: &mut Reader<'_>) -> Result<Self> {
                let mut list = Self::new();
                list.load_from(input)?;
                Ok(list)
            }
        }
    )* };
}

lists! { Vec 17 push, VecDeque 18 push_back }

impl<T: Snapshot> Snapshot for Box<[T]> {
    fn layout() -> u64 {
        layout(19, &[T::layout()])
    }
    fn layout_of(&self) -> u64 {
        Self::layout()
    }
    fn save_to(&self, out: &mut Writer) -> Result<()> {
        out.length(self.len());
        self.iter().try_for_each(|value| value.save_to(out))
    }
    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let mut list = core::mem::take(self).into_vec();
        list.load_from(input)?;
        *self = list.into_boxed_slice();
        Ok(())
    }
    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        Vec::create_from(input).map(Vec::into_boxed_slice)
    }
}

impl<T: Snapshot, const N: usize> Snapshot for [T; N] {
    fn layout() -> u64 {
        layout(20, &[T::layout(), N as u64])
    }
    fn layout_of(&self) -> u64 {
        Self::layout()
    }
    fn save_to(&self, out: &mut Writer) -> Result<()> {
        self.iter().try_for_each(|value| value.save_to(out))
    }
    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.iter_mut().try_for_each(|value| value.load_from(input))
    }
    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        let list: Result<Vec<T>> = (0..N).map(|_| T::create_from(input)).collect();
        list?.try_into().map_err(|_| input.invalid("array"))
    }
}

impl<T: Snapshot> Snapshot for Option<T> {
    fn layout() -> u64 {
        layout(21, &[T::layout()])
    }
    fn layout_of(&self) -> u64 {
        Self::layout()
    }
    fn save_to(&self, out: &mut Writer) -> Result<()> {
        self.is_some().save_to(out)?;
        self.iter().try_for_each(|value| value.save_to(out))
    }
    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        match (bool::create_from(input)?, &mut *self) {
            (true, Some(value)) => value.load_from(input)?,
            (true, None) => *self = Some(T::create_from(input)?),
            (false, _) => *self = None,
        }
        Ok(())
    }
    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        let is_some = bool::create_from(input)?;
        is_some.then(|| T::create_from(input)).transpose()
    }
}

impl<T: Snapshot> Snapshot for Box<T> {
    fn layout() -> u64 {
        T::layout()
    }
    fn layout_of(&self) -> u64 {
        (**self).layout_of()
    }
    fn save_to(&self, out: &mut Writer) -> Result<()> {
        (**self).save_to(out)
    }
    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        (**self).load_from(input)
    }
    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        T::create_from(input).map(Box::new)
    }
}

/// Implements [`Snapshot`] for structs with public fields and tuples.
macro_rules! structs {
    ($( [$($T:ident),*] $Type:ty, $pattern:pat => $value:expr, $($field:ident)*; )*) => { $(
        impl<$($T: Snapshot),*> Snapshot for $Type {
            fn layout() -> u64 {
                layout(22, &[$($T::layout()),*])
            }
            fn layout_of(&self) -> u64 {
                Self::layout()
            }
            fn save_to(&self, out: &mut Writer) -> Result<()> {
                let $pattern = self;
                $( $field.save_to(out)?; )*
                Ok(())
            }
            fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
                let $pattern = self;
                $( $field.load_from(input)?; )*
                Ok(())
            }
            fn create_from(input: &mut Reader<'_>) -> Result<Self> {
                $( let $field = Snapshot::create_from(input)?; )*
                Ok($value)
            }
        }
    )* };
}

structs! {
    [A, B] (A, B), (a, b) => (a, b), a b;
    [A, B, C] (A, B, C), (a, b, c) => (a, b, c), a b c;
    [A, B, C, D] (A, B, C, D), (a, b, c, d) => (a, b, c, d), a b c d;
    [A] Reverse<A>, Reverse(a) => Reverse(a), a;
    [A] Range<A>, Range { start, end } => Range { start, end }, start end;
}
