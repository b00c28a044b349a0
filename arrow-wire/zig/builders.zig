//! Columns of Arrow to write into, in separate memory that Python takes over without a copy (`exported.zig`).
//!
//! Memory comes in pages straight from the system. A page that is never written costs nothing, and a buffer that grows
//! is moved by moving its pages. A large buffer asks for a few pages at a time, just ahead of the writes. That takes a
//! fifth less than a fault for each page (NOTES.md). All memory is zero at first. A decoder adds the rows of a block,
//! which gives it slices of just the right size to fill. It cannot write outside of them.

const std = @import("std");
const builtin = @import("builtin");
const arrow = @import("arrow.zig");
const unaligned = @import("unaligned.zig");
const Layout = arrow.Layout;

pub const Error = error{ OutOfMemory, TooLarge };
pub const objects = std.heap.smp_allocator;
const pages = std.heap.page_allocator;
const page: std.mem.Alignment = .fromByteUnits(std.heap.page_size_min);
const first_bytes = 1 << 16; // of a buffer
const ahead_bytes = 1 << 16; // of pages asked for at a time
const large_bytes = 1 << 18; // of a buffer: at most a quarter is asked for in vain
const block_bytes = 1 << 22; // of a buffer that views refer to, unless a string is longer
const block_texts = 128; // whose sizes are known before room is made for them
const populate_write = 23; // madvise(2): of Linux from 5.14 on
const most_offset32 = std.math.maxInt(i32);

/// A buffer that grows.
pub const Bytes = struct {
    memory: []align(std.heap.page_size_min) u8 = &.{},
    used: usize = 0,
    fetched: usize = large_bytes, // bytes whose pages are there, or come by themselves

    /// Return `size` bytes behind those in use, which they belong to from now on. Another call may move all of them.
    pub fn more(self: *Bytes, size: usize) Error![]u8 {
        const used = std.math.add(usize, self.used, size) catch return error.TooLarge;
        try self.reserve(used);
        if (used > self.fetched) self.fetch(used);
        defer self.used = used;
        return self.memory[self.used..used];
    }

    /// Have memory for so many bytes in all.
    pub fn reserve(self: *Bytes, size: usize) Error!void {
        if (size > self.memory.len) try self.grow(size);
    }

    /// Ask for the pages of so many bytes in all, and some ahead. Where the system cannot, each comes when it is written.
    fn fetch(self: *Bytes, needed: usize) void {
        const end = @min(std.mem.alignForward(usize, needed, ahead_bytes), self.memory.len);
        if (builtin.os.tag == .linux) {
            const linux = std.os.linux;
            _ = linux.madvise(self.memory.ptr + self.fetched, end - self.fetched, populate_write);
        }
        self.fetched = end;
    }

    /// Return zeros, of a buffer that is empty. An allocator would fill them with a pattern first.
    pub fn numbers(self: *Bytes, comptime T: type, count: usize) Error![]T {
        const size = std.math.mul(usize, count, @sizeOf(T)) catch return error.TooLarge;
        return @alignCast(std.mem.bytesAsSlice(T, try self.more(size)));
    }

    fn grow(self: *Bytes, needed: usize) Error!void {
        const wanted = @max(needed, 2 * self.memory.len, first_bytes);
        const address = std.heap.pageSize();
        const size = std.mem.alignForward(usize, wanted, address);
        if (self.memory.len > 0) {
            if (pages.rawRemap(self.memory, page, size, @returnAddress())) |moved| {
                self.memory = @alignCast(moved[0..size]);
                return;
            }
        }
        const made = pages.rawAlloc(size, page, @returnAddress()) orelse return error.OutOfMemory;
        const memory: []align(std.heap.page_size_min) u8 = @alignCast(made[0..size]);
        @memcpy(memory[0..self.used], self.memory[0..self.used]);
        self.free();
        self.memory = memory;
    }

    /// Give the memory back; the buffer can be used again, and is empty.
    pub fn deinit(self: *Bytes) void {
        self.free();
        self.* = .{};
    }

    fn free(self: *Bytes) void {
        if (self.memory.len > 0) pages.rawFree(self.memory, page, @returnAddress());
    }
};

/// The layout of a column: Python describes it, and knows its Arrow type.
pub const Shape = extern struct {
    layout: Layout,
    width: u32, // bytes of a `fixed` value, values of a `list_fixed`
    children: ?[*]const Shape,
    child_count: usize,
};

/// A column that grows row by row. `nothing`, `bits`, `fixed`, `text32`, `text64`, `view`, the lists and `fields`.
pub const Column = struct {
    layout: Layout,
    width: u32,
    length: usize = 0,
    nulls: usize = 0,
    validity: Bytes = .{}, // empty as long as there is no null
    values: Bytes = .{},
    blocks: std.ArrayList(Bytes) = .empty, // one of them, or several where views refer to them
    children: []Column,

    pub fn init(shape: *const Shape) Error!Column {
        const count = shape.child_count;
        const children = try objects.alloc(Column, count);
        errdefer objects.free(children);
        for (children, 0..) |*child, i| {
            errdefer for (children[0..i]) |*made| made.deinit();
            child.* = try init(&shape.children.?[0..count][i]);
        }
        return .{ .layout = shape.layout, .width = shape.width, .children = children };
    }

    pub fn deinit(self: *Column) void {
        self.validity.deinit();
        self.values.deinit();
        for (self.blocks.items) |*block| block.deinit();
        self.blocks.deinit(objects);
        for (self.children) |*child| child.deinit();
        objects.free(self.children);
    }

    /// Add rows, all valid, and return the bytes of their values, zeros: of `fixed` numbers, views, or ends of lists.
    /// The rows of a list and of a struct are added separately from those of its children; `bits` come by `setBit`.
    pub fn add(self: *Column, count: usize) Error![]u8 {
        const length = std.math.add(usize, self.length, count) catch return error.TooLarge;
        if (self.nulls > 0) try self.lengthen(length);
        self.length = length;
        switch (self.layout) {
            .nothing, .fields, .list_fixed => return &.{},
            .bits => {
                _ = try self.values.more((length + 7) / 8 - self.values.used);
                return &.{};
            },
            .fixed, .view => {},
            .text32, .text64, .list32, .list64 => {
                if (self.values.used == 0) _ = try self.values.more(self.slot());
            },
            .dictionary, .pieces => unreachable, // Python puts indices and labels together; a column is one piece
        }
        return self.values.more(std.math.mul(usize, count, self.slot()) catch return error.TooLarge);
    }

    /// Bytes of a row in `values`.
    fn slot(self: *const Column) usize {
        return switch (self.layout) {
            .fixed => self.width,
            .view => 16,
            .text32, .list32 => 4,
            .text64, .list64 => 8,
            else => 0,
        };
    }

    fn lengthen(self: *Column, length: usize) Error!void {
        @memset(try self.validity.more((length + 7) / 8 - self.validity.used), 0xff);
    }

    /// Make a row null that was added before. Only once a row.
    pub fn setNull(self: *Column, row: usize) Error!void {
        if (self.layout == .nothing) return;
        self.nulls += 1;
        if (self.validity.used == 0) try self.lengthen(self.length);
        self.validity.memory[0..self.validity.used][row >> 3] &= ~(@as(u8, 1) << @intCast(row & 7));
    }

    /// Make a row of `bits` true that was added before.
    pub fn setBit(self: *Column, row: usize) void {
        self.values.memory[0..self.values.used][row >> 3] |= @as(u8, 1) << @intCast(row & 7);
    }

    /// Add rows of strings or binary values of so many bytes in all, or fewer; the returned `Texts` takes them.
    pub fn texts(self: *Column, count: usize, total: usize) Error!Texts {
        const slots = try self.add(count);
        const views = self.layout == .view;
        const blocks = &self.blocks;
        if (blocks.items.len == 0 or (views and total > blocks.items[blocks.items.len - 1].memory.len -
            blocks.items[blocks.items.len - 1].used))
        {
            try blocks.append(objects, .{});
            if (views) { // which stays where it is: all of its memory at once
                const block = &blocks.items[blocks.items.len - 1];
                try block.reserve(@max(total, block_bytes));
            }
        }
        const block = &blocks.items[blocks.items.len - 1];
        const first = block.used;
        const end = std.math.add(usize, first, total) catch return error.TooLarge;
        if (self.layout != .text64 and end > most_offset32) return error.TooLarge;
        return .{
            .layout = self.layout,
            .slots = slots,
            .block = block,
            .room = try block.more(total),
            .first = first,
            .number = @intCast(blocks.items.len - 1),
        };
    }

    /// Add rows of the strings that `source.text` returns for the numbers of the rows.
    pub fn addTexts(self: *Column, source: anytype, count: usize) !void {
        var done: usize = 0;
        while (done < count) {
            var all: [block_texts][]const u8 = undefined;
            const part = all[0..@min(block_texts, count - done)];
            var total: usize = 0;
            for (part, done..) |*text, row| {
                text.* = try source.text(row);
                total += text.len;
            }
            var adding = try self.texts(part.len, total);
            for (part) |text| adding.put(text);
            adding.finish();
            done += part.len;
        }
    }

    /// End the list `row` rows after the first one of `ends`, which `add` returned, at the child's length.
    pub fn endList(self: *const Column, ends: []u8, row: usize) Error!void {
        const length = self.children[0].length;
        switch (self.layout) {
            .list32 => {
                const end = std.math.cast(i32, length) orelse return error.TooLarge;
                unaligned.write(i32, ends[4 * row ..][0..4], end, .little);
            },
            .list64 => unaligned.write(i64, ends[8 * row ..][0..8], @intCast(length), .little),
            else => unreachable,
        }
    }

    /// Add lists of the same length, whose items come behind those of the lists before them.
    pub fn addLists(self: *Column, count: usize, length: usize) Error!void {
        const before = self.length;
        const ends = try self.add(count);
        var end: usize = if (before == 0) 0 else self.endOf(before - 1);
        for (0..count) |row| {
            end += length;
            switch (self.layout) {
                .list32 => {
                    const number = std.math.cast(i32, end) orelse return error.TooLarge;
                    unaligned.write(i32, ends[4 * row ..][0..4], number, .little);
                },
                .list64 => unaligned.write(i64, ends[8 * row ..][0..8], @intCast(end), .little),
                else => unreachable,
            }
        }
    }

    /// Where a list or string ends, which was added before.
    fn endOf(self: *const Column, row: usize) usize {
        const values = self.values.memory[0..self.values.used];
        return switch (self.layout) {
            .list32, .text32 => unaligned.read(u32, values[4 * (row + 1) ..][0..4], .little),
            .list64, .text64 => @intCast(unaligned.read(u64, values[8 * (row + 1) ..][0..8], .little)),
            else => unreachable,
        };
    }
};

/// By words, as the compiler does not make them of a loop over bytes.
pub fn ascii(bytes: []const u8) bool {
    const lane = 16;
    var words: @Vector(lane, u8) = @splat(0);
    var at: usize = 0;
    while (bytes.len - at >= lane) : (at += lane) words |= bytes[at..][0..lane].*;
    var seen = @reduce(.Or, words);
    for (bytes[at..]) |byte| seen |= byte;
    return seen < 128;
}

/// Takes the strings of some rows of a column, one after the other, and in the end `finish`. Nothing else may be added
/// to the column meanwhile.
pub const Texts = struct {
    layout: Layout,
    slots: []u8,
    block: *Bytes,
    room: []u8,
    first: usize, // where `room` begins in its block
    number: u32, // of the block
    used: usize = 0,
    row: usize = 0,

    /// Add a string, or nothing for a null.
    pub inline fn put(self: *Texts, bytes: []const u8) void {
        if (self.layout == .view and bytes.len <= 12) {
            const view = self.slots[16 * self.row ..][0..16];
            unaligned.write(u32, view[0..4], @intCast(bytes.len), .little);
            @memcpy(view[4..][0..bytes.len], bytes);
            self.row += 1;
        } else {
            @memcpy(self.space(bytes.len), bytes);
            self.took(bytes.len);
        }
    }

    /// Return the room of a string of this size, to fill before `took` adds it.
    pub inline fn space(self: *Texts, size: usize) []u8 {
        return self.room[self.used..][0..size];
    }

    /// Add a string of this size, which the caller wrote into `space`; of a view, more than 12 bytes.
    pub inline fn took(self: *Texts, size: usize) void {
        const first = self.first + self.used;
        self.used += size;
        switch (self.layout) {
            .text64 => unaligned.write(u64, self.slots[8 * self.row ..][0..8], first + size, .little),
            .text32 => unaligned.write(u32, self.slots[4 * self.row ..][0..4], @intCast(first + size), .little),
            .view => {
                const view = self.slots[16 * self.row ..][0..16];
                unaligned.write(u32, view[0..4], @intCast(size), .little);
                @memcpy(view[4..8], self.room[self.used - size ..][0..4]);
                unaligned.write(u32, view[8..12], self.number, .little);
                unaligned.write(u32, view[12..16], @intCast(first), .little);
            },
            else => unreachable,
        }
        self.row += 1;
    }

    /// Whether all that was put is ASCII.
    pub fn areAscii(self: *const Texts) bool {
        if (!ascii(self.room[0..self.used])) return false;
        var seen: @Vector(16, u8) = @splat(0);
        if (self.layout == .view) for (0..self.row) |row| { // of which short ones are in no room
            const view: [16]u8 = self.slots[16 * row ..][0..16].*;
            if (unaligned.read(u32, view[0..4], .little) <= 12) seen |= view;
        };
        return @reduce(.Or, seen) < 128;
    }

    /// Give back the room that no string took.
    pub fn finish(self: *Texts) void {
        self.block.used = self.first + self.used;
    }
};
