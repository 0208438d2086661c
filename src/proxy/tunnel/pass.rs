//! Passes bytes both ways between two streams and counts them.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::wire::poll_some;

/// How many bytes have passed from the client (`up`) and to it (`down`).
#[derive(Debug, Default)]
pub(in crate::proxy) struct Count {
    up: AtomicU64,
    down: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum TunnelEnd {
    Both,
    ClientBroke,
    OriginBroke,
    Idle,
    LifetimeOver,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct Bounds {
    pub(in crate::proxy) idle: Duration,
    pub(in crate::proxy) life: Duration,
}

pub(in crate::proxy) async fn pass(
    client: impl AsyncRead + AsyncWrite,
    origin: impl AsyncRead + AsyncWrite,
    bounds: Bounds,
    count: &Count,
) -> TunnelEnd {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_origin, to_origin) = tokio::io::split(origin);
    let up = copy(
        from_client,
        to_origin,
        &count.up,
        (TunnelEnd::ClientBroke, TunnelEnd::OriginBroke),
    );
    let down = copy(
        from_origin,
        to_client,
        &count.down,
        (TunnelEnd::OriginBroke, TunnelEnd::ClientBroke),
    );
    tokio::select! {
        both = async { tokio::try_join!(up, down) } => match both {
            Ok(_) => TunnelEnd::Both,
            Err(ended) => ended,
        },
        () = silence(count, bounds.idle) => TunnelEnd::Idle,
        () = tokio::time::sleep(bounds.life) => TunnelEnd::LifetimeOver,
    }
}

/// Copies bytes until `from` ends, and then ends `to`.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
    (reading, writing): (TunnelEnd, TunnelEnd),
) -> Result<(), TunnelEnd> {
    loop {
        // `poll_some` reads into a buffer on the stack. Memory on the heap is allocated only once bytes have arrived.
        let read = poll_fn(|cx| poll_some::<BUFFER, _>(&mut from, cx, <[u8]>::to_vec)).await;
        let read = read.map_err(|_| reading)?;
        if read.is_empty() {
            return to.shutdown().await.map_err(|_| writing);
        }
        to.write_all(&read).await.map_err(|_| writing)?;
        // TLS may have buffered the bytes without sending them.
        to.flush().await.map_err(|_| writing)?;
        count.fetch_add(read.len() as u64, Ordering::Relaxed);
    }
}

/// Returns when no byte has passed for `idle`. Compares the counts only at intervals of `idle`, so it may return up to
/// `idle` later.
async fn silence(count: &Count, idle: Duration) {
    let mut before = count.both();
    loop {
        tokio::time::sleep(idle).await;
        let now = count.both();
        if now == before {
            return;
        }
        before = now;
    }
}

// === impl Count ===

impl Count {
    pub(in crate::proxy) fn set(&self, (up, down): (u64, u64)) {
        self.up.store(up, Ordering::Relaxed);
        self.down.store(down, Ordering::Relaxed);
    }

    pub(in crate::proxy) fn both(&self) -> (u64, u64) {
        (self.up.load(Ordering::Relaxed), self.down.load(Ordering::Relaxed))
    }
}

const BUFFER: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    const BOUNDS: Bounds = Bounds {
        idle: Duration::from_secs(5),
        life: Duration::from_secs(60),
    };

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_passes_bytes_until_both_sides_end() {
        let ((mut client, near), (mut origin, far)) = (duplex(64), duplex(64));
        let count = Count::default();
        let ends = async {
            client.write_all(b"ping").await.unwrap();
            client.shutdown().await.unwrap();
            let mut request = String::new();
            origin.read_to_string(&mut request).await.unwrap();
            origin.write_all(b"pong!").await.unwrap();
            drop(origin);
            let mut response = String::new();
            client.read_to_string(&mut response).await.unwrap();
            (request, response)
        };
        let (ended, received) = tokio::join!(pass(near, far, BOUNDS, &count), ends);
        assert_eq!(ended, TunnelEnd::Both);
        assert_eq!(received, ("ping".into(), "pong!".into()));
        assert_eq!(count.both(), (4, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_ends_after_its_idle_timeout() {
        let ((mut client, near), (_origin, far)) = (duplex(64), duplex(64));
        let count = Count::default();
        let talk = async {
            for _ in 0..3 {
                client.write_all(b"x").await.unwrap();
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            std::future::pending::<()>().await;
        };
        let start = tokio::time::Instant::now();
        tokio::select! {
            ended = pass(near, far, BOUNDS, &count) => assert_eq!(ended, TunnelEnd::Idle),
            () = talk => unreachable!("it never ends"),
        }
        assert!(start.elapsed() >= Duration::from_secs(8 + 5), "{:?}", start.elapsed());
        assert_eq!(count.both(), (3, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_ends_after_its_lifetime() {
        let ((mut client, near), (_origin, far)) = (duplex(64), duplex(64));
        let count = Count::default();
        let talk = async {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let start = tokio::time::Instant::now();
        let (ended, ()) = tokio::join!(pass(near, far, BOUNDS, &count), talk);
        assert_eq!(ended, TunnelEnd::LifetimeOver);
        assert!(start.elapsed() >= BOUNDS.life, "{:?}", start.elapsed());
    }
}
