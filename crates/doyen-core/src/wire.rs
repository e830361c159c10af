//! How many bytes a value takes on the wire, without encoding it: the simulator measures every message.
//!
//! The wire's encoding is that of `postcard`: numbers in variable-length form, seven bits a byte, signed ones zigzag;
//! nothing for the names of fields; a number for the variant of an enum. [`encoded_len`] serializes into a counter, of
//! which only additions are left in a release build.

use std::convert::Infallible;
use std::fmt;

use serde::ser::{self, Impossible, Serialize, Serializer};

/// The encoded size of `value` in bytes.
#[inline]
pub fn encoded_len<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter(0);
    match value.serialize(&mut counter) {
        Ok(()) => counter.0,
        Err(Never(never)) => match never {},
    }
}

/// How many bytes a number takes in variable-length form.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    // Zero takes a byte, as one does.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    // `bits.div_ceil(7)` without a division.
    (bits * 9 + 64) / 64
}

/// The bytes so far.
struct Counter(usize);

type Counted<T = ()> = Result<T, Never>;

impl Counter {
    #[inline]
    fn add(&mut self, bytes: usize) -> Counted {
        self.0 += bytes;
        Ok(())
    }

    #[inline]
    fn number(&mut self, number: u64) -> Counted {
        self.add(varint_len(number))
    }

    /// The number of a variant, before its fields.
    #[inline]
    fn variant(&mut self, index: u32) -> Counted<&mut Self> {
        self.number(index.into())?;
        Ok(self)
    }
}

/// No error: counting cannot fail.
#[derive(Debug)]
struct Never(Infallible);

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl ser::Error for Never {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        panic!("a message that cannot be encoded: {reason}")
    }
}

impl std::error::Error for Never {}

/// Methods of [`Serializer`] that only count.
macro_rules! count {
    ($($method:ident($($argument:tt: $type:ty),*) => $counter:ident.$add:ident($bytes:expr);)*) => {$(
        #[inline]
        fn $method(self, $($argument: $type),*) -> Counted {
            let $counter = self;
            $counter.$add($bytes)
        }
    )*};
}

type Name = &'static str;

impl Serializer for &mut Counter {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Impossible<(), Never>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    count! {
        serialize_bool(_: bool) => counter.add(1);
        serialize_i8(_: i8) => counter.add(1);
        serialize_i16(value: i16) => counter.number(zigzag(value.into()));
        serialize_i32(value: i32) => counter.number(zigzag(value.into()));
        serialize_i64(value: i64) => counter.number(zigzag(value));
        serialize_u8(_: u8) => counter.add(1);
        serialize_u16(value: u16) => counter.number(value.into());
        serialize_u32(value: u32) => counter.number(value.into());
        serialize_u64(value: u64) => counter.number(value);
        serialize_u128(value: u128) => counter.add((128 - (value | 1).leading_zeros()).div_ceil(7) as usize);
        serialize_f32(_: f32) => counter.add(4);
        serialize_f64(_: f64) => counter.add(8);
        serialize_char(value: char) => counter.add(1 + value.len_utf8());
        serialize_str(value: &str) => counter.add(varint_len(value.len() as u64) + value.len());
        serialize_bytes(value: &[u8]) => counter.add(varint_len(value.len() as u64) + value.len());
        serialize_none() => counter.add(1);
        serialize_unit() => counter.add(0);
        serialize_unit_struct(_: Name) => counter.add(0);
        serialize_unit_variant(_: Name, index: u32, _: Name) => counter.number(index.into());
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Counted {
        self.add(1)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: Name, value: &T) -> Counted {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T>(self, _: Name, index: u32, _: Name, value: &T) -> Counted
    where
        T: Serialize + ?Sized,
    {
        value.serialize(self.variant(index)?)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Counted<Self> {
        self.number(len.expect("the length of a list in a message is known") as u64)?;
        Ok(self)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Counted<Self> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: Name, _: usize) -> Counted<Self> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(self, _: Name, index: u32, _: Name, _: usize) -> Counted<Self> {
        self.variant(index)
    }

    fn serialize_map(self, _: Option<usize>) -> Counted<Self::SerializeMap> {
        unreachable!("messages contain no maps")
    }

    #[inline]
    fn serialize_struct(self, _: Name, _: usize) -> Counted<Self> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(self, _: Name, index: u32, _: Name, _: usize) -> Counted<Self> {
        self.variant(index)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// A compound value takes as much as its parts.
macro_rules! compound {
    ($($name:ident::$part:ident($($key:ty)?);)*) => {$(
        impl ser::$name for &mut Counter {
            type Ok = ();
            type Error = Never;

            #[inline]
            fn $part<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Counted {
                value.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> Counted {
                Ok(())
            }
        }
    )*};
}

compound! {
    SerializeSeq::serialize_element();
    SerializeTuple::serialize_element();
    SerializeTupleStruct::serialize_field();
    SerializeTupleVariant::serialize_field();
    SerializeStruct::serialize_field(Name);
    SerializeStructVariant::serialize_field(Name);
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
