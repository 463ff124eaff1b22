//! Redis' wire protocol: commands out, replies of version 2 and 3 in.

mod command;
mod decode;
mod frame;
mod scan;
mod script;

pub(crate) use self::command::{Encoder, Form, Forms, encode, is_not_serving};
pub(crate) use self::decode::{Decoder, Frame};
pub(crate) use self::frame::write;
pub(crate) use self::scan::Malformed;
pub(crate) use self::script::{EXTEND, INTRODUCE, RELEASE};
