//! The functions that Python may call, by ctypes: `arrow_wire/library.py` declares the same signatures.
//!
//! A function that returns a boolean returns false where a check in it failed: see `guard.zig`.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const clickhouse_decode = @import("clickhouse_decode.zig");
const clickhouse_encode = @import("clickhouse_encode.zig");
const clickhouse_rows = @import("clickhouse_rows.zig");
const clickhouse_states = @import("clickhouse_states.zig");
const columns = @import("columns.zig");
const exported = @import("exported.zig");
const guard = @import("guard.zig");
const postgres_column = @import("postgres_column.zig");
const postgres_decode = @import("postgres_decode.zig");
const postgres_encode = @import("postgres_encode.zig");
const postgres_fields = @import("postgres_fields.zig");

pub const panic = std.debug.FullPanic(guard.failed);

comptime {
    _ = columns; // which export their own
    _ = clickhouse_decode;
    _ = clickhouse_encode;
}

/// Of this interface. It is another one as soon as a function or a structure of it changes.
const version = 2;

/// The structures that Python and this library share, by their names in `arrow_wire/library.py` and
/// `arrow_wire/clickhouse_library.py`.
const structures = .{
    .{ "Buffer", arrow.Buffer },
    .{ "Array", arrow.Array },
    .{ "Shape", builders.Shape },
    .{ "ArrowArray", exported.ArrowArray },
    .{ "Column", postgres_column.Column },
    .{ "Progress", postgres_encode.Progress },
    .{ "ReadColumn", postgres_fields.Column },
    .{ "ReadProgress", postgres_decode.Progress },
    .{ "clickhouse.Node", clickhouse_rows.Node },
    .{ "clickhouse.Column", clickhouse_encode.Column },
    .{ "clickhouse.Result", clickhouse_encode.Result },
    .{ "clickhouse.Shape", clickhouse_states.Node },
    .{ "clickhouse.ResultColumn", clickhouse_decode.Column },
    .{ "clickhouse.Fed", clickhouse_decode.Result },
};

/// Return the version of this interface.
export fn arrow_wire_version() u32 {
    return version;
}

/// Return the bytes of a structure by its name; 0 for one that is not known.
export fn arrow_wire_size(name: [*]const u8, size: usize) usize {
    inline for (structures) |one| {
        if (std.mem.eql(u8, one[0], name[0..size])) return @sizeOf(one[1]);
    }
    return 0;
}

/// Return the number of an encoder for ClickHouse by its name, or -1.
export fn arrow_wire_clickhouse_encoder(name: [*]const u8, size: usize) i32 {
    return clickhouse_encode.numberOf(name[0..size]);
}

/// Return the number of a decoder for ClickHouse by its name, or -1.
export fn arrow_wire_clickhouse_decoding(name: [*]const u8, size: usize) i32 {
    const found = std.meta.stringToEnum(clickhouse_states.Decoding, name[0..size]) orelse return -1;
    return @intCast(@intFromEnum(found));
}

/// Copy the message of the last check that failed on this thread, and return its length.
export fn arrow_wire_failure(out: [*]u8, size: usize) usize {
    return guard.message(out[0..size]);
}

/// Let a check fail, for a test: an index beyond these bytes.
export fn arrow_wire_fail(data: [*]const u8, size: usize) bool {
    return guard.call(guard.fail, .{data[0..size]});
}

/// Encode rows for COPY (FORMAT binary); see `postgres_encode.encode`. `order` may be null: rows in the arrays' order.
pub export fn arrow_wire_postgres_encode(
    all: [*]const postgres_column.Column,
    column_count: usize,
    order: ?[*]const u64,
    order_count: usize,
    end: usize,
    out: [*]u8,
    out_size: usize,
    progress: *postgres_encode.Progress,
) bool {
    const rows = if (order) |given| given[0..order_count] else null;
    return guard.call(postgres_encode.encode, .{ all[0..column_count], rows, end, out[0..out_size], progress });
}

/// Return the number of an encoder by its name, or -1.
export fn arrow_wire_postgres_encoder(name: [*]const u8, size: usize) i32 {
    return postgres_encode.numbered(name[0..size]);
}

/// Return the number of a decoder by its name, or -1.
export fn arrow_wire_postgres_decoder(name: [*]const u8, size: usize) i32 {
    return postgres_decode.numbered(name[0..size]);
}

/// Decode rows that have arrived; see `postgres_decode.decode`.
pub export fn arrow_wire_postgres_decode(
    all: [*]const postgres_fields.Column,
    column_count: usize,
    into: *columns.Columns,
    framing: postgres_decode.Framing,
    data: [*]const u8,
    data_size: usize,
    limit: usize,
    progress: *postgres_decode.Progress,
) bool {
    return guard.call(postgres_decode.decode, .{ all[0..column_count], into, framing, data[0..data_size], limit, progress });
}

/// Set a number for every row of a column by which rows are in order; `damaged` becomes 1 where the array is damaged.
pub export fn arrow_wire_postgres_keys(column: *const postgres_column.Column, out: [*]i64, count: usize, damaged: *u32) bool {
    return guard.call(keys, .{ column, out[0..count], damaged });
}

fn keys(column: *const postgres_column.Column, out: []i64, damaged: *u32) void {
    damaged.* = 0;
    postgres_encode.keys(column, out) catch {
        damaged.* = 1;
    };
}
