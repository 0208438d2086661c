//! Real clients through robotgate to a real FTP server, vsftpd: curl, wget, Python's urllib and apt.

use std::{
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::{net::TcpListener, process::Command, task::JoinHandle};

use crate::support::{Gate, programs::needs, wait};

/// A folder that vsftpd serves. Each session is a process of its own, so that no fixed port is needed.
struct Vsftpd {
    address: SocketAddr,
    folder: TempDir,
    accepting: JoinHandle<()>,
}

impl Vsftpd {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("site/pub/folder")).expect("made");
        std::fs::create_dir_all(path("site/private")).expect("made");
        std::fs::create_dir(path("empty")).expect("made");
        let write = |name: &str, content: &[u8]| std::fs::write(path(name), content).expect("written");
        write("site/robots.txt", super::ROBOTS.as_bytes());
        write("site/private/x", b"secret");
        write("site/pub/a name & more.txt", b"Hello, bot.\n");
        write("site/pub/large", &large());
        // `run_as_launching_user` lets the test run without root. `isolate` and `isolate_network` are off, because some
        // machines have no namespaces.
        let config = format!(
            "listen=NO\nanonymous_enable=YES\nlocal_enable=NO\nrun_as_launching_user=YES\nseccomp_sandbox=NO\n\
             isolate=NO\nisolate_network=NO\nxferlog_enable=NO\nno_log_lock=YES\nanon_world_readable_only=NO\n\
             anon_root={}\nsecure_chroot_dir={}\n",
            path("site").display(),
            path("empty").display()
        );
        write("vsftpd.conf", config.as_bytes());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let accepting = tokio::spawn(accept(listener, path("vsftpd.conf")));
        Self {
            address,
            folder,
            accepting,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("ftp://{}{path}", self.address)
    }

    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }
}

impl Drop for Vsftpd {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, config: PathBuf) {
    while let Ok((stream, _)) = listener.accept().await {
        let stream = stream.into_std().expect("a socket");
        stream.set_nonblocking(false).expect("a socket");
        let stream: OwnedFd = stream.into();
        let session = Command::new("/usr/sbin/vsftpd")
            .arg(&config)
            .stdout(Stdio::from(stream.try_clone().expect("a socket")))
            .stdin(Stdio::from(stream))
            .stderr(Stdio::null())
            .spawn();
        let mut session = session.expect("vsftpd starts");
        tokio::spawn(async move { session.wait().await });
    }
}

/// Returns 4 MB in which no group of four bytes repeats, so that the tests notice a missing or repeated part.
fn large() -> Vec<u8> {
    (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect()
}

fn sha256(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

/// Runs a client that finds the proxy in its environment. Returns its standard output and error.
async fn run(gate: &Gate, folder: &Path, program: &str, arguments: &[&str]) -> (Vec<u8>, String) {
    let run = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin")
        .env("ftp_proxy", format!("http://{}", gate.address()))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    let output = wait::within(&format!("{program} {arguments:?}"), run)
        .await
        .expect("it runs");
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn curl_wget_and_python_get_files_and_folders() {
    needs!("vsftpd", "curl", "wget", "python3");
    let server = Vsftpd::start().await;
    let gate = Gate::start().await;
    let python = "import sys, urllib.request\nsys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())";
    let clients: [(&str, &[&str]); 3] = [
        ("curl", &["-sSL"]),
        ("wget", &["-nv", "-O", "-"]),
        ("/usr/bin/python3", &["-c", python]),
    ];
    for (client, arguments) in clients {
        let get = async |path: &str| {
            let url = server.url(path);
            run(&gate, &server.site(), client, &[arguments, &[&*url]].concat()).await
        };
        let (content, error) = get("/pub/a%20name%20&%20more.txt").await;
        assert_eq!(String::from_utf8_lossy(&content), "Hello, bot.\n", "{client}: {error}");
        let (content, error) = get("/pub/large").await;
        assert!(content == large(), "{client}: {error}");
        // `/pub` redirects to the folder `/pub/`.
        let (page, error) = get("/pub").await;
        let page = String::from_utf8_lossy(&page);
        for link in [
            "<a href=\"a%20name%20%26%20more.txt\">a name &amp; more.txt</a>",
            "<a href=\"folder/\">",
            "        4000000\n",
        ] {
            assert!(page.contains(link), "{client}: {page}{error}");
        }
        let (content, error) = get("/private/x").await;
        assert!(!String::from_utf8_lossy(&content).contains("secret"), "{client}");
        let shows_status = error.contains("403") || client == "curl";
        assert!(shows_status, "{client}: {error}");
    }
    let url = server.url("/private/x");
    let (_, error) = run(&gate, &server.site(), "curl", &["-sSv", &url]).await;
    assert!(error.contains("< HTTP/1.1 403 Disallowed by robots.txt"), "{error}");
}

#[tokio::test]
async fn curl_and_wget_continue_a_download() {
    needs!("vsftpd", "curl", "wget");
    let server = Vsftpd::start().await;
    let gate = Gate::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let url = server.url("/pub/large");
    let clients: [(&str, &[&str]); 2] = [
        ("curl", &["-sS", "-C", "-", "-o", "part"]),
        ("wget", &["-c", "-O", "part"]),
    ];
    for (client, arguments) in clients {
        let part = folder.path().join("part");
        std::fs::write(&part, &large()[..1_234_567]).expect("written");
        let (_, error) = run(&gate, folder.path(), client, &[arguments, &[&*url]].concat()).await;
        assert!(std::fs::read(&part).expect("there") == large(), "{client}: {error}");
        let decision = gate
            .audit()
            .into_iter()
            .rfind(|record| record["event"] == "decision")
            .expect("one");
        let completion = gate.completion_of(&decision).await;
        assert_eq!(completion["status"], 206, "{completion:#}");
    }
}

#[tokio::test]
async fn apt_installs_from_an_ftp_repository() {
    needs!("vsftpd", "apt-get");
    let server = Vsftpd::start().await;
    let gate = Gate::start().await;
    let write = |name: &str, text: &str| {
        let path = server.site().join("debian").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let entry = |text: &str| format!("{} {}", sha256(text), text.len());
    let package = "not read by `apt-get download`";
    let digest = sha256(package);
    let packages = format!(
        "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.example>\nDescription: x\n\
         Filename: pool/hello_1_all.deb\nSize: {}\nSHA256: {digest}\n\n",
        package.len()
    );
    write("pool/hello_1_all.deb", package);
    write("dists/stable/main/binary-all/Packages", &packages);
    let release = format!(
        "Suite: stable\nCodename: stable\nArchitectures: all\nComponents: main\nSHA256:\n {} main/binary-all/Packages\n",
        entry(&packages)
    );
    write("dists/stable/Release", &release);

    let folder = tempfile::tempdir().expect("a folder");
    for name in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(folder.path().join(name)).expect("made");
    }
    let source = format!("deb [trusted=yes arch=all] {} stable main\n", server.url("/debian"));
    std::fs::write(folder.path().join("sources.list"), source).expect("written");
    let at = folder.path().display();
    let options = [
        format!("Dir::Etc::SourceList={at}/sources.list"),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("Dir::State::Lists={at}/lists"),
        format!("Dir::Cache={at}/cache"),
        "Dir::Bin::Methods::ftp=ftp".to_owned(),
        "APT::Sandbox::User=".to_owned(),
        "Acquire::Languages=none".to_owned(),
    ];
    let options: Vec<_> = options.iter().flat_map(|option| ["-o", option]).collect();
    for command in [&["update"][..], &["download", "hello"]] {
        let (shown, error) = run(&gate, folder.path(), "apt-get", &[&options, command].concat()).await;
        println!("{}{error}", String::from_utf8_lossy(&shown));
    }
    let downloaded = std::fs::read_to_string(folder.path().join("hello_1_all.deb"));
    assert_eq!(downloaded.expect("apt downloaded it"), package);
    let decision = gate.decision_for(&server.url("/debian/pool/hello_1_all.deb")).await;
    assert_eq!(decision["reason"], "no-rule", "{decision:#}");
}
