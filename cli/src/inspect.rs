//! `inspect`: the pre-flight check of the nodes.

use redlock_client::Severity;

use crate::arguments::Inspect;
use crate::exit::{Exit, Stop};
use crate::runtime::block_on;
use crate::say::print;
use crate::settings::Settings;

/// Prints reports and findings.
pub(crate) fn inspect(arguments: &Inspect) -> Result<Exit, Stop> {
    let (redlock, _) = Settings::read(&arguments.client.nodes, arguments.client.ttl)?.client()?;
    let inspection = block_on(redlock.inspect())?;
    print(format_args!("{}", inspection.to_string().trim_end()))?;
    let found = inspection.findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if found { Exit::No } else { Exit::Yes })
}
