//! Columns handed over through the Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html
//!
//! The importer of an array owns its memory, and gives it back by calling `release`, from any thread.

const std = @import("std");
const builders = @import("builders.zig");
const Bytes = builders.Bytes;
const Column = builders.Column;
const Error = builders.Error;
const objects = builders.objects;

pub const ArrowArray = extern struct {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: ?[*]?*const anyopaque,
    children: ?[*]*ArrowArray,
    dictionary: ?*ArrowArray,
    release: ?*const fn (*ArrowArray) callconv(.c) void,
    private_data: ?*anyopaque,
};

/// The memory that an exported array owns.
const Owned = struct {
    memory: std.ArrayList(Bytes) = .empty,
    buffers: std.ArrayList(?*const anyopaque) = .empty,
    sizes: []i64 = &.{}, // of the buffers that views refer to
    children: []ArrowArray = &.{},
    addresses: []*ArrowArray = &.{},

    fn take(self: *Owned, bytes: *Bytes) void {
        self.memory.appendAssumeCapacity(bytes.*);
        self.buffers.appendAssumeCapacity(if (bytes.memory.len > 0) bytes.memory.ptr else null);
        bytes.* = .{};
    }

    fn deinit(self: *Owned) void {
        for (self.memory.items) |*bytes| bytes.deinit();
        self.memory.deinit(objects);
        self.buffers.deinit(objects);
        objects.free(self.sizes);
        objects.free(self.children);
        objects.free(self.addresses);
        objects.destroy(self);
    }
};

/// Hand over the contents of a column; the column is empty then, and can be filled again.
pub fn exported(column: *Column, out: *ArrowArray) Error!void {
    const owned = try objects.create(Owned);
    owned.* = .{};
    errdefer owned.deinit();
    try owned.memory.ensureTotalCapacityPrecise(objects, 3 + column.blocks.items.len);
    try owned.buffers.ensureTotalCapacityPrecise(objects, 4 + column.blocks.items.len);
    owned.children = try objects.alloc(ArrowArray, column.children.len);
    owned.addresses = try objects.alloc(*ArrowArray, column.children.len);
    for (owned.children, owned.addresses, column.children, 0..) |*child, *address, *from, i| {
        errdefer for (owned.children[0..i]) |*made| release(made);
        try exported(from, child);
        address.* = child;
    }
    errdefer for (owned.children) |*made| release(made);
    try takeBuffers(column, owned);
    out.* = .{
        .length = @intCast(column.length),
        .null_count = @intCast(if (column.layout == .nothing) column.length else column.nulls),
        .offset = 0,
        .n_buffers = @intCast(owned.buffers.items.len),
        .n_children = @intCast(owned.children.len),
        .buffers = owned.buffers.items.ptr,
        .children = if (owned.addresses.len > 0) owned.addresses.ptr else null,
        .dictionary = null,
        .release = release,
        .private_data = owned,
    };
    column.length = 0;
    column.nulls = 0;
    column.blocks.clearRetainingCapacity();
}

fn takeBuffers(column: *Column, owned: *Owned) Error!void {
    const blocks = column.blocks.items;
    switch (column.layout) {
        .nothing => return,
        .fixed, .bits, .view => if (column.values.memory.len == 0) { // of no row: an address that is not null
            _ = try column.values.more(0);
        },
        .text32, .text64, .list32, .list64 => if (column.values.used == 0) { // the first offset
            _ = try column.values.more(8);
        },
        else => {},
    }
    if (column.layout == .view) owned.sizes = try objects.alloc(i64, blocks.len);
    owned.take(&column.validity);
    switch (column.layout) {
        .fields, .list_fixed => {},
        .text32, .text64 => {
            owned.take(&column.values);
            var none: Bytes = .{};
            owned.take(if (blocks.len > 0) &blocks[0] else &none);
        },
        .view => {
            owned.take(&column.values);
            for (blocks, owned.sizes) |*block, *size| {
                size.* = @intCast(block.used);
                owned.take(block);
            }
            owned.buffers.appendAssumeCapacity(owned.sizes.ptr);
        },
        else => owned.take(&column.values),
    }
}

fn release(array: *ArrowArray) callconv(.c) void {
    const owned: *Owned = @ptrCast(@alignCast(array.private_data.?));
    for (owned.children) |*child| {
        if (child.release) |free| free(child); // null if the importer moved the child
    }
    array.release = null;
    owned.deinit();
}
