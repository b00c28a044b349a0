//! Numbers for ClickHouse: little-endian, whole ones of 8 to 256 bits, also for dates, times and decimals.

const std = @import("std");
const shared = @import("clickhouse_rows.zig");
const unaligned = @import("unaligned.zig");
const Error = shared.Error;
const Node = shared.Node;
const Nulls = shared.Nulls;
const Out = shared.Out;
const Rows = shared.Rows;

/// The sorts of numbers in arrays; `arrow_wire/clickhouse_numbers.py` has the same ones.
pub const Source = enum(u32) { i8, i16, i32, i64, u8, u16, u32, u64, i128, i256, f16, f32, f64, bits };

fn Type(comptime source: Source) type {
    return switch (source) {
        inline else => |of| switch (of) {
            .bits => bool,
            .i8 => i8,
            .i16 => i16,
            .i32 => i32,
            .i64 => i64,
            .u8 => u8,
            .u16 => u16,
            .u32 => u32,
            .u64 => u64,
            .i128 => i128,
            .i256 => i256,
            .f16 => f16,
            .f32 => f32,
            .f64 => f64,
        },
    };
}

const block = 256; // values at a time

/// Values that are the same bytes in the array and on the wire.
pub fn copy(comptime width: usize) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const array = node.array;
            const to = try out.more(rows.count * width);
            const values = array.values.bytes();
            const offset = array.offset;
            const nulls: Nulls = .of(array);
            const list = rows.list orelse {
                if (nulls.none()) {
                    @memcpy(to, values[(offset + rows.first) * width ..][0 .. rows.count * width]);
                    return;
                }
                for (0..rows.count) |i| one(values, offset, nulls, rows.first + i, to[i * width ..][0..width]);
                return;
            };
            for (list, 0..) |row, i| one(values, offset, nulls, row, to[i * width ..][0..width]);
        }

        inline fn one(values: []const u8, offset: usize, nulls: Nulls, row: usize, to: *[width]u8) void {
            to.* = if (nulls.absent(row)) @splat(0) else values[(offset + row) * width ..][0..width].*;
        }
    };
}

/// Zeros, for an array that has no values.
pub fn zeros(node: *const Node, rows: Rows, out: *Out) Error!void {
    @memset(try out.more(rows.count * node.width), 0);
}

/// Whole numbers, counted in `W`, which holds all that the array and the column may have.
pub fn integers(comptime W: type) type {
    return struct {
        const Limits = struct { factor: W, divisor: W, low: W, high: W };

        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const width = node.width;
            const to = try out.more(rows.count * width);
            const limits: Limits = .{
                .factor = limit(node.factor),
                .divisor = limit(node.divisor),
                .low = limit(node.low),
                .high = limit(node.high),
            };
            var values: [block]W = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = values[0..@min(block, rows.count - done)];
                try load(node, rows, done, part);
                try fit(part, limits);
                try store(part, to[done * width ..][0 .. part.len * width], width);
                done += part.len;
            }
        }

        fn limit(bytes: [32]u8) W {
            return std.math.lossyCast(W, unaligned.read(i256, &bytes, .little));
        }

        fn load(node: *const Node, rows: Rows, done: usize, part: []W) Error!void {
            switch (std.enums.fromInt(Source, node.source) orelse return error.Damaged) {
                inline else => |source| try loadFrom(source, node, rows, done, part),
            }
        }

        fn loadFrom(comptime source: Source, node: *const Node, rows: Rows, done: usize, part: []W) Error!void {
            const T = Type(source);
            const array = node.array;
            const nulls: Nulls = .of(array);
            for (part, 0..) |*value, i| {
                const row = rows.at(done + i);
                if (nulls.absent(row)) {
                    value.* = 0;
                } else if (T == bool) {
                    value.* = @intFromBool(array.bit(row));
                } else if (@typeInfo(T) == .float) {
                    value.* = try whole(array.fixed(T, row));
                } else {
                    value.* = std.math.cast(W, array.fixed(T, row)) orelse return error.Range;
                }
            }
        }

        fn whole(number: anytype) Error!W {
            if (!std.math.isFinite(number)) return error.Range;
            if (@trunc(number) != number) return error.Inexact;
            const wide: f64 = number;
            return if (@abs(wide) < 0x1p63) @as(i64, @intFromFloat(wide)) else error.Range;
        }

        fn fit(part: []W, limits: Limits) Error!void {
            if (limits.factor != 1) {
                for (part) |*value| {
                    const product = @mulWithOverflow(value.*, limits.factor);
                    if (product[1] != 0) return error.Range;
                    value.* = product[0];
                }
            }
            if (limits.divisor > 1) {
                for (part) |*value| {
                    const quotient = @divTrunc(value.*, limits.divisor);
                    if (quotient * limits.divisor != value.*) return error.Inexact;
                    value.* = quotient;
                }
            }
            var beyond = false;
            for (part) |value| beyond = beyond or value < limits.low or value > limits.high;
            if (beyond) return error.Range;
        }

        fn store(part: []const W, to: []u8, width: usize) Error!void {
            switch (width) {
                inline 1, 2, 4, 8, 16, 32 => |size| {
                    const T = @Int(.signed, size * 8);
                    for (part, 0..) |value, i| {
                        const narrow: T = if (@bitSizeOf(T) < @bitSizeOf(W)) @truncate(value) else value;
                        unaligned.write(T, to[i * size ..][0..size], narrow, .little);
                    }
                },
                else => return error.Damaged,
            }
        }
    };
}

/// Floats of 64 or 32 bits, or the upper 16 of those (BFloat16), from numbers that they hold exactly.
pub fn floats(node: *const Node, rows: Rows, out: *Out) Error!void {
    switch (std.enums.fromInt(Source, node.source) orelse return error.Damaged) {
        inline .i128, .i256 => return error.Damaged,
        inline else => |source| switch (node.width) {
            8 => try floatsFrom(source, f64, node, rows, out),
            4 => try floatsFrom(source, f32, node, rows, out),
            2 => try floatsFrom(source, u16, node, rows, out),
            else => return error.Damaged,
        },
    }
}

fn floatsFrom(comptime source: Source, comptime T: type, node: *const Node, rows: Rows, out: *Out) Error!void {
    const width = @sizeOf(T);
    const S = Type(source);
    const to = try out.more(rows.count * width);
    const nulls: Nulls = .of(node.array);
    for (0..rows.count) |i| {
        const row = rows.at(i);
        const value: f64 = if (nulls.absent(row))
            0
        else if (S == bool)
            @floatFromInt(@intFromBool(node.array.bit(row)))
        else if (@typeInfo(S) == .float)
            node.array.fixed(S, row)
        else
            try ofWhole(node.array.fixed(S, row));
        const made = try narrowed(T, value);
        unaligned.write(@Int(.unsigned, width * 8), to[i * width ..][0..width], @bitCast(made), .little);
    }
}

fn ofWhole(number: anytype) Error!f64 {
    const made: f64 = @floatFromInt(number);
    const wide: i128 = number;
    return if (@as(i128, @intFromFloat(made)) == wide) made else error.Inexact;
}

fn narrowed(comptime T: type, value: f64) Error!T {
    if (T == f64) return value;
    const narrow: f32 = @floatCast(value);
    if (narrow != value and !std.math.isNan(value)) return if (std.math.isInf(narrow)) error.Range else error.Inexact;
    if (T == f32) return narrow;
    const whole_bits: u32 = @bitCast(narrow);
    if (std.math.isNan(value)) return 0x7fc0;
    return if (whole_bits & 0xffff == 0) @intCast(whole_bits >> 16) else error.Inexact;
}

/// Booleans, a byte each.
pub fn bits(node: *const Node, rows: Rows, out: *Out) Error!void {
    const to = try out.more(rows.count);
    const nulls: Nulls = .of(node.array);
    for (to, 0..) |*byte, i| {
        const row = rows.at(i);
        byte.* = @intFromBool(!nulls.absent(row) and node.array.bit(row));
    }
}
