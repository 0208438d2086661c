//! Real servers with default settings serve a page under many spellings of its path. robotgate refuses every spelling
//! that a server accepts, if a rule disallows the page.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, UnixStream},
    process::{Child, Command},
};

use crate::support::{Gate, programs::needs, wait};

/// Spellings that could reach `/private/x`. Each server accepts only some of them.
const SPELLINGS: &[&str] = &[
    "/private/x",
    "/%70rivate/x",
    "/private%2fx",
    "/private//x",
    "/./private/x",
    "/../private/x",
    "/pub/../private/x",
    "/pub/%2e%2e/private/x",
    // Repeated slashes.
    "//private/x",
    "///private/x",
    "//private//x?q",
    "//%70rivate/x",
    "/.//private/x",
    "/.//.//private/x",
    "/..//private/x",
    "//pub/../private/x",
    "/pub//../private/x",
    "/pub///../private/x",
    "/pub//..//private/x",
    "/pub/deep//../../private/x",
    "/pub/deep//..//../private/x",
    "//nowhere/..//private/x",
    // Escaped slashes.
    "/%2fprivate/x",
    "/%2Fprivate/x?a=%2f..",
    "/%2f%2Fprivate/x",
    "/%2f%70%72%69%76%61%74%65/x",
    "/./%2fprivate/x",
    "/%2e%2fprivate/x",
    "/%2e/%2fprivate/x",
    "/..%2fprivate/x",
    "/pub/..%2fprivate/x",
    "/pub/%2e%2e%2fprivate/x",
    "/pub/.%2E%2Fprivate/x",
    "/pub%2f..%2fprivate/x",
    "/pub%2f%2e%2e%2fprivate%2fx",
    "/pub/../%2fprivate/x",
    "/pub/..%2f%2fprivate%2f%2fx",
    "/pub/deep/..%2f..%2fprivate/x",
    "/pub/deep/..%2f../private/x",
    "/nowhere/..%2fprivate/x",
    "/x%3f/..%2fprivate/x",
    "/x%23/..%2fprivate/x",
    // Segments that servers other than those of this test would interpret differently.
    "/;/..%2fprivate/x",
    "/a;b//../private/x",
    "/a\\b//../private/x",
    "/a%5cb/..%2fprivate/x",
    "/pub/%3b/..%2f../private/x",
    // Backslashes and path parameters.
    "/\\private/x",
    "/pub/..\\private/x",
    "/pub%5c..%5cprivate/x",
    "/pub/..;/private/x",
    "/pub/..;a=b/private/x",
    "/;/private/x",
    // Spellings that no reading converts to the page's path.
    "/%2570rivate/x",
    "/pub/..%252fprivate/x",
    "/private%00/x",
    "/PRIVATE/x",
];

const SECRET: &str = "Not for bots.";

struct Server {
    name: &'static str,
    address: SocketAddr,
    _process: Child,
}

#[tokio::test]
async fn spellings_that_real_servers_accept_are_refused() {
    needs!("nginx", "python3");
    let folder = site();
    let gate = Gate::start().await;
    for server in [nginx(folder.path()).await, python(folder.path()).await] {
        let mut delivered = 0;
        for target in SPELLINGS {
            if !get(server.address, target).await.contains(SECRET) {
                continue;
            }
            delivered += 1;
            let answer = get_through(&gate, server.address, target).await;
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && answer.contains("line=2; rule=\"Disallow: /private\""),
                "{} delivers {target}, and robotgate answers: {answer}",
                server.name
            );
        }
        println!("{}: {delivered} of {} spellings", server.name, SPELLINGS.len());
        assert!(delivered > 30, "{} delivers only {delivered}", server.name);
    }
}

fn site() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join("site").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("robots.txt", "User-agent: *\nDisallow: /private\n");
    write("private/x", SECRET);
    write("pub/deep/page", "page");
    // nginx drops root privileges, and other users cannot enter tempfile's folders.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("opened");
    folder
}

/// Starts nginx on a socket in the folder, because it cannot report a port that the system chose.
async fn nginx(folder: &Path) -> Server {
    let (root, socket) = (folder.join("site"), folder.join("nginx.sock"));
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {}/{name};\n", folder.display()));
    let config = format!(
        "daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/nginx.log;\nevents {{}}\nhttp {{ access_log off;\n{1}\
         server {{ listen unix:{2}; root {3}; }} }}\n",
        folder.display(),
        temporary.concat(),
        socket.display(),
        root.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).expect("written");
    let process = Command::new("nginx")
        .arg("-c")
        .arg(&file)
        .args(["-e", &folder.join("nginx.log").display().to_string()])
        .env("PATH", "/usr/sbin:/usr/bin:/bin")
        .kill_on_drop(true)
        .spawn()
        .expect("nginx starts");
    wait::until_async("nginx to listen", async || UnixStream::connect(&socket).await.ok()).await;
    Server {
        name: "nginx",
        address: forward(socket).await,
        _process: process,
    }
}

async fn forward(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.expect("nginx takes connections");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    address
}

async fn python(folder: &Path) -> Server {
    let mut process = Command::new("/usr/bin/python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(folder.join("site"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("Python starts");
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
    output.read_line(&mut line).await.expect("it says its port");
    let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next());
    let port = port.and_then(|port| port.parse().ok());
    Server {
        name: "python",
        address: ([127, 0, 0, 1], port.unwrap_or_else(|| panic!("no port in {line:?}"))).into(),
        _process: process,
    }
}

async fn get(server: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(server).await.expect("it listens");
    let request = request(target, server);
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    // A server may reset the connection after its response.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get_through(gate: &Gate, server: SocketAddr, target: &str) -> String {
    let answer = gate.raw(request(&format!("http://{server}{target}"), server)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(target: &str, host: SocketAddr) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n\r\n")
}
