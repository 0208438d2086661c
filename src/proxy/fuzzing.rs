//! For [fuzz targets](crate::fuzzing): reads a request head, and returns the head that robotgate would send to the
//! origin. Opens no connection.

use std::cell::OnceCell;

use bytes::BytesMut;
use pingora::protocols::http::v1::{client::http_req_header_to_wire, server::HttpSession};
use pingora_http::RequestHeader;
use tokio::runtime::{Builder, Runtime};

use super::{client_connection::OuterConnect, head::Head, rewrite, target::target_of};
use crate::{
    config::HeadLimits,
    origin::{HostPort, Origin},
};

#[derive(Debug)]
pub enum ReadHead {
    /// A CONNECT to this host and port.
    Connect(HostPort),
    Request(ParsedRequest),
}

/// A request, and the head that robotgate would send for it.
#[derive(Debug)]
pub struct ParsedRequest {
    pub origin: Origin,
    /// The path and query on which the decision is based.
    pub decided: Vec<u8>,
    pub upstream: Vec<u8>,
}

/// Reads the head at the beginning of `bytes`, as if it came through a CONNECT to `outer_connect`, if there is one.
/// Returns `None` if the head is incomplete. The error says which part of the code refused the head and why.
pub fn take(bytes: &[u8], outer_connect: Option<&Origin>) -> Result<Option<ReadHead>, String> {
    let mut bytes = BytesMut::from(bytes);
    let Some(head) = Head::parse(&mut bytes, LIMITS).map_err(|error| format!("head: {error}"))? else {
        return Ok(None);
    };
    if let Some(connect) = head.connect {
        return Ok(Some(ReadHead::Connect(connect.authority)));
    }
    let mut request = read_by_pingora(&head.bytes[..head.len]).map_err(|error| format!("pingora: {error}"))?;
    let outer_connect = outer_connect.map(|origin| OuterConnect::new(origin.clone(), None, None, 1));
    let target = target_of(&request, outer_connect.as_ref()).map_err(|error| format!("target: {error}"))?;
    let received = rewrite::RequestForm {
        version: request.version,
        has_content: false,
        upgrades: false,
    };
    rewrite::to_origin(&mut request, received, &target, Some("robotgate"))
        .map_err(|error| format!("upstream: {error}"))?;
    let upstream = http_req_header_to_wire(&request).ok_or("upstream: it cannot be written")?;
    Ok(Some(ReadHead::Request(ParsedRequest {
        decided: target.decided_path().to_vec(),
        origin: target.origin,
        upstream: upstream.to_vec(),
    })))
}

fn read_by_pingora(head: &[u8]) -> Result<RequestHeader, String> {
    thread_local! {
        static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
    }
    let read = async {
        let (mut client, stream) = tokio::io::duplex(head.len());
        tokio::io::AsyncWriteExt::write_all(&mut client, head)
            .await
            .map_err(|error| error.to_string())?;
        let mut session = HttpSession::new(Box::new(stream));
        let read = session.read_request().await.map_err(|error| error.to_string())?;
        read.ok_or("it sees the connection end")?;
        Ok(session.req_header().clone())
    };
    RUNTIME.with(|runtime| {
        let new = || Builder::new_current_thread().enable_all().build();
        let runtime = runtime.get_or_init(|| match new() {
            Ok(runtime) => runtime,
            Err(error) => panic!("no runtime: {error}"),
        });
        runtime.block_on(read)
    })
}

const LIMITS: HeadLimits = HeadLimits {
    bytes: 64 * 1024,
    fields: 128,
};
