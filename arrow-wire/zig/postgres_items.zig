//! Postgres' arrays as lists: `array_send` in the server's src/backend/utils/adt/arrayfuncs.c. An array's lower bounds
//! are lost: a list has none.

const std = @import("std");
const builders = @import("builders.zig");
const fields = @import("postgres_fields.zig");
const decoding = @import("postgres_decode.zig");
const unaligned = @import("unaligned.zig");
const Column = fields.Column;
const Error = fields.Error;

const most_dimensions = 6;
const batch = 256; // items that are decoded at a time

/// The lists from the outermost to the innermost, and the column of the items.
const Lists = struct {
    columns: [most_dimensions]*builders.Column = undefined,
    depth: usize = 0,
    items: *builders.Column = undefined,
    item: *const Column = undefined,

    fn of(column: *const Column, into: *builders.Column) Error!Lists {
        var made: Lists = .{};
        var list = column;
        var place = into;
        while (true) {
            if (made.depth == most_dimensions or place.children.len != 1) return error.Malformed;
            made.columns[made.depth] = place;
            made.depth += 1;
            place = &place.children[0];
            list = list.item orelse return error.Malformed;
            if (!decoding.isList(list)) break;
        }
        made.items = place;
        made.item = list;
        return made;
    }
};

pub const Array = struct {
    pub fn take(column: *const Column, into: *builders.Column, block: fields.Block, at: *usize) Error!void {
        var lists: Lists = try .of(column, into);
        const first = into.length;
        const ends = try into.add(block.fields.len);
        for (block.fields, 0..) |field, i| {
            errdefer at.* = i;
            if (field.size < 0) {
                try into.setNull(first + i);
            } else {
                try takeOne(&lists, block, field);
            }
            try into.endList(ends, i);
        }
    }
};

/// Add the items of one array to the lists below the outermost one, whose end the caller sets.
fn takeOne(lists: *Lists, block: fields.Block, field: fields.Field) Error!void {
    const bytes = block.bytes(field);
    if (bytes.len < 12) return error.Malformed;
    const dimensions = unaligned.read(u32, bytes[0..4], .big);
    if (dimensions == 0) return;
    if (dimensions != lists.depth) return if (dimensions > most_dimensions) error.Malformed else error.Depth;
    const header = 12 + 8 * @as(usize, dimensions);
    if (bytes.len < header) return error.Malformed;
    var count: usize = 1;
    var lengths: [most_dimensions]usize = undefined;
    for (0..dimensions) |i| {
        lengths[i] = unaligned.read(u32, bytes[12 + 8 * i ..][0..4], .big);
        if (lengths[i] == 0) return error.Malformed;
        count = std.math.mul(usize, count, lengths[i]) catch return error.Malformed;
        if (count > bytes.len / 4) return error.Malformed; // an item has four bytes at least
    }
    try takeItems(lists, block, field.start + @as(u32, @intCast(header)), bytes[header..], count);
    var number: usize = 1; // of lists at this depth
    for (1..dimensions) |depth| {
        number *= lengths[depth - 1];
        try lists.columns[depth].addLists(number, lengths[depth]);
    }
}

/// Walk the items of an array, which have to be just as many, and decode them.
fn takeItems(lists: *Lists, block: fields.Block, start: u32, bytes: []const u8, count: usize) Error!void {
    var found: [batch]fields.Field = undefined;
    var used: usize = 0;
    var place: usize = 0;
    for (0..count) |_| {
        if (bytes.len - place < 4) return error.Malformed;
        const size = unaligned.read(i32, bytes[place..][0..4], .big);
        place += 4;
        found[used] = .{ .start = start + @as(u32, @intCast(place)), .size = size };
        if (size < -1) return error.Malformed;
        if (size > 0) {
            if (bytes.len - place < @as(usize, @intCast(size))) return error.Malformed;
            place += @intCast(size);
        }
        used += 1;
        if (used == batch) {
            try takeBatch(lists, block, found[0..used]);
            used = 0;
        }
    }
    if (place != bytes.len) return error.Malformed;
    if (used > 0) try takeBatch(lists, block, found[0..used]);
}

fn takeBatch(lists: *Lists, block: fields.Block, found: []const fields.Field) Error!void {
    var at: usize = 0;
    try decoding.take(lists.item, lists.items, .{ .data = block.data, .fields = found }, &at);
}
