//! Arrow arrays into Postgres' binary COPY: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
//!
//! A block of rows is encoded one column after the other. The first pass adds up how long each row becomes, the second
//! puts each value behind the row's last one. So every loop is of one type, and loads the values of many rows, in any
//! order, from memory at the same time.

const std = @import("std");
const postgres = @import("postgres_column.zig");
const unaligned = @import("unaligned.zig");
const values = @import("postgres_values.zig");
const numeric = @import("postgres_numeric.zig");
const network = @import("postgres_network.zig");
const Array = @import("postgres_array.zig").Array;
const Column = postgres.Column;
const Error = postgres.Error;

/// Where encoding came to. If a value has no form in the server's type, `reason` is the number of the error, and
/// `column` and `wrong` say where; otherwise `reason` is 0. `needs` is how many bytes the next row takes if the buffer
/// is too small for it alone, else 0.
pub const Progress = extern struct {
    row: usize = 0,
    written: usize = 0,
    needs: usize = 0,
    reason: u32 = 0,
    column: u32 = 0,
    wrong: usize = 0,
};

const block_rows = 128; // their values stay in the core's own cache between the passes
const header = 2; // bytes of a row before its first value: the number of its columns

/// The rows to take: these numbers, or all of them from one on.
const Rows = struct {
    order: ?[]const u64,
    first: usize,

    inline fn row(self: Rows, i: usize) usize {
        return if (self.order) |order| order[i] else self.first + i;
    }
};

const Encoder = struct {
    name: []const u8,
    sizes: *const fn (column: *const Column, rows: Rows, sizes: []usize, at: *usize) Error!void,
    values: *const fn (column: *const Column, rows: Rows, places: []usize, out: []u8, at: *usize) Error!void,
    keys: *const fn (column: *const Column, keys: []i64) void,
    // One value alone, as an item of a list is taken.
    isNull: *const fn (column: *const Column, row: usize) bool,
    size: *const fn (column: *const Column, row: usize) Error!usize,
    put: *const fn (column: *const Column, row: usize, out: []u8) Error!usize,
};

fn encoder(comptime name: []const u8, comptime Type: type) Encoder {
    const isNull = if (@hasDecl(Type, "isNull")) Type.isNull else Column.isNull;
    const loops = struct {
        fn size(column: *const Column, row: usize) Error!usize {
            return if (@hasDecl(Type, "fixed")) Type.fixed else Type.size(column, row);
        }

        fn sizes(column: *const Column, rows: Rows, of_rows: []usize, at: *usize) Error!void {
            if (@hasDecl(Type, "fixed") and !column.array.hasNulls()) {
                for (of_rows) |*one| one.* += 4 + Type.fixed;
                return;
            }
            for (of_rows, 0..) |*one, i| {
                const row = rows.row(i);
                errdefer at.* = row;
                one.* += 4 + if (isNull(column, row)) 0 else try size(column, row);
            }
        }

        fn values(column: *const Column, rows: Rows, places: []usize, out: []u8, at: *usize) Error!void {
            for (places, 0..) |*place, i| {
                const row = rows.row(i);
                errdefer at.* = row;
                const to = out[place.*..];
                if (isNull(column, row)) {
                    unaligned.write(i32, to[0..4], -1, .big);
                    place.* += 4;
                } else {
                    const used = try Type.put(column, row, to[4..]);
                    unaligned.write(u32, to[0..4], @intCast(used), .big);
                    place.* += 4 + used;
                }
            }
        }

        fn keys(column: *const Column, out: []i64) void {
            for (out, 0..) |*key, row| {
                key.* = if (!@hasDecl(Type, "key") or isNull(column, row)) 0 else Type.key(column, row);
            }
        }
    };
    return .{
        .name = name,
        .sizes = loops.sizes,
        .values = loops.values,
        .keys = loops.keys,
        .isNull = isNull,
        .size = loops.size,
        .put = Type.put,
    };
}

/// Encoders of strings, one for each layout, which ends their names.
fn ofTexts(comptime name: []const u8, comptime Type: anytype, comptime rest: anytype) [4]Encoder {
    return .{
        encoder(name ++ "_text32", @call(.auto, Type, .{.text32} ++ rest)),
        encoder(name ++ "_text64", @call(.auto, Type, .{.text64} ++ rest)),
        encoder(name ++ "_view", @call(.auto, Type, .{.view} ++ rest)),
        encoder(name ++ "_pieces", @call(.auto, Type, .{.pieces} ++ rest)),
    };
}

/// Encoders of integers of other widths; the same width is first.
fn ofIntegers(comptime name: []const u8, comptime To: type) [8]Encoder {
    const all = .{ i8, i16, i32, i64, u8, u16, u32, u64 };
    var made: [8]Encoder = undefined;
    for (&made, all) |*one, From| {
        one.* = encoder(name ++ "_" ++ @typeName(From), if (From == To) values.Same(To) else values.Integer(From, To));
    }
    return made;
}

/// The encoders; `arrow_wire/postgres_recipes.py` chooses one by its name for types of Arrow and of the server.
const encoders = [_]Encoder{
    encoder("array", Array),
    encoder("bool", values.Boolean),
    encoder("float4_f32", values.Same(u32)),
    encoder("float4_f64", values.Float(f64, f32)),
    encoder("float8_f32", values.Float(f32, f64)),
    encoder("float8_f64", values.Same(u64)),
    encoder("moment4_i32", values.Moment(i32, i32)),
    encoder("moment4_i64", values.Moment(i64, i32)),
    encoder("moment8_i32", values.Moment(i32, i64)),
    encoder("moment8_i64", values.Moment(i64, i64)),
    encoder("interval_duration", values.Duration),
    encoder("interval_interval", values.Interval),
    encoder("bytes_fixed", values.Bytes(.fixed, "")),
    encoder("uuid16_fixed", values.UuidBytes(.fixed)),
    encoder("numeric_d32", numeric.Decimal(i32)),
    encoder("numeric_d64", numeric.Decimal(i64)),
    encoder("numeric_d128", numeric.Decimal(i128)),
    encoder("numeric_d256", numeric.Decimal(i256)),
    encoder("numeric_f32", numeric.Shortest(f32)),
    encoder("numeric_f64", numeric.Shortest(f64)),
    encoder("numeric_i8", numeric.Whole(i8)),
    encoder("numeric_i16", numeric.Whole(i16)),
    encoder("numeric_i32", numeric.Whole(i32)),
    encoder("numeric_i64", numeric.Whole(i64)),
    encoder("numeric_u8", numeric.Whole(u8)),
    encoder("numeric_u16", numeric.Whole(u16)),
    encoder("numeric_u32", numeric.Whole(u32)),
    encoder("numeric_u64", numeric.Whole(u64)),
} ++ ofIntegers("int2", i16) ++ ofIntegers("int4", i32) ++ ofIntegers("int8", i64) ++
    ofTexts("bytes", values.Bytes, .{""}) ++ ofTexts("jsonb", values.Bytes, .{"\x01"}) ++
    ofTexts("label", values.Label, .{""}) ++ ofTexts("jsonb_label", values.Label, .{"\x01"}) ++
    ofTexts("uuid", values.UuidText, .{}) ++ ofTexts("uuid16", values.UuidBytes, .{}) ++
    ofTexts("inet", network.Address, .{0}) ++ ofTexts("cidr", network.Address, .{1}) ++
    ofTexts("macaddr", network.Mac, .{6}) ++ ofTexts("macaddr8", network.Mac, .{8});

pub fn encoderOf(column: *const Column) *const Encoder {
    return &encoders[column.encoder];
}

pub fn isList(column: *const Column) bool {
    return column.encoder == 0;
}

/// Return the number of the encoder of this name, or -1 where there is none.
pub fn numbered(name: []const u8) i32 {
    for (encoders, 0..) |one, i| {
        if (std.mem.eql(u8, one.name, name)) return @intCast(i);
    }
    return -1;
}

/// Set a number for every row of a column by which the rows are in the server's order, or nearly.
pub fn keys(column: *const Column, out: []i64) Error!void {
    try column.array.check();
    if (out.len > column.array.length) return error.Damaged;
    encoderOf(column).keys(column, out);
}

/// Encode rows from `progress.row` up to `end` into `out`, as many as fit.
pub fn encode(columns: []const Column, order: ?[]const u64, end: usize, out: []u8, progress: *Progress) void {
    progress.* = .{ .row = progress.row };
    var at: usize = 0;
    var number: u32 = 0;
    encodeBlocks(columns, order, end, out, progress, &number, &at) catch |reason| {
        progress.reason = postgres.number(reason);
        progress.column = number;
        progress.wrong = at;
    };
}

fn encodeBlocks(
    columns: []const Column,
    order: ?[]const u64,
    end: usize,
    out: []u8,
    progress: *Progress,
    number: *u32,
    at: *usize,
) Error!void {
    var length: usize = std.math.maxInt(usize);
    for (columns, 0..) |column, i| {
        number.* = @intCast(i);
        try column.array.check();
        length = @min(length, column.array.length);
    }
    if (order == null and end > length) return error.Damaged;
    while (progress.row < end) {
        const count = @min(block_rows, end - progress.row);
        if (order) |all| for (all[progress.row..][0..count]) |row| if (row >= length) return error.Damaged;
        if (try encodeBlock(columns, order, count, out, progress, number, at) < count) return;
    }
}

/// Encode the next rows; return how many of them fit.
fn encodeBlock(
    columns: []const Column,
    order: ?[]const u64,
    count: usize,
    out: []u8,
    progress: *Progress,
    number: *u32,
    at: *usize,
) Error!usize {
    var sizes: [block_rows]usize = undefined;
    var places: [block_rows]usize = undefined;
    const numbers = if (order) |all| all[progress.row..][0..count] else null;
    const rows: Rows = .{ .order = numbers, .first = progress.row };
    @memset(sizes[0..count], header);
    if (numbers) |these| for (columns) |*column| column.array.prefetch(these);
    for (columns, 0..) |*column, i| {
        number.* = @intCast(i);
        try encoderOf(column).sizes(column, rows, sizes[0..count], at);
    }
    const fit = fitting(sizes[0..count], places[0..count], progress.written, out.len);
    if (fit == 0) {
        if (progress.written == 0) progress.needs = sizes[0];
        return 0;
    }
    for (places[0..fit]) |*place| {
        unaligned.write(u16, out[place.*..][0..2], @intCast(columns.len), .big);
        place.* += header;
    }
    for (columns, 0..) |*column, i| {
        number.* = @intCast(i);
        try encoderOf(column).values(column, rows, places[0..fit], out, at);
    }
    progress.written = places[fit - 1];
    progress.row += fit;
    return fit;
}

/// Set where each row begins, from `start` on; return how many of them end before `limit`.
fn fitting(sizes: []const usize, places: []usize, start: usize, limit: usize) usize {
    var place = start;
    for (sizes, places, 0..) |size, *at, row| {
        if (size > limit or place > limit - size) return row;
        at.* = place;
        place += size;
    }
    return sizes.len;
}
