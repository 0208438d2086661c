//! Passes the content of a request to the origin, and the response to the client, until the response is complete or one
//! side fails. One task serves both directions, so that neither blocks the other.

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

/// A request whose head has been sent to the origin.
pub(super) struct Relay<'a> {
    pub(super) client: &'a mut Client,
    pub(super) server: &'a mut Server,
    pub(super) content: &'a mut Content,
    pub(super) exchange: &'a mut Exchange,
    pub(super) timer: &'a mut Timer,
    pub(super) times: Times,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    content: Duration,
    answer: Duration,
    write: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relayed {
    /// The client has the whole response. `reusable` says whether the connection to the origin can be used again.
    Complete { reusable: bool },
    /// The origin has opened the WebSocket that the client asked for.
    Websocket,
}

#[derive(Debug)]
pub(super) enum Broken {
    Client(ClientFault),
    ClientSlow,
    Server(Fault),
    /// The response forbids the bot's use of the content. The client has got nothing of the response.
    Withdrawn(Box<Withdrawal>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Up {
    Content,
    /// robotgate has read all content from the client, but may still have to send some of it to the origin.
    Ending,
    Sent,
    /// The origin does not accept the rest of the request, but may still respond.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Head,
    Content,
    /// robotgate has read the whole response from the origin, but may still have to send some of it to the client.
    Ending(Relayed),
}

struct State {
    up: Up,
    down: Down,
    up_since: Instant,
    down_since: Instant,
    informational: usize,
    ftp_progress: u64,
    /// Bytes of the response's content that are still to come, if the head says the length.
    left: Option<u64>,
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
    /// Passes the rest of the request and the whole response. If this fails, `exchange.status` is set only if the
    /// client already got the head of the final response.
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
            // If the connection has failed, reading the response reports it.
            let _ = self.server.finish();
        }
        poll_fn(|cx| self.poll(&mut state, cx)).await
    }

    fn poll(&mut self, state: &mut State, cx: &mut Context<'_>) -> Poll<Result<Relayed, Broken>> {
        let (mut up_moved, mut down_moved) = (false, false);
        loop {
            let up = match self.move_up(state, cx) {
                // The client has left, but has the whole content. So this is no error, even if the origin has not ended
                // its response.
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
        // An FTP server answers several commands before there is a response. Each answer extends the deadline.
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
                // An origin that has begun to respond need not read the rest of the request, so only the response's
                // deadline counts from now on.
                Down::Content | Down::Ending(_) if matches!(state.up, Up::Content | Up::Ending) => {
                    state.up = Up::Refused;
                }
                _ => return Poll::Ready(Err(broken)),
            }
        }
    }

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

    fn move_down(&mut self, state: &mut State, cx: &mut Context<'_>) -> Result<Moved, Broken> {
        match state.down {
            // While too many bytes wait to be sent, read no further head. Otherwise, an origin could fill the memory
            // with informational responses for a client that does not read.
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
                // Send an informational response that was not sent yet.
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

    fn poll_taken(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken> {
        match self.client.poll_sent(cx) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(fault)) => Err(Broken::Client(fault)),
            Poll::Pending => Ok(false),
        }
    }

    fn next_deadline(&self, state: &State) -> Option<(Instant, Broken)> {
        let times = self.times;
        let up = match state.up {
            Up::Content if self.server.has_room() => Some((state.up_since + times.content, Broken::ClientSlow)),
            Up::Content | Up::Ending => Some((state.up_since + times.write, Broken::Server(Fault::WriteTimeout))),
            Up::Sent | Up::Refused => None,
        };
        let down = match state.down {
            // An origin may wait for the whole request before it responds.
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
