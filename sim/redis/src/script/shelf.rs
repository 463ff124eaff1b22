//! Storage for tables that are partly read or written.

use mlua::{IntoLua, Lua, Table, Value as Lv};

/// Open tables, each with its current key, by depth. The interpreter holds them: the binding can
/// hold only a limited number of values, so the possible depth would depend on its other values.
pub(super) struct Shelf(Table);

impl Shelf {
    pub(super) fn new(lua: &Lua) -> mlua::Result<Self> {
        lua.create_table().map(Self)
    }

    pub(super) fn put(&self, depth: usize, table: &Table, key: impl IntoLua) -> mlua::Result<()> {
        self.0.raw_set(2 * depth, table)?;
        self.set_key(depth, key)
    }

    pub(super) fn set_key(&self, depth: usize, key: impl IntoLua) -> mlua::Result<()> {
        self.0.raw_set(2 * depth + 1, key)
    }

    pub(super) fn table(&self, depth: usize) -> mlua::Result<Table> {
        self.0.raw_get(2 * depth)
    }

    pub(super) fn key(&self, depth: usize) -> mlua::Result<Lv> {
        self.0.raw_get(2 * depth + 1)
    }
}
