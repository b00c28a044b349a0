//! Lists as Postgres' arrays: `array_recv` in the server's src/backend/utils/adt/arrayfuncs.c. An array is a rectangle of
//! up to six dimensions, and one without items has none: lists that are none are refused.

const std = @import("std");
const postgres = @import("postgres_column.zig");
const table = @import("postgres_encode.zig");
const unaligned = @import("unaligned.zig");
const Column = postgres.Column;
const Error = postgres.Error;

const most_dimensions = 6;

/// How large a rectangle is; `null` until the first list sets it.
const Rectangle = struct {
    lengths: [most_dimensions]?usize = @splat(null),
    depth: usize = 0,
    bytes: usize = 0, // of the items, their lengths included
    nulls: bool = false,

    fn dimensions(self: *const Rectangle) usize {
        return if (self.lengths[0].? == 0) 0 else self.depth;
    }
};

pub const Array = struct {
    pub fn size(column: *const Column, row: usize) Error!usize {
        const found = try measured(column, row);
        const bytes = 12 + 8 * found.dimensions() + found.bytes;
        return if (bytes <= postgres.most_bytes) bytes else error.TooLong;
    }

    pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
        const found = try measured(column, row);
        const dimensions = found.dimensions();
        const innermost = innermostOf(column);
        unaligned.write(u32, out[0..4], @intCast(dimensions), .big);
        unaligned.write(u32, out[4..8], @intFromBool(found.nulls), .big);
        unaligned.write(u32, out[8..12], innermost.oid, .big);
        for (found.lengths[0..dimensions], 0..) |length, i| {
            unaligned.write(u32, out[12 + 8 * i ..][0..4], @intCast(length.?), .big);
            unaligned.write(u32, out[16 + 8 * i ..][0..4], 1, .big); // where its numbers begin
        }
        const first = 12 + 8 * dimensions;
        return first + try putItems(column, row, out[first..]);
    }
};

fn innermostOf(column: *const Column) *const Column {
    var list = column;
    while (table.isList(list.item.?)) list = list.item.?;
    return list;
}

fn measured(column: *const Column, row: usize) Error!Rectangle {
    var found: Rectangle = .{};
    try measure(column, row, 0, &found);
    if (found.lengths[0].? > 0) {
        for (found.lengths[0..found.depth]) |length| if (length orelse 0 == 0) return error.Ragged;
    }
    return found;
}

fn measure(column: *const Column, row: usize, depth: usize, found: *Rectangle) Error!void {
    if (depth == most_dimensions) return error.TooLong;
    const first, const end = try column.array.items(row);
    if (end - first > std.math.maxInt(i32)) return error.TooLong;
    found.depth = @max(found.depth, depth + 1);
    if (found.lengths[depth]) |length| {
        if (length != end - first) return error.Ragged;
    }
    found.lengths[depth] = end - first;
    const item = column.item.?;
    const encoder = table.encoderOf(item);
    for (first..end) |place| {
        if (table.isList(item)) {
            if (item.array.isNull(place)) return error.Ragged;
            try measure(item, place, depth + 1, found);
        } else if (encoder.isNull(item, place)) {
            found.nulls = true;
            found.bytes += 4;
        } else {
            found.bytes += 4 + try encoder.size(item, place);
        }
    }
}

fn putItems(column: *const Column, row: usize, out: []u8) Error!usize {
    const first, const end = try column.array.items(row);
    const item = column.item.?;
    const encoder = table.encoderOf(item);
    var used: usize = 0;
    for (first..end) |place| {
        if (table.isList(item)) {
            used += try putItems(item, place, out[used..]);
        } else if (encoder.isNull(item, place)) {
            unaligned.write(i32, out[used..][0..4], -1, .big);
            used += 4;
        } else {
            const size = try encoder.put(item, place, out[used + 4 ..]);
            unaligned.write(u32, out[used..][0..4], @intCast(size), .big);
            used += 4 + size;
        }
    }
    return used;
}
