//! Values of ClickHouse that become strings in Arrow: UUIDs, IP addresses, labels of enums, numbers beyond 64 bits.

const std = @import("std");
const builders = @import("builders.zig");
const states = @import("clickhouse_states.zig");
const unaligned = @import("unaligned.zig");
const Column = builders.Column;
const Error = states.Error;
const Node = states.Node;
const State = states.State;

/// Strings that `Form.text` makes of values of a fixed size, none longer than `most`.
pub fn made(column: *Column, from: []const u8, count: usize, most: usize, comptime Form: type, state: *State) Error!void {
    const width = state.node.width;
    var adding = try column.texts(count, count * most);
    for (0..count) |i| {
        var room: [80]u8 = undefined;
        adding.put(try Form.text(from[i * width ..][0..width], &room, state.node));
    }
    adding.finish();
}

pub const FixedText = struct {
    fn text(from: []const u8, _: *[80]u8, _: *const Node) Error![]const u8 {
        return if (std.unicode.utf8ValidateSlice(from)) from else error.Text;
    }
};

/// Strings of UUIDs, which are two numbers on the wire, each with its last byte first.
pub fn uuids(column: *Column, from: []const u8, count: usize) Error!void {
    var adding = try column.texts(count, count * 36);
    for (0..count) |i| {
        const room = adding.space(36)[0..36];
        const digits = hexadecimal(from[i * 16 ..][0..16]);
        inline for (.{ 0, 8, 12, 16, 20 }, .{ 8, 12, 16, 20, 32 }, 0..) |first, end, number| {
            room[first + number ..][0 .. end - first].* = digits[first..end].*;
            if (number < 4) room[end + number] = '-';
        }
        adding.took(36);
    }
    adding.finish();
}

fn hexadecimal(from: *const [16]u8) [32]u8 {
    const halves: @Vector(2, u64) = .{ unaligned.read(u64, from[0..8], .big), unaligned.read(u64, from[8..16], .big) };
    const bytes: @Vector(16, u8) = @bitCast(halves);
    const pairs = std.simd.interlace(.{ bytes >> @splat(4), bytes & @as(@Vector(16, u8), @splat(15)) });
    const Characters = @Vector(32, u8);
    const decimal = pairs + @as(Characters, @splat('0'));
    return @select(u8, pairs > @as(Characters, @splat(9)), pairs + @as(Characters, @splat('a' - 10)), decimal);
}

pub const Ip4 = struct {
    fn text(from: []const u8, room: *[80]u8, _: *const Node) Error![]const u8 {
        if (from.len != 4) return error.Damaged;
        return std.fmt.bufPrint(room, "{d}.{d}.{d}.{d}", .{ from[3], from[2], from[1], from[0] }) catch unreachable;
    }
};

/// The shortest form: the longest run of zeros, of two groups at least, is left out; an IPv4 in it stays one.
pub const Ip6 = struct {
    fn text(from: []const u8, room: *[80]u8, _: *const Node) Error![]const u8 {
        if (from.len != 16) return error.Damaged;
        var groups: [8]u16 = undefined;
        for (&groups, 0..) |*group, i| group.* = unaligned.read(u16, from[2 * i ..][0..2], .big);
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
pub const Digits = struct {
    const part = 1_000_000_000_000_000_000; // so many digits at a time as a u64 has for sure

    fn text(from: []const u8, room: *[80]u8, node: *const Node) Error![]const u8 {
        const negative = node.source == 1 and from[from.len - 1] > 127;
        var left: u256 = switch (from.len) {
            16 => unaligned.read(u128, from[0..16], .little),
            32 => unaligned.read(u256, from[0..32], .little),
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
        const number = unaligned.read(u16, numbers[2 * i ..][0..2], .little);
        made_table[number & (made_table.len - 1)] = std.math.cast(u16, i + 1) orelse return error.Damaged;
    }
    return made_table;
}

pub fn labels(state: *State, from: []const u8, count: usize) Error!void {
    try state.column.addTexts(Labels{ .state = state, .from = from }, count);
}

const Labels = struct {
    state: *const State,
    from: []const u8,

    pub fn text(self: Labels, row: usize) Error![]const u8 {
        const node = self.state.node;
        const number: usize = if (node.width == 1) self.from[row] else unaligned.read(u16, self.from[2 * row ..][0..2], .little);
        const label = self.state.table[number];
        if (label > 0) return node.labels.?.text(.text32, label - 1);
        return if (node.source == 0) error.Form else ""; // a null may have any number
    }
};
