//! A client: it connects, sends requests, and connects again if the connection was closed, until the run ends.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::SemaphorePermit,
    task::JoinSet,
};

use super::{
    super::{
        Outcome,
        certificates::{HTTP1, HTTP2, client_config},
    },
    Host, Pattern, Protocol, Stage, Tally, connect,
    http1::{Http1, Response},
    http2::Http2,
};

#[derive(Clone, Copy, PartialEq)]
enum Warmth {
    Cold,
    Ready,
    Warm,
}

pub struct Client {
    stage: Arc<Stage>,
    number: usize,
    tls: Arc<ClientConfig>,
    warmth: Warmth,
    tally: Tally,
}

// === impl Client ===

impl Client {
    pub fn new(stage: Arc<Stage>, number: usize) -> Outcome<Self> {
        let tls = client_config(if stage.plan.protocol == Protocol::Http2 {
            HTTP2
        } else {
            HTTP1
        })?;
        Ok(Self {
            stage,
            number,
            tls,
            warmth: Warmth::Cold,
            tally: Tally::default(),
        })
    }

    pub async fn run(mut self) -> Tally {
        let stage = self.stage.clone();
        while !stage.is_over() {
            if let Err(error) = self.connection(&stage).await {
                self.tally.error(&error);
                // Do not flood a proxy that refuses connections.
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
        self.tally
    }

    async fn connection(&mut self, stage: &Stage) -> Outcome<()> {
        let started = Instant::now();
        let permit = if self.warmth != Warmth::Cold {
            None
        } else {
            Some(stage.connecting.acquire().await?)
        };
        let request = &stage.plan.request;
        let size = request.answer.clamp(4096, 128 * 1024);
        match stage.plan.protocol {
            Protocol::Plain => {
                let origin = request.origin();
                let stream = connect::tcp(stage.proxy.unwrap_or(origin), self.number).await?;
                self.http1(stage, Http1::over(stream, size), started, permit).await
            }
            Protocol::Http1 | Protocol::Tunnel => {
                let stream = connect::tls(stage.proxy, request.origin(), &self.tls, self.number).await?;
                self.http1(stage, Http1::over(stream, size), started, permit).await
            }
            Protocol::Http2 => {
                let stream = connect::tls(stage.proxy, request.origin(), &self.tls, self.number).await?;
                let http = Http2::over(stream).await?;
                self.http2(stage, &http, permit).await
            }
        }
    }

    async fn http1(
        &mut self,
        stage: &Stage,
        mut http: Http1<impl AsyncRead + AsyncWrite + Unpin>,
        mut started: Instant,
        mut permit: Option<SemaphorePermit<'_>>,
    ) -> Outcome<()> {
        let plan = &stage.plan;
        let absolute = stage.proxy.is_some() && plan.protocol == Protocol::Plain;
        let mut bytes = plan.request.bytes(plan.request.origin(), absolute);
        if plan.pattern == Pattern::Unread {
            self.check(http.begin(&bytes).await?)?;
            drop(permit);
            self.answered().await;
            stage.over.cancelled().await;
            return Ok(());
        }
        loop {
            let Response::Complete { status, kept } = http.exchange(&bytes).await? else {
                return Ok(());
            };
            self.check(status)?;
            self.count(started);
            drop(permit.take());
            self.answered().await;
            if plan.pattern == Pattern::Idle {
                stage.over.cancelled().await;
            }
            if !kept || plan.pattern == Pattern::New || stage.is_over() {
                return Ok(());
            }
            if let Host::Each(_) = plan.request.host {
                bytes = plan.request.bytes(plan.request.origin(), absolute);
            }
            started = Instant::now();
        }
    }

    async fn http2(&mut self, stage: &Stage, http: &Http2, mut permit: Option<SemaphorePermit<'_>>) -> Outcome<()> {
        while self.warmth != Warmth::Warm {
            let Response::Complete { status, .. } = http.exchange(&stage.plan.request).await? else {
                return Ok(());
            };
            self.check(status)?;
            drop(permit.take());
            self.answered().await;
        }
        let mut streams = JoinSet::new();
        for _ in 0..stage.plan.streams {
            let mut stream = self.with_own_tally();
            let http = http.clone();
            streams.spawn(async move {
                if let Err(error) = stream.stream(&http).await {
                    stream.tally.error(&error);
                }
                stream.tally
            });
        }
        while let Some(tally) = streams.join_next().await {
            self.tally.add(tally?);
        }
        Ok(())
    }

    /// Sends one request after the other on a connection that others share.
    async fn stream(&mut self, http: &Http2) -> Outcome<()> {
        let stage = self.stage.clone();
        while !stage.is_over() {
            let started = Instant::now();
            let Response::Complete { status, .. } = http.exchange(&stage.plan.request).await? else {
                break;
            };
            self.check(status)?;
            self.count(started);
        }
        Ok(())
    }

    fn with_own_tally(&self) -> Self {
        Self {
            stage: self.stage.clone(),
            number: self.number,
            tls: self.tls.clone(),
            warmth: Warmth::Warm,
            tally: Tally::default(),
        }
    }

    fn check(&self, status: u16) -> Outcome<()> {
        if status == self.stage.plan.request.status {
            return Ok(());
        }
        Err(format!("the answer's status is {status}").into())
    }

    fn count(&mut self, started: Instant) {
        if self.stage.measuring.load(Ordering::Relaxed) {
            self.tally.exchange(started.elapsed());
        }
    }

    /// Notes a response. After its first response, the client waits until all clients have received theirs, so that it
    /// does not compete with the others.
    async fn answered(&mut self) {
        match self.warmth {
            Warmth::Cold => {
                self.warmth = Warmth::Ready;
                self.stage.ready.fetch_add(1, Ordering::Relaxed);
                self.stage.all_ready.cancelled().await;
            }
            Warmth::Ready => {
                self.warmth = Warmth::Warm;
                self.stage.warm.fetch_add(1, Ordering::Relaxed);
            }
            Warmth::Warm => {}
        }
    }
}

const RETRY_PAUSE: Duration = Duration::from_millis(5);
