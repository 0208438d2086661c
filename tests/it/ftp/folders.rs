//! Folders: the page that lists the files in a folder, and the redirect to this page.

use std::fmt::Write as _;

use super::{Answer, FtpServer, asked_only_for_robots_txt, files, get, server};
use crate::support::{End, Gate, allowed, refused};

#[tokio::test]
async fn a_folder_is_a_page_with_links() {
    let server = files().file("/pub/folder/x", "").start().await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub/").await;
    allowed(&response, "no-rule");
    assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
    let text = response.text();
    let title = format!("<title>Index of {}</title>", server.url("/pub/"));
    for part in [
        &*title,
        "<a href=\"../\">../</a>\n",
        "<a href=\"a.txt\">a.txt</a>",
        "2026-11-01T12:00:00Z              10\n",
        "<a href=\"folder/\">folder/</a>",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The server also lists the folder itself and its parent. robotgate ignores these two lines, but adds the link
    // `../`.
    assert_eq!(text.matches("<a ").count(), 3, "{text}");

    let root = get(&gate, &server, "/").await.text();
    assert!(
        root.contains("<a href=\"private/\">private/</a>") && !root.contains("../"),
        "{root}"
    );
}

#[tokio::test]
async fn a_folder_without_its_slash_is_a_redirect() {
    let server = server().await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub").await;
    assert_eq!(response.status, 301);
    assert_eq!(response.field("Location"), Some(&*server.url("/pub/")));
    assert_eq!(server.count("MLSD"), 0);
}

#[tokio::test]
async fn the_path_of_a_folder_is_decided_with_its_slash() {
    let robots = "User-agent: *\nDisallow: /pub/\n";
    let server = FtpServer::builder()
        .file("/robots.txt", robots)
        .file("/pub/a", "")
        .start()
        .await;
    let gate = Gate::start().await;
    refused(&get(&gate, &server, "/pub/").await, "rule");
    refused(&get(&gate, &server, "/pub;type=d").await, "rule");
    asked_only_for_robots_txt(&server);
}

#[tokio::test]
async fn names_cannot_break_out_of_the_page() {
    let list = b"type=file; <script>alert(1)</script>\r\n\
        type=file; javascript:alert(1)\r\n\
        type=dir; \"onmouseover=\"x\r\n\
        type=file; ../../private/x\r\n\
        type=file; caf\xe9\r\n\
        type=file; a\x1b[31m\r\n\
        no facts<b>\r\n\
        <i>\r\n";
    let server = files()
        .on("MLSD", Answer::Transfer(list.to_vec(), "226 done"))
        .start()
        .await;
    let gate = Gate::start().await;
    let response = get(&gate, &server, "/pub/").await;
    let policy = response.field("Content-Security-Policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    let text = response.text();
    let list = text.split_once("../</a>\n").expect("the list").1;
    for part in [
        "<a href=\"%3Cscript%3Ealert%281%29%3C%2Fscript%3E\">&lt;script&gt;alert(1)&lt;/script&gt;</a>",
        "<a href=\"javascript%3Aalert%281%29\">",
        "<a href=\"%22onmouseover%3D%22x/\">&quot;onmouseover=&quot;x/</a>",
        "<a href=\"..%2F..%2Fprivate%2Fx\">",
        "<a href=\"caf%E9\">caf\u{fffd}</a>",
        "<a href=\"a%1B%5B31m\">a\\u{1b}[31m</a>",
        "\n&lt;i&gt;\n",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert_eq!(get(&gate, &server, "/pub/..%2F..%2Fprivate%2Fx").await.status, 400);
}

#[tokio::test]
async fn a_folder_of_a_server_without_mlsd_is_listed_with_list() {
    let list = "total 8\r\n\
        -rw-r--r--   1 ftp      ftp           10 Nov 01  2025 a file.txt\r\n\
        drwxr-xr-x   2 ftp      ftp         4096 Nov 01  2025 folder\r\n\
        lrwxrwxrwx   1 ftp      ftp            5 Nov 01  2025 link -> a.txt\r\n\
        11-01-25  01:30PM       <DIR>          dos\r\n\
        what is <this>\r\n";
    let server = files()
        .on("LIST", Answer::Transfer(list.into(), "226 done"))
        .reply("MLSD", "500 unknown command")
        .start()
        .await;
    let gate = Gate::start().await;
    let text = get(&gate, &server, "/pub/").await.text();
    for part in [
        "<a href=\"a%20file.txt\">a file.txt</a>",
        "2025-11-01T00:00:00Z              10\n",
        "<a href=\"folder/\">folder/</a>",
        "<a href=\"link\">link</a>",
        "<a href=\"dos/\">dos/</a>",
        "\nwhat is &lt;this&gt;\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("total"), "{text}");
    // robotgate sends LIST without a path, because servers expand patterns and options in its argument.
    assert!(
        server.commands().contains(&"LIST".to_owned()),
        "{:?}",
        server.commands()
    );
}

#[tokio::test]
async fn a_folder_of_100_000_names_needs_little_memory() {
    let mut list = String::new();
    for number in 0..100_000 {
        write!(
            list,
            "type=file;size={number};modify=20261101120000; file-{number:020}.txt\r\n"
        )
        .expect("memory");
    }
    let server = files()
        .on("MLSD", Answer::Transfer(list.into_bytes(), "226 done"))
        .start()
        .await;
    let gate = Gate::start().await;
    get(&gate, &server, "/pub/a.txt").await;
    let before = gate.peak_memory();

    let response = get(&gate, &server, "/pub/").await;
    assert_eq!(response.text().matches("<a href=\"file-").count(), 100_000);
    let page = response.body.len();
    let more = gate.peak_memory().saturating_sub(before);
    assert!(more < page / 2, "{more} bytes for a page of {page}");
}

#[tokio::test]
async fn an_incomplete_list_is_not_forwarded_as_complete() {
    let endless_line = vec![b'x'; 100_000];
    for (content, reply) in [
        (&b"type=file; a\r\n"[..], "426 broken off"),
        (b"type=file; a\r\n", "550 no more"),
        (&endless_line, "226 done"),
    ] {
        let transfer = Answer::Transfer(content.to_vec(), reply);
        let server = files().on("MLSD", transfer).start().await;
        let gate = Gate::start().await;
        let url = server.url("/pub/");
        let response = gate.get(&url).await;
        assert_eq!((response.status, response.end), (200, End::Cut), "{reply}");
        let completion = gate.completion_of(&gate.decision_for(&url).await).await;
        assert_eq!(completion["error"], "http_response_incomplete", "{completion:#}");
    }
}
