//! `ftp://` origins: files and folders of FTP servers over plain proxy requests, decided like any other request.

mod answers;
mod attacks;
mod files;
mod folders;
mod paths;
mod real;
mod server;

use self::server::Answer;
pub use self::server::FtpServer;
use crate::support::{Gate, ROBOTS, Response};

/// A configuration with which no robots.txt is fetched.
const EXEMPT: &str = "[[bot]]\nname = 'T'\nuser-agents = ['TestBot']\nenforcement = 'exempt'\n";

async fn server() -> FtpServer {
    files().start().await
}

fn files() -> server::Builder {
    FtpServer::builder()
        .file("/robots.txt", ROBOTS)
        .file("/pub/a.txt", "0123456789")
        .file("/private/b.txt", "secret")
}

#[track_caller]
fn asked_only_for_robots_txt(server: &FtpServer) {
    let paths: Vec<_> = server
        .commands()
        .into_iter()
        .filter(|command| command.contains('/'))
        .collect();
    assert!(
        paths.iter().all(|command| command.ends_with(" /robots.txt")),
        "{paths:?}"
    );
}

async fn get(gate: &Gate, server: &FtpServer, path: &str) -> Response {
    gate.get(&server.url(path)).await
}
