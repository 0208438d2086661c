//! The integration tests. They test modules through their public interface, and the real program between a test origin
//! and a test client.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails, and says where"
)]

mod absolute_https;
mod admin;
mod admin_page;
mod agreement;
mod audit;
mod authority;
mod bot;
mod cache_command;
mod changes;
mod config;
mod connections;
mod copies;
mod credential;
mod dashboards;
mod docs;
mod egress;
mod env;
mod errors;
mod evidence;
mod exchanges;
mod explain;
mod fleet;
mod ftp;
mod harness;
mod health;
mod hostile;
mod identity;
mod intercept;
mod internal_site;
mod lifecycle_http;
mod limits;
mod lint;
mod metrics;
mod modules;
mod pace;
mod persistence;
mod plain;
mod real_clients;
mod refusals;
mod refuse_mode;
mod rejections;
mod reload;
mod replay;
mod report;
mod robots;
mod seal;
mod sharing;
mod smuggling;
mod spelling;
mod support;
mod systemd;
mod terminal;
mod tls_listener;
mod transcripts;
mod tunnel;
mod usage;
mod version;
mod what_if;
