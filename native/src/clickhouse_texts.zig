//! Texts and bytes for ClickHouse, and the types that frames have as texts: UUID, IP addresses, enums.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const shared = @import("clickhouse_rows.zig");
const Array = arrow.Array;
const Error = shared.Error;
const Node = shared.Node;
const Nulls = shared.Nulls;
const Out = shared.Out;
const Rows = shared.Rows;

/// A text, with what stands behind it in its buffer: most texts are short, and a move of a fixed size is the fastest.
const Text = struct {
    rest: []const u8,
    size: usize,

    const move = 32;

    inline fn bytes(self: Text) []const u8 {
        return self.rest[0..self.size];
    }

    /// Have a text that is not empty loaded into the cache, its beginning and its end.
    inline fn prefetch(self: Text) void {
        @prefetch(self.rest.ptr, .{});
        @prefetch(&self.rest[self.size - 1], .{});
    }

    /// Copy the text to a place; up to `move` bytes behind it are changed as well, where there are so many.
    inline fn putAt(self: Text, out: []u8, place: usize) void {
        if (self.size <= move and self.rest.len >= move and out.len - place >= move) {
            out[place..][0..move].* = self.rest[0..move].*;
        } else {
            @memcpy(out[place..][0..self.size], self.rest[0..self.size]);
        }
    }
};

/// Reads the texts of an array. `.fixed` is binary of a fixed size.
fn Reader(comptime layout: arrow.Layout) type {
    return struct {
        array: *const Array,
        values: []const u8,
        data: []const u8,
        more: []const arrow.Buffer,
        offset: usize,
        nulls: Nulls,

        const Self = @This();

        fn of(array: *const Array) Self {
            return .{
                .array = array,
                .values = array.values.bytes(),
                .data = array.data.bytes(),
                .more = if (array.more) |more| more[0..array.more_count] else &.{},
                .offset = array.offset,
                .nulls = .of(array),
            };
        }

        /// The text of more than 12 bytes that a view refers to.
        inline fn behind(self: *const Self, view: u128) Error!Text {
            const size: usize = @as(u32, @truncate(view));
            const buffer: usize = @as(u32, @truncate(view >> 64));
            const first: usize = @as(u32, @truncate(view >> 96));
            if (buffer >= self.more.len) return error.Damaged;
            const data = self.more[buffer].bytes();
            if (first + size > data.len) return error.Damaged;
            return .{ .rest = data[first..], .size = size };
        }

        /// Have what says where a text is loaded into the cache.
        inline fn prefetch(self: *const Self, row: usize) void {
            const width: usize = switch (layout) {
                .text32 => 4,
                .text64 => 8,
                .view => 16,
                .pieces => return self.array.prefetch(&.{row}),
                else => self.array.width,
            };
            const place = (self.offset +% row) *% width;
            if (place < self.values.len) @prefetch(&self.values[place], .{});
        }

        /// The rows behind a part of them, where they stand in an order of their own; the first part is loaded here.
        inline fn ahead(self: *const Self, rows: Rows, done: usize, count: usize) []const u64 {
            const list = rows.list orelse return &.{};
            if (done == 0) for (list[0..count]) |row| self.prefetch(row);
            return list[done + count ..];
        }

        inline fn text(self: *const Self, row: usize) Error!Text {
            const place = self.offset + row;
            switch (layout) {
                .text32, .text64 => {
                    const T = if (layout == .text32) u32 else u64;
                    const width = @sizeOf(T);
                    const first: u64 = std.mem.readInt(T, self.values[place * width ..][0..width], .little);
                    const end: u64 = std.mem.readInt(T, self.values[(place + 1) * width ..][0..width], .little);
                    if (first > end or end > self.data.len) return error.Damaged;
                    return .{ .rest = self.data[first..], .size = end - first };
                },
                .view => {
                    const view = self.values[place * 16 ..][0..16];
                    const size: usize = std.mem.readInt(u32, view[0..4], .little);
                    if (size <= 12) return .{ .rest = view[4..], .size = size };
                    return self.behind(std.mem.readInt(u128, view, .little));
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

const block = 128; // texts at a time

/// Find the texts of some rows, and have what is to be read next loaded into the cache: rows in an order of their own
/// stand far apart, and each load would be waited for. Return how many bytes the texts are.
inline fn find(comptime layout: arrow.Layout, reader: *const Reader(layout), rows: Rows, done: usize, part: []Text) Error!usize {
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

/// String: the size, in seven bits a byte, and the bytes.
pub fn strings(comptime layout: arrow.Layout) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const reader: Reader(layout) = .of(node.array);
            if (layout == .view) return views(&reader, rows, out);
            var texts: [block]Text = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = texts[0..@min(block, rows.count - done)];
                const total = try find(layout, &reader, rows, done, part);
                const before = out.used;
                const to = try out.more(total + part.len * shared.varint_most + Text.move);
                var place: usize = 0;
                for (part) |text| {
                    place = shared.putVarint(to, place, text.size);
                    text.putAt(to, place);
                    place += text.size;
                }
                out.used = before + place;
                done += part.len;
            }
        }
    };
}

/// As `strings`, for views: one of 12 bytes at most is moved as it is, and no other line of the cache is touched.
fn views(reader: *const Reader(.view), rows: Rows, out: *Out) Error!void {
    var all: [block]u128 = undefined;
    var done: usize = 0;
    while (done < rows.count) {
        const part = all[0..@min(block, rows.count - done)];
        const total = try findViews(reader, rows, done, part);
        const before = out.used;
        const to = try out.more(total + part.len * shared.varint_most + Text.move);
        var place: usize = 0;
        for (part) |view| {
            const size: usize = @as(u32, @truncate(view));
            place = shared.putVarint(to, place, size);
            if (size <= 12) {
                std.mem.writeInt(u128, to[place..][0..16], view >> 32, .little);
            } else {
                (try reader.behind(view)).putAt(to, place);
            }
            place += size;
        }
        out.used = before + place;
        done += part.len;
    }
}

fn findViews(reader: *const Reader(.view), rows: Rows, done: usize, part: []u128) Error!usize {
    const ahead = reader.ahead(rows, done, part.len);
    var total: usize = 0;
    for (part, done..) |*view, i| {
        if (i - done < ahead.len) reader.prefetch(ahead[i - done]);
        const row = rows.at(i);
        view.* = 0;
        if (reader.nulls.absent(row)) continue;
        view.* = std.mem.readInt(u128, reader.values[(reader.offset + row) * 16 ..][0..16], .little);
        const size: usize = @as(u32, @truncate(view.*));
        total += size;
        if (size > 12 and rows.list != null) (try reader.behind(view.*)).prefetch();
    }
    return total;
}

/// Values of a fixed size that are made of texts or bytes by `Form.put`.
fn made(comptime layout: arrow.Layout, comptime Form: type) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const reader: Reader(layout) = .of(node.array);
            const width = node.width;
            const to = try out.more(rows.count * width);
            var texts: [block]Text = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = texts[0..@min(block, rows.count - done)];
                _ = try find(layout, &reader, rows, done, part);
                for (part, done..) |text, i| {
                    const place = to[i * width ..][0..width];
                    if (reader.nulls.absent(rows.at(i))) @memset(place, 0) else try Form.put(text.bytes(), place, node);
                }
                done += part.len;
            }
        }
    };
}

/// The encoder of a form for texts and bytes in each of their layouts.
pub fn inLayouts(comptime Form: type) [5]*const fn (*const Node, Rows, *Out) Error!void {
    return .{
        made(.text32, Form).put, made(.text64, Form).put, made(.view, Form).put,
        made(.fixed, Form).put,  made(.pieces, Form).put,
    };
}

/// Enum8 and Enum16: the number of a label; in the place of a null the first label's.
pub fn enums(comptime layout: arrow.Layout) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const labels = node.labels orelse return error.Damaged;
            const numbers = node.numbers.bytes();
            if (labels.length == 0 or numbers.len < 2 * labels.length) return error.Damaged;
            var known: std.StringHashMapUnmanaged(i16) = .empty;
            defer known.deinit(builders.objects);
            const names: Reader(.text32) = .of(labels);
            for (0..labels.length) |i| {
                const name = (try names.text(i)).bytes();
                try known.put(builders.objects, name, std.mem.readInt(i16, numbers[2 * i ..][0..2], .little));
            }
            const reader: Reader(layout) = .of(node.array);
            const width = node.width;
            const to = try out.more(rows.count * width);
            for (0..rows.count) |i| {
                const row = rows.at(i);
                const found = if (reader.nulls.absent(row))
                    std.mem.readInt(i16, numbers[0..2], .little)
                else
                    known.get((try reader.text(row)).bytes()) orelse return error.Form;
                if (width == 1) {
                    to[i] = @bitCast(std.math.cast(i8, found) orelse return error.Damaged);
                } else {
                    std.mem.writeInt(i16, to[2 * i ..][0..2], found, .little);
                }
            }
        }
    };
}
