//! How far the decoding of each type in a column has got, and the types that are made of others.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const low = @import("clickhouse_keys.zig");
const shown = @import("clickhouse_shown.zig");
const unaligned = @import("unaligned.zig");
const values = @import("clickhouse_values.zig");
const Column = builders.Column;

/// `Form`: a number that no label has, or a byte that is none. `Range`: beyond the limits of the Arrow type. `Text`: no
/// UTF-8. `Damaged`: bytes that are no block. `Changed`: other columns than expected.
pub const Error = error{ Form, Range, Text, Damaged, Changed } || builders.Error;

/// A piece of the stream, and how much of it is used up.
pub const Input = struct {
    bytes: []const u8,
    at: usize = 0,

    pub inline fn rest(self: *const Input) []const u8 {
        return self.bytes[self.at..];
    }

    /// The next bytes, or null where they are not all there.
    pub inline fn take(self: *Input, size: usize) ?[]const u8 {
        const left = self.rest();
        if (size > left.len) return null;
        self.at += size;
        return left[0..size];
    }

    pub inline fn number(self: *Input, comptime T: type) ?T {
        const size = @divExact(@bitSizeOf(T), 8);
        const bytes = self.take(size) orelse return null;
        return unaligned.read(T, bytes[0..size], .little);
    }

    /// A number of seven bits a byte. An incomplete one is used up, too.
    pub inline fn varint(self: *Input) Error!?usize {
        var found: u64 = 0;
        var shift: u7 = 0;
        while (self.at < self.bytes.len) {
            const byte: u64 = self.bytes[self.at];
            self.at += 1;
            if (shift >= 63) return error.Damaged;
            found |= (byte & 127) << @intCast(shift);
            if (byte < 128) return found;
            shift += 7;
        }
        return null;
    }
};

/// The decoders of types: `arrow_wire/clickhouse_shapes.py` knows these.
pub const Decoding = enum(u32) {
    copy, // values of `width` bytes, the same in Arrow
    whole, // numbers in another width, or times `factor`; `source` says which
    bits, // booleans
    bfloat,
    text, // UTF-8
    binary,
    fixed_text, // UTF-8 of `width` bytes, zeros and all
    uuid, // as a string
    ip4, // as a string
    ip6, // as a string
    label, // of an enum, as a string; `source` is 1 if a null may have a number without a label
    digits, // a whole number as a string
    nothing,
    nullable,
    list,
    fields,
    low_cardinality,
    _,
};

pub const Node = extern struct {
    decoding: Decoding,
    width: u32, // of a value on the wire
    source: u32,
    version: u32, // whether a version precedes the values: of keys, of documents
    factor: i64,
    labels: ?*const arrow.Array, // of an enum, as strings with offsets of 32 bits
    numbers: arrow.Buffer, // of the labels, 16 bits each
    children: ?[*]const Node,
    child_count: usize,

    pub fn below(self: *const Node) []const Node {
        return if (self.children) |children| children[0..self.child_count] else &.{};
    }
};

/// How many versions precede the values of a column.
pub fn versions(node: *const Node) usize {
    var count: usize = @intFromBool(node.version != 0);
    for (node.below()) |*child| count += versions(child);
    return count;
}

pub const State = struct {
    node: *const Node,
    column: *Column,
    children: []State,
    keys: ?*Column = null, // of a LowCardinality: those of the block
    table: []u16 = &.{}, // of an enum: the number of a label, plus one, by its own number
    bytes: std.ArrayList(u8) = .empty, // of a nullable: which rows are null
    left: usize = 0, // rows still to come
    rows: usize = 0, // of the block
    base: usize = 0, // of a list: items before the block
    last: u64 = 0, // of a list: where the row before ended in the block
    phase: u32 = 0,
    index_width: usize = 1,

    pub fn init(node: *const Node, column: *Column) Error!State {
        var self: State = .{ .node = node, .column = column, .children = &.{} };
        errdefer self.deinit();
        var target = column;
        if (node.decoding == .low_cardinality) {
            self.keys = try builders.objects.create(Column);
            self.keys.?.* = .{ .layout = column.layout, .width = column.width, .children = &.{} };
            target = self.keys.?;
        }
        if (node.decoding == .label) self.table = try shown.table(node);
        const inside = node.decoding == .list or node.decoding == .fields;
        if (inside and node.child_count != column.children.len) return error.Damaged;
        const made = try builders.objects.alloc(State, node.child_count);
        for (made, node.below(), 0..) |*child, *below, i| {
            child.* = State.init(below, if (inside) &column.children[i] else target) catch |failure| {
                for (made[0..i]) |*before| before.deinit();
                builders.objects.free(made);
                return failure;
            };
        }
        self.children = made;
        return self;
    }

    pub fn deinit(self: *State) void {
        for (self.children) |*child| child.deinit();
        builders.objects.free(self.children);
        builders.objects.free(self.table);
        self.bytes.deinit(builders.objects);
        if (self.keys) |keys| {
            keys.deinit();
            builders.objects.destroy(keys);
        }
    }

    /// Begin with so many rows.
    pub fn begin(self: *State, rows: usize) void {
        self.left = rows;
        self.rows = rows;
        self.last = 0;
        self.phase = 0;
        if (self.node.decoding == .list) self.base = self.column.children[0].length;
    }

    /// Go on, as far as a piece goes; true where all rows are there.
    pub fn run(self: *State, input: *Input) Error!bool {
        return switch (self.node.decoding) {
            .nullable => self.nullable(input),
            .list => self.list(input),
            .fields => self.fields(input),
            .low_cardinality => self.lowCardinality(input),
            else => values.run(self, input),
        };
    }

    /// A byte a row, 1 for null, and then the values, also of the nulls.
    fn nullable(self: *State, input: *Input) Error!bool {
        if (self.phase == 0) {
            const here = input.take(@min(self.left, input.rest().len)).?;
            try self.bytes.appendSlice(builders.objects, here);
            self.left -= here.len;
            if (self.left > 0) return false;
            self.phase = 1;
            self.children[0].begin(self.rows);
        }
        if (!try self.children[0].run(input)) return false;
        const first = self.column.length - self.rows;
        for (self.bytes.items, 0..) |byte, row| {
            if (byte > 1) return error.Form;
            if (byte == 1) try self.column.setNull(first + row);
        }
        self.bytes.clearRetainingCapacity();
        return true;
    }

    /// Where each row ends among the items of the block, and then the items.
    fn list(self: *State, input: *Input) Error!bool {
        if (self.phase == 0) {
            const count = @min(self.left, input.rest().len / 8);
            const from = input.take(count * 8).?;
            const ends = try self.column.add(count);
            const width: usize = if (self.column.layout == .list32) 4 else 8;
            for (0..count) |i| {
                const end = unaligned.read(u64, from[i * 8 ..][0..8], .little);
                if (end < self.last) return error.Damaged;
                self.last = end;
                const place = std.math.add(u64, end, self.base) catch return error.Damaged;
                if (width == 4) {
                    const narrow = std.math.cast(i32, place) orelse return error.TooLarge;
                    unaligned.write(i32, ends[i * 4 ..][0..4], narrow, .little);
                } else {
                    const narrow = std.math.cast(i64, place) orelse return error.Damaged;
                    unaligned.write(i64, ends[i * 8 ..][0..8], narrow, .little);
                }
            }
            self.left -= count;
            if (self.left > 0) return false;
            self.phase = 1;
            self.children[0].begin(self.last);
        }
        return self.last == 0 or try self.children[0].run(input);
    }

    /// One field after the other, each with all of its values.
    fn fields(self: *State, input: *Input) Error!bool {
        if (self.phase == 0) {
            self.phase = 1;
            if (self.children.len > 0) self.children[0].begin(self.rows);
        }
        while (self.phase <= self.children.len) {
            if (!try self.children[self.phase - 1].run(input)) return false;
            if (self.phase < self.children.len) self.children[self.phase].begin(self.rows);
            self.phase += 1;
        }
        _ = try self.column.add(self.rows); // which are all there now
        return true;
    }

    const additional_keys = 1 << 9; // the keys are in the block itself
    const global_keys = 1 << 8; // the keys are elsewhere, as in files of the server

    /// The keys of the block, and the number of a key a row. The first key of a nullable one (`width` is 1) is null.
    fn lowCardinality(self: *State, input: *Input) Error!bool {
        if (self.phase == 0) {
            if (input.rest().len < 16) return false;
            const flags = input.number(u64).?;
            const count = input.number(u64).?;
            if (flags & additional_keys == 0 or flags & global_keys != 0 or flags & 0xff > 3) return error.Damaged;
            self.index_width = @as(usize, 1) << @intCast(flags & 0xff);
            self.clearKeys();
            self.children[0].begin(count);
            self.phase = if (count > 0) 1 else 2;
        }
        if (self.phase == 1) {
            if (!try self.children[0].run(input)) return false;
            self.phase = 2;
        }
        if (self.phase == 2) {
            const count = input.number(u64) orelse return false;
            if (count != self.rows) return error.Damaged;
            try low.keep(self);
            self.phase = 3;
        }
        const count = @min(self.left, input.rest().len / self.index_width);
        try low.pick(self, input.take(count * self.index_width).?, count);
        self.left -= count;
        return self.left == 0;
    }

    fn clearKeys(self: *State) void {
        const keys = self.keys.?;
        keys.length = 0;
        keys.nulls = 0;
        keys.validity.used = 0;
        keys.values.deinit();
        for (keys.blocks.items) |*block| block.deinit();
        keys.blocks.clearRetainingCapacity();
    }
};
