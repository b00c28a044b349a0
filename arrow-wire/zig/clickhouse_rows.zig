//! Shared by all encoders for ClickHouse: the rows they take, whether these are null, and the description of a type.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const unaligned = @import("unaligned.zig");
const Array = arrow.Array;

/// `Null`: in a column that takes none. `Range`: beyond the limits of the type. `Inexact`: digits that it has no room
/// for. `Form`: a string that is no value of the type. `Damaged`: an array that contradicts itself.
pub const Error = error{ Null, Range, Inexact, Form, Damaged } || builders.Error;

pub const Out = builders.Bytes;

/// The number of a missing row: its parent is null. The encoder writes a default value.
pub const nowhere = std.math.maxInt(u64);

pub const Rows = struct {
    first: usize = 0, // without an order: the first of the rows
    count: usize,
    list: ?[]const u64 = null, // or these

    pub inline fn at(self: Rows, i: usize) usize {
        return if (self.list) |rows| rows[i] else self.first + i;
    }

    /// Some of them, behind others.
    pub fn part(self: Rows, done: usize, count: usize) Rows {
        return .{ .first = self.first + done, .count = count, .list = if (self.list) |rows| rows[done..][0..count] else null };
    }
};

/// How one type is encoded: its array and, as far as its encoder needs them, the sizes and limits of the type.
/// `arrow_wire/clickhouse_plan.py` makes them. Only whole numbers need the numbers of 256 bits: their factor and
/// divisor, and the lowest and highest result.
pub const Node = extern struct {
    array: *const Array,
    encoder: u32,
    nullable: u32, // whether a byte a row precedes the values, 1 for null
    source: u32, // the sort of number in the array
    width: u32, // bytes of a value on the wire
    factor: [32]u8,
    divisor: [32]u8,
    low: [32]u8,
    high: [32]u8,
    labels: ?*const Array, // of an enum, as strings with offsets of 32 bits
    numbers: arrow.Buffer, // of the labels, 16 bits each
    children: ?[*]const Node,
    child_count: usize,

    pub fn below(self: *const Node) []const Node {
        return if (self.children) |children| children[0..self.child_count] else &.{};
    }
};

/// Whether rows of an array are null.
pub const Nulls = struct {
    bits: []const u8,
    offset: usize,
    always: bool,

    pub fn of(array: *const Array) Nulls {
        return .{ .bits = array.validity.bytes(), .offset = array.offset, .always = array.layout == .nothing };
    }

    pub fn none(self: Nulls) bool {
        return self.bits.len == 0 and !self.always;
    }

    /// Whether a row has no value: it is null, or nowhere.
    pub inline fn absent(self: Nulls, row: usize) bool {
        if (row == nowhere or self.always) return true;
        if (self.bits.len == 0) return false;
        const place = self.offset + row;
        return self.bits[place >> 3] >> @intCast(place & 7) & 1 == 0;
    }
};

/// Whether the value of a row is null, in the array itself or in its dictionary.
pub fn isNull(array: *const Array, row: usize) Error!bool {
    if (array.isNull(row)) return true;
    return array.layout == .dictionary and try isNull(array.child(0), try index(array, row));
}

/// The row of the dictionary that a row refers to, which is not null.
pub fn index(array: *const Array, row: usize) Error!usize {
    const found: u64 = switch (array.width) {
        1 => array.fixed(u8, row),
        2 => array.fixed(u16, row),
        4 => array.fixed(u32, row),
        8 => array.fixed(u64, row),
        else => return error.Damaged,
    };
    return if (found < array.child(0).length) found else error.Damaged;
}

/// Raise Damaged unless the buffers of an array, and of all below it, are as long as it says.
pub fn check(array: *const Array) Error!void {
    try array.check();
    try checkFields(array);
}

/// Raise Damaged where a struct has fewer values in a field than rows.
fn checkFields(array: *const Array) Error!void {
    for (0..array.child_count) |number| {
        const child = array.child(number);
        if (array.layout == .fields and child.length < array.length) return error.Damaged;
        try checkFields(child);
    }
}

/// Raise Damaged unless all rows are rows of an array.
pub fn checkRows(array: *const Array, rows: Rows) Error!void {
    const list = rows.list orelse {
        const end = std.math.add(usize, rows.first, rows.count) catch return error.Damaged;
        return if (end <= array.length) {} else error.Damaged;
    };
    var highest: u64 = 0;
    for (list) |row| highest = @max(highest, if (row == nowhere) 0 else row);
    if (list.len > 0 and highest >= array.length and !(highest == 0 and onlyNowhere(list))) return error.Damaged;
}

fn onlyNowhere(list: []const u64) bool {
    for (list) |row| {
        if (row != nowhere) return false;
    }
    return true;
}

pub const varint_most = 10; // bytes of a number of 64 bits

/// The bytes of a number in seven bits each, the lowest first.
pub inline fn varintSize(number: usize) usize {
    return if (number < 128) 1 else (@as(usize, 63) - @clz(@as(u64, number))) / 7 + 1;
}

/// Write a number in seven bits a byte, and return the place behind it.
pub inline fn putVarint(out: []u8, place: usize, number: usize) usize {
    var left = number;
    var at = place;
    while (left >= 128) : (left >>= 7) {
        out[at] = @intCast(left & 127 | 128);
        at += 1;
    }
    out[at] = @intCast(left);
    return at + 1;
}

pub fn addVarint(out: *Out, number: usize) Error!void {
    const size = varintSize(number);
    _ = putVarint(try out.more(size), 0, number);
}

pub fn addNumber(out: *Out, number: u64) Error!void {
    unaligned.write(u64, (try out.more(8))[0..8], number, .little);
}
