//! A column on its way to Postgres: its array, and the facts on both sides that its encoder needs.

const arrow = @import("arrow.zig");

/// Why a value has no form in the server's type. `arrow_wire/postgres_encoder.py` has a message for each, in this
/// order.
pub const Error = error{
    Range, // more or less than the type holds
    Inexact, // digits or a part of a second that the type cannot hold
    Malformed, // a string that is no value of the type
    Ragged, // lists of different lengths, or null ones, where an array is a rectangle
    TooLong, // bytes or dimensions
    Damaged, // the array itself
};

pub fn number(reason: Error) u32 {
    return switch (reason) {
        error.Range => 1,
        error.Inexact => 2,
        error.Malformed => 3,
        error.Ragged => 4,
        error.TooLong => 5,
        error.Damaged => 6,
    };
}

pub const Column = extern struct {
    array: *const arrow.Array,
    item: ?*const Column, // of a list: how one of its items is encoded
    encoder: u32,
    oid: u32, // of a list: the type of the items that are no lists
    multiply: i64, // units of the server's in one of the array's,
    divide: i64, // or the other way round
    shift: i64, // taken off after that: another epoch
    low: i64, // the least and the most that is right then
    high: i64,
    digits: i32, // of a numeric, or 0 where they are not limited
    scale: i32, // of a numeric, where its digits are limited
    array_scale: i32, // of an array of decimals

    pub fn isNull(self: *const Column, row: usize) bool {
        return self.array.isNull(row);
    }
};

/// Bytes of a value that Postgres can hold.
pub const most_bytes = (1 << 30) - 1;
