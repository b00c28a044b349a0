//! Values of a fixed size in ClickHouse from strings and bytes: UUID, IP addresses, numbers.

const std = @import("std");
const shared = @import("clickhouse_rows.zig");
const unaligned = @import("unaligned.zig");
const Error = shared.Error;
const Node = shared.Node;

/// FixedString: shorter strings are filled up with zeros.
pub const Padded = struct {
    pub fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
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
    const Digits = @Vector(32, u8);

    pub fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
        if (text.len == 16) {
            for (0..16) |i| to[i ^ 7] = text[i];
            return;
        }
        if (text.len != 36) return error.Form;
        const hyphens = text[8] == '-' and text[13] == '-' and text[18] == '-' and text[23] == '-';
        const shown: Digits = (text[0..8] ++ text[9..13] ++ text[14..18] ++ text[19..23] ++ text[24..36]).*;
        const decimal = shown -% @as(Digits, @splat('0'));
        const letter = (shown | @as(Digits, @splat(0x20))) -% @as(Digits, @splat('a'));
        const tens = decimal < @as(Digits, @splat(10));
        const known = tens | (letter < @as(Digits, @splat(6)));
        if (!hyphens or !@reduce(.And, known)) return error.Form;
        const nibbles: @Vector(16, u16) = @bitCast(@select(u8, tens, decimal, letter +% @as(Digits, @splat(10))));
        const bytes: @Vector(16, u8) = @truncate(nibbles << @splat(4) | nibbles >> @splat(8));
        const halves: [2]u64 = @bitCast(bytes);
        inline for (halves, .{ to[0..8], to[8..16] }) |half, place| unaligned.write(u64, place, half, .big);
    }
};

/// Whole numbers of any width from their digits; `source` is 1 for signed ones.
pub const Whole = struct {
    pub fn put(text: []const u8, to: []u8, node: *const Node) Error!void {
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
    pub fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
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
    pub fn put(text: []const u8, to: []u8, _: *const Node) Error!void {
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
            unaligned.write(u16, to[size..][0..2], @intCast(try number(part, 16)), .big);
            size += 2;
        }
        return size;
    }
};
