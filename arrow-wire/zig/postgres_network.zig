//! Network addresses from strings, as Postgres' inet, cidr, macaddr and macaddr8 are sent: `network_recv` in the
//! server's src/backend/utils/adt/network.c. The server refuses a cidr that has bits beyond its mask.

const std = @import("std");
const arrow = @import("arrow.zig");
const postgres = @import("postgres_column.zig");
const unaligned = @import("unaligned.zig");
const Column = postgres.Column;
const Error = postgres.Error;

/// An IPv4 or IPv6 address as a string, with or without the length of its network: 10.0.0.0/8.
pub fn Address(comptime layout: arrow.Layout, comptime is_cidr: u8) type {
    return struct {
        pub fn size(column: *const Column, row: usize) Error!usize {
            const found = parse(try column.array.bytes(layout, row)) orelse return error.Malformed;
            return 4 + found.size;
        }

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            const found = parse(try column.array.bytes(layout, row)) orelse return error.Malformed;
            out[0..4].* = .{ if (found.size == 4) 2 else 3, found.bits, is_cidr, @intCast(found.size) };
            @memcpy(out[4..][0..found.size], found.bytes[0..found.size]);
            return 4 + found.size;
        }
    };
}

const Parsed = struct { bytes: [16]u8, size: usize, bits: u8 };

fn parse(text: []const u8) ?Parsed {
    const slash = std.mem.indexOfScalar(u8, text, '/');
    const address = text[0 .. slash orelse text.len];
    var made: Parsed = .{ .bytes = @splat(0), .size = 4, .bits = 32 };
    if (std.mem.indexOfScalar(u8, address, ':') != null) {
        made.bytes = six(address) orelse return null;
        made.size = 16;
        made.bits = 128;
    } else {
        made.bytes[0..4].* = four(address) orelse return null;
    }
    if (slash) |place| {
        const bits = decimal(text[place + 1 ..]) orelse return null;
        if (bits > made.bits) return null;
        made.bits = bits;
    }
    return made;
}

/// A number of one to three digits up to 255.
fn decimal(text: []const u8) ?u8 {
    if (text.len == 0 or text.len > 3) return null;
    for (text) |character| if (!std.ascii.isDigit(character)) return null;
    return std.fmt.parseInt(u8, text, 10) catch null;
}

fn four(text: []const u8) ?[4]u8 {
    var made: [4]u8 = undefined;
    var parts = std.mem.splitScalar(u8, text, '.');
    for (&made) |*byte| byte.* = decimal(parts.next() orelse return null) orelse return null;
    return if (parts.next() == null) made else null;
}

fn six(text: []const u8) ?[16]u8 {
    var made: [16]u8 = @splat(0);
    const gap = std.mem.indexOf(u8, text, "::") orelse {
        return if (groups(text, &made) == 16) made else null;
    };
    const above = if (gap == 0) 0 else groups(text[0..gap], &made) orelse return null;
    var tail: [16]u8 = @splat(0);
    const rest = text[gap + 2 ..];
    const below = if (rest.len == 0) 0 else groups(rest, &tail) orelse return null;
    if (above + below > 14) return null;
    @memcpy(made[16 - below ..], tail[0..below]);
    return made;
}

/// Fill bytes with groups of four digits, the last of which may be an IPv4 address; return how many bytes.
fn groups(text: []const u8, out: *[16]u8) ?usize {
    var used: usize = 0;
    var parts = std.mem.splitScalar(u8, text, ':');
    while (parts.next()) |part| {
        if (parts.peek() == null and std.mem.indexOfScalar(u8, part, '.') != null) {
            if (used > 12) return null;
            out[used..][0..4].* = four(part) orelse return null;
            return used + 4;
        }
        if (used > 14 or part.len == 0 or part.len > 4) return null;
        for (part) |character| if (!std.ascii.isHex(character)) return null;
        const value = std.fmt.parseInt(u16, part, 16) catch return null;
        unaligned.write(u16, out[used..][0..2], value, .big);
        used += 2;
    }
    return used;
}

/// A MAC address of so many bytes as a string: pairs of digits with colons or dashes between them, or with nothing.
pub fn Mac(comptime layout: arrow.Layout, comptime bytes: usize) type {
    return struct {
        fn of(column: *const Column, row: usize) Error![bytes]u8 {
            const text = try column.array.bytes(layout, row);
            const step: usize = if (text.len == 2 * bytes) 2 else if (text.len == 3 * bytes - 1) 3 else 0;
            if (step == 0) return error.Malformed;
            var made: [bytes]u8 = undefined;
            for (&made, 0..) |*byte, i| {
                const pair = text[step * i ..][0..2];
                if (!std.ascii.isHex(pair[0]) or !std.ascii.isHex(pair[1])) return error.Malformed;
                byte.* = std.fmt.parseInt(u8, pair, 16) catch return error.Malformed;
                if (step == 3 and i > 0 and text[3 * i - 1] != ':' and text[3 * i - 1] != '-') return error.Malformed;
            }
            return made;
        }

        pub const fixed = bytes;

        pub fn put(column: *const Column, row: usize, out: []u8) Error!usize {
            out[0..bytes].* = try of(column, row);
            return bytes;
        }
    };
}
