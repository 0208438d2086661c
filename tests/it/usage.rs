//! The purposes of bots: what sites forbid in robots.txt, in `tdmrep.json` and in responses.

mod request;
mod response;
mod tdmrep;
