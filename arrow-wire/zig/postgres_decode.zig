//! Rows of Postgres into columns of Arrow, as they arrive: messages DataRow, or the rows of a binary COPY.
//! https://www.postgresql.org/docs/current/protocol-message-formats.html
//!
//! A block of rows is decoded one column after the other, as it is encoded. The first pass notes where every value is
//! and that all of them have arrived. The second pass makes each column's values of them.

const std = @import("std");
const builders = @import("builders.zig");
const fields = @import("postgres_fields.zig");
const Array = @import("postgres_items.zig").Array;
const Columns = @import("columns.zig").Columns;
const unaligned = @import("unaligned.zig");
const Column = fields.Column;
const Error = fields.Error;
const Field = fields.Field;

/// The framing of a row's values.
pub const Framing = enum(u32) { messages = 0, copy = 1 };

/// Why decoding ended.
const End = enum(u32) {
    more = 0, // the next row has not arrived as a whole
    other = 1, // the next message is no row; of a COPY: its end
    full = 2, // there are as many rows as were asked for
    wrong = 3, // see `reason`
};

/// Where decoding came to: `position` in the data, and so many rows of the columns. Where a value has no form in Arrow's
/// type, `reason` is the number of the error, `column` and `row` say where.
pub const Progress = extern struct {
    position: usize = 0,
    rows: usize = 0,
    end: End = .more,
    reason: u32 = 0,
    column: u32 = 0,
    row: usize = 0,
};

const Decoder = struct {
    name: []const u8,
    take: *const fn (column: *const Column, into: *builders.Column, block: fields.Block, at: *usize) Error!void,
};

fn decoder(comptime name: []const u8, comptime Type: type) Decoder {
    return .{ .name = name, .take = if (@hasDecl(Type, "take")) Type.take else fields.Fixed(Type).take };
}

/// The decoders; `arrow_wire/postgres_reader.py` chooses one by its name for a type.
const decoders = [_]Decoder{
    decoder("array", Array),
    decoder("bool", fields.Boolean),
    decoder("number2", fields.Same(u16)),
    decoder("number4", fields.Same(u32)),
    decoder("number8", fields.Same(u64)),
    decoder("moment4_i32", fields.Moment(i32, i32)),
    decoder("moment4_i64", fields.Moment(i32, i64)),
    decoder("moment8_i64", fields.Moment(i64, i64)),
    decoder("time", fields.Time),
    decoder("duration", fields.Duration),
    decoder("bytes", fields.Bytes(false, "")),
    decoder("text", fields.Bytes(true, "")),
    decoder("jsonb", fields.Bytes(true, "\x01")),
    decoder("uuid", fields.Uuid),
    decoder("uuid_text", fields.UuidText),
    decoder("decimal128", fields.Decimal(i128)),
    decoder("decimal256", fields.Decimal(i256)),
};

pub fn isList(column: *const Column) bool {
    return column.decoder == 0;
}

pub fn take(column: *const Column, into: *builders.Column, block: fields.Block, at: *usize) Error!void {
    return decoders[column.decoder].take(column, into, block, at);
}

/// Return the number of the decoder of this name, or -1 where there is none.
pub fn numbered(name: []const u8) i32 {
    for (decoders, 0..) |one, i| {
        if (std.mem.eql(u8, one.name, name)) return @intCast(i);
    }
    return -1;
}

const block_rows = 512;
const block_fields = 1 << 14;

/// Decode rows of `data` from `progress.position` on, until the columns have `limit` rows or there is no whole row left.
pub fn decode(
    all: []const Column,
    into: *Columns,
    framing: Framing,
    data: []const u8,
    limit: usize,
    progress: *Progress,
) void {
    progress.* = .{ .position = progress.position, .rows = progress.rows };
    decodeBlocks(all, into.all, framing, data, limit, progress) catch |reason| {
        progress.end = .wrong;
        progress.reason = fields.number(reason);
    };
}

fn decodeBlocks(
    all: []const Column,
    into: []builders.Column,
    framing: Framing,
    data: []const u8,
    limit: usize,
    progress: *Progress,
) Error!void {
    if (data.len > std.math.maxInt(u32) or all.len != into.len or progress.position > data.len) return error.Malformed;
    const most = @max(1, @min(block_rows, block_fields / @max(1, all.len)));
    const places = try builders.objects.alloc(Field, most * all.len);
    defer builders.objects.free(places);
    while (progress.rows < limit) {
        const wanted = @min(most, limit - progress.rows);
        const rows = try walk(all.len, framing, data, places, wanted, progress);
        for (all, into, 0..) |*column, *to, i| {
            const block: fields.Block = .{ .data = data, .fields = places[i * wanted ..][0..rows] };
            var at: usize = 0;
            errdefer {
                progress.column = @intCast(i);
                progress.row = progress.rows + at;
            }
            try take(column, to, block, &at);
        }
        progress.rows += rows;
        if (rows < wanted) return; // `walk` said why
    }
    progress.end = .full;
}

/// Note where the values of the next rows are, `wanted` places a column; return how many rows have arrived.
fn walk(
    count: usize,
    framing: Framing,
    data: []const u8,
    places: []Field,
    wanted: usize,
    progress: *Progress,
) Error!usize {
    for (0..wanted) |row| {
        const rest = data[progress.position..];
        const begin: usize = if (framing == .messages) 7 else 2;
        if (rest.len < begin) return row;
        var end = rest.len;
        if (framing == .messages) {
            if (rest[0] != 'D') {
                progress.end = .other;
                return row;
            }
            const size = unaligned.read(u32, rest[1..5], .big);
            if (size < 6 or size > std.math.maxInt(i32)) return error.Malformed;
            end = 1 + @as(usize, size);
            if (rest.len < end) return row;
        }
        const found = unaligned.read(u16, rest[begin - 2 ..][0..2], .big);
        if (framing == .copy and found == 0xffff) {
            progress.end = .other;
            return row;
        }
        if (found != count) return error.Malformed;
        const used = try walkRow(rest[begin..end], places, row, wanted, progress.position + begin, count) orelse {
            return if (framing == .copy) row else error.Malformed;
        };
        if (framing == .messages and begin + used != end) return error.Malformed;
        progress.position += begin + used;
    }
    return wanted;
}

/// Note the values of one row; return how many bytes it takes, or null where not all of them are there.
fn walkRow(bytes: []const u8, places: []Field, row: usize, wanted: usize, start: usize, count: usize) Error!?usize {
    var place: usize = 0;
    for (0..count) |column| {
        if (bytes.len - place < 4) return null;
        const size = unaligned.read(i32, bytes[place..][0..4], .big);
        place += 4;
        places[column * wanted + row] = .{ .start = @intCast(start + place), .size = size };
        if (size >= 0) {
            if (bytes.len - place < @as(usize, @intCast(size))) return null;
            place += @intCast(size);
        } else if (size != -1) return error.Malformed;
    }
    return place;
}
