//! Decimals as Postgres' numeric: digits of base 10,000, the first of them weighs 10,000^weight, and how many decimal
//! places are shown. `numeric_recv` in the server's src/backend/utils/adt/numeric.c reads it, and drops zeros at the ends.

const std = @import("std");
const postgres = @import("postgres_column.zig");
const unaligned = @import("unaligned.zig");
const Column = postgres.Column;
const Error = postgres.Error;

const negative = 0x4000;
const nan = 0xC000;
const infinity = 0xD000;
const minus_infinity = 0xF000;
const header = 8;
pub const most_digits = 76;

/// Powers of ten, as many as a type holds.
fn Powers(comptime U: type) type {
    return struct {
        const count = made: {
            var power: comptime_int = 1;
            var n = 0;
            while (power <= std.math.maxInt(U)) : (n += 1) power *= 10;
            break :made n;
        };
        const all = made: {
            var powers: [count]U = undefined;
            var power: comptime_int = 1;
            for (&powers) |*place| {
                place.* = power;
                power *= 10;
            }
            break :made powers;
        };
    };
}

/// Return how many decimal digits a number has; zero has none.
pub fn digitsOf(value: anytype) usize {
    const powers = Powers(@TypeOf(value));
    const bits = @bitSizeOf(@TypeOf(value)) - @as(usize, @clz(value));
    const guess = bits * 1233 >> 12; // log10(2), from below
    return if (guess < powers.count and value >= powers.all[guess]) guess + 1 else guess;
}

/// Return whether the last decimal places of a number are zeros.
fn isWhole(value: anytype, places: i64) bool {
    if (places <= 0 or value == 0) return true;
    if (places >= digitsOf(value)) return false;
    return value % Powers(@TypeOf(value)).all[@intCast(places)] == 0;
}

/// The form of a decimal: its digits before and behind the point, in groups of four.
const Form = struct {
    above: usize, // groups before the point
    below: usize,
    scale: usize, // decimal places

    fn of(digits: usize, scale: usize) Form {
        const above = digits -| scale;
        return .{ .above = (above + 3) / 4, .below = if (digits == 0) 0 else (scale + 3) / 4, .scale = scale };
    }

    fn size(self: Form) usize {
        return header + 2 * (self.above + self.below);
    }
};

/// A decimal of these bits.
pub fn Decimal(comptime T: type) type {
    const U = @Int(.unsigned, @bitSizeOf(T));
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const value: U = @abs(column.array.fixed(T, row));
            const digits = digitsOf(value);
            const scale: usize = @intCast(column.array_scale);
            if (digits > most_digits) return error.Range;
            if (column.digits > 0) {
                const room: i64 = @as(i64, column.digits) - column.scale; // for digits before the point
                if (@as(i64, @intCast(digits)) - @as(i64, @intCast(scale)) > room) return error.Range;
                if (!isWhole(value, @as(i64, @intCast(scale)) - column.scale)) return error.Inexact;
            }
            return Form.of(digits, scale).size();
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value = column.array.fixed(T, row);
            const form = Form.of(digitsOf(@abs(value)), @intCast(column.array_scale));
            return write(U, @abs(value), value < 0, form, out);
        }
    };
}

/// An integer of these bits, signed or not.
pub fn Whole(comptime T: type) type {
    const U = @Int(.unsigned, @max(64, @bitSizeOf(T)));
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const value: U = @abs(column.array.fixed(T, row));
            const digits = digitsOf(value);
            if (column.digits > 0) {
                if (@as(i64, @intCast(digits)) > @as(i64, column.digits) - column.scale) return error.Range;
                if (!isWhole(value, -column.scale)) return error.Inexact;
            }
            return Form.of(digits, 0).size();
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value = column.array.fixed(T, row);
            return write(U, @abs(value), value < 0, Form.of(digitsOf(@as(U, @abs(value))), 0), out);
        }
    };
}

/// A float, with as few digits as tell it from all others.
pub fn Shortest(comptime T: type) type {
    return struct {
        const Parts = struct { special: u16 = 0, minus: bool = false, value: u64 = 0, exponent: i32 = 0 };

        fn parts(value: T) Parts {
            if (std.math.isNan(value)) return .{ .special = nan };
            if (std.math.isInf(value)) return .{ .special = if (value < 0) minus_infinity else infinity };
            var buffer: [64]u8 = undefined;
            const text = std.fmt.float.render(&buffer, value, .{ .mode = .scientific }) catch unreachable;
            var made: Parts = .{ .minus = value < 0 };
            var fraction = false;
            for (text, 0..) |character, place| switch (character) {
                '0'...'9' => {
                    made.value = made.value * 10 + (character - '0');
                    if (fraction) made.exponent -= 1;
                },
                '.' => fraction = true,
                'e' => {
                    made.exponent += std.fmt.parseInt(i32, text[place + 1 ..], 10) catch unreachable;
                    break;
                },
                else => {},
            };
            return made;
        }

        pub fn size(column: *const Column, row: usize) Error!usize {
            const found = parts(column.array.fixed(T, row));
            if (found.special != 0) return header;
            const digits: i64 = @intCast(digitsOf(found.value));
            if (column.digits > 0) {
                if (digits + found.exponent > @as(i64, column.digits) - column.scale) return error.Range;
                if (!isWhole(found.value, -@as(i64, found.exponent) - column.scale)) return error.Inexact;
            }
            return header + 2 * groupsOf(found);
        }

        /// The digits of a float fill five groups and more, but zeros between them and the point are not sent.
        fn groupsOf(found: Parts) usize {
            if (found.value == 0) return 0;
            const low = @divFloor(found.exponent, 4);
            const top = @divFloor(found.exponent + @as(i32, @intCast(digitsOf(found.value))) - 1, 4);
            return @intCast(top - low + 1);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const found = parts(column.array.fixed(T, row));
            const groups = groupsOf(found);
            const low = @divFloor(found.exponent, 4);
            const weight: i32 = if (groups == 0) 0 else low + @as(i32, @intCast(groups)) - 1;
            const sign: u16 = if (found.special != 0) found.special else if (found.minus) negative else 0;
            writeHeader(out, groups, weight, sign, @intCast(@max(0, -found.exponent)));
            var rest: u128 = @as(u128, found.value) * Powers(u128).all[@intCast(@mod(found.exponent, 4))];
            var place = groups;
            while (place > 0) : (place -= 1) {
                unaligned.write(u16, out[header + 2 * (place - 1) ..][0..2], @intCast(rest % 10_000), .big);
                rest /= 10_000;
            }
            return header + 2 * groups;
        }
    };
}

fn writeHeader(out: []u8, groups: usize, weight: i32, sign: u16, scale: usize) void {
    unaligned.write(u16, out[0..2], @intCast(groups), .big);
    unaligned.write(i16, out[2..4], @intCast(weight), .big);
    unaligned.write(u16, out[4..6], sign, .big);
    unaligned.write(u16, out[6..8], @intCast(scale), .big);
}

fn write(comptime U: type, value: U, minus: bool, form: Form, out: []u8) usize {
    const groups = form.above + form.below;
    const sign: u16 = if (minus) negative else 0;
    writeHeader(out, groups, @as(i32, @intCast(form.above)) - 1, sign, form.scale);
    var rest = value;
    var place = groups;
    const odd = form.scale % 4; // places in the last group
    if (odd > 0 and place > 0) {
        const powers = Powers(u16).all;
        const last: u16 = @intCast(divide(U, &rest, powers[odd]));
        place -= 1;
        unaligned.write(u16, out[header + 2 * place ..][0..2], last * powers[4 - odd], .big);
    }
    while (place > 0) { // four groups at a time, in a word
        var word = divide(U, &rest, 10_000_000_000_000_000);
        for (0..@min(4, place)) |_| {
            place -= 1;
            unaligned.write(u16, out[header + 2 * place ..][0..2], @intCast(word % 10_000), .big);
            word /= 10_000;
        }
    }
    return header + 2 * groups;
}

/// Divide a number of one to four words; return the remainder.
fn divide(comptime U: type, value: *U, by: u64) u64 {
    if (value.* <= std.math.maxInt(u64)) {
        const word: u64 = @intCast(value.*);
        value.* = @intCast(word / by);
        return word % by;
    }
    const count = @bitSizeOf(U) / 64;
    var words: [@max(1, count)]u64 = @bitCast(if (@bitSizeOf(U) < 64) @as(u64, value.*) else value.*);
    var left: u64 = 0;
    for (0..words.len) |i| {
        const word = &words[words.len - 1 - i];
        const both = @as(u128, left) << 64 | word.*;
        word.* = @intCast(both / by);
        left = @intCast(both % by);
    }
    value.* = @truncate(@as(@Int(.unsigned, 64 * words.len), @bitCast(words)));
    return left;
}
