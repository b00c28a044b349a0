//! Values that Postgres sent, one type each, into columns: `take` adds a row for each field of a block.

const std = @import("std");
const builders = @import("builders.zig");
const digitsOf = @import("postgres_numeric.zig").digitsOf;
const unaligned = @import("unaligned.zig");

/// Why a value has no form in Arrow's type. `arrow_wire/postgres_reader.py` has a message for each, in this order.
pub const Error = builders.Error || error{
    Malformed, // bytes that are no value of the type, or no message
    Infinite, // an infinite date or time, or a numeric that is infinite or no number
    Range, // more or less than the type holds
    Months, // an interval with months, where it is to be a duration
    Depth, // an array of other dimensions
    Text, // that is not UTF-8
};

pub fn number(reason: Error) u32 {
    return switch (reason) {
        error.Malformed => 1,
        error.Infinite => 2,
        error.Range => 3,
        error.Months => 4,
        error.Depth => 5,
        error.TooLarge => 6,
        error.OutOfMemory => 7,
        error.Text => 8,
    };
}

/// Where a value is in the data; a null has the size -1.
pub const Field = struct { start: u32, size: i32 };

/// How a column is decoded.
pub const Column = extern struct {
    item: ?*const Column, // of a list
    decoder: u32,
    digits: i32, // of a decimal
    scale: i32,
    multiply: i64, // units of the array's in one of the server's
    shift: i64, // added after that: another epoch
};

/// Fields of one column and the data that they refer to.
pub const Block = struct {
    data: []const u8,
    fields: []const Field,

    pub inline fn bytes(self: Block, field: Field) []const u8 {
        return self.data[field.start..][0..@intCast(field.size)];
    }

    /// Bytes of all values together.
    pub fn total(self: Block) usize {
        var sum: usize = 0;
        for (self.fields) |field| sum += @intCast(@max(0, field.size));
        return sum;
    }
};

/// A value that takes the same bytes in all rows of a column: `Type.put` makes them from those of the server's, which
/// are `Type.size` bytes, or any number if it has none.
pub fn Fixed(comptime Type: type) type {
    return struct {
        pub fn take(column: *const Column, into: *builders.Column, block: Block, at: *usize) Error!void {
            const first = into.length;
            const out = try into.add(block.fields.len);
            for (block.fields, 0..) |field, i| {
                if (field.size < 0) {
                    try into.setNull(first + i);
                    continue;
                }
                errdefer at.* = i;
                const place = out[Type.width * i ..][0..Type.width];
                if (!@hasDecl(Type, "size")) {
                    try Type.put(column, block.bytes(field), place);
                } else {
                    if (field.size != Type.size) return error.Malformed;
                    try Type.put(column, block.data[field.start..][0..Type.size], place);
                }
            }
        }
    };
}

/// A number of the same width and sort on both sides.
pub fn Same(comptime T: type) type {
    return struct {
        pub const size = @divExact(@bitSizeOf(T), 8);
        pub const width = size;

        pub inline fn put(_: *const Column, bytes: *const [size]u8, out: *[width]u8) Error!void {
            unaligned.write(T, out, unaligned.read(T, bytes, .big), .little);
        }
    };
}

/// Days, times of day and instants: another epoch, maybe another unit. The ends of the server's range are its infinities.
pub fn Moment(comptime From: type, comptime To: type) type {
    return struct {
        pub const size = @divExact(@bitSizeOf(From), 8);
        pub const width = @divExact(@bitSizeOf(To), 8);

        pub inline fn put(column: *const Column, bytes: *const [size]u8, out: *[width]u8) Error!void {
            const value = unaligned.read(From, bytes, .big);
            if (value == std.math.minInt(From) or value == std.math.maxInt(From)) return error.Infinite;
            const units = std.math.mul(i64, value, column.multiply) catch return error.Range;
            const moved = std.math.add(i64, units, column.shift) catch return error.Range;
            unaligned.write(To, out, std.math.cast(To, moved) orelse return error.Range, .little);
        }
    };
}

const day = 86_400_000_000; // microseconds

/// A time of day; 24:00 is none of Arrow's.
pub const Time = struct {
    pub const size = 8;
    pub const width = 8;

    pub inline fn put(_: *const Column, bytes: *const [8]u8, out: *[8]u8) Error!void {
        const value = unaligned.read(i64, bytes, .big);
        if (value < 0 or value >= day) return error.Range;
        unaligned.write(i64, out, value, .little);
    }
};

/// An interval as a duration: its days have 24 hours, and months it must not have.
pub const Duration = struct {
    pub const size = 16;
    pub const width = 8;

    pub fn put(_: *const Column, bytes: *const [16]u8, out: *[8]u8) Error!void {
        const days = unaligned.read(i32, bytes[8..12], .big);
        const months = unaligned.read(i32, bytes[12..16], .big);
        if (months == std.math.maxInt(i32) or months == std.math.minInt(i32)) return error.Infinite;
        if (months != 0) return error.Months;
        const rest = unaligned.read(i64, bytes[0..8], .big);
        const whole = std.math.mul(i64, days, day) catch return error.Range;
        const value = std.math.add(i64, rest, whole) catch return error.Range;
        unaligned.write(i64, out, value, .little);
    }
};

pub const Boolean = struct {
    pub fn take(_: *const Column, into: *builders.Column, block: Block, at: *usize) Error!void {
        const first = into.length;
        _ = try into.add(block.fields.len);
        for (block.fields, 0..) |field, i| {
            errdefer at.* = i;
            if (field.size < 0) {
                try into.setNull(first + i);
            } else if (field.size != 1) {
                return error.Malformed;
            } else if (block.data[field.start] != 0) into.setBit(first + i);
        }
    }
};

/// A binary value as it is, or a string, which has to be UTF-8. A byte may come first: the version of jsonb's form.
pub fn Bytes(comptime is_text: bool, comptime prefix: []const u8) type {
    return struct {
        pub fn take(_: *const Column, into: *builders.Column, block: Block, at: *usize) Error!void {
            const first = into.length;
            var texts = try into.texts(block.fields.len, block.total());
            for (block.fields, 0..) |field, i| {
                if (field.size < 0) {
                    texts.put("");
                    try into.setNull(first + i);
                    continue;
                }
                const value = block.bytes(field);
                if (!std.mem.startsWith(u8, value, prefix)) {
                    at.* = i;
                    return error.Malformed;
                }
                texts.put(value[prefix.len..]);
            }
            texts.finish();
            if (is_text and !texts.areAscii()) for (block.fields, 0..) |field, i| {
                if (field.size < 0 or std.unicode.utf8ValidateSlice(block.bytes(field)[prefix.len..])) continue;
                at.* = i;
                return error.Text;
            };
        }
    };
}

/// The 16 bytes of a uuid.
pub const Uuid = struct {
    pub const size = 16;
    pub const width = 16;

    pub inline fn put(_: *const Column, bytes: *const [16]u8, out: *[16]u8) Error!void {
        out.* = bytes.*;
    }
};

/// A uuid as a string of 36 characters.
pub const UuidText = struct {
    pub fn take(_: *const Column, into: *builders.Column, block: Block, at: *usize) Error!void {
        const first = into.length;
        var texts = try into.texts(block.fields.len, 36 * block.fields.len);
        for (block.fields, 0..) |field, i| {
            if (field.size < 0) {
                texts.put("");
                try into.setNull(first + i);
                continue;
            }
            if (field.size != 16) {
                at.* = i;
                return error.Malformed;
            }
            texts.space(36)[0..36].* = uuid(block.data[field.start..][0..16]);
            texts.took(36);
        }
        texts.finish();
    }
};

/// Return the string of a uuid: 32 small digits and four dashes.
fn uuid(bytes: *const [16]u8) [36]u8 {
    const value: @Vector(16, u8) = bytes.*;
    const halves = .{ value >> @splat(4), value & @as(@Vector(16, u8), @splat(15)) };
    const digits: @Vector(32, u8) = std.simd.interlace(halves);
    const small = digits < @as(@Vector(32, u8), @splat(10));
    const text: [32]u8 = @select(
        u8,
        small,
        digits +% @as(@Vector(32, u8), @splat('0')),
        digits +% @as(@Vector(32, u8), @splat('a' - 10)),
    );
    return text[0..8].* ++ "-".* ++ text[8..12].* ++ "-".* ++ text[12..16].* ++ "-".* ++ text[16..20].* ++ "-".* ++
        text[20..32].*;
}

/// A numeric as a decimal of these bits, which has as many places as the column says.
pub fn Decimal(comptime T: type) type {
    return struct {
        pub const width = @divExact(@bitSizeOf(T), 8);

        pub fn put(column: *const Column, bytes: []const u8, out: *[width]u8) Error!void {
            const value = try decimal(T, bytes, column.scale);
            if (digitsOf(@abs(value)) > column.digits) return error.Range;
            unaligned.write(T, out, value, .little);
        }
    };
}

fn decimal(comptime T: type, bytes: []const u8, scale: i32) Error!T {
    if (bytes.len < 8) return error.Malformed;
    const count = unaligned.read(u16, bytes[0..2], .big);
    const weight = unaligned.read(i16, bytes[2..4], .big);
    const sign = unaligned.read(u16, bytes[4..6], .big);
    if (sign & 0xC000 == 0xC000) return error.Infinite;
    if (sign & ~@as(u16, 0x4000) != 0 or bytes.len != 8 + 2 * @as(usize, count)) return error.Malformed;
    var value: T = 0;
    var low: i32 = 0; // decimal places of the last group so far, as `value` counts them
    for (0..count) |i| {
        const group = unaligned.read(u16, bytes[8 + 2 * i ..][0..2], .big);
        if (group >= 10_000) return error.Malformed;
        low = 4 * (@as(i32, @intCast(i)) - weight);
        const places = scale - (low - 4); // of these four digits that count, where fewer than four
        if (places >= 4) {
            value = try joined(T, value, 10_000, group);
        } else if (group != 0 or places > 0) {
            if (places <= 0) return error.Range;
            const cut: T = power(T, @intCast(4 - places));
            if (@rem(group, cut) != 0) return error.Range;
            value = try joined(T, value, power(T, @intCast(places)), @divFloor(group, cut));
            low = scale;
        }
    }
    if (value != 0 and low < scale) {
        if (scale - low > 76) return error.Range;
        for (0..@intCast(scale - low)) |_| value = try joined(T, value, 10, 0);
    }
    return if (sign == 0) value else -value;
}

fn joined(comptime T: type, value: T, by: T, more: T) Error!T {
    const product = std.math.mul(T, value, by) catch return error.Range;
    return std.math.add(T, product, more) catch error.Range;
}

fn power(comptime T: type, exponent: u32) T {
    const powers = [_]T{ 1, 10, 100, 1000, 10_000 };
    return powers[exponent];
}
