//! `robotgate env`: prints the settings that make a client use the proxy and trust it, as shell commands and comments.
//! Changes nothing, unless it is asked to write files.

mod write;

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    io::{self, IsTerminal as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{
    builder::{PossibleValue, PossibleValuesParser, StyledStr, TypedValueParser},
    error::{ContextKind, ContextValue},
};
use rustls::pki_types::CertificateDer;

use self::write::WriteError;
use super::{Overrides, fail, load, print};
use crate::{
    config::{Config, ConfigError, HttpsMode, Proxy, Sources},
    pem,
    text::plain,
    trust::{
        BadProxy, Ca, ClientSettings,
        clients::{self, ClientKind, ClientProgram},
        shell_option, shell_word,
    },
};

/// Print the settings that make a client use the proxy and trust it
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct EnvArgs {
    /// The client or system, such as curl, python, node, java, chromium or debian. Without this argument, env lists all
    /// clients and systems
    #[arg(value_parser = ClientName(names()), hide_possible_values = true, ignore_case = true)]
    client: Option<String>,
    /// The proxy's configuration
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// The URL at which the client reaches the proxy. By default, the first address of proxy.listen or, if there is
    /// none, of proxy.tls.listen
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Where the client finds the certificate of robotgate's certificate authority. By default, the file of
    /// https.ca-certificate
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Also write the files that the client needs into this folder, and name these files in the settings. Use this for
    /// cron, services, containers and scripts. The files contain no secret
    #[arg(long, value_name = "DIR", requires = "client")]
    write: Option<PathBuf>,
}

/// Parses a client's name. clap's own error for an unknown name would list all names in one line.
#[derive(Clone)]
struct ClientName(PossibleValuesParser);

#[derive(Debug, thiserror::Error)]
enum EnvError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    #[error(
        "the certificate's path {0:?} cannot be written as a setting; with --ca FILE, give a path of printable UTF-8 \
         characters"
    )]
    Path(PathBuf),
    #[error("{0}")]
    NoCertificate(String),
    #[error("{0} {1}")]
    Certificate(String, String),
    #[error(transparent)]
    Write(#[from] WriteError),
}

// === impl ClientName ===

impl TypedValueParser for ClientName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        self.0.parse_ref(command, arg, value).map_err(|mut error| {
            error.remove(ContextKind::ValidValue);
            let tip = "'robotgate env' without a name lists all clients. For any other client, set its proxy to \
                       robotgate's address, and let it trust the certificate that 'robotgate ca export' prints";
            let tip = StyledStr::from(tip);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Prints the settings of a client, or the list of clients.
pub fn run(args: &EnvArgs) -> ExitCode {
    let client = args.client.as_deref().and_then(clients::find);
    let text = match client {
        None => list(),
        Some(client) => match settings(args, client) {
            Ok((text, notes)) => {
                // A shell that evaluates the output does not show the comments in it. So print the notes on stderr too.
                if !io::stdout().is_terminal() {
                    notes.iter().for_each(|note| eprintln!("robotgate: note: {note}"));
                }
                text
            }
            Err(error) => return fail(&error),
        },
    };
    print(text)
}

fn names() -> PossibleValuesParser {
    clients::all()
        .iter()
        .map(|client| {
            PossibleValue::new(&*client.name)
                .help(&*client.about)
                .aliases(client.aliases.iter().map(String::as_str))
        })
        .collect::<Vec<_>>()
        .into()
}

fn list() -> String {
    let mut out = String::from("To print a client's settings: robotgate env CLIENT\n");
    let width = clients::all().iter().map(|client| client.name.len()).max().unwrap_or(0);
    for group in [ClientKind::Client, ClientKind::Browser, ClientKind::System] {
        let _ = writeln!(out, "\n{}:", group.title());
        for client in clients::all().iter().filter(|client| client.group == group) {
            let _ = writeln!(out, "  {:width$}  {}", client.name, client.about);
        }
    }
    out.push_str(
        "\nIn a shell, eval \"$(robotgate env curl)\" applies the settings. For cron, services, containers and scripts,\n",
    );
    out.push_str("robotgate env --write DIR CLIENT also writes the files that the client needs.\n");
    out
}

/// Returns the settings as text, and notes about why the settings may not work.
fn settings(args: &EnvArgs, client: &ClientProgram) -> Result<(String, Vec<String>), EnvError> {
    let (config, sources) = load(args.config.as_deref(), &args.overrides)?;
    let mut notes = Vec::new();
    let mut hint = None;
    let proxy = match &args.proxy {
        Some(proxy) => proxy.clone(),
        None => listening(&config, &mut notes),
    };
    let intercepts = config.https.mode == HttpsMode::Intercept;
    let given = args.ca.is_some();
    let path = args.ca.as_ref().unwrap_or(&config.https.ca_certificate);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    if intercepts && args.write.is_none() {
        match unreadable(&path, given, &sources) {
            Some(note) => notes.push(note),
            None => drop(certificates(&path, given, &sources)?),
        }
        hint = only_for_some(&path, args, &sources);
    }
    let shown = path.to_str().filter(|path| !path.contains(char::is_control));
    let ca = Ca::At(shown.ok_or_else(|| EnvError::Path(path.clone()))?.to_owned());
    // Java, containers, browsers and operating systems ignore the variable `no_proxy` of this shell. So does Node.js
    // with the script that `--write` makes.
    let reads_no_proxy = client.group == ClientKind::Client && !["java", "docker"].contains(&&*client.name);
    if reads_no_proxy && !(client.name == "node" && args.write.is_some()) {
        notes.extend(no_proxy_note());
    }
    let mut settings = ClientSettings::new(&proxy, ca)?;
    let proxy = args.proxy.as_deref();
    // Comments in the settings repeat these options, and other programs may log them. So hide the secret in the URL.
    let shown = proxy.map(|proxy| match settings.has_secret() {
        true => "http://NAME:SECRET@HOST:PORT",
        false => proxy,
    });
    settings = settings.with_options(&options(args, &sources, shown));
    let mut options = options(args, &sources, proxy);
    if let Some(folder) = &args.write {
        let folder = write::folder(folder)?;
        let _ = write!(options, " --write {folder}");
        settings = settings.with_folder(&folder);
    }

    let text = if intercepts {
        client.settings(&settings)
    } else {
        client.proxy_settings(&settings)
    };
    if let Some(folder) = settings.folder() {
        let authority = match intercepts {
            true => certificates(&path, given, &sources)?,
            false => Vec::new(),
        };
        let files = clients::files(&text, &settings);
        notes.extend(write::write(folder, &files, &authority)?);
        if !files.is_empty() && !is_open_to_all(Path::new(folder)) {
            notes.push(format!("other users of this machine cannot read the files in {folder}"));
        }
    }

    let mut out = format!("# {}.", client.about);
    // If all lines are comments, the shell has nothing to evaluate. For example, the comments for Docker contain
    // commands to copy.
    if text.lines().any(|line| !line.is_empty() && !line.starts_with('#')) {
        let _ = write!(
            out,
            " To apply these settings in this shell: eval \"$(robotgate env{options} {})\"",
            client.name
        );
    }
    out.push('\n');
    for note in notes.iter().chain(&hint) {
        let _ = writeln!(out, "# NOTE: {}", note.replace('\n', "\n# "));
    }
    out.push_str(&text);
    if !intercepts {
        out.push_str("# https.mode is not \"intercept\", so there is no authority to trust.\n");
    }
    let asks = config.identity.credentials.is_some();
    if asks || settings.has_secret() {
        out.push_str(&client.credential(&settings));
    }
    if asks && !settings.has_secret() {
        if !config.identity.required {
            out.push_str("# (Only bots with a credential in the configuration need this.)\n");
        }
        let _ = writeln!(
            out,
            "# robotgate credential add{} NAME creates a secret.",
            sources.options()
        );
    }
    Ok((out, notes))
}

fn no_proxy_note() -> Option<String> {
    let mut set = ["no_proxy", "NO_PROXY"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    let hosts = set.find(|hosts| !hosts.is_empty())?;
    Some(format!(
        "no_proxy is set here, so most clients bypass the proxy for {hosts}. To prevent that: unset no_proxy NO_PROXY"
    ))
}

/// Returns the URL of the proxy according to its configuration. Adds a note if the host name in the URL is a guess.
fn listening(config: &Config, notes: &mut Vec<String>) -> String {
    let plain = config.proxy.listen.first().map(|address| ("http", *address));
    let tls = || Some(("https", *config.proxy.tls.as_ref()?.listen.first()?));
    let (scheme, address) = plain.or_else(tls).unwrap_or(("http", Proxy::DEFAULT_LISTEN));
    if !address.ip().is_unspecified() {
        return format!("{scheme}://{address}");
    }
    let name = crate::config::host_name();
    notes.push(format!(
        "the proxy listens on all addresses ({address}), so these settings use the machine's own name, {name}. If \
         clients know it by another name, run the command again with --proxy {scheme}://NAME:{}",
        address.port()
    ));
    format!("{scheme}://{name}:{}", address.port())
}

/// Returns `--config`, `--set`, `--ca`, and `--proxy` with the value `proxy`, for a suggested command.
fn options(args: &EnvArgs, sources: &Sources, proxy: Option<&str>) -> String {
    let mut options = sources.options();
    options.extend(proxy.map(|proxy| shell_option("proxy", proxy)));
    options.extend(args.ca.as_ref().map(|file| shell_option("ca", &file.to_string_lossy())));
    options
}

fn certificates(path: &Path, given: bool, sources: &Sources) -> Result<Vec<CertificateDer<'static>>, EnvError> {
    let pem = fs::read(path).map_err(|error| {
        let state = unreadable(path, given, sources).unwrap_or_else(|| format!("{}: {error}", path.display()));
        EnvError::NoCertificate(state)
    })?;
    pem::roots(&pem).map_err(|why| EnvError::Certificate(path.display().to_string(), why))
}

/// If this user cannot read the certificate, says why, and what to do about it. `given` says whether `--ca` names it.
fn unreadable(path: &Path, given: bool, sources: &Sources) -> Option<String> {
    let shown = path.display();
    let export = export(sources);
    let get = format!(
        "get the certificate from the proxy, and name the copy with --ca FILE. On the proxy's machine, as its user or \
         root, with its configuration (--config):\n  {export}\nOr on any machine:\n  \
         curl -x PROXY -o robotgate-ca.pem http://robotgate.internal/ca.pem"
    );
    match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && given => {
            Some(format!("{shown} does not exist; {get}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!(
            "{shown} does not exist. If you have not started robotgate yet, start it: it creates its certificate at the \
             first start. If it runs on another machine, as another user or with another --config, {get}"
        )),
        Err(error) => Some(format!(
            "cannot read {shown}: {error}. If you are not the proxy's user, {get}"
        )),
        Ok(_) => None,
    }
}

/// If this user can read the certificate but others cannot, says how to make a copy for the others.
fn only_for_some(path: &Path, args: &EnvArgs, sources: &Sources) -> Option<String> {
    if is_open_to_all(path) || fs::File::open(path).is_err() {
        return None;
    }
    // With `--ca`, the user may have named another certificate than `robotgate ca export` prints.
    let copy = match args.ca {
        Some(_) => format!(
            "cp {} robotgate-ca.pem",
            shell_word(&plain(&path.to_string_lossy(), usize::MAX))
        ),
        None => export(sources),
    };
    Some(format!(
        "You can use these settings as they are. For bots of other users, who cannot read {}, make a copy ({copy}), \
         and run robotgate env with --ca robotgate-ca.pem",
        path.display()
    ))
}

fn export(sources: &Sources) -> String {
    format!("robotgate ca export{} > robotgate-ca.pem", sources.options())
}

fn is_open_to_all(path: &Path) -> bool {
    let has = |path: &Path, mode| fs::metadata(path).is_ok_and(|data| data.permissions().mode() & mode == mode);
    has(path, 0o004) && path.ancestors().skip(1).all(|folder| has(folder, 0o001))
}

const AFTER_HELP: &str = "\
Try it:
  robotgate env                         # lists every client
  robotgate env python                  # shows what to set
  eval \"$(robotgate env curl)\"          # sets it in this shell
  robotgate env --write /srv/bot php    # writes files too, for cron and containers
  robotgate env node --proxy http://gate.example:3128 --ca /etc/robotgate-ca.pem

The certificate is also at http://robotgate.internal/ca.pem, through the proxy.";
