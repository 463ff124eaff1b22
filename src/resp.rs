//! Redis wire protocol: sends commands, and receives replies of protocol version 2 or 3.

mod command;
mod decode;
mod frame;
mod scan;
mod script;

pub(crate) use self::command::{Encoder, Form, Forms, encode, is_not_serving};
pub(crate) use self::decode::{Decoder, Frame};
pub(crate) use self::frame::write;
pub(crate) use self::scan::Malformed;
pub(crate) use self::script::{EXTEND, INTRODUCE, LOADED, RELEASE, load_scripts};
