//! Passes the content of a request to the origin, and the response to the client, at the same time. Ends when both are
//! complete or one side fails.
//!
//! Neither direction blocks the other, because one task serves both directions. It wakes when the client or the origin
//! has sent bytes, or can accept more. Each direction waits either until one side sends bytes or until the other
//! accepts some, and only for a limited time.

mod answer;

use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    client::{Client, ClientFault},
    content::Content,
    exchange::{Exchange, Withdrawal},
    timer::Timer,
};
use crate::{
    config::Proxy,
    upstream::{Fault, Server},
};

/// A request whose head has been sent to the origin, and everything that is needed to pass the rest of the request and
/// the response.
pub(super) struct Relay<'a> {
    pub(super) client: &'a mut Client,
    pub(super) server: &'a mut Server,
    pub(super) content: &'a mut Content,
    pub(super) exchange: &'a mut Exchange,
    pub(super) timer: &'a mut Timer,
    pub(super) times: Times,
}

/// Time limits for each side to send or accept bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    content: Duration,
    answer: Duration,
    write: Duration,
}

/// How a successful exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relayed {
    /// The client has the whole response. `reusable` is true if the origin also has the whole request, so that the
    /// connection to it can be used again.
    Complete { reusable: bool },
    /// The origin has opened the WebSocket that the client asked for.
    Websocket,
}

/// Why an exchange failed.
#[derive(Debug)]
pub(super) enum Broken {
    Client(ClientFault),
    /// The client did not send the content of its request in time.
    ClientSlow,
    Server(Fault),
    /// The response forbids the use that the bot makes of content. The client has got nothing of the response.
    Withdrawn(Box<Withdrawal>),
}

/// The state of the request's content, which goes up to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Up {
    /// More content is expected from the client.
    Content,
    /// All content has been passed to the connection to the origin, which has not sent all of it yet.
    Ending,
    Sent,
    /// The origin does not accept the rest of the request. It may still respond.
    Refused,
}

/// The state of the response, which goes down to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Head,
    Content,
    /// The whole response has been passed to the connection to the client, which has not sent all of it yet.
    Ending(Relayed),
}

struct State {
    up: Up,
    down: Down,
    up_since: Instant,
    down_since: Instant,
    informational: usize,
    /// The latest value of [`Server::ftp_progress`].
    ftp_progress: u64,
    /// Number of bytes of the response's content that are still to come, if the head says the length.
    left: Option<u64>,
    /// Whether the response has no content for the client, even if the origin sends some.
    discards: bool,
}

// === impl Times ===

impl Times {
    pub(super) fn new(proxy: &Proxy) -> Self {
        Self {
            content: proxy.body_timeout,
            answer: proxy.read_timeout,
            write: proxy.write_timeout,
        }
    }
}

// === impl Relay ===

impl Relay<'_> {
    /// Passes the rest of the request and the whole response.
    ///
    /// # Errors
    /// Fails if one side fails or is too slow, or if the response is withdrawn; see [`Broken`]. If the head of a
    /// response was passed to the client before, `exchange.status` is set.
    pub(super) async fn run(mut self) -> Result<Relayed, Broken> {
        let now = Instant::now();
        let mut state = State {
            up: Up::Content,
            down: Down::Head,
            up_since: now,
            down_since: now,
            informational: 0,
            ftp_progress: 0,
            left: None,
            discards: false,
        };
        if self.content.is_read(self.client) {
            state.up = Up::Ending;
            // An error is ignored here: if the connection has failed, reading the response reports it.
            let _ = self.server.finish();
        }
        poll_fn(|cx| self.poll(&mut state, cx)).await
    }

    fn poll(&mut self, state: &mut State, cx: &mut Context<'_>) -> Poll<Result<Relayed, Broken>> {
        let (mut up_moved, mut down_moved) = (false, false);
        loop {
            let up = match self.move_up(state, cx) {
                // The client has disconnected, but it has the whole content of the response already. So this is no
                // error, even if the origin has not ended its response yet.
                Err(Broken::Client(ClientFault::Gone)) if state.left == Some(0) && self.poll_taken(cx)? => {
                    self.exchange.passed.set(self.client.bytes());
                    return Poll::Ready(Ok(Relayed::Complete { reusable: false }));
                }
                up => up?,
            };
            let down = self.move_down(state, cx)?;
            up_moved |= up;
            down_moved |= down == Moved::Some;
            if let Moved::Ended(ended) = down {
                self.exchange.passed.set(self.client.bytes());
                return Poll::Ready(Ok(ended));
            }
            if !up && down == Moved::Nothing {
                break;
            }
        }
        // An FTP server answers several commands before there is a response head. Each of these answers extends the
        // deadline.
        let progress = self.server.ftp_progress();
        down_moved |= std::mem::replace(&mut state.ftp_progress, progress) != progress;
        if up_moved || down_moved {
            let now = Instant::now();
            if up_moved {
                state.up_since = now;
            }
            state.down_since = now;
            self.exchange.passed.set(self.client.bytes());
        }
        loop {
            let Some((deadline, broken)) = self.next_deadline(state) else {
                return Poll::Pending;
            };
            ready!(self.timer.poll_until(deadline, cx));
            match state.down {
                // The deadline for the request has passed. This is no error if the origin has begun to respond: it need
                // not read the rest of the request.
                Down::Content | Down::Ending(_) if matches!(state.up, Up::Content | Up::Ending) => {
                    state.up = Up::Refused;
                }
                _ => return Poll::Ready(Err(broken)),
            }
        }
    }

    /// Passes some of the request to the origin, if possible. Returns whether it passed anything.
    fn move_up(&mut self, state: &mut State, cx: &mut Context<'_>) -> Result<bool, Broken> {
        match state.up {
            Up::Content => {
                if self.server.has_room() {
                    match self.content.poll_next(self.client, cx) {
                        Poll::Ready(Ok(Some(content))) => {
                            if self.server.send(content).is_err() {
                                state.up = Up::Refused;
                            }
                            return Ok(true);
                        }
                        Poll::Ready(Ok(None)) => {
                            state.up = match self.server.finish() {
                                Ok(()) => Up::Ending,
                                Err(_) => Up::Refused,
                            };
                            return Ok(true);
                        }
                        Poll::Ready(Err(fault)) => return Err(Broken::Client(fault)),
                        Poll::Pending => {}
                    }
                }
                let had_room = self.server.has_room();
                Ok(match self.server.poll_sent(cx) {
                    Poll::Ready(Ok(())) => !had_room,
                    Poll::Ready(Err(_)) => {
                        state.up = Up::Refused;
                        true
                    }
                    Poll::Pending => false,
                })
            }
            Up::Ending => Ok(match self.server.poll_sent(cx) {
                Poll::Ready(Ok(())) => {
                    state.up = Up::Sent;
                    true
                }
                Poll::Ready(Err(_)) => {
                    state.up = Up::Refused;
                    true
                }
                Poll::Pending => false,
            }),
            Up::Sent | Up::Refused => match self.client.poll_gone(cx) {
                Poll::Ready(()) => Err(Broken::Client(ClientFault::Gone)),
                Poll::Pending => Ok(false),
            },
        }
    }

    /// Passes some of the response to the client, if possible.
    fn move_down(&mut self, state: &mut State, cx: &mut Context<'_>) -> Result<Moved, Broken> {
        match state.down {
            // While bytes wait to be sent to the client, read no further head. Otherwise, the origin could make
            // robotgate store many informational responses for a client that does not read.
            Down::Head if !self.client.has_room() => Ok(match self.poll_taken(cx)? {
                true => Moved::Some,
                false => Moved::Nothing,
            }),
            Down::Head => match self.server.poll_head(cx) {
                Poll::Ready(Ok(head)) => {
                    state.down = self.answer(state, head)?;
                    Ok(Moved::Some)
                }
                Poll::Ready(Err(fault)) => Err(Broken::Server(fault)),
                // While waiting for the next head, send any informational response that was not sent yet.
                Poll::Pending => self.poll_taken(cx).map(|_| Moved::Nothing),
            },
            Down::Content => {
                if self.client.has_room() {
                    match self.server.poll_content(cx) {
                        Poll::Ready(Ok(Some(content))) => {
                            let length = content.as_slice().len() as u64;
                            state.left = state.left.map(|left| left.saturating_sub(length));
                            if !state.discards {
                                self.client.send(content)?;
                            }
                            if self.server.is_ended() {
                                state.down = self.end(cx)?;
                            }
                            return Ok(Moved::Some);
                        }
                        Poll::Ready(Ok(None)) => {
                            state.down = self.end(cx)?;
                            return Ok(match state.down {
                                Down::Content => Moved::Nothing,
                                _ => Moved::Some,
                            });
                        }
                        Poll::Ready(Err(fault)) => return Err(Broken::Server(fault)),
                        Poll::Pending => {}
                    }
                }
                let had_room = self.client.has_room();
                Ok(match self.poll_taken(cx)? && !had_room {
                    true => Moved::Some,
                    false => Moved::Nothing,
                })
            }
            Down::Ending(ended) => Ok(match self.poll_taken(cx)? {
                true => Moved::Ended(match ended {
                    Relayed::Complete { .. } => Relayed::Complete {
                        reusable: state.up == Up::Sent,
                    },
                    ended => ended,
                }),
                false => Moved::Nothing,
            }),
        }
    }

    /// Returns whether all bytes that this relay has passed to the connection to the client have been sent.
    fn poll_taken(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken> {
        match self.client.poll_sent(cx) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(fault)) => Err(Broken::Client(fault)),
            Poll::Pending => Ok(false),
        }
    }

    /// Returns the deadline that comes first, and the error to report if it passes.
    fn next_deadline(&self, state: &State) -> Option<(Instant, Broken)> {
        let times = self.times;
        let up = match state.up {
            Up::Content if self.server.has_room() => Some((state.up_since + times.content, Broken::ClientSlow)),
            Up::Content | Up::Ending => Some((state.up_since + times.write, Broken::Server(Fault::WriteTimeout))),
            Up::Sent | Up::Refused => None,
        };
        let down = match state.down {
            // An origin may wait for the whole request before it responds. So do not limit the time to the response
            // yet.
            Down::Head if up.is_some() => None,
            Down::Content if self.client.has_room() => {
                Some((state.down_since + times.answer, Broken::Server(Fault::ReadTimeout)))
            }
            Down::Head => Some((state.down_since + times.answer, Broken::Server(Fault::ReadTimeout))),
            Down::Content | Down::Ending(_) => {
                Some((state.down_since + times.write, Broken::Client(ClientFault::Full)))
            }
        };
        match (up, down) {
            (Some(up), Some(down)) => Some(if up.0 <= down.0 { up } else { down }),
            (up, down) => up.or(down),
        }
    }
}

/// What `Relay::move_down` did: it passed nothing to the client, passed some of the response, or sent its last bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    Nothing,
    Some,
    Ended(Relayed),
}

// === impl Broken ===

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Server(fault)
    }
}

impl From<ClientFault> for Broken {
    fn from(fault: ClientFault) -> Self {
        Self::Client(fault)
    }
}
