use tokio::{net::TcpListener, task::yield_now, time};

use super::*;
use crate::egress::Roots;

/// Starts a server that completes TCP handshakes but sends nothing.
async fn silent() -> (Arc<Origins>, Origin, TcpListener, Roots) {
    let roots = Roots::gather(&[]).expect("a file in memory");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let origin = format!("https://shop.example:{}", address.port());
    let origin = origin.parse().expect("an origin");
    (
        Origins::new(roots.path(), 16, Listening::default()),
        origin,
        listener,
        roots,
    )
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_another_has_the_full_connect_timeout() {
    let within = Duration::from_millis(100);
    let (origins, origin, listener, _roots) = silent().await;
    let address = listener.local_addr().expect("a bound socket has an address");
    let connect = |within| {
        let (origins, origin) = (origins.clone(), origin.clone());
        let wanted = Wanted {
            http2: true,
            content: false,
            kept: false,
            fresh: false,
        };
        tokio::spawn(async move {
            let connecting = origins.connect(&origin, address, wanted, within, within);
            connecting.await.map(drop)
        })
    };

    let first = connect(within * 100);
    yield_now().await;
    let began = time::Instant::now();
    let second = connect(within);
    yield_now().await;
    // The code under test could also measure time with the real clock, which the test's clock does not move. So let
    // real time pass too.
    std::thread::sleep(within);

    assert_eq!(second.await.expect("no panic"), Err(Fault::ConnectionTimeout));
    let took = began.elapsed();
    assert!(took >= within * 2, "{took:?}: as long to wait, and as long to connect");
    assert!(took < within * 3, "{took:?}");
    assert!(!first.is_finished(), "it connects still");
}
