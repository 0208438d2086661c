//! The rules that every exchange must meet, regardless of what client and origin do. The strict parser parses what the
//! client sent, and what each side received. The model compares these messages with each other, with the scenario and
//! with the audit log.

use std::fmt;

use super::{
    ledger::Entry,
    scenario::{Ask, Fault, Framing, OriginAnswer, Scenario},
    site::{Seen, parse, path},
    strict::{self, End, Message, Rest},
};

/// Everything that was sent, received and logged in a scenario.
pub struct Went<'w> {
    pub scenario: &'w Scenario,
    pub number: u64,
    pub authority: &'w str,
    /// Bytes that the client sent.
    pub sent: &'w [u8],
    /// Bytes that the client received.
    pub got: &'w [u8],
    /// Whether the proxy closed the client's connection.
    pub ended: bool,
    pub seen: &'w [Seen],
    pub entries: &'w [Entry],
}

/// Checks all rules.
///
/// # Errors
/// Returns which rule was broken.
pub fn check(went: &Went<'_>) -> Result<(), String> {
    let requests = went.requests();
    decisions_match_requests(went, &requests)?;
    the_origin_gets_what_was_decided(went)?;
    content_is_forwarded_unchanged(went, &requests)?;
    let finals = responses_match_their_requests(went, &requests)?;
    every_request_is_answered(went, &requests, &finals)?;
    completions_match_what_was_sent(went, &requests, &finals)
}

/// Checks that the decisions are about the client's first requests, one for each request and in the same order, and
/// that each decision has one completion.
fn decisions_match_requests(went: &Went<'_>, requests: &[Message]) -> Result<(), String> {
    for (at, entry) in went.entries.iter().enumerate() {
        ensure(entry.completions.len() == 1, || {
            format!("{} completions: {entry:#?}", entry.completions.len())
        })?;
        let wanted = path(
            went.number,
            at,
            went.scenario.asks.get(at).is_some_and(|ask| ask.refused),
        );
        let url = format!("http://{}{wanted}", went.authority);
        ensure(entry.decision["url"] == url && at < requests.len(), || {
            format!(
                "decision {at} is none of {} requests: {}",
                requests.len(),
                entry.decision
            )
        })?;
        let ask = &went.scenario.asks[at];
        ensure(entry.decision["method"] == ask.method, || {
            format!("another method: {}", entry.decision)
        })?;
        ensure(entry.decision["forwarded"] == !ask.refused, || {
            format!("another verdict: {}", entry.decision)
        })?;
        let is_ambiguous = matches!(ask.fault, Some(Fault::Head(_)));
        ensure(!is_ambiguous, || {
            format!("a head that can be read in two ways was decided on: {}", entry.decision)
        })?;
    }
    Ok(())
}

/// Checks that the origin received the forwarded requests in the order of their decisions, and each only once. A
/// request may be repeated only if it was lost on a kept connection and is idempotent (RFC 9110 §9.2.2).
fn the_origin_gets_what_was_decided(went: &Went<'_>) -> Result<(), String> {
    let mut last: Option<&Seen> = None;
    for seen in went.seen {
        let (method, target, _) = seen.message.request_line().unwrap_or_default();
        let decided = went.entries.get(seen.ask);
        ensure(decided.is_some_and(|entry| entry.decision["forwarded"] == true), || {
            format!("the origin saw what was not decided on: {}", seen.message.start)
        })?;
        let ask = &went.scenario.asks[seen.ask];
        ensure(
            method == ask.method && target == path(went.number, seen.ask, false),
            || format!("the origin saw another request: {}", seen.message.start),
        )?;
        ensure(seen.message.all("host").eq([went.authority]), || {
            format!("another host: {:?}", seen.message)
        })?;
        if let Some(last) = last {
            let may_repeat = last.ask == seen.ask && last.kept && !last.answered && is_idempotent(method);
            ensure(last.ask < seen.ask || may_repeat, || {
                format!("the origin saw {} after {}", seen.message.start, last.message.start)
            })?;
        }
        last = Some(seen);
    }
    for (at, entry) in went.entries.iter().enumerate() {
        let was_forwarded = entry.decision["forwarded"] == true && entry.completions[0]["error"].is_null();
        ensure(!was_forwarded || went.seen.iter().any(|seen| seen.ask == at), || {
            format!("the origin has not seen what was forwarded: {}", entry.decision)
        })?;
    }
    Ok(())
}

fn content_is_forwarded_unchanged(went: &Went<'_>, requests: &[Message]) -> Result<(), String> {
    for seen in went.seen {
        let Some(request) = requests.get(seen.ask) else {
            continue;
        };
        let (got, sent) = (&seen.message.content, &request.content);
        ensure(sent.starts_with(got), || {
            format!("the content of {} was changed", seen.message.start)
        })?;
        if seen.message.end == End::Complete {
            ensure(request.end == End::Complete && got == sent, || {
                format!(
                    "{} seems whole at the origin: {} of {} bytes",
                    request.start,
                    got.len(),
                    sent.len()
                )
            })?;
        }
    }
    Ok(())
}

/// Checks that each of the origin's responses belongs to its request and has the content that was sent, or its
/// beginning if either side broke off. Returns the final responses.
fn responses_match_their_requests(went: &Went<'_>, requests: &[Message]) -> Result<Vec<Message>, String> {
    // `requests` ends before the first invalid request, which can get a response too.
    let mut methods: Vec<String> = went.scenario.asks.iter().map(|ask| ask.method.to_owned()).collect();
    methods.truncate(requests.len() + 1);
    let read = strict::responses(went.got, &methods, went.ended);
    let is_cut = matches!(read.rest, Rest::Nothing | Rest::PartOfHead);
    ensure(is_cut, || format!("the client got what is no answer ({:?})", read.rest))?;
    let finals: Vec<Message> = read.messages.into_iter().filter(Message::is_final).collect();
    for (at, message) in finals.iter().enumerate() {
        let ask = &went.scenario.asks[at];
        let Some(id) = message.all("x-id").next() else {
            continue;
        };
        let wanted = path(went.number, at, ask.refused);
        ensure(id == wanted, || format!("the answer to {wanted} is one to {id}"))?;
        ensure(!ask.refused, || {
            format!("an answer to a request that was refused: {id}")
        })?;
        the_response_matches_the_origins(ask, &wanted, message)?;
    }
    Ok(finals)
}

fn the_response_matches_the_origins(ask: &Ask, id: &str, got: &Message) -> Result<(), String> {
    let answer = &ask.answer;
    ensure(answer.fault.is_none(), || {
        format!("an answer that is none went on: {}", got.start)
    })?;
    let (wire, head, content) = answer.bytes(ask.method, id);
    let sent = answer
        .cut
        .map_or(wire.len(), |share| wire.len() * usize::from(share) / 256);
    ensure(sent >= head, || {
        format!("an answer without the end of its head went on: {}", got.start)
    })?;
    ensure(got.status() == Some(answer.status), || {
        format!("another status: {}", got.start)
    })?;
    ensure(content.starts_with(&got.content), || {
        format!("the content of {id} was changed: {:?}", got.content)
    })?;
    // With any other `end`, the client knows that the response is incomplete. With `UntilClose`, it cannot know whether
    // the response is complete.
    if got.end != End::Complete || got.framing == strict::Framing::UntilClose {
        return Ok(());
    }
    if answer.ends_by_close(ask.method) {
        let sent = sent - head;
        // A reset must not look like the end of the content.
        ensure(
            got.content.len() == sent && !(answer.cut.is_some() && answer.reset),
            || format!("{id} seems whole: {} of {sent} bytes", got.content.len()),
        )
    } else {
        let is_bare = content.is_empty() && !matches!(answer.framing, Framing::Chunks(_));
        let is_complete = sent == wire.len() || is_bare || is_without_content(answer, ask.method);
        ensure(is_complete && got.content == content, || {
            format!("{id} seems whole: {} of {} bytes", got.content.len(), content.len())
        })
    }
}

/// Checks that each request gets a response if the client does not break off. Exceptions are requests after a response
/// that ends the connection, and pipelined requests after the first.
fn every_request_is_answered(went: &Went<'_>, requests: &[Message], finals: &[Message]) -> Result<(), String> {
    let is_complete =
        requests.len() == went.scenario.asks.len() && requests.iter().all(|message| message.end == End::Complete);
    if went.scenario.break_off.is_some() {
        return Ok(());
    }
    if finals.len() == requests.len() && is_complete {
        return Ok(());
    }
    let Some(last) = finals.last() else {
        return Err("a client that waits got no answer".to_owned());
    };
    let says_close = last.all("connection").any(|value| value.eq_ignore_ascii_case("close"));
    let ends = says_close || last.end != End::Complete || last.framing == strict::Framing::UntilClose;
    // Pipelined requests are lost if the connection ends before the gate has read them.
    ensure(
        ends || went.scenario.pipelined || finals.len() >= requests.len(),
        || format!("only {} of {} requests were answered", finals.len(), requests.len()),
    )
}

/// For each complete response, checks that the log has the status and the number of bytes that the client received, and
/// does not count more bytes of request content than the client sent. The data of a broken chunk is part of what the
/// client sent.
fn completions_match_what_was_sent(went: &Went<'_>, requests: &[Message], finals: &[Message]) -> Result<(), String> {
    for (at, entry) in went.entries.iter().enumerate() {
        let end = &entry.completions[0];
        let Some(answer) = finals.get(at).filter(|answer| is_known_to_be_complete(answer)) else {
            continue;
        };
        let is_same = end["status"] == answer.status().unwrap_or_default() && end["bytes_out"] == answer.content.len();
        ensure(is_same, || {
            format!(
                "{} with {} bytes is logged as {end}",
                answer.start,
                answer.content.len()
            )
        })?;
        let most = requests[at].content.len();
        ensure(
            end["bytes_in"].as_u64().is_some_and(|bytes| bytes <= most as u64),
            || format!("{most} bytes of content are logged as {end}"),
        )?;
    }
    Ok(())
}

// === impl Went ===

impl Went<'_> {
    /// Parses the client's bytes strictly, and returns the requests up to the first invalid one.
    fn requests(&self) -> Vec<Message> {
        let mut requests = strict::requests(self.sent).messages;
        // The gate reads no request after one that closes the connection or has broken chunks.
        let last = requests.iter().position(|message| {
            let says = |option: &str| {
                message
                    .all("connection")
                    .any(|value| value.eq_ignore_ascii_case(option))
            };
            let is_old = message.start.ends_with("HTTP/1.0") && !says("keep-alive");
            says("close") || is_old || matches!(message.end, End::Broken(_))
        });
        requests.truncate(last.map_or(requests.len(), |last| last + 1));
        let mine = |message: &Message| {
            let target = message.request_line().map_or("", |(_, target, _)| target);
            let path = target
                .strip_prefix("http://")
                .and_then(|rest| rest.strip_prefix(self.authority));
            path.and_then(parse).is_some_and(|(number, _)| number == self.number)
        };
        requests.retain(mine);
        requests
    }
}

impl fmt::Display for Went<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "client sent: {}", shortened(self.sent))?;
        writeln!(f, "client got:  {} (ended: {})", shortened(self.got), self.ended)?;
        for seen in self.seen {
            let Message {
                start, content, end, ..
            } = &seen.message;
            let kept = if seen.kept { "kept" } else { "fresh" };
            writeln!(f, "origin saw:  {start} ({kept}), {} bytes, {end:?}", content.len())?;
        }
        for entry in self.entries {
            writeln!(f, "log: {} {}", entry.decision["url"], entry.decision["forwarded"])?;
            for end in &entry.completions {
                writeln!(f, "log:   {end}")?;
            }
        }
        Ok(())
    }
}

fn shortened(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    if text.len() <= 6000 {
        return text;
    }
    format!("{} ... {}", &text[..3000], &text[text.len() - 3000..])
}

fn is_known_to_be_complete(answer: &Message) -> bool {
    answer.end == End::Complete && answer.framing != strict::Framing::UntilClose
}

fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

fn is_without_content(answer: &OriginAnswer, method: &str) -> bool {
    method == "HEAD" || matches!(answer.status, 204 | 304)
}

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
