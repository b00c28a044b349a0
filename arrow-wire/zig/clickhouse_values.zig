//! The values of a type that is made of no other, from ClickHouse into a column of Arrow.

const std = @import("std");
const builders = @import("builders.zig");
const shown = @import("clickhouse_shown.zig");
const states = @import("clickhouse_states.zig");
const unaligned = @import("unaligned.zig");
const Column = builders.Column;
const Error = states.Error;
const Input = states.Input;
const Node = states.Node;
const State = states.State;
const Texts = builders.Texts;

/// Go on with the values, as far as a piece goes; true where all rows are there.
pub fn run(state: *State, input: *Input) Error!bool {
    switch (state.node.decoding) {
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
    switch (state.node.decoding) {
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
            try shown.made(column, from, count, state.node.width, shown.FixedText, state);
        },
        .uuid => try shown.uuids(column, from, count),
        .ip4 => try shown.made(column, from, count, 15, shown.Ip4, state),
        .ip6 => try shown.made(column, from, count, 45, shown.Ip6, state),
        .digits => try shown.made(column, from, count, 80, shown.Digits, state),
        .label => try shown.labels(state, from, count),
        else => return error.Damaged,
    }
}

/// The sorts of numbers on the wire; `arrow_wire/clickhouse_shapes.py` has the same ones.
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
        const value = std.math.cast(T, unaligned.read(S, from[i * width ..][0..width], .little)) orelse
            return error.Range;
        const product = @mulWithOverflow(value, factor);
        beyond |= product[1];
        unaligned.write(T, to[i * size ..][0..size], product[0], .little);
    }
    if (beyond != 0) return error.Range;
}

const move = 32; // bytes: most strings are short, and a move of a fixed size is the fastest
const block = 128; // strings at a time

const Found = struct { rest: []const u8, size: usize };

/// Strings or bytes, each behind its size. An incomplete one stays in the piece.
fn texts(state: *State, input: *Input) Error!void {
    var all: [block]Found = undefined;
    while (state.left > 0) {
        const part = all[0..@min(block, state.left)];
        const begin = input.at;
        const count = try find(part, input);
        if (count == 0) return;
        const found = part[0..count];
        if (state.node.decoding == .text and !builders.ascii(input.bytes[begin..input.at])) {
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

/// Find the complete strings, as many as fit into `all`, and go behind them.
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

const masks: [13]u128 = table: {
    var all: [13]u128 = undefined;
    for (&all, 0..) |*mask, size| mask.* = (@as(u128, 1) << (8 * size)) - 1;
    break :table all;
};

/// Add strings to a column of views: the view itself has up to 12 bytes, in one move where there are 16 to read.
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
                const word = unaligned.read(u128, rest[0..16], .little) & masks[size];
                unaligned.write(u128, slot, word << 32 | size, .little);
            } else {
                unaligned.write(u32, slot[0..4], @intCast(size), .little);
                @memcpy(slot[4..][0..size], rest[0..size]);
            }
            continue;
        }
        const to = room[used..];
        if (size <= move and rest.len >= move) to[0..move].* = rest[0..move].* else @memcpy(to[0..size], rest[0..size]);
        unaligned.write(u32, slot[0..4], @intCast(size), .little);
        slot[4..8].* = rest[0..4].*;
        unaligned.write(u32, slot[8..12], adding.number, .little);
        unaligned.write(u32, slot[12..16], @intCast(adding.first + used), .little);
        used += size;
    }
    adding.used = used;
    adding.row += all.len;
}

/// Add strings to a column of offsets and bytes.
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
