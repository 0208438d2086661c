//! `[egress]`: which networks bots may reach beyond the public internet, and who resolves names.
//!
//! It resolves nothing and decides about no address.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::check::Checker;
use super::written;

/// The port of a name server (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

/// The `[egress]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Networks that bots may reach although they are not public.
    pub allow: Vec<IpNet>,
    /// Networks that bots may not reach although they are public.
    pub deny: Vec<IpNet>,
    /// Name servers; none means the system's.
    pub dns: Vec<SocketAddr>,
}

// === impl Egress ===

impl Egress {
    pub(super) fn check(written: written::Egress, checker: &mut Checker<'_>) -> Self {
        Self {
            allow: checker.each(written.allow, network),
            deny: checker.each(written.deny, network),
            dns: checker.each(written.dns, name_server),
        }
    }
}

/// A network, or a single address. Bits beside the prefix are refused: which half was the slip cannot be known.
fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    match text.parse::<IpNet>() {
        Ok(net) if net == net.trunc() => Ok(net),
        Ok(net) => Err(format!(
            r#""{text}" is one address inside a network; write "{}" or "{}""#,
            net.trunc(),
            net.addr()
        )),
        Err(_) => Err(format!(
            r#""{text}" is not a network; write one like "10.0.0.0/8" or "fd00::/8""#
        )),
    }
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, DNS_PORT));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        _ => Err(format!(
            r#""{text}" is not a name server; write an IP address, with a port if it is not 53, like "1.1.1.1" or "[::1]:5353""#
        )),
    }
}
