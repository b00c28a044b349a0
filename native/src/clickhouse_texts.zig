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
        const width: usize = switch (layout) {
            .text32 => 4,
            .text64 => 8,
            .view => 16,
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
pub fn inLayouts(comptime Form: type) [4]*const fn (*const Node, Rows, *Out) Error!void {
    return .{
        made(.text32, Form).put, made(.text64, Form).put, made(.view, Form).put, made(.fixed, Form).put,
    };
}

/// FixedString: shorter texts are filled up with zeros.
pub const Padded = struct {
    fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
        if (text.len > to.len) return error.Range;
        @memcpy(to[0..text.len], text);
        @memset(to[text.len..], 0);
    }
};

const no_digit = 255;
const digits: [256]u8 = table: {
    var all: [256]u8 = @splat(no_digit);
    for ("0123456789", 0..) |digit, i| all[digit] = i;
    for ("abcdef", "ABCDEF", 10..) |small, large, i| {
        all[small] = i;
        all[large] = i;
    }
    break :table all;
};

/// UUID: two numbers of 64 bits, each with its last byte first; from 36 characters or from 16 bytes.
pub const Uuid = struct {
    const places: [16]u8 = .{ 0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34 };

    fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
        if (text.len == 16) {
            for (0..16) |i| to[i ^ 7] = text[i];
            return;
        }
        if (text.len != 36) return error.Form;
        var seen: u8 = 0;
        inline for (places, 0..) |place, i| {
            const high, const low = .{ digits[text[place]], digits[text[place + 1]] };
            seen |= high | low;
            to[i ^ 7] = high << 4 | (low & 15);
        }
        const hyphens = text[8] == '-' and text[13] == '-' and text[18] == '-' and text[23] == '-';
        if (seen > 15 or !hyphens) return error.Form;
    }
};

/// Whole numbers of any width from their digits; `source` is 1 for signed ones.
pub const Whole = struct {
    fn put(text: []const u8, to: []u8, node: *const Node) Error!void {
        const negative = text.len > 0 and text[0] == '-';
        const shown = if (text.len > 0 and (negative or text[0] == '+')) text[1..] else text;
        if (shown.len == 0) return error.Form;
        var value: u256 = 0;
        for (shown) |character| {
            const digit = digits[character];
            if (digit > 9) return error.Form;
            const product = @mulWithOverflow(value, 10);
            const sum = @addWithOverflow(product[0], digit);
            if (product[1] | sum[1] != 0) return error.Range;
            value = sum[0];
        }
        const bits: u9 = @intCast(@min(256, 8 * to.len));
        const signed = node.source == 1;
        const most = std.math.shr(u256, std.math.maxInt(u256), @as(u32, 256) - bits + @intFromBool(signed));
        if (negative and !signed and value > 0) return error.Range;
        if (value > most and !(negative and value == most + 1)) return error.Range;
        const whole = if (negative) 0 -% value else value;
        for (to, 0..) |*byte, i| byte.* = @truncate(std.math.shr(u256, whole, 8 * i));
    }
};

/// IPv4: a number, so its last byte comes first.
pub const Ip4 = struct {
    fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
        const bytes = try parse(text);
        for (0..4) |i| to[i] = bytes[3 - i];
    }

    fn parse(text: []const u8) Error![4]u8 {
        var bytes: [4]u8 = undefined;
        var parts = std.mem.splitScalar(u8, text, '.');
        for (&bytes) |*byte| {
            const part = parts.next() orelse return error.Form;
            if (part.len == 0 or part.len > 3) return error.Form;
            byte.* = std.math.cast(u8, try number(part, 10)) orelse return error.Form;
        }
        return if (parts.next() == null) bytes else error.Form;
    }
};

fn number(text: []const u8, base: u8) Error!u32 {
    var value: u32 = 0; // of four digits at most
    for (text) |character| {
        const digit = digits[character];
        if (digit >= base) return error.Form;
        value = value * base + digit;
    }
    return value;
}

/// IPv6: 16 bytes as they are, or made of groups of digits; an IPv4 becomes ::ffff:a.b.c.d, as with the server.
pub const Ip6 = struct {
    fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
        @memset(to, 0);
        if (std.mem.indexOfScalar(u8, text, ':') == null) {
            @memset(to[10..12], 0xff);
            to[12..16].* = try Ip4.parse(text);
            return;
        }
        const gap = std.mem.indexOf(u8, text, "::") orelse {
            return if (try groups(text, to) == 16) {} else error.Form;
        };
        var end: [16]u8 = @splat(0);
        const before = try groups(text[0..gap], to);
        const behind = try groups(text[gap + 2 ..], &end);
        if (before + behind > 14) return error.Form;
        @memcpy(to[16 - behind .. 16], end[0..behind]);
    }

    /// Write groups of up to four digits, the last perhaps an IPv4; return how many bytes they are.
    fn groups(text: []const u8, to: []u8) Error!usize {
        if (text.len == 0) return 0;
        var size: usize = 0;
        var parts = std.mem.splitScalar(u8, text, ':');
        while (parts.next()) |part| {
            if (std.mem.indexOfScalar(u8, part, '.') != null) {
                if (parts.next() != null or size > 12) return error.Form;
                to[size..][0..4].* = try Ip4.parse(part);
                return size + 4;
            }
            if (part.len == 0 or part.len > 4 or size > 14) return error.Form;
            std.mem.writeInt(u16, to[size..][0..2], @intCast(try number(part, 16)), .big);
            size += 2;
        }
        return size;
    }
};

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
