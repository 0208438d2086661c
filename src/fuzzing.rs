//! Gives the fuzz targets in `tests/fuzz` access to private functions. Compiled only with `--cfg fuzzing`, which
//! cargo-fuzz sets. Contains no logic.

use http::HeaderValue;
use pingora::protocols::http::v1::client::http_req_header_to_wire;

use crate::config::Config;

pub use crate::{
    copy::SiteDocument,
    fetch::Hop,
    proxy::fuzzing::{ParsedRequest, ReadHead, take},
};

/// Returns the line number and the error message of each `[[expect]]` case that the configuration does not meet.
pub fn unmet(config: &Config) -> Vec<(usize, String)> {
    crate::expect::unmet(config)
}

/// Returns the bytes of a request for a robots.txt.
///
/// # Errors
/// Fails if the request cannot be serialised.
pub fn request_bytes(hop: &Hop) -> Result<Vec<u8>, String> {
    let request = hop.request(HeaderValue::from_static("robotgate"), None);
    let request = request.map_err(|error| error.to_string())?;
    let wire = http_req_header_to_wire(&request).ok_or("its target cannot be written")?;
    Ok(wire.to_vec())
}
