//! The keys of a LowCardinality, and a row for each number of one.

const std = @import("std");
const builders = @import("builders.zig");
const states = @import("clickhouse_states.zig");
const unaligned = @import("unaligned.zig");
const Column = builders.Column;
const Error = states.Error;
const State = states.State;

/// Keep the strings of a block's keys in the column itself, where views of many rows can refer to them.
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
    const size = unaligned.read(u32, slot[0..4], .little);
    if (size <= 12) return slot[4..][0..size];
    const buffer = unaligned.read(u32, slot[8..12], .little);
    const first = unaligned.read(u32, slot[12..16], .little);
    return keys.blocks.items[buffer].memory[first..][0..size];
}

/// Add a row for each number of a key.
pub fn pick(state: *State, from: []const u8, count: usize) Error!void {
    switch (state.index_width) {
        inline 1, 2, 4, 8 => |width| {
            const T = @Int(.unsigned, width * 8);
            const keys = state.keys.?;
            for (0..count) |i| {
                if (unaligned.read(T, from[i * width ..][0..width], .little) >= keys.length) return error.Damaged;
            }
            const first = state.column.length;
            switch (keys.layout) {
                .view => try pickFixed(T, 16, state, from, count),
                .text32, .text64 => try state.column.addTexts(Texts(T){ .keys = keys, .from = from }, count),
                .fixed => switch (keys.width) {
                    inline 1, 2, 4, 8, 16, 32 => |size| try pickFixed(T, size, state, from, count),
                    else => return error.Damaged,
                },
                else => return error.Damaged,
            }
            if (state.node.width == 0) return; // the first key is not null
            for (0..count) |i| {
                const key = unaligned.read(T, from[i * width ..][0..width], .little);
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
        const key: usize = @intCast(unaligned.read(T, from[i * @sizeOf(T) ..][0..@sizeOf(T)], .little));
        to[i * size ..][0..size].* = keys[key * size ..][0..size].*;
    }
}

/// The strings of keys that numbers of a type refer to.
fn Texts(comptime T: type) type {
    return struct {
        keys: *const Column,
        from: []const u8,

        pub fn text(self: @This(), row: usize) Error![]const u8 {
            const key: usize = @intCast(unaligned.read(T, self.from[row * @sizeOf(T) ..][0..@sizeOf(T)], .little));
            return plain(self.keys, key);
        }
    };
}

/// A string of a column with offsets.
fn plain(keys: *const Column, key: usize) []const u8 {
    const offsets = keys.values.memory;
    const data = keys.blocks.items[0].memory;
    if (keys.layout == .text32) {
        const first = unaligned.read(u32, offsets[4 * key ..][0..4], .little);
        return data[first..unaligned.read(u32, offsets[4 * key + 4 ..][0..4], .little)];
    }
    const first: usize = unaligned.read(u64, offsets[8 * key ..][0..8], .little);
    return data[first..@as(usize, unaligned.read(u64, offsets[8 * key + 8 ..][0..8], .little))];
}
