//! What the targets of `tests/fuzz` ask that is private otherwise. It is there under `--cfg fuzzing` alone, which
//! cargo-fuzz sets, and only hands through: nothing is decided here.

use http::HeaderValue;
use pingora::protocols::http::v1::client::http_req_header_to_wire;

use crate::config::Config;

pub use crate::{
    fetch::Hop,
    proxy::fuzzing::{ParsedRequest, Taken, take},
};

/// The `[[expect]]` cases that a configuration does not meet: the line and the complaint of each.
pub fn unmet(config: &Config) -> Vec<(usize, String)> {
    crate::expect::unmet(config)
}

/// The request of a fetch's hop, as it goes to the origin.
///
/// # Errors
/// It cannot be written.
pub fn request_bytes(hop: &Hop) -> Result<Vec<u8>, String> {
    let request = hop.request(HeaderValue::from_static("robotgate"), None);
    let request = request.map_err(|error| error.to_string())?;
    let wire = http_req_header_to_wire(&request).ok_or("its target cannot be written")?;
    Ok(wire.to_vec())
}
