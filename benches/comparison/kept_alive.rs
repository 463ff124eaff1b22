//! Many leases kept alive by one process.

pub(crate) fn run(_: &mut crate::servers::Servers, _: &mut crate::report::Report) {}
