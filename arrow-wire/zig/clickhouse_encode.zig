//! Arrow arrays into blocks of ClickHouse's Native format: https://clickhouse.com/docs/interfaces/formats/Native
//!
//! A block is the number of its columns and rows, then each column: its name, its type, a prefix (versions of
//! serializations), and the values. The server's own NativeWriter.cpp and Serialization*.cpp write blocks so for a
//! client that names no revision of the protocol.

const std = @import("std");
const guard = @import("guard.zig");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const forms = @import("clickhouse_forms.zig");
const numbers = @import("clickhouse_numbers.zig");
const shared = @import("clickhouse_rows.zig");
const texts = @import("clickhouse_texts.zig");
const unaligned = @import("unaligned.zig");
const Error = shared.Error;
const Node = shared.Node;
pub const Out = shared.Out;
const Rows = shared.Rows;

/// One column: its name and type as in a block, and how its values are encoded.
pub const Column = extern struct { head: arrow.Buffer, node: *const Node };

/// The outcome of a block: its bytes, which the next one overwrites, or the column that failed and why.
pub const Result = extern struct {
    address: ?[*]const u8 = null,
    size: usize = 0,
    column: usize = 0,
    failure: Failure = .none,
};

pub const Failure = enum(u32) { none, null_value, range, inexact, form, damaged, memory };

/// The types that are made of others, or wrap them.
const Nested = enum { list, fields, dictionary, low_cardinality, document };

const Encode = *const fn (*const Node, Rows, *Out) Error!void;

/// An encoder by its name, for which `arrow_wire/clickhouse_plan.py` asks.
const Named = struct { name: []const u8, put: Encode };

const named = [_]Named{
    .{ .name = "copy1", .put = numbers.copy(1).put },
    .{ .name = "copy2", .put = numbers.copy(2).put },
    .{ .name = "copy4", .put = numbers.copy(4).put },
    .{ .name = "copy8", .put = numbers.copy(8).put },
    .{ .name = "copy16", .put = numbers.copy(16).put },
    .{ .name = "copy32", .put = numbers.copy(32).put },
    .{ .name = "zeros", .put = numbers.zeros },
    .{ .name = "bits", .put = numbers.bits },
    .{ .name = "floats", .put = numbers.floats },
    .{ .name = "integers64", .put = numbers.integers(i64).put },
    .{ .name = "integers128", .put = numbers.integers(i128).put },
    .{ .name = "integers256", .put = numbers.integers(i256).put },
} ++ inLayouts("string", .{
    texts.strings(.text32).put, texts.strings(.text64).put, texts.strings(.view).put,
    texts.strings(.fixed).put,  texts.strings(.pieces).put,
}) ++ inLayouts("fixed_string", texts.inLayouts(forms.Padded)) ++ inLayouts("uuid", texts.inLayouts(forms.Uuid)) ++
    inLayouts("ipv4", texts.inLayouts(forms.Ip4)) ++ inLayouts("ipv6", texts.inLayouts(forms.Ip6)) ++
    inLayouts("digits", texts.inLayouts(forms.Whole)) ++ inLayouts("enum", .{
    texts.enums(.text32).put, texts.enums(.text64).put, texts.enums(.view).put,
    texts.enums(.fixed).put,  texts.enums(.pieces).put,
}) ++ [_]Named{
    .{ .name = "list", .put = list },
    .{ .name = "fields", .put = fields },
    .{ .name = "dictionary", .put = dictionary },
    .{ .name = "low_cardinality", .put = lowCardinality },
    .{ .name = "document", .put = document },
};

/// Name encoders of strings by the layouts that they are for.
fn inLayouts(comptime name: []const u8, comptime all: [5]Encode) [5]Named {
    var made: [5]Named = undefined;
    for (.{ "text32", "text64", "view", "fixed", "pieces" }, all, &made) |layout, put, *one| {
        one.* = .{ .name = name ++ "_" ++ layout, .put = put };
    }
    return made;
}

const encoders = blk: {
    var made: [named.len]Encode = undefined;
    for (named, &made) |one, *put| put.* = one.put;
    break :blk made;
};

/// The number of an encoder by its name, or -1.
pub fn numberOf(name: []const u8) i32 {
    for (named, 0..) |one, i| {
        if (std.mem.eql(u8, one.name, name)) return @intCast(i);
    }
    return -1;
}

const first_nested = encoders.len - std.enums.values(Nested).len;

fn nested(node: *const Node) ?Nested {
    return if (node.encoder < first_nested) null else std.enums.fromInt(Nested, node.encoder - first_nested);
}

/// Encode rows of all columns as one block.
pub fn encode(columns: []const Column, rows: Rows, out: *Out, result: *Result) void {
    result.* = .{};
    out.used = 0;
    block(columns, rows, out, &result.column) catch |failure| {
        result.failure = switch (failure) {
            error.Null => .null_value,
            error.Range => .range,
            error.Inexact => .inexact,
            error.Form => .form,
            error.Damaged => .damaged,
            error.OutOfMemory, error.TooLarge => .memory,
        };
        return;
    };
    result.address = out.memory.ptr;
    result.size = out.used;
}

fn block(columns: []const Column, rows: Rows, out: *Out, number: *usize) Error!void {
    try shared.addVarint(out, columns.len);
    try shared.addVarint(out, rows.count);
    for (columns, 0..) |column, i| {
        number.* = i;
        const head = column.head.bytes();
        @memcpy(try out.more(head.len), head);
        if (rows.count == 0) continue;
        try shared.check(column.node.array);
        try shared.checkRows(column.node.array, rows);
        try prefix(column.node, out);
        try values(column.node, rows, out);
    }
}

/// Write the prefix of a column's values: the versions of the formats of keys and documents.
fn prefix(node: *const Node, out: *Out) Error!void {
    switch (nested(node) orelse return) {
        .list, .fields, .dictionary => for (node.below()) |*child| try prefix(child, out),
        .low_cardinality, .document => try shared.addNumber(out, 1),
    }
}

/// Write which rows are null, or refuse nulls, and then the values.
fn values(node: *const Node, rows: Rows, out: *Out) Error!void {
    const array = node.array;
    const never = !array.hasNulls() and array.layout != .dictionary;
    if (node.nullable != 0) {
        const mask = try out.more(rows.count);
        for (mask, 0..) |*byte, i| {
            const row = rows.at(i);
            byte.* = @intFromBool(row == shared.nowhere or !never and try shared.isNull(array, row));
        }
    } else if (!never and nested(node) != .low_cardinality) {
        for (0..rows.count) |i| {
            const row = rows.at(i);
            if (row != shared.nowhere and try shared.isNull(array, row)) return error.Null;
        }
    }
    try valuesAlone(node, rows, out);
}

fn valuesAlone(node: *const Node, rows: Rows, out: *Out) Error!void {
    if (node.encoder >= encoders.len) return error.Damaged;
    try encoders[node.encoder](node, rows, out);
}

const List = std.ArrayList(u64);

/// Array and Map: where each row ends among the items, then the items.
fn list(node: *const Node, rows: Rows, out: *Out) Error!void {
    const array = node.array;
    const ends = try out.more(rows.count * 8);
    const straight = rows.list == null and !array.hasNulls();
    var taken: List = .empty;
    defer taken.deinit(builders.objects);
    var total: u64 = 0;
    var first: usize = 0;
    for (0..rows.count) |i| {
        const row = rows.at(i);
        if (row != shared.nowhere and !array.isNull(row)) {
            const from, const to = try range(array, row);
            if (i == 0) first = from;
            total += to - from;
            if (!straight) {
                const added = try taken.addManyAsSlice(builders.objects, to - from);
                for (added, from..) |*place, item| place.* = item;
            }
        }
        unaligned.write(u64, ends[i * 8 ..][0..8], total, .little);
    }
    const items: Rows = if (straight) .{ .first = first, .count = total } else .{ .count = total, .list = taken.items };
    const child = &node.below()[0];
    if (total > 0) try values(child, items, out);
}

/// The items of a list: the first one, and the one behind the last.
fn range(array: *const arrow.Array, row: usize) Error![2]usize {
    const place = array.offset + row;
    const bytes = array.values.bytes();
    const found: [2]usize = switch (array.layout) {
        inline .list32, .list64 => |layout| of: {
            const T = if (layout == .list32) u32 else u64;
            const width = @sizeOf(T);
            break :of .{
                unaligned.read(T, bytes[place * width ..][0..width], .little),
                unaligned.read(T, bytes[(place + 1) * width ..][0..width], .little),
            };
        },
        .list_fixed => .{ place * array.width, (place + 1) * array.width },
        else => return error.Damaged,
    };
    return if (found[0] <= found[1] and found[1] <= array.child(0).length) found else error.Damaged;
}

/// Tuple: one field after the other, each with all of its values. Fields of a null have none.
fn fields(node: *const Node, rows: Rows, out: *Out) Error!void {
    var room: Out = .{};
    defer room.deinit();
    var inner = rows;
    if (node.array.hasNulls()) {
        const taken = try room.numbers(u64, rows.count);
        const nulls: shared.Nulls = .of(node.array);
        for (taken, 0..) |*place, i| place.* = if (nulls.absent(rows.at(i))) shared.nowhere else rows.at(i);
        inner.list = taken;
    }
    for (node.below()) |*child| try values(child, inner, out);
}

/// The values that a dictionary refers to, for a column that is no LowCardinality.
fn dictionary(node: *const Node, rows: Rows, out: *Out) Error!void {
    var room: Out = .{};
    defer room.deinit();
    const taken = try room.numbers(u64, rows.count);
    const nulls: shared.Nulls = .of(node.array);
    for (taken, 0..) |*place, i| {
        const row = rows.at(i);
        place.* = if (nulls.absent(row)) shared.nowhere else try shared.index(node.array, row);
    }
    try valuesAlone(&node.below()[0], .{ .count = rows.count, .list = taken }, out);
}

const additional_keys = 1 << 9; // the keys are in the block itself
const new_keys = 1 << 10; // and no block before had them

/// LowCardinality, from a dictionary: the keys that are used, and a number of a key a row. The first key of a nullable
/// one (`width` is 1) is null.
fn lowCardinality(node: *const Node, rows: Rows, out: *Out) Error!void {
    const array = node.array;
    const places = try builders.objects.alloc(u32, array.child(0).length);
    defer builders.objects.free(places);
    @memset(places, 0);
    var keys: List = .empty;
    defer keys.deinit(builders.objects);
    if (node.width == 1) try keys.append(builders.objects, shared.nowhere);
    var room: Out = .{};
    defer room.deinit();
    const indices = try room.numbers(u32, rows.count);
    switch (array.width) {
        1 => try numbered(u8, node, rows, places, &keys, indices),
        2 => try numbered(u16, node, rows, places, &keys, indices),
        4 => try numbered(u32, node, rows, places, &keys, indices),
        8 => try numbered(u64, node, rows, places, &keys, indices),
        else => return error.Damaged,
    }
    const size: u6 = if (keys.items.len <= 1 << 8) 0 else if (keys.items.len <= 1 << 16) 1 else 2;
    try shared.addNumber(out, @as(u64, size) | additional_keys | new_keys);
    try shared.addNumber(out, keys.items.len);
    try valuesAlone(&node.below()[0], .{ .count = keys.items.len, .list = keys.items }, out);
    try shared.addNumber(out, rows.count);
    switch (size) {
        0 => try addNumbers(u8, indices, out),
        1 => try addNumbers(u16, indices, out),
        else => try addNumbers(u32, indices, out),
    }
}

fn addNumbers(comptime T: type, indices: []const u32, out: *Out) Error!void {
    const to = std.mem.bytesAsSlice(T, try out.more(indices.len * @sizeOf(T)));
    for (to, indices) |*one, number| one.* = std.mem.nativeToLittle(T, @intCast(number));
}

/// Set the number of its key for each row. Most rows have a key that a row before has, and are no null.
fn numbered(comptime Index: type, node: *const Node, rows: Rows, places: []u32, keys: *List, indices: []u32) Error!void {
    const array = node.array;
    const never = !array.hasNulls() and !array.child(0).hasNulls() and array.child(0).layout != .dictionary;
    const width = @sizeOf(Index);
    const of_rows = array.values.bytes();
    for (indices, 0..) |*to, i| {
        const row = rows.at(i);
        if (row == shared.nowhere or (!never and try shared.isNull(array, row))) {
            if (node.width == 0 and row != shared.nowhere) return error.Null;
            to.* = if (node.width == 1) 0 else try key(places, keys, null);
            continue;
        }
        const index = unaligned.read(Index, of_rows[(array.offset + row) * width ..][0..width], .little);
        if (index >= places.len) return error.Damaged;
        const place = places[index];
        to.* = if (place != 0) place - 1 else try key(places, keys, index);
    }
}

/// Return the number of a key among those that are written, and add it where it is new. Null is the default value, also
/// for rows that are nowhere.
fn key(places: []u32, keys: *List, row: ?usize) Error!u32 {
    if (row) |known| if (places[known] != 0) return places[known] - 1;
    const made = std.math.cast(u32, keys.items.len) orelse return error.TooLarge;
    try keys.append(builders.objects, row orelse shared.nowhere);
    if (row) |known| places[known] = made + 1;
    return made;
}

/// JSON: as strings, which the server parses; the prefix has the version that says so.
fn document(node: *const Node, rows: Rows, out: *Out) Error!void {
    try valuesAlone(&node.below()[0], rows, out);
}

/// Return an encoder of blocks, one at a time; null if memory is short.
export fn arrow_wire_clickhouse_encoder_new() ?*Out {
    const out = builders.objects.create(Out) catch return null;
    out.* = .{};
    return out;
}

export fn arrow_wire_clickhouse_encoder_free(out: *Out) bool {
    return guard.call(free, .{out});
}

fn free(out: *Out) void {
    out.deinit();
    builders.objects.destroy(out);
}

/// Encode `count` rows from `first` on, or those that `list` names.
pub export fn arrow_wire_clickhouse_encode(
    out: *Out,
    columns: [*]const Column,
    column_count: usize,
    list_of_rows: ?[*]const u64,
    first: usize,
    count: usize,
    result: *Result,
) bool {
    const taken = if (list_of_rows) |given| given[0..count] else null;
    const rows: Rows = .{ .first = first, .count = count, .list = taken };
    return guard.call(encode, .{ columns[0..column_count], rows, out, result });
}
