//! Values as Postgres sends and receives them, one type each. `put` fills the beginning of a slice with a value, which is
//! no null, and returns the number of bytes: `fixed`, if all values have the same size, or the earlier result of
//! `size`. `key` is a number by which values are in the server's order, or nearly.

const std = @import("std");
const arrow = @import("arrow.zig");
const postgres = @import("postgres_column.zig");
const unaligned = @import("unaligned.zig");
const Column = postgres.Column;
const Error = postgres.Error;

/// A number of the same width and sort on both sides.
pub fn Same(comptime T: type) type {
    return struct {
        pub const fixed = @divExact(@bitSizeOf(T), 8);

        pub fn key(column: *const Column, row: usize) i64 {
            return if (@typeInfo(T).int.signedness == .signed) column.array.fixed(T, row) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            unaligned.write(T, out[0..fixed], column.array.fixed(T, row), .big);
            return fixed;
        }
    };
}

/// An integer in one of another width.
pub fn Integer(comptime From: type, comptime To: type) type {
    return struct {
        pub const fixed = @divExact(@bitSizeOf(To), 8);

        pub fn key(column: *const Column, row: usize) i64 {
            return std.math.cast(i64, column.array.fixed(From, row)) orelse std.math.maxInt(i64);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value = std.math.cast(To, column.array.fixed(From, row)) orelse return error.Range;
            unaligned.write(To, out[0..fixed], value, .big);
            return fixed;
        }
    };
}

/// A float in one of another width. As on the server, digits may be lost but not all of them, and not to infinity.
pub fn Float(comptime From: type, comptime To: type) type {
    const Bits = @Int(.unsigned, @bitSizeOf(To));
    return struct {
        pub const fixed = @divExact(@bitSizeOf(To), 8);

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value = column.array.fixed(From, row);
            const made: To = @floatCast(value);
            if (std.math.isInf(made) != std.math.isInf(value) or (made == 0) != (value == 0)) return error.Range;
            unaligned.write(Bits, out[0..fixed], @bitCast(made), .big);
            return fixed;
        }
    };
}

pub const Boolean = struct {
    pub const fixed = 1;

    pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
        out[0] = @intFromBool(column.array.bit(row));
        return 1;
    }
};

/// Days, times of day, instants and durations: other units, another epoch, and limits.
pub fn Moment(comptime From: type, comptime To: type) type {
    return struct {
        pub const fixed = @divExact(@bitSizeOf(To), 8);

        pub fn key(column: *const Column, row: usize) i64 {
            return column.array.fixed(From, row);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value: i64 = column.array.fixed(From, row);
            if (column.divide != 1 and @mod(value, column.divide) != 0) return error.Inexact;
            const divided = if (column.divide != 1) @divFloor(value, column.divide) else value;
            const units = std.math.mul(i64, divided, column.multiply) catch return error.Range;
            const moved = std.math.sub(i64, units, column.shift) catch return error.Range;
            if (moved < column.low or moved > column.high) return error.Range;
            unaligned.write(To, out[0..fixed], std.math.cast(To, moved) orelse return error.Range, .big);
            return fixed;
        }
    };
}

/// A duration as an interval: microseconds; neither days nor months.
pub const Duration = struct {
    pub const fixed = 16;

    pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
        const used = try Moment(i64, i64).put(column, row, out);
        @memset(out[used..][0..8], 0);
        return fixed;
    }
};

/// Arrow's interval of months, days and nanoseconds.
pub const Interval = struct {
    pub const fixed = 16;

    pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
        const value = column.array.wide(row)[0..16];
        const nanoseconds = unaligned.read(i64, value[8..16], .little);
        if (@mod(nanoseconds, 1000) != 0) return error.Inexact;
        unaligned.write(i64, out[0..8], @divFloor(nanoseconds, 1000), .big);
        unaligned.write(i32, out[8..12], unaligned.read(i32, value[4..8], .little), .big);
        unaligned.write(i32, out[12..16], unaligned.read(i32, value[0..4], .little), .big);
        return fixed;
    }
};

/// A string or binary value as it is. A prefix byte may come first: the version of jsonb's form.
pub fn Bytes(comptime layout: arrow.Layout, comptime prefix: []const u8) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const value = try column.array.bytes(layout, row);
            @prefetch(value.ptr, .{});
            return if (value.len < postgres.most_bytes) prefix.len + value.len else error.TooLong;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            const value = column.array.bytes(layout, row) catch return 0;
            var begin: [8]u8 = @splat(0);
            const size_of_key = @min(8, value.len);
            @memcpy(begin[0..size_of_key], value[0..size_of_key]);
            return first(&begin);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            return copied(prefix, try column.array.bytes(layout, row), out);
        }
    };
}

fn copied(comptime prefix: []const u8, value: []const u8, out: []u8) usize {
    @memcpy(out[0..prefix.len], prefix);
    const to = out[prefix.len..][0..value.len];
    if (value.len >= 8 and value.len <= 16) { // two words, which may overlap, and no call
        to[0..8].* = value[0..8].*;
        to[value.len - 8 ..][0..8].* = value[value.len - 8 ..][0..8].*;
    } else if (value.len < 8 and value.len >= 4) {
        to[0..4].* = value[0..4].*;
        to[value.len - 4 ..][0..4].* = value[value.len - 4 ..][0..4].*;
    } else @memcpy(to, value);
    return prefix.len + value.len;
}

/// The first bytes of a value as a number in their order.
fn first(bytes: *const [8]u8) i64 {
    return @bitCast(unaligned.read(u64, bytes, .big) ^ 1 << 63);
}

/// A label of a dictionary whose labels have this layout. A label may be null too.
pub fn Label(comptime layout: arrow.Layout, comptime prefix: []const u8) type {
    return struct {
        pub fn isNull(column: *const Column, row: usize) bool {
            if (column.array.isNull(row)) return true;
            const found = column.array.index(row) catch return false; // `size` returns the error
            return column.array.child(0).isNull(found);
        }

        fn of(column: *const Column, row: usize) Error![]const u8 {
            return column.array.child(0).bytes(layout, try column.array.index(row));
        }

        pub fn size(column: *const Column, row: usize) Error!usize {
            const length = (try of(column, row)).len;
            return if (length < postgres.most_bytes) prefix.len + length else error.TooLong;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            return copied(prefix, try of(column, row), out);
        }
    };
}

/// A uuid as the 16 bytes of it.
pub fn UuidBytes(comptime layout: arrow.Layout) type {
    return struct {
        pub const fixed = 16;

        pub fn key(column: *const Column, row: usize) i64 {
            const value = column.array.bytes(layout, row) catch return 0;
            return if (value.len == 16) first(value[0..8]) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const value = try column.array.bytes(layout, row);
            if (value.len != 16) return error.Malformed;
            out[0..16].* = value[0..16].*;
            return fixed;
        }
    };
}

/// A uuid as a string of 36 characters.
pub fn UuidText(comptime layout: arrow.Layout) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const text = try column.array.bytes(layout, row);
            @prefetch(text.ptr, .{});
            return if (text.len == 36) 16 else error.Malformed;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            const text = column.array.bytes(layout, row) catch return 0;
            const value = if (text.len == 36) uuid(text[0..36]) else null;
            return if (value) |found| first(found[0..8]) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const text = try column.array.bytes(layout, row);
            if (text.len != 36) return error.Malformed;
            out[0..16].* = uuid(text[0..36]) orelse return error.Malformed;
            return 16;
        }
    };
}

const Digits = @Vector(32, u8);

/// Return the 16 bytes of a uuid, or null if the string is none; its digits may be of either case.
pub fn uuid(text: *const [36]u8) ?[16]u8 {
    if (text[8] != '-' or text[13] != '-' or text[18] != '-' or text[23] != '-') return null;
    const joined: Digits = (text[0..8].* ++ text[9..13].* ++ text[14..18].* ++ text[19..23].* ++ text[24..36].*);
    const small = joined | @as(Digits, @splat(0x20)); // digits stay as they are, letters become small
    const number = joined -% @as(Digits, @splat('0'));
    const letter = small -% @as(Digits, @splat('a'));
    const is_number = number < @as(Digits, @splat(10));
    const is_letter = letter < @as(Digits, @splat(6));
    if (!@reduce(.And, is_number | is_letter)) return null;
    const value = @select(u8, is_number, number, letter +% @as(Digits, @splat(10)));
    const halves = std.simd.deinterlace(2, value);
    return halves[0] << @splat(4) | halves[1];
}
