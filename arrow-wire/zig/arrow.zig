//! Arrow arrays as this library reads them: buffers with their sizes, so that every access is checked against them.
//!
//! Layouts: https://arrow.apache.org/docs/format/Columnar.html. The Arrow C data interface has no sizes of buffers, so
//! Python hands over its own description (`arrow_wire/arrays.py`).

const std = @import("std");
const unaligned = @import("unaligned.zig");

/// Bytes that another object owns.
pub const Buffer = extern struct {
    address: ?[*]const u8 = null,
    size: usize = 0,

    pub fn bytes(self: Buffer) []const u8 {
        return if (self.address) |address| address[0..self.size] else &.{};
    }
};

/// How the values of an array lie in its buffers.
pub const Layout = enum(u32) {
    nothing = 0, // all null, no buffers
    bits = 1, // one bit a value
    fixed = 2, // `width` bytes a value
    text32 = 3, // offsets of 32 bits into `data`
    text64 = 4, // offsets of 64 bits into `data`
    view = 5, // 16 bytes a value, which refer to `more`
    list32 = 6, // offsets of 32 bits into the child
    list64 = 7,
    list_fixed = 8, // `width` values of the child a value
    fields = 9, // a struct: one child a field
    dictionary = 10, // `width` bytes of an index (`signed` or not) into the child
    pieces = 11, // strings in several arrays, the children; see `Array.piece`
};

/// Buffers that are smaller than the array says, or offsets and indices that point outside of them.
pub const Damaged = error{Damaged};

pub const Array = extern struct {
    layout: Layout,
    width: u32,
    length: usize,
    offset: usize,
    validity: Buffer,
    values: Buffer,
    data: Buffer,
    more: ?[*]const Buffer,
    more_count: usize,
    children: ?[*]const Array,
    child_count: usize,

    /// Compare the sizes of the buffers, of this array and all below it, with its length. After that `isNull`, `bit`,
    /// `fixed` and `wide` of a row below `length` stay inside them.
    pub fn check(self: *const Array) Damaged!void {
        const end = std.math.add(usize, self.offset, self.length) catch return error.Damaged;
        if (end > 1 << 56) return error.Damaged;
        const width: usize = switch (self.layout) {
            .nothing, .fields, .list_fixed, .bits => 0,
            .fixed, .dictionary => self.width,
            .text32, .list32 => 4,
            .text64, .list64, .pieces => 8,
            .view => 16,
        };
        const values = switch (self.layout) {
            .text32, .text64, .list32, .list64 => if (self.length == 0) 0 else (end + 1) * width,
            .bits => (end + 7) / 8,
            .pieces => (self.child_count + 1) * width,
            else => std.math.mul(usize, end, width) catch return error.Damaged,
        };
        if (self.values.bytes().len < values) return error.Damaged;
        if (self.validity.address != null and self.validity.size < (end + 7) / 8) return error.Damaged;
        const children = if (self.children) |all| all[0..self.child_count] else &.{};
        for (children) |*below| try below.check();
        switch (self.layout) {
            .list32, .list64, .list_fixed, .dictionary => if (children.len != 1) return error.Damaged,
            .pieces => try self.checkPieces(children, end),
            else => {},
        }
    }

    fn checkPieces(self: *const Array, children: []const Array, end: usize) Damaged!void {
        if (self.start(0) != 0 or self.start(children.len) != end) return error.Damaged;
        for (children, 0..) |*below, number| {
            const last = std.math.add(usize, self.start(number), below.length) catch return error.Damaged;
            if (self.start(number + 1) != last) return error.Damaged;
        }
    }

    inline fn start(self: *const Array, number: usize) usize {
        return unaligned.read(u64, self.values.bytes()[number * 8 ..][0..8], .little);
    }

    /// The array that has a row of `pieces`, and its row there. `values` has 64 bits a piece, the row it begins with,
    /// and the row behind the last one. To find the piece at once, `data` has a byte for each 2^`width` rows: the
    /// number of the piece with the first of them.
    pub inline fn piece(self: *const Array, row: usize) Damaged!struct { array: *const Array, row: usize } {
        const place = self.offset + row;
        const guessed = place >> @intCast(self.width & 63);
        if (guessed >= self.data.size) return error.Damaged;
        var number: usize = self.data.bytes()[guessed];
        while (number < self.child_count) : (number += 1) {
            if (place < self.start(number + 1)) break;
        } else return error.Damaged;
        const first = self.start(number);
        if (place < first) return error.Damaged;
        return .{ .array = self.child(number), .row = place - first };
    }

    pub fn isNull(self: *const Array, row: usize) bool {
        if (self.layout == .nothing) return true;
        if (self.validity.address == null) return false;
        const place = self.offset + row;
        return self.validity.bytes()[place >> 3] >> @intCast(place & 7) & 1 == 0;
    }

    pub fn hasNulls(self: *const Array) bool {
        return self.layout == .nothing or self.validity.address != null;
    }

    pub fn bit(self: *const Array, row: usize) bool {
        const place = self.offset + row;
        return self.values.bytes()[place >> 3] >> @intCast(place & 7) & 1 == 1;
    }

    /// A number of the array's own width, which is the size of T.
    pub inline fn fixed(self: *const Array, comptime T: type, row: usize) T {
        const size = @divExact(@bitSizeOf(T), 8);
        return @bitCast(self.values.bytes()[(self.offset + row) * size ..][0..size].*);
    }

    /// The bytes of a fixed-size binary value.
    pub fn wide(self: *const Array, row: usize) []const u8 {
        return self.values.bytes()[(self.offset + row) * self.width ..][0..self.width];
    }

    /// Have the values of some rows loaded into the cache, all at a time.
    pub fn prefetch(self: *const Array, rows: []const u64) void {
        if (self.layout == .pieces) {
            for (rows) |row| {
                if (row >= self.length) continue;
                const found = self.piece(row) catch return;
                if (found.array.layout != .pieces) found.array.prefetch(&.{found.row});
            }
            return;
        }
        const width: usize = switch (self.layout) {
            .fixed, .dictionary => self.width,
            .text32, .list32 => 4,
            .text64, .list64 => 8,
            .view => 16,
            else => return,
        };
        const values = self.values.bytes();
        for (rows) |row| {
            const place = (self.offset +% row) *% width;
            if (place < values.len) @prefetch(&values[place], .{});
        }
    }

    pub fn child(self: *const Array, number: usize) *const Array {
        return &self.children.?[0..self.child_count][number];
    }

    /// The bytes of a string or binary value in any of its layouts.
    pub inline fn text(self: *const Array, comptime layout: Layout, row: usize) []const u8 {
        switch (layout) {
            .text32, .text64 => {
                const T = if (layout == .text32) i32 else i64;
                const first: usize = @intCast(self.fixed(T, row));
                const end: usize = @intCast(self.fixed(T, row + 1));
                return self.data.bytes()[first..end];
            },
            .view => {
                const view = self.values.bytes()[(self.offset + row) * 16 ..][0..16];
                const size: usize = unaligned.read(u32, view[0..4], .little);
                if (size <= 12) return view[4..][0..size];
                const number = unaligned.read(u32, view[8..12], .little);
                const first: usize = unaligned.read(u32, view[12..16], .little);
                return self.more.?[0..self.more_count][number].bytes()[first..][0..size];
            },
            .fixed => return self.wide(row),
            else => unreachable,
        }
    }

    /// As `text`, where offsets may be wrong.
    pub inline fn bytes(self: *const Array, comptime layout: Layout, row: usize) Damaged![]const u8 {
        switch (layout) {
            .text32, .text64 => {
                const T = if (layout == .text32) u32 else u64; // a negative offset is too large
                const first: usize = self.fixed(T, row);
                const end: usize = self.fixed(T, row + 1);
                const data = self.data.bytes();
                if (first > end or end > data.len) return error.Damaged;
                return data[first..end];
            },
            .view => {
                const view = self.values.bytes()[(self.offset + row) * 16 ..][0..16];
                const size: usize = unaligned.read(u32, view[0..4], .little);
                if (size <= 12) return view[4..][0..size];
                const number = unaligned.read(u32, view[8..12], .little);
                const first: usize = unaligned.read(u32, view[12..16], .little);
                if (number >= self.more_count) return error.Damaged;
                const data = self.more.?[number].bytes();
                if (first > data.len or size > data.len - first) return error.Damaged;
                return data[first..][0..size];
            },
            .fixed => return self.wide(row),
            .pieces => {
                const found = try self.piece(row);
                return switch (found.array.layout) {
                    inline .text32, .text64, .view => |below| found.array.bytes(below, found.row),
                    else => error.Damaged,
                };
            },
            else => comptime unreachable,
        }
    }

    /// The rows of the child that belong to a list: the first one and the one behind the last.
    pub fn items(self: *const Array, row: usize) Damaged![2]usize {
        const first, const end = switch (self.layout) {
            .list32 => .{ @as(usize, self.fixed(u32, row)), @as(usize, self.fixed(u32, row + 1)) },
            .list64 => .{ @as(usize, self.fixed(u64, row)), @as(usize, self.fixed(u64, row + 1)) },
            .list_fixed => .{ (self.offset + row) * self.width, (self.offset + row + 1) * self.width },
            else => return error.Damaged,
        };
        if (first > end or end > self.child(0).length) return error.Damaged;
        return .{ first, end };
    }

    /// The row of the child that a row of a `dictionary` refers to.
    pub fn index(self: *const Array, row: usize) Damaged!usize {
        const found: u64 = switch (self.width) {
            1 => self.fixed(u8, row),
            2 => self.fixed(u16, row),
            4 => self.fixed(u32, row),
            8 => self.fixed(u64, row),
            else => return error.Damaged,
        };
        return if (found < self.child(0).length) @intCast(found) else error.Damaged;
    }

    /// The first row of the child and the row behind the last one that belong to a list.
    pub fn range(self: *const Array, row: usize) [2]usize {
        return switch (self.layout) {
            .list32 => .{ @intCast(self.fixed(i32, row)), @intCast(self.fixed(i32, row + 1)) },
            .list64 => .{ @intCast(self.fixed(i64, row)), @intCast(self.fixed(i64, row + 1)) },
            .list_fixed => .{ (self.offset + row) * self.width, (self.offset + row + 1) * self.width },
            else => unreachable,
        };
    }
};
