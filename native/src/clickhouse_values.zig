//! The values of a type that is made of no other, from ClickHouse into a column of Arrow.

const std = @import("std");
const builders = @import("builders.zig");
const states = @import("clickhouse_states.zig");
const Column = builders.Column;
const Error = states.Error;
const Input = states.Input;
const Kind = states.Kind;
const Node = states.Node;
const State = states.State;
const Texts = builders.Texts;

/// Go on with the values, as far as a piece goes; true where all rows are there.
pub fn run(state: *State, input: *Input) Error!bool {
    switch (state.node.kind) {
        .text, .binary => try texts(state, input),
        else => {
            const width = state.node.width;
            if (width == 0) return error.Damaged;
            const count = @min(state.left, input.rest().len / width);
            const from = input.take(count * width).?;
            try fixed(state, from, count);
            state.left -= count;
        },
    }
    return state.left == 0;
}

fn fixed(state: *State, from: []const u8, count: usize) Error!void {
    const column = state.column;
    switch (state.node.kind) {
        .copy => {
            const to = try column.add(count);
            if (to.len != from.len) return error.Damaged;
            @memcpy(to, from);
        },
        .whole => try whole(state.node, column, from, count),
        .bits => {
            const first = column.length;
            _ = try column.add(count);
            for (from, first..) |byte, row| {
                if (byte > 1) return error.Form;
                if (byte == 1) column.setBit(row);
            }
        },
        .bfloat => {
            const to = try column.add(count);
            for (0..count) |i| @memcpy(to[4 * i + 2 ..][0..2], from[2 * i ..][0..2]);
        },
        .nothing => _ = try column.add(count),
        .fixed_text => {
            if (!std.unicode.utf8ValidateSlice(from)) return error.Text;
            try made(column, from, count, state.node.width, FixedText, state);
        },
        .uuid => try uuids(column, from, count),
        .ip4 => try made(column, from, count, 15, Ip4, state),
        .ip6 => try made(column, from, count, 45, Ip6, state),
        .digits => try made(column, from, count, 80, Digits, state),
        .label => try labels(state, from, count),
        else => return error.Damaged,
    }
}

/// The kinds of numbers on the wire; `arrow_wire/clickhouse_shapes.py` has the same ones.
const Source = enum(u32) { i32, i64, u16, u32 };

fn whole(node: *const Node, column: *Column, from: []const u8, count: usize) Error!void {
    const source = std.enums.fromInt(Source, node.source) orelse return error.Damaged;
    switch (source) {
        inline else => |of| {
            const S = switch (of) {
                .i32 => i32,
                .i64 => i64,
                .u16 => u16,
                .u32 => u32,
            };
            switch (column.width) {
                4 => try multiplied(S, i32, node.factor, column, from, count),
                8 => try multiplied(S, i64, node.factor, column, from, count),
                16 => try multiplied(S, i128, node.factor, column, from, count),
                else => return error.Damaged,
            }
        },
    }
}

fn multiplied(
    comptime S: type,
    comptime T: type,
    by: i64,
    column: *Column,
    from: []const u8,
    count: usize,
) Error!void {
    const factor = std.math.cast(T, by) orelse return error.Damaged;
    const width = @sizeOf(S);
    const size = @sizeOf(T);
    if (from.len != count * width) return error.Damaged;
    const to = try column.add(count);
    var beyond: u1 = 0;
    for (0..count) |i| {
        const value = std.math.cast(T, std.mem.readInt(S, from[i * width ..][0..width], .little)) orelse
            return error.Range;
        const product = @mulWithOverflow(value, factor);
        beyond |= product[1];
        std.mem.writeInt(T, to[i * size ..][0..size], product[0], .little);
    }
    if (beyond != 0) return error.Range;
}

const move = 32; // bytes: most texts are short, and a move of a fixed size is the fastest
const block = 128; // texts at a time

const Found = struct { rest: []const u8, size: usize };

/// Texts or bytes, each behind its size. What is not complete in a piece stays in it.
fn texts(state: *State, input: *Input) Error!void {
    var all: [block]Found = undefined;
    while (state.left > 0) {
        const part = all[0..@min(block, state.left)];
        const begin = input.at;
        const count = try find(part, input);
        if (count == 0) return;
        const found = part[0..count];
        if (state.node.kind == .text and !ascii(input.bytes[begin..input.at])) {
            for (found) |text| {
                if (!std.unicode.utf8ValidateSlice(text.rest[0..text.size])) return error.Text;
            }
        }
        var adding = try state.column.texts(count, input.at - begin + move);
        if (state.column.layout == .view) putViews(&adding, found) else put(&adding, found);
        adding.finish();
        state.left -= count;
    }
}

/// Find the texts that are complete, as many as there is place for, and go behind them.
fn find(all: []Found, input: *Input) Error!usize {
    const bytes = input.bytes;
    var at = input.at;
    for (all, 0..) |*text, i| {
        if (at >= bytes.len) return i;
        var size: usize = bytes[at];
        var first = at + 1;
        if (size > 127) {
            var from: Input = .{ .bytes = bytes, .at = at };
            size = try from.varint() orelse return i;
            first = from.at;
        }
        const rest = bytes[first..];
        if (size > rest.len) return i;
        text.* = .{ .rest = rest, .size = size };
        at = first + size;
        input.at = at;
    }
    return all.len;
}

fn ascii(bytes: []const u8) bool {
    var seen: u8 = 0;
    for (bytes) |byte| seen |= byte;
    return seen < 128;
}

const masks: [13]u128 = table: {
    var all: [13]u128 = undefined;
    for (&all, 0..) |*mask, size| mask.* = (@as(u128, 1) << (8 * size)) - 1;
    break :table all;
};

/// Add texts to a column of views: up to 12 bytes stand in the view itself, in one move where there are 16 to read.
fn putViews(adding: *Texts, all: []const Found) void {
    const slots = adding.slots;
    const room = adding.room;
    var used = adding.used;
    for (all, adding.row..) |text, row| {
        const slot = slots[16 * row ..][0..16];
        const rest = text.rest;
        const size = text.size;
        if (size <= 12) {
            if (rest.len >= 16) {
                const word = std.mem.readInt(u128, rest[0..16], .little) & masks[size];
                std.mem.writeInt(u128, slot, word << 32 | size, .little);
            } else {
                std.mem.writeInt(u32, slot[0..4], @intCast(size), .little);
                @memcpy(slot[4..][0..size], rest[0..size]);
            }
            continue;
        }
        const to = room[used..];
        if (size <= move and rest.len >= move) to[0..move].* = rest[0..move].* else @memcpy(to[0..size], rest[0..size]);
        std.mem.writeInt(u32, slot[0..4], @intCast(size), .little);
        slot[4..8].* = rest[0..4].*;
        std.mem.writeInt(u32, slot[8..12], adding.number, .little);
        std.mem.writeInt(u32, slot[12..16], @intCast(adding.first + used), .little);
        used += size;
    }
    adding.used = used;
    adding.row += all.len;
}

/// Add texts to a column of offsets and bytes.
fn put(adding: *Texts, all: []const Found) void {
    for (all) |text| {
        if (text.size <= move and text.rest.len >= move) {
            adding.room[adding.used..][0..move].* = text.rest[0..move].*;
            adding.took(text.size);
        } else {
            adding.put(text.rest[0..text.size]);
        }
    }
}

/// Texts that are made of values of a fixed size by `Form.text`, none longer than `most`.
fn made(column: *Column, from: []const u8, count: usize, most: usize, comptime Form: type, state: *State) Error!void {
    const width = state.node.width;
    var adding = try column.texts(count, count * most);
    for (0..count) |i| {
        var room: [80]u8 = undefined;
        adding.put(try Form.text(from[i * width ..][0..width], &room, state.node));
    }
    adding.finish();
}

const FixedText = struct {
    fn text(from: []const u8, _: *[80]u8, _: *const Node) Error![]const u8 {
        return if (std.unicode.utf8ValidateSlice(from)) from else error.Text;
    }
};

const pairs: [256][2]u8 = table: {
    var all: [256][2]u8 = undefined;
    const hexadecimal = "0123456789abcdef";
    for (&all, 0..) |*pair, byte| pair.* = .{ hexadecimal[byte >> 4], hexadecimal[byte & 15] };
    break :table all;
};

const places: [16]u8 = .{ 0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34 };

/// Texts of UUIDs, which are two numbers on the wire, each with its last byte first.
fn uuids(column: *Column, from: []const u8, count: usize) Error!void {
    var adding = try column.texts(count, count * 36);
    for (0..count) |i| {
        const bytes = from[i * 16 ..][0..16];
        const room = adding.space(36)[0..36];
        inline for (.{ 8, 13, 18, 23 }) |place| room[place] = '-';
        inline for (places, 0..) |place, byte| room[place..][0..2].* = pairs[bytes[byte ^ 7]];
        adding.took(36);
    }
    adding.finish();
}

const Ip4 = struct {
    fn text(from: []const u8, room: *[80]u8, _: *const Node) Error![]const u8 {
        if (from.len != 4) return error.Damaged;
        return std.fmt.bufPrint(room, "{d}.{d}.{d}.{d}", .{ from[3], from[2], from[1], from[0] }) catch unreachable;
    }
};

/// The shortest form: the longest run of zeros, of two groups at least, is left out; an IPv4 in it stays one.
const Ip6 = struct {
    fn text(from: []const u8, room: *[80]u8, _: *const Node) Error![]const u8 {
        if (from.len != 16) return error.Damaged;
        var groups: [8]u16 = undefined;
        for (&groups, 0..) |*group, i| group.* = std.mem.readInt(u16, from[2 * i ..][0..2], .big);
        if (std.mem.allEqual(u8, from[0..10], 0) and groups[5] == 0xffff) {
            return std.fmt.bufPrint(room, "::ffff:{d}.{d}.{d}.{d}", .{ from[12], from[13], from[14], from[15] }) catch
                unreachable;
        }
        const first, const size = zeros(groups);
        var used: usize = 0;
        for (groups, 0..) |group, i| {
            if (i >= first and i < first + size) {
                if (i > first) continue;
                room[used] = ':';
                used += 1;
                if (i == 0) {
                    room[used] = ':';
                    used += 1;
                }
                continue;
            }
            const separator = if (i < 7) ":" else "";
            used += (std.fmt.bufPrint(room[used..], "{x}{s}", .{ group, separator }) catch unreachable).len;
        }
        return room[0..used];
    }

    fn zeros(groups: [8]u16) [2]usize {
        var best: [2]usize = .{ 0, 0 };
        var size: usize = 0;
        for (groups, 0..) |group, i| {
            size = if (group == 0) size + 1 else 0;
            if (size > best[1] and size > 1) best = .{ i + 1 - size, size };
        }
        return best;
    }
};

/// Whole numbers of 128 or 256 bits; `source` is 1 for signed ones.
const Digits = struct {
    const part = 1_000_000_000_000_000_000; // so many digits at a time as a u64 has for sure

    fn text(from: []const u8, room: *[80]u8, node: *const Node) Error![]const u8 {
        const negative = node.source == 1 and from[from.len - 1] > 127;
        var left: u256 = switch (from.len) {
            16 => std.mem.readInt(u128, from[0..16], .little),
            32 => std.mem.readInt(u256, from[0..32], .little),
            else => return error.Damaged,
        };
        if (negative) left = if (from.len == 16) (1 << 128) - left else 0 -% left;
        var first: usize = room.len;
        while (true) {
            var digits: u64 = @intCast(left % part);
            left /= part;
            var count: usize = 0;
            while (if (left > 0) count < 18 else digits > 0 or (count == 0 and first == room.len)) : (count += 1) {
                first -= 1;
                room[first] = '0' + @as(u8, @intCast(digits % 10));
                digits /= 10;
            }
            if (left == 0) break;
        }
        if (negative) {
            first -= 1;
            room[first] = '-';
        }
        return room[first..];
    }
};

/// Return the place of the label, plus one, of each number that an enum can have.
pub fn table(node: *const Node) Error![]u16 {
    const made_table = try builders.objects.alloc(u16, if (node.width == 1) 1 << 8 else 1 << 16);
    errdefer builders.objects.free(made_table);
    @memset(made_table, 0);
    const names = node.labels orelse return error.Damaged;
    const numbers = node.numbers.bytes();
    if (numbers.len < 2 * names.length) return error.Damaged;
    for (0..names.length) |i| {
        const number = std.mem.readInt(u16, numbers[2 * i ..][0..2], .little);
        made_table[number & (made_table.len - 1)] = std.math.cast(u16, i + 1) orelse return error.Damaged;
    }
    return made_table;
}

fn labels(state: *State, from: []const u8, count: usize) Error!void {
    const names = state.node.labels.?;
    const width = state.node.width;
    var done: usize = 0;
    while (done < count) {
        var all: [block][]const u8 = undefined;
        const part = all[0..@min(block, count - done)];
        var total: usize = 0;
        for (part, done..) |*text, i| {
            const number: usize = if (width == 1) from[i] else std.mem.readInt(u16, from[2 * i ..][0..2], .little);
            const label = state.table[number];
            if (label == 0 and state.node.source == 0) return error.Form; // in the place of a null stands any number
            text.* = if (label == 0) "" else names.text(.text32, label - 1);
            total += text.len;
        }
        var adding = try state.column.texts(part.len, total);
        for (part) |text| adding.put(text);
        adding.finish();
        done += part.len;
    }
}

/// Have the texts of a block's keys in the column itself, where views of many rows can refer to them.
pub fn keep(state: *State) Error!void {
    const keys = state.keys.?;
    if (keys.layout != .view) return;
    var total: usize = 0;
    for (0..keys.length) |key| total += view(keys, key).len;
    const column = state.column;
    const length = column.length;
    var adding = try column.texts(keys.length, total);
    for (0..keys.length) |key| adding.put(view(keys, key));
    adding.finish();
    @memcpy(keys.values.memory[0 .. keys.length * 16], adding.slots[0 .. keys.length * 16]);
    column.length = length; // these were no rows
    column.values.used -= keys.length * 16;
    @memset(adding.slots[0 .. keys.length * 16], 0);
    if (column.nulls > 0) column.validity.used = (length + 7) / 8;
}

fn view(keys: *const Column, key: usize) []const u8 {
    const slot = keys.values.memory[key * 16 ..][0..16];
    const size = std.mem.readInt(u32, slot[0..4], .little);
    if (size <= 12) return slot[4..][0..size];
    const buffer = std.mem.readInt(u32, slot[8..12], .little);
    const first = std.mem.readInt(u32, slot[12..16], .little);
    return keys.blocks.items[buffer].memory[first..][0..size];
}

/// Add a row for each number of a key.
pub fn pick(state: *State, from: []const u8, count: usize) Error!void {
    switch (state.index_width) {
        inline 1, 2, 4, 8 => |width| {
            const T = @Int(.unsigned, width * 8);
            const keys = state.keys.?;
            for (0..count) |i| {
                if (std.mem.readInt(T, from[i * width ..][0..width], .little) >= keys.length) return error.Damaged;
            }
            const first = state.column.length;
            switch (keys.layout) {
                .view => try pickFixed(T, 16, state, from, count),
                .text32, .text64 => try pickTexts(T, state, from, count),
                .fixed => switch (keys.width) {
                    inline 1, 2, 4, 8, 16, 32 => |size| try pickFixed(T, size, state, from, count),
                    else => return error.Damaged,
                },
                else => return error.Damaged,
            }
            if (state.node.width == 0) return; // the first key is not null
            for (0..count) |i| {
                const key = std.mem.readInt(T, from[i * width ..][0..width], .little);
                if (key == 0) try state.column.setNull(first + i);
            }
        },
        else => return error.Damaged,
    }
}

fn pickFixed(comptime T: type, comptime size: usize, state: *State, from: []const u8, count: usize) Error!void {
    const keys = state.keys.?.values.memory[0 .. state.keys.?.length * size];
    const to = try state.column.add(count);
    for (0..count) |i| {
        const key: usize = @intCast(std.mem.readInt(T, from[i * @sizeOf(T) ..][0..@sizeOf(T)], .little));
        to[i * size ..][0..size].* = keys[key * size ..][0..size].*;
    }
}

fn pickTexts(comptime T: type, state: *State, from: []const u8, count: usize) Error!void {
    const keys = state.keys.?;
    var done: usize = 0;
    while (done < count) {
        var all: [block][]const u8 = undefined;
        const part = all[0..@min(block, count - done)];
        var total: usize = 0;
        for (part, done..) |*text, i| {
            const key: usize = @intCast(std.mem.readInt(T, from[i * @sizeOf(T) ..][0..@sizeOf(T)], .little));
            text.* = plain(keys, key);
            total += text.len;
        }
        var adding = try state.column.texts(part.len, total);
        for (part) |text| adding.put(text);
        adding.finish();
        done += part.len;
    }
}

/// A text of a column with offsets.
fn plain(keys: *const Column, key: usize) []const u8 {
    const offsets = keys.values.memory;
    const data = keys.blocks.items[0].memory;
    if (keys.layout == .text32) {
        const first = std.mem.readInt(u32, offsets[4 * key ..][0..4], .little);
        return data[first..std.mem.readInt(u32, offsets[4 * key + 4 ..][0..4], .little)];
    }
    const first: usize = std.mem.readInt(u64, offsets[8 * key ..][0..8], .little);
    return data[first..@as(usize, std.mem.readInt(u64, offsets[8 * key + 8 ..][0..8], .little))];
}
