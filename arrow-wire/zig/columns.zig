//! The columns of one table or result, which Python makes, a decoder fills and Python takes over.

const std = @import("std");
const builders = @import("builders.zig");
const exported = @import("exported.zig");
const guard = @import("guard.zig");

pub const Columns = struct {
    all: []builders.Column,

    pub fn init(shapes: []const builders.Shape) builders.Error!*Columns {
        const columns = try builders.objects.create(Columns);
        errdefer builders.objects.destroy(columns);
        columns.all = try builders.objects.alloc(builders.Column, shapes.len);
        errdefer builders.objects.free(columns.all);
        for (columns.all, shapes, 0..) |*column, *shape, i| {
            errdefer for (columns.all[0..i]) |*made| made.deinit();
            column.* = try builders.Column.init(shape);
        }
        return columns;
    }

    pub fn deinit(self: *Columns) void {
        for (self.all) |*column| column.deinit();
        builders.objects.free(self.all);
        builders.objects.destroy(self);
    }
};

/// Make columns without rows of these shapes, or null where there is no memory.
export fn arrow_wire_columns_new(shapes: [*]const builders.Shape, count: usize, made: *?*Columns) bool {
    return guard.call(new, .{ shapes[0..count], made });
}

fn new(shapes: []const builders.Shape, made: *?*Columns) void {
    made.* = Columns.init(shapes) catch null;
}

/// Hand over the contents of a column, which is empty from then on; `taken` is 0 if memory is short.
pub export fn arrow_wire_columns_take(columns: *Columns, number: usize, out: *exported.ArrowArray, taken: *u32) bool {
    return guard.call(take, .{ columns, number, out, taken });
}

fn take(columns: *Columns, number: usize, out: *exported.ArrowArray, taken: *u32) void {
    taken.* = 0;
    exported.exported(&columns.all[number], out) catch return;
    taken.* = 1;
}

export fn arrow_wire_columns_free(columns: *Columns) bool {
    return guard.call(Columns.deinit, .{columns});
}
