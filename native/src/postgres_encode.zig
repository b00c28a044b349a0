//! Arrow arrays into Postgres' binary COPY: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
//!
//! A block of rows is encoded one column after the other. The first pass adds up how long each row becomes, the second
//! puts each value where its row has got to. So every loop is of one type, and the values of many rows, which may be
//! taken in any order, are loaded from memory at the same time.

const std = @import("std");
const arrow = @import("arrow.zig");
const Array = arrow.Array;

/// One column: its array, and which of the encoders below it takes.
pub const Column = extern struct {
    array: *const Array,
    encoder: u32,
};

/// Where encoding came to. `wrong` is a column number where a value has no form in the server's type, else -1;
/// `needs` is how many bytes the next row takes, where the buffer is too small for it alone, else 0.
pub const Progress = extern struct {
    row: usize = 0,
    written: usize = 0,
    needs: usize = 0,
    wrong: i64 = -1,
};

pub const block_rows = 512;
const header = 2; // bytes of a row before its first value: the number of its columns

const Block = struct {
    order: ?[]const u64, // the rows to take, or all of them as they stand
    first: usize,
    count: usize,

    inline fn row(self: Block, i: usize) usize {
        return if (self.order) |order| order[self.first + i] else self.first + i;
    }
};

const most = (1 << 30) - 1; // bytes of a value that Postgres can hold

const Error = error{Wrong};

/// What knows one type: `size` of a value, which is no null, and `put`, which fills a slice of that size.
const Encoder = struct {
    sizes: *const fn (array: *const Array, block: Block, sizes: []usize) Error!void,
    values: *const fn (array: *const Array, block: Block, places: []usize, out: []u8) void,
};

fn encoder(comptime Type: type) Encoder {
    const loops = struct {
        fn sizes(array: *const Array, block: Block, of_rows: []usize) Error!void {
            for (of_rows, 0..) |*size, i| {
                const row = block.row(i);
                size.* += 4 + if (array.isNull(row)) 0 else try Type.size(array, row);
            }
        }

        fn values(array: *const Array, block: Block, places: []usize, out: []u8) void {
            for (places, 0..) |*place, i| {
                const row = block.row(i);
                const at = place.*;
                if (array.isNull(row)) {
                    std.mem.writeInt(i32, out[at..][0..4], -1, .big);
                    place.* = at + 4;
                } else {
                    const size = Type.put(array, row, out[at + 4 ..]);
                    std.mem.writeInt(u32, out[at..][0..4], @intCast(size), .big);
                    place.* = at + 4 + size;
                }
            }
        }
    };
    return .{ .sizes = loops.sizes, .values = loops.values };
}

/// A number of the same width on both sides, moved to another epoch where it is a date or a time.
fn Number(comptime T: type) type {
    return struct {
        const width = @divExact(@bitSizeOf(T), 8);

        fn size(_: *const Array, _: usize) Error!usize {
            return width;
        }

        fn put(array: *const Array, row: usize, out: []u8) usize {
            std.mem.writeInt(T, out[0..width], array.fixed(T, row), .big);
            return width;
        }
    };
}

fn Text(comptime layout: arrow.Layout) type {
    return struct {
        fn size(array: *const Array, row: usize) Error!usize {
            const length = array.text(layout, row).len;
            return if (length <= most) length else error.Wrong;
        }

        fn put(array: *const Array, row: usize, out: []u8) usize {
            const bytes = array.text(layout, row);
            @memcpy(out[0..bytes.len], bytes);
            return bytes.len;
        }
    };
}

/// The encoders by their numbers; `arrow_wire/postgres.py` says which types of Arrow and of the server each is for.
const encoders = [_]Encoder{
    encoder(Number(i16)),
    encoder(Number(i32)),
    encoder(Number(i64)),
    encoder(Text(.text32)),
    encoder(Text(.text64)),
    encoder(Text(.view)),
};

/// Encode rows from `progress.row` up to `end` into `out`, as many as fit.
pub fn encode(columns: []const Column, order: ?[]const u64, end: usize, out: []u8, progress: *Progress) void {
    progress.* = .{ .row = progress.row };
    while (progress.row < end) {
        var sizes: [block_rows]usize = undefined;
        var places: [block_rows]usize = undefined;
        const block: Block = .{ .order = order, .first = progress.row, .count = @min(block_rows, end - progress.row) };
        @memset(sizes[0..block.count], header);
        for (columns, 0..) |column, number| {
            encoders[column.encoder].sizes(column.array, block, sizes[0..block.count]) catch {
                progress.wrong = @intCast(number);
                return;
            };
        }
        const rows = fitting(sizes[0..block.count], places[0..block.count], progress.written, out.len);
        if (rows == 0) {
            if (progress.written == 0) progress.needs = sizes[0];
            return;
        }
        const last = places[rows - 1] + sizes[rows - 1];
        for (places[0..rows]) |*place| {
            std.mem.writeInt(u16, out[place.*..][0..2], @intCast(columns.len), .big);
            place.* += header;
        }
        for (columns) |column| {
            encoders[column.encoder].values(column.array, block, places[0..rows], out);
        }
        progress.written = last;
        progress.row += rows;
        if (rows < block.count) return;
    }
}

/// Set where each row begins, from `start` on; return how many of them end before `limit`.
fn fitting(sizes: []const usize, places: []usize, start: usize, limit: usize) usize {
    var place = start;
    for (sizes, places, 0..) |size, *at, row| {
        if (place + size > limit) return row;
        at.* = place;
        place += size;
    }
    return sizes.len;
}
