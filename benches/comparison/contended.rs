//! Separate clients that all want one lock.

pub(crate) fn run(_: &mut crate::servers::Servers, _: &mut crate::report::Report) {}
