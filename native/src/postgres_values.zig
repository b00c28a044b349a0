//! Values as Postgres sends and receives them, one type each: `size` of a value, which is no null, and `put`, which fills
//! the beginning of a slice with it and says with how many bytes. `put` comes after `size` of the same value.
//! `key` is a number by which values are in the server's order, or nearly.

const std = @import("std");
const arrow = @import("arrow.zig");
const postgres = @import("postgres_column.zig");
const Column = postgres.Column;
const Error = postgres.Error;

/// A number of the same width and kind on both sides.
pub fn Same(comptime T: type) type {
    const width = @divExact(@bitSizeOf(T), 8);
    return struct {
        pub const fixed = width; // nothing to check: the same size for all

        pub fn size(_: *const Column, _: usize) Error!usize {
            return width;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            return if (@typeInfo(T).int.signedness == .signed) column.array.fixed(T, row) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            std.mem.writeInt(T, out[0..width], column.array.fixed(T, row), .big);
            return width;
        }
    };
}

/// An integer in one of another width.
pub fn Integer(comptime From: type, comptime To: type) type {
    const width = @divExact(@bitSizeOf(To), 8);
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            _ = std.math.cast(To, column.array.fixed(From, row)) orelse return error.Range;
            return width;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            return std.math.cast(i64, column.array.fixed(From, row)) orelse std.math.maxInt(i64);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            const value = std.math.cast(To, column.array.fixed(From, row)) orelse 0;
            std.mem.writeInt(To, out[0..width], value, .big);
            return width;
        }
    };
}

/// A float in one of another width. As on the server, digits may be lost but not all of them, and not to infinity.
pub fn Float(comptime From: type, comptime To: type) type {
    const width = @divExact(@bitSizeOf(To), 8);
    const Bits = @Int(.unsigned, @bitSizeOf(To));
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const value = column.array.fixed(From, row);
            const made: To = @floatCast(value);
            if (std.math.isInf(made) != std.math.isInf(value) or (made == 0) != (value == 0)) return error.Range;
            return width;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            const made: To = @floatCast(column.array.fixed(From, row));
            std.mem.writeInt(Bits, out[0..width], @bitCast(made), .big);
            return width;
        }
    };
}

pub const Boolean = struct {
    pub const fixed = 1;

    pub fn size(_: *const Column, _: usize) Error!usize {
        return 1;
    }

    pub fn put(column: *const Column, row: usize, out: []u8) usize {
        out[0] = @intFromBool(column.array.bit(row));
        return 1;
    }
};

/// Days, times of day, instants and durations: other units, another epoch, and limits.
pub fn Moment(comptime From: type, comptime To: type) type {
    const width = @divExact(@bitSizeOf(To), 8);
    return struct {
        fn of(column: *const Column, row: usize) Error!To {
            const value: i64 = column.array.fixed(From, row);
            if (column.divide != 1 and @mod(value, column.divide) != 0) return error.Inexact;
            const divided = if (column.divide != 1) @divFloor(value, column.divide) else value;
            const units = std.math.mul(i64, divided, column.multiply) catch return error.Range;
            const moved = std.math.sub(i64, units, column.shift) catch return error.Range;
            if (moved < column.low or moved > column.high) return error.Range;
            return std.math.cast(To, moved) orelse error.Range;
        }

        pub fn size(column: *const Column, row: usize) Error!usize {
            _ = try of(column, row);
            return width;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            return column.array.fixed(From, row);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            std.mem.writeInt(To, out[0..width], of(column, row) catch 0, .big);
            return width;
        }
    };
}

/// A duration as an interval: microseconds; neither days nor months.
pub const Duration = struct {
    const Microseconds = Moment(i64, i64);

    pub fn size(column: *const Column, row: usize) Error!usize {
        return 8 + try Microseconds.size(column, row);
    }

    pub fn put(column: *const Column, row: usize, out: []u8) usize {
        const used = Microseconds.put(column, row, out);
        @memset(out[used..][0..8], 0);
        return used + 8;
    }
};

/// Arrow's interval of months, days and nanoseconds.
pub const Interval = struct {
    pub fn size(column: *const Column, row: usize) Error!usize {
        const nanoseconds = std.mem.readInt(i64, column.array.wide(row)[8..16], .little);
        return if (@mod(nanoseconds, 1000) == 0) 16 else error.Inexact;
    }

    pub fn put(column: *const Column, row: usize, out: []u8) usize {
        const value = column.array.wide(row)[0..16];
        const nanoseconds = std.mem.readInt(i64, value[8..16], .little);
        std.mem.writeInt(i64, out[0..8], @divFloor(nanoseconds, 1000), .big);
        std.mem.writeInt(i32, out[8..12], std.mem.readInt(i32, value[4..8], .little), .big);
        std.mem.writeInt(i32, out[12..16], std.mem.readInt(i32, value[0..4], .little), .big);
        return 16;
    }
};

/// A text or binary value as it is, behind a first byte where there is one: the version of jsonb's form.
pub fn Bytes(comptime layout: arrow.Layout, comptime prefix: []const u8) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const length = (try column.array.bytes(layout, row)).len;
            return if (length < postgres.most_bytes) prefix.len + length else error.TooLong;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            const value = column.array.bytes(layout, row) catch return 0;
            var begin: [8]u8 = @splat(0);
            const size_of_key = @min(8, value.len);
            @memcpy(begin[0..size_of_key], value[0..size_of_key]);
            return first(&begin);
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            const value = column.array.bytes(layout, row) catch return 0;
            @memcpy(out[0..prefix.len], prefix);
            @memcpy(out[prefix.len..][0..value.len], value);
            return prefix.len + value.len;
        }
    };
}

/// The first bytes of a value as a number in their order.
fn first(bytes: *const [8]u8) i64 {
    return @bitCast(std.mem.readInt(u64, bytes, .big) ^ 1 << 63);
}

/// A label of a dictionary whose labels have this layout. A label may be null too.
pub fn Label(comptime layout: arrow.Layout, comptime prefix: []const u8) type {
    return struct {
        pub fn isNull(column: *const Column, row: usize) bool {
            if (column.array.isNull(row)) return true;
            const found = column.array.index(row) catch return false; // which `size` complains of
            return column.array.child(0).isNull(found);
        }

        fn of(column: *const Column, row: usize) Error![]const u8 {
            return column.array.child(0).bytes(layout, try column.array.index(row));
        }

        pub fn size(column: *const Column, row: usize) Error!usize {
            const length = (try of(column, row)).len;
            return if (length < postgres.most_bytes) prefix.len + length else error.TooLong;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            const value = of(column, row) catch return 0;
            @memcpy(out[0..prefix.len], prefix);
            @memcpy(out[prefix.len..][0..value.len], value);
            return prefix.len + value.len;
        }
    };
}

/// A uuid as the 16 bytes of it.
pub fn UuidBytes(comptime layout: arrow.Layout) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            return if ((try column.array.bytes(layout, row)).len == 16) 16 else error.Malformed;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            const value = column.array.bytes(layout, row) catch return 0;
            return if (value.len == 16) first(value[0..8]) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            @memcpy(out[0..16], (column.array.bytes(layout, row) catch return 0)[0..16]);
            return 16;
        }
    };
}

/// A uuid as a text of 36 characters.
pub fn UuidText(comptime layout: arrow.Layout) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const text = try column.array.bytes(layout, row);
            if (text.len != 36) return error.Malformed;
            _ = uuid(text[0..36]) orelse return error.Malformed;
            return 16;
        }

        pub fn key(column: *const Column, row: usize) i64 {
            const text = column.array.bytes(layout, row) catch return 0;
            const value = if (text.len == 36) uuid(text[0..36]) else null;
            return if (value) |found| first(found[0..8]) else 0;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) usize {
            const text = column.array.bytes(layout, row) catch return 0;
            out[0..16].* = uuid(text[0..36]) orelse @splat(0);
            return 16;
        }
    };
}

const Digits = @Vector(32, u8);

/// Return the 16 bytes of a uuid, or null where the text is none; its digits may be of either case.
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
