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
                    const buffer = std.mem.readInt(u32, view[8..12], .little);
                    const first: usize = std.mem.readInt(u32, view[12..16], .little);
                    if (buffer >= self.more.len) return error.Damaged;
                    const data = self.more[buffer].bytes();
                    if (first + size > data.len) return error.Damaged;
                    return .{ .rest = data[first..], .size = size };
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
    if (rows.list) |list| {
        if (layout == .pieces) reader.array.prefetch(list[done..][0..part.len]);
        const width: usize = switch (layout) {
            .text32 => 4,
            .text64 => 8,
            .view => 16,
            .pieces => reader.values.len, // prefetched already
            else => reader.array.width,
        };
        for (list[done..][0..part.len]) |row| {
            const place = (reader.offset +% row) *% width;
            if (place < reader.values.len) @prefetch(&reader.values[place], .{});
        }
    }
    var total: usize = 0;
    for (part, 0..) |*text, i| {
        const row = rows.at(done + i);
        text.* = if (reader.nulls.absent(row)) .{ .rest = &.{}, .size = 0 } else try reader.text(row);
        if (rows.list != null and text.size > 0) {
            @prefetch(text.rest.ptr, .{});
            @prefetch(&text.rest[text.size - 1], .{});
        }
        total += text.size;
    }
    return total;
}

/// String: the size, in seven bits a byte, and the bytes.
pub fn strings(comptime layout: arrow.Layout) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const reader: Reader(layout) = .of(node.array);
            var texts: [block]Text = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = texts[0..@min(block, rows.count - done)];
                const total = try find(layout, &reader, rows, done, part);
                var sizes: usize = 0;
                for (part) |text| sizes += shared.varintSize(text.size);
                const to = try out.more(total + sizes + Text.move);
                var place: usize = 0;
                for (part) |text| {
                    place = shared.putVarint(to, place, text.size);
                    text.putAt(to, place);
                    place += text.size;
                }
                out.used -= Text.move;
                done += part.len;
            }
        }
    };
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
