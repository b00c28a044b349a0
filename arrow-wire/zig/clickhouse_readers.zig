//! The strings of arrays, found in the order in which they are encoded for ClickHouse, and loaded ahead of that.

const std = @import("std");
const arrow = @import("arrow.zig");
const shared = @import("clickhouse_rows.zig");
const unaligned = @import("unaligned.zig");
const Array = arrow.Array;
const Error = shared.Error;
const Nulls = shared.Nulls;
const Rows = shared.Rows;

/// A string, and the bytes behind it in its buffer: most strings are short, and a move of a fixed size is fastest.
pub const Text = struct {
    rest: []const u8,
    size: usize,

    pub const move = 32;

    pub inline fn bytes(self: Text) []const u8 {
        return self.rest[0..self.size];
    }

    /// Load a string that is not empty into the cache, its beginning and its end.
    inline fn prefetch(self: Text) void {
        @prefetch(self.rest.ptr, .{});
        @prefetch(&self.rest[self.size - 1], .{});
    }

    /// Copy the string to a place. It may also change up to `move` bytes behind it.
    pub inline fn putAt(self: Text, out: []u8, place: usize) void {
        if (self.size <= move and self.rest.len >= move and out.len - place >= move) {
            out[place..][0..move].* = self.rest[0..move].*;
        } else {
            @memcpy(out[place..][0..self.size], self.rest[0..self.size]);
        }
    }
};

/// Reads the strings of an array. `.fixed` is binary of a fixed size.
pub fn Reader(comptime layout: arrow.Layout) type {
    return struct {
        array: *const Array,
        values: []const u8,
        data: []const u8,
        more: []const arrow.Buffer,
        offset: usize,
        nulls: Nulls,

        const Self = @This();

        pub fn of(array: *const Array) Self {
            return .{
                .array = array,
                .values = array.values.bytes(),
                .data = array.data.bytes(),
                .more = if (array.more) |more| more[0..array.more_count] else &.{},
                .offset = array.offset,
                .nulls = .of(array),
            };
        }

        /// The string of more than 12 bytes that a view refers to.
        pub inline fn behind(self: *const Self, view: u128) Error!Text {
            const size: usize = @as(u32, @truncate(view));
            const buffer: usize = @as(u32, @truncate(view >> 64));
            const first: usize = @as(u32, @truncate(view >> 96));
            if (buffer >= self.more.len) return error.Damaged;
            const data = self.more[buffer].bytes();
            if (first + size > data.len) return error.Damaged;
            return .{ .rest = data[first..], .size = size };
        }

        /// For a piece of an array: rows and nulls are those of the whole.
        pub fn within(piece: *const Array, whole: *const Array, first: usize) Self {
            var self: Self = .of(piece);
            self.offset = piece.offset +% whole.offset -% first;
            self.nulls = .of(whole);
            return self;
        }

        /// Load the place of a string into the cache.
        inline fn prefetch(self: *const Self, row: usize) void {
            const width: usize = switch (layout) {
                .text32 => 4,
                .text64 => 8,
                .view => 16,
                .pieces => comptime unreachable, // encoded a run at a time
                else => self.array.width,
            };
            const place = (self.offset +% row) *% width;
            if (place < self.values.len) @prefetch(&self.values[place], .{});
        }

        /// The rows behind a part of them, if they have a separate order; the first part is loaded here.
        inline fn ahead(self: *const Self, rows: Rows, done: usize, count: usize) []const u64 {
            const list = rows.list orelse return &.{};
            if (done == 0) for (list[0..count]) |row| self.prefetch(row);
            return list[done + count ..];
        }

        pub inline fn text(self: *const Self, row: usize) Error!Text {
            const place = self.offset +% row;
            switch (layout) {
                .text32, .text64 => {
                    const T = if (layout == .text32) u32 else u64;
                    const width = @sizeOf(T);
                    const first: u64 = unaligned.read(T, self.values[place * width ..][0..width], .little);
                    const end: u64 = unaligned.read(T, self.values[(place + 1) * width ..][0..width], .little);
                    if (first > end or end > self.data.len) return error.Damaged;
                    return .{ .rest = self.data[first..], .size = end - first };
                },
                .view => {
                    const view = self.values[place * 16 ..][0..16];
                    const size: usize = unaligned.read(u32, view[0..4], .little);
                    if (size <= 12) return .{ .rest = view[4..], .size = size };
                    return self.behind(unaligned.read(u128, view, .little));
                },
                .pieces => {
                    const found = try self.array.piece(row);
                    return switch (found.array.layout) {
                        inline .text32, .text64, .view => |below| Reader(below).of(found.array).text(found.row),
                        else => error.Damaged,
                    };
                },
                else => return .{ .rest = self.array.wide(row), .size = self.array.width },
            }
        }
    };
}

/// Rows of one piece of an array; the piece begins with the row `first` of the whole.
pub const Run = struct { piece: *const Array, first: usize, rows: Rows };

/// The rows from `done` on that are in the same piece, as many as follow each other.
pub fn run(array: *const Array, rows: Rows, done: usize) Error!Run {
    var count: usize = 0;
    while (done + count < rows.count and rows.at(done + count) == shared.nowhere) count += 1;
    if (done + count == rows.count) return .{ .piece = array, .first = 0, .rows = rows.part(done, count) };
    const row = rows.at(done + count);
    const found = try array.piece(row);
    const first = array.offset +% row -% found.row;
    if (rows.list) |list| {
        const low = row -% found.row;
        for (list[done + count ..]) |next| {
            if (next != shared.nowhere and next -% low >= found.array.length) break;
            count += 1;
        }
    } else count = @min(rows.count - done, found.array.length - found.row);
    return .{ .piece = found.array, .first = first, .rows = rows.part(done, count) };
}

pub const block = 128; // strings at a time

/// Find the strings of some rows, and load the next ones into the cache. Rows in a separate order are far apart, and
/// the code would wait for each load. Return how many bytes the strings have.
pub inline fn find(comptime layout: arrow.Layout, reader: *const Reader(layout), rows: Rows, done: usize, part: []Text) Error!usize {
    const ahead = reader.ahead(rows, done, part.len);
    var total: usize = 0;
    for (part, 0..) |*text, i| {
        const row = rows.at(done + i);
        text.* = if (reader.nulls.absent(row)) .{ .rest = &.{}, .size = 0 } else try reader.text(row);
        if (i < ahead.len) reader.prefetch(ahead[i]);
        if (rows.list != null and text.size > 0) text.prefetch();
        total += text.size;
    }
    return total;
}

/// As `find`, for the views themselves; that of a null is one of an empty string.
pub fn findViews(reader: *const Reader(.view), rows: Rows, done: usize, part: []u128) Error!usize {
    const ahead = reader.ahead(rows, done, part.len);
    var total: usize = 0;
    for (part, done..) |*view, i| {
        if (i - done < ahead.len) reader.prefetch(ahead[i - done]);
        const row = rows.at(i);
        view.* = 0;
        if (reader.nulls.absent(row)) continue;
        view.* = unaligned.read(u128, reader.values[(reader.offset +% row) * 16 ..][0..16], .little);
        const size: usize = @as(u32, @truncate(view.*));
        total += size;
        if (size > 12 and rows.list != null) (try reader.behind(view.*)).prefetch();
    }
    return total;
}
