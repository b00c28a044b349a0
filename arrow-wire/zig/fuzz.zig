//! The compiled library with functions that damage arrays and bytes and hand them to it, many times a call: `fuzz.py`
//! makes the intact ones, and declares the same structures and functions.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const clickhouse_decode = @import("clickhouse_decode.zig");
const clickhouse_encode = @import("clickhouse_encode.zig");
const columns = @import("columns.zig");
const exported = @import("exported.zig");
const library = @import("library.zig");
const postgres_column = @import("postgres_column.zig");
const postgres_decode = @import("postgres_decode.zig");
const postgres_encode = @import("postgres_encode.zig");
const postgres_fields = @import("postgres_fields.zig");

pub const panic = library.panic;

/// How executions ended. Those that end in a check that fails are the last ones of a call.
const Ended = extern struct { answered: usize = 0, refused: usize = 0, failed: usize = 0 };

/// A buffer of an array: memory that belongs to the fuzzer, and its bytes when they are right.
const Place = extern struct { buffer: *arrow.Buffer, memory: [*]u8, right: [*]const u8, size: usize };

const edges = [_]u8{ 0, 1, 4, 0x7F, 0x80, 0xFF };
const words = [_]u32{ 0, 1, 13, 1 << 31, (1 << 31) - 1, (1 << 32) - 1 };
const lengths = [_]usize{ 0, 1, 2, 9, 1 << 20, 1 << 31, 1 << 32, 1 << 61, (1 << 64) - 1 };
const most_rows = 64;

fn pick(random: std.Random, from: anytype) @TypeOf(from[0]) {
    return from[random.uintLessThan(usize, from.len)];
}

/// An array whose description and buffers are damaged and made right again.
const Damaged = extern struct {
    places: [*]const Place,
    place_count: usize,
    arrays: [*]const *arrow.Array,
    array_count: usize,
    rows: usize,

    fn execute(self: *const Damaged, random: std.Random, times: usize, ended: *Ended, context: anytype) void {
        const arrays = self.arrays[0..self.array_count];
        var before: [most_rows]struct { usize, usize } = undefined;
        for (arrays, before[0..arrays.len]) |array, *right| right.* = .{ array.length, array.offset };
        for (0..times) |_| {
            self.damage(random);
            const order = self.drawnOrder(random, context.order);
            const answered = context.execute(random, order, self.rows) orelse {
                ended.failed += 1;
                return;
            };
            (if (answered) &ended.answered else &ended.refused).* += 1;
            for (arrays, before[0..arrays.len]) |array, right| array.length, array.offset = right;
            for (self.places[0..self.place_count]) |place| {
                @memcpy(place.memory[0..place.size], place.right[0..place.size]);
                place.buffer.* = .{ .address = place.memory, .size = place.size };
            }
        }
    }

    /// No buffer becomes longer than it is: the library cannot check its length.
    fn damage(self: *const Damaged, random: std.Random) void {
        for (0..1 + random.uintLessThan(usize, 3)) |_| {
            if (self.place_count > 0 and random.uintLessThan(u8, 10) < 7) {
                const place = pick(random, self.places[0..self.place_count]);
                const at = random.uintLessThan(usize, place.size);
                switch (random.uintLessThan(u8, 10)) {
                    0...3 => place.memory[at] = pick(random, &edges),
                    4 => place.memory[at] = random.int(u8),
                    5...7 => {
                        const word = std.mem.toBytes(pick(random, &words));
                        const there = place.memory[at & ~@as(usize, 3) .. place.size];
                        const size = @min(there.len, 4);
                        @memcpy(there[0..size], word[0..size]);
                    },
                    else => place.buffer.size = at,
                }
            } else {
                const array = pick(random, self.arrays[0..self.array_count]);
                const number = if (random.boolean()) &array.length else &array.offset;
                const much = pick(random, &lengths);
                number.* = if (random.boolean()) number.* +% much else much;
            }
        }
    }

    /// Row numbers, of which some are none of the array's, or null: rows as they are.
    fn drawnOrder(self: *const Damaged, random: std.Random, order: *[most_rows]u64) ?[]const u64 {
        if (random.uintLessThan(u8, 10) < 7) return null;
        for (order[0..self.rows]) |*row| {
            row.* = if (random.uintLessThan(u8, 2 * most_rows) == 0) (1 << 64) - 1 else random.uintLessThan(u64, self.rows + 2);
        }
        return order[0..self.rows];
    }
};

/// Encode rows for COPY, or find the numbers by which they are in order.
export fn fuzz_postgres_encode(column: *const postgres_column.Column, damaged: *const Damaged, seed: u64, times: usize, ended: *Ended) void {
    const Context = struct {
        column: *const postgres_column.Column,
        order: *[most_rows]u64,
        out: [1 << 12]u8 = undefined,

        fn execute(self: *@This(), random: std.Random, order: ?[]const u64, rows: usize) ?bool {
            if (random.uintLessThan(u8, 10) == 0) {
                var keys: [most_rows]i64 = undefined;
                var wrong: u32 = 0;
                return if (library.arrow_wire_postgres_keys(self.column, &keys, rows, &wrong)) wrong == 0 else null;
            }
            var progress: postgres_encode.Progress = .{};
            const one: [*]const postgres_column.Column = @ptrCast(self.column);
            while (progress.row < rows and progress.reason == 0 and progress.needs == 0) {
                const numbers = if (order) |given| given.ptr else null;
                const count = if (order) |given| given.len else 0;
                if (!library.arrow_wire_postgres_encode(one, 1, numbers, count, rows, &self.out, self.out.len, &progress)) return null;
            }
            return progress.reason == 0;
        }
    };
    var order: [most_rows]u64 = undefined;
    var context: Context = .{ .column = column, .order = &order };
    var random = std.Random.DefaultPrng.init(seed);
    damaged.execute(random.random(), times, ended, &context);
}

/// Encode rows as a block.
export fn fuzz_clickhouse_encode(
    column: *const clickhouse_encode.Column,
    room: *clickhouse_encode.Out,
    damaged: *const Damaged,
    seed: u64,
    times: usize,
    ended: *Ended,
) void {
    const Context = struct {
        column: *const clickhouse_encode.Column,
        order: *[most_rows]u64,
        room: *clickhouse_encode.Out,

        fn execute(self: *@This(), _: std.Random, order: ?[]const u64, rows: usize) ?bool {
            var result: clickhouse_encode.Result = .{};
            const numbers = if (order) |given| given.ptr else null;
            const one: [*]const clickhouse_encode.Column = @ptrCast(self.column);
            const done = clickhouse_encode.arrow_wire_clickhouse_encode(self.room, one, 1, numbers, 0, rows, &result);
            return if (done) result.failure == .none else null;
        }
    };
    var order: [most_rows]u64 = undefined;
    var context: Context = .{ .column = column, .order = &order, .room = room };
    var random = std.Random.DefaultPrng.init(seed);
    damaged.execute(random.random(), times, ended, &context);
}

/// Bytes with some of them changed, left out, twice, or cut off. Null where there is no memory.
fn changed(random: std.Random, data: []const u8, into: *std.ArrayList(u8)) ?[]u8 {
    into.clearRetainingCapacity();
    into.ensureTotalCapacity(builders.objects, data.len + 64) catch return null;
    into.appendSliceAssumeCapacity(data);
    for (0..pick(random, &[_]usize{ 0, 1, 1, 2, 5 })) |_| {
        if (into.items.len == 0) break;
        const at = random.uintLessThan(usize, into.items.len);
        const some = 1 + random.uintLessThan(usize, @min(9, into.items.len - at));
        switch (random.uintLessThan(u8, 6)) {
            0 => into.items[at] = pick(random, &edges),
            1 => into.items[at] = random.int(u8),
            2 => into.replaceRangeAssumeCapacity(at, some, &.{}),
            3 => {
                var twice: [9]u8 = undefined;
                @memcpy(twice[0..some], into.items[at..][0..some]);
                into.insertSlice(builders.objects, at, twice[0..some]) catch return null;
            },
            4 => {
                const long = [_]u8{ 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF } ++ std.mem.toBytes(random.int(u64));
                const from = random.uintLessThan(usize, 8);
                into.insertSlice(builders.objects, at, long[from..][0..8]) catch return null;
            },
            else => into.shrinkRetainingCapacity(at),
        }
    }
    return into.items;
}

/// Columns that a decoder fills, how they are made anew after it has failed, and whether it has.
const Targets = extern struct {
    columns: *columns.Columns,
    shapes: [*]const builders.Shape,
    count: usize,
    wrong: bool,

    fn renew(self: *Targets) ?void {
        self.columns.deinit();
        self.columns = columns.Columns.init(self.shapes[0..self.count]) catch return null;
    }

    /// Hand over the contents of the columns, and let go of them.
    fn drop(self: *Targets) ?void {
        for (0..self.count) |number| {
            var made: exported.ArrowArray = undefined;
            var taken: u32 = 0;
            if (!columns.arrow_wire_columns_take(self.columns, number, &made, &taken)) return null;
            if (taken != 0) made.release.?(&made);
        }
    }
};

/// Decode rows of a COPY or of messages. The result of the last execution stays in the columns.
export fn fuzz_postgres_decode(
    all: [*]const postgres_fields.Column,
    targets: *Targets,
    framing: postgres_decode.Framing,
    data: [*]const u8,
    size: usize,
    seed: u64,
    times: usize,
    ended: *Ended,
) void {
    var random = std.Random.DefaultPrng.init(seed);
    var made: std.ArrayList(u8) = .empty;
    defer made.deinit(builders.objects);
    for (0..times) |number| {
        const bytes = changed(random.random(), data[0..size], &made) orelse return;
        const limit = pick(random.random(), &[_]usize{ 1, 5, 1 << 40 });
        var progress: postgres_decode.Progress = .{};
        const done = library.arrow_wire_postgres_decode(all, targets.count, targets.columns, framing, bytes.ptr, bytes.len, limit, &progress);
        if (!done or progress.position > bytes.len) {
            ended.failed += 1;
            return;
        }
        targets.wrong = progress.end == .wrong;
        (if (targets.wrong) &ended.refused else &ended.answered).* += 1;
        if (targets.wrong) targets.renew() orelse return else if (number + 1 < times) targets.drop() orelse {
            ended.failed += 1;
            return;
        };
    }
}

/// Decode blocks in pieces. The result of the last execution stays in the columns, unless it ended within a block.
export fn fuzz_clickhouse_decode(
    all: [*]const clickhouse_decode.Column,
    decoder: **clickhouse_decode.Decoder,
    targets: *Targets,
    data: [*]const u8,
    size: usize,
    seed: u64,
    times: usize,
    ended: *Ended,
) void {
    var random = std.Random.DefaultPrng.init(seed);
    var made: std.ArrayList(u8) = .empty;
    defer made.deinit(builders.objects);
    for (0..times) |number| {
        const bytes = changed(random.random(), data[0..size], &made) orelse return;
        const piece = if (random.random().uintLessThan(u8, 10) == 0) 13 else @max(bytes.len, 1);
        const enough: usize = if (random.random().boolean()) 1 else std.math.maxInt(i64);
        var fed: clickhouse_decode.Result = .{};
        var start: usize = 0;
        var end = @min(piece, bytes.len);
        while (end > start) {
            if (!clickhouse_decode.arrow_wire_clickhouse_decode(decoder.*, bytes[start..].ptr, end - start, enough, &fed) or
                fed.consumed > end - start)
            {
                ended.failed += 1;
                return;
            }
            if (fed.failure != .none) break;
            start += fed.consumed;
            if (fed.rows >= enough) {
                targets.drop() orelse {
                    ended.failed += 1;
                    return;
                };
                clickhouse_decode.arrow_wire_clickhouse_decoder_taken(decoder.*);
                fed.rows = 0;
            } else if (end == bytes.len) break else end = @min(end + piece, bytes.len);
        }
        targets.wrong = fed.failure != .none or fed.open != 0 or start < bytes.len;
        (if (fed.failure != .none) &ended.refused else &ended.answered).* += 1;
        if (targets.wrong) {
            decoder.*.deinit();
            targets.renew() orelse return;
            decoder.* = clickhouse_decode.Decoder.init(all[0..targets.count], targets.columns) catch return;
        } else if (number + 1 < times) {
            targets.drop() orelse {
                ended.failed += 1;
                return;
            };
            clickhouse_decode.arrow_wire_clickhouse_decoder_taken(decoder.*);
        }
    }
}
