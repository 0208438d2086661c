//! squid from the system's package, with its access log but without its cache, which would respond to requests itself.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{Setup, first_line};
use crate::proxy::{
    Outcome,
    certificates::{AUTHORITY, AUTHORITY_WITH_KEY},
    process::Process,
};

/// Returns whether this squid can intercept TLS.
pub fn intercepts() -> bool {
    let output = Command::new("squid").arg("-v").output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    output.is_ok_and(|text| text.contains("--with-openssl")) && helper().is_some()
}

pub fn version() -> Result<String, String> {
    let version = first_line("squid", &["-v"])?;
    let bump = if intercepts() {
        ""
    } else {
        "; built without OpenSSL, so it cannot intercept"
    };
    Ok(version.replace("Squid Cache: Version", "squid") + bump)
}

pub fn start(setup: &Setup, workers: u8) -> Outcome<Process> {
    let (plain, folder) = (setup.plain, setup.folder.display());
    let interception = if intercepts() {
        interception(setup)?
    } else {
        String::new()
    };
    let workers_line = if workers > 1 {
        format!("workers {workers}")
    } else {
        String::new()
    };
    let path = setup.write(
        "squid.conf",
        &format!(
            "http_port {plain}
{interception}
{workers_line}
acl private urlpath_regex ^/private
http_access deny private
http_access allow all
cache deny all
access_log daemon:{folder}/access.log squid
cache_log {folder}/cache.log
pid_filename {folder}/squid.pid
coredump_dir {folder}
visible_hostname benchmark
shutdown_lifetime 0 seconds
"
        ),
    )?;
    // Several instances on one machine need different names.
    let name = format!("bench{}", plain.port());
    let mut command = Command::new("squid");
    command
        .args(["--foreground", "-n", &name, "-f"])
        .arg(path)
        .stdout(Stdio::null());
    Ok(Process::start(&mut command, &setup.log())?)
}

/// Returns the configuration of a second port that intercepts CONNECTs, as in squid's manual. Its certificates imitate
/// the origin's.
fn interception(setup: &Setup) -> Outcome<String> {
    let helper = helper().unwrap_or_default();
    let certificates = setup.folder.join("certificates");
    let made = Command::new(helper)
        .arg("-c")
        .arg("-s")
        .arg(&certificates)
        .args(["-M", "4MB"])
        .output()?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into());
    }
    open_to_all(&certificates)?;
    Ok(format!(
        "http_port {} ssl-bump tls-cert={} generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program {helper} -s {} -M 4MB
acl begin at_step SslBump1
ssl_bump peek begin
ssl_bump bump all
tls_outgoing_options cafile={}",
        setup.intercepting,
        setup.shared.join(AUTHORITY_WITH_KEY).display(),
        certificates.display(),
        setup.shared.join(AUTHORITY).display(),
    ))
}

/// Returns the path of squid's program that makes certificates.
fn helper() -> Option<&'static str> {
    HELPERS.into_iter().find(|path| Path::new(path).exists())
}

/// Opens a folder to all users, because squid drops root privileges and must write there.
fn open_to_all(folder: &Path) -> Outcome<()> {
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let mode = if entry.file_type()?.is_dir() { 0o777 } else { 0o666 };
        fs::set_permissions(entry.path(), std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }
    Ok(())
}

const HELPERS: [&str; 3] = [
    "/usr/lib/squid/security_file_certgen",
    "/usr/lib64/squid/security_file_certgen",
    "/usr/libexec/squid/security_file_certgen",
];
