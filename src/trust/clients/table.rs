//! The texts: for each client the lines that lead it through the proxy, those that have it trust the authority, and how
//! it says who it is. What stands in braces is filled in by [`Settings`](crate::trust::Settings).
//!
//! Every line is a setting or a comment, and no comment is longer than a terminal is wide. What is only for a person to copy into
//! a program or another shell is a comment.

use super::{Client, Group};

/// What most clients read: curl the lower-case names alone, others either.
macro_rules! proxy_variables {
    () => {
        "export http_proxy={proxy} https_proxy={proxy} HTTP_PROXY={proxy} HTTPS_PROXY={proxy}\n\
         # Hosts in no_proxy go around the proxy: leave it empty for bots.\n"
    };
}

/// OpenSSL's variable, and what it costs.
macro_rules! ssl_cert_file {
    () => {
        "export SSL_CERT_FILE={ca}\n\
         # It replaces the system's roots. Hosts in [[https.tunnel]] show their own certificates: for those, join both:\n\
         #   cat /etc/ssl/certs/ca-certificates.crt {ca} > both.pem\n"
    };
}

/// The certificates of a user's browsers on Linux.
macro_rules! nss {
    () => {
        "# certutil comes with libnss3-tools (Debian) or nss-tools (Fedora).\n\
         mkdir -p \"$HOME/.pki/nssdb\"\n\
         [ -e \"$HOME/.pki/nssdb/cert9.db\" ] || certutil -N -d sql:\"$HOME/.pki/nssdb\" --empty-password\n\
         certutil -A -d sql:\"$HOME/.pki/nssdb\" -t C,, -n robotgate -i {ca}\n"
    };
}

const IN_URL: &str = "# The proxy asks who you are: write http://NAME:SECRET@{host}:{port} where its address stands.\n";

const BY_HAND: &str = "# The proxy asks who you are. Browsers take no secret with the address and show a dialogue instead; what runs\n\
                       # without a person is better known by its network or certificate (networks = .. of its [[bot]]).\n";

pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "curl",
        aliases: &["libcurl"],
        about: "curl, and programs that run it",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "export CURL_CA_BUNDLE={ca}\n\
                # The same for one call: curl -x {proxy} --cacert {ca} -A ExampleBot/1.0 URL\n\
                # It replaces the system's roots; --proxy-cacert is something else, and not needed. libcurl in programs does\n\
                # not read the variable: set CURLOPT_CAINFO there.\n",
        credential: IN_URL,
    },
    Client {
        name: "wget",
        aliases: &["wget2"],
        about: "GNU Wget",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "# wget has no variable for this. In this shell:\n\
                wget() { command wget --ca-certificate={ca} \"$@\"; }\n\
                # For scripts, one line in ~/.wgetrc: ca_certificate = FILE\n",
        credential: IN_URL,
    },
    Client {
        name: "python",
        aliases: &["requests", "httpx", "aiohttp", "urllib", "urllib3"],
        about: "Python: requests, httpx, aiohttp, urllib",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "# aiohttp reads them only where it is told to: aiohttp.ClientSession(trust_env=True)\n"
        ),
        trust: concat!(
            "# requests:\n\
             export REQUESTS_CA_BUNDLE={ca}\n\
             # httpx, aiohttp, urllib, websockets, and all else that takes Python's own ssl:\n",
            ssl_cert_file!(),
            "# urllib3 used by itself reads neither: urllib3.ProxyManager({proxy-text}, ca_certs={ca-text})\n\
             # A program that passes verify= or an SSLContext of its own has to be given the file there.\n"
        ),
        credential: IN_URL,
    },
    Client {
        name: "pip",
        aliases: &["uv"],
        about: "pip, and uv",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "export PIP_CERT={ca}\n\
                # uv:\n\
                export SSL_CERT_FILE={ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "scrapy",
        aliases: &[],
        about: "Scrapy",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "# HttpProxyMiddleware, which is on by default, reads them when the crawl starts.\n"
        ),
        trust: concat!(
            "# By default Scrapy checks no certificate, so it needs no trust. With a DOWNLOADER_CLIENTCONTEXTFACTORY that\n\
             # checks (scrapy.core.downloader.contextfactory.BrowserLikeContextFactory) it does:\n",
            ssl_cert_file!()
        ),
        credential: IN_URL,
    },
    Client {
        name: "node",
        aliases: &["nodejs", "undici", "axios"],
        about: "Node.js: fetch, http, undici",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "# Node reads them from 24 on, and 22.21, where this is set:\n\
             export NODE_USE_ENV_PROXY=1\n\
             # An older Node's fetch goes through the proxy by undici (npm install undici), in the program:\n\
             #   const { EnvHttpProxyAgent, setGlobalDispatcher } = require(\"undici\");\n\
             #   setGlobalDispatcher(new EnvHttpProxyAgent());\n"
        ),
        trust: "# Adds to the roots that Node has. It is read when Node starts; a program cannot set it for itself.\n\
                export NODE_EXTRA_CA_CERTS={ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "npm",
        aliases: &["yarn", "pnpm"],
        about: "npm, and other package managers on Node.js",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "export npm_config_proxy={proxy} npm_config_https_proxy={proxy}\n"
        ),
        trust: "export npm_config_cafile={ca} NODE_EXTRA_CA_CERTS={ca}\n\
                # The first is for npm and pnpm, and replaces their roots; the second for scripts that they run.\n\
                # yarn from 2 on: yarn config set --home httpsCaFilePath {ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "deno",
        aliases: &[],
        about: "Deno",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "# Adds to the roots that Deno has.\n\
                export DENO_CERT={ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "bun",
        aliases: &[],
        about: "Bun",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "export NODE_EXTRA_CA_CERTS={ca}\n\
                # Bun before 1.2 does not read it; there: fetch(url, { tls: { ca: Bun.file({ca-text}) } })\n",
        credential: IN_URL,
    },
    Client {
        name: "java",
        aliases: &["jvm", "kotlin", "scala", "okhttp"],
        about: "Java, and everything on its virtual machine",
        group: Group::Client,
        proxy: "export JAVA_TOOL_OPTIONS=\"-Dhttp.proxyHost={host} -Dhttp.proxyPort={port} -Dhttps.proxyHost={host} \
                -Dhttps.proxyPort={port}\"\n\
                # java.net.http.HttpClient and Apache HttpClient read them only where they are told to:\n\
                #   HttpClient.newBuilder().proxy(ProxySelector.getDefault())  HttpClients.createSystem()\n\
                # Java goes around the proxy to localhost and 127.*, unless -Dhttp.nonProxyHosts= is set to nothing.\n",
        trust: "# A store of its own with the certificate; it replaces Java's roots.\n\
                keytool -importcert -noprompt -alias robotgate -file {ca} \\\n  \
                -keystore \"$HOME/.robotgate-truststore.p12\" -storetype PKCS12 -storepass changeit 2>/dev/null ||\n  \
                { keytool -delete -alias robotgate -keystore \"$HOME/.robotgate-truststore.p12\" -storepass changeit &&\n    \
                keytool -importcert -noprompt -alias robotgate -file {ca} \\\n      \
                -keystore \"$HOME/.robotgate-truststore.p12\" -storepass changeit; } >/dev/null\n\
                export JAVA_TOOL_OPTIONS=\"$JAVA_TOOL_OPTIONS -Djavax.net.ssl.trustStore='$HOME/.robotgate-truststore.p12'\"\n\
                export JAVA_TOOL_OPTIONS=\"$JAVA_TOOL_OPTIONS -Djavax.net.ssl.trustStorePassword=changeit\"\n\
                # For all of a machine's Java, as root: keytool -importcert -cacerts -storepass changeit -noprompt \\\n\
                #   -alias robotgate -file {ca}\n",
        credential: "# The proxy asks who you are. Java takes no secret from a property: set a java.net.Authenticator in the\n\
                     # program, and -Djdk.http.auth.tunneling.disabledSchemes= (nothing), since it sends no Basic to a CONNECT.\n",
    },
    Client {
        name: "go",
        aliases: &["golang", "colly"],
        about: "Go: net/http and what is built on it",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "# An http.Transport of your own needs Proxy: http.ProxyFromEnvironment. Go never asks a proxy for localhost.\n"
        ),
        trust: concat!(
            ssl_cert_file!(),
            "# On macOS and Windows Go does not read it: robotgate env macos, robotgate env windows\n"
        ),
        credential: IN_URL,
    },
    Client {
        name: "git",
        aliases: &[],
        about: "git over https://",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "export GIT_SSL_CAINFO={ca}\n\
                # To keep it: git config --global http.proxy {proxy}; git config --global http.sslCAInfo {ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "ruby",
        aliases: &["faraday"],
        about: "Ruby: Net::HTTP and what is built on it",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: ssl_cert_file!(),
        credential: IN_URL,
    },
    Client {
        name: "php",
        aliases: &["guzzle", "composer"],
        about: "PHP: curl, Guzzle, streams",
        group: Group::Client,
        proxy: concat!(
            proxy_variables!(),
            "# curl and Guzzle read them. Streams do not:\n\
             #   stream_context_create(['http' => ['proxy' => 'tcp://{host}:{port}', 'request_fulluri' => true]])\n"
        ),
        trust: "# On the command line, in this shell:\n\
                php() { command php -d curl.cainfo={ca} -d openssl.cafile={ca} \"$@\"; }\n\
                # For a server, the same two in php.ini.\n\
                # composer:\n\
                export SSL_CERT_FILE={ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "dotnet",
        aliases: &["csharp", ".net"],
        about: ".NET: HttpClient",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: concat!(
            ssl_cert_file!(),
            "# On macOS and Windows .NET does not read it: robotgate env macos, robotgate env windows\n"
        ),
        credential: IN_URL,
    },
    Client {
        name: "rust",
        aliases: &["reqwest", "cargo"],
        about: "Rust: reqwest, and cargo itself",
        group: Group::Client,
        proxy: proxy_variables!(),
        trust: "# reqwest with native-tls, rustls-tls-native-roots or, from 0.13 on, its defaults (on Linux):\n\
                export SSL_CERT_FILE={ca}\n\
                # With roots built in (webpki-roots) nothing outside the program counts:\n\
                #   ClientBuilder::add_root_certificate(Certificate::from_pem(&std::fs::read({ca-text})?)?)\n\
                # cargo:\n\
                export CARGO_HTTP_CAINFO={ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "docker",
        aliases: &["podman", "container", "kubernetes"],
        about: "what runs in a container",
        group: Group::Client,
        proxy: "# The variables go into the container. 127.0.0.1 is the container itself there: let robotgate listen on an\n\
                # address that it can reach (proxy.listen), and name that.\n\
                #   docker run -e http_proxy={proxy} -e https_proxy={proxy} \\\n\
                #     -e HTTP_PROXY={proxy} -e HTTPS_PROXY={proxy} IMAGE\n",
        trust: "# And the certificate, with the variables of what runs inside:\n\
                #   docker run -v {ca}:/robotgate-ca.pem:ro -e SSL_CERT_FILE=/robotgate-ca.pem \\\n\
                #     -e REQUESTS_CA_BUNDLE=/robotgate-ca.pem -e NODE_EXTRA_CA_CERTS=/robotgate-ca.pem IMAGE\n\
                # In an image of Debian's, for everything in it:\n\
                #   COPY robotgate-ca.pem /usr/local/share/ca-certificates/robotgate.crt\n\
                #   RUN update-ca-certificates\n",
        credential: IN_URL,
    },
    Client {
        name: "chromium",
        aliases: &["chrome", "google-chrome", "edge", "brave"],
        about: "Chromium, Chrome and their kin on Linux",
        group: Group::Browser,
        proxy: "# In this shell; elsewhere, pass --proxy-server by hand. Chromium goes around a proxy to localhost, unless\n\
                # --proxy-bypass-list='<-loopback>' is given too.\n\
                chromium() { command chromium --proxy-server={server} \"$@\"; }\n\
                google_chrome() { command google-chrome --proxy-server={server} \"$@\"; }\n",
        trust: concat!(
            nss!(),
            "# On macOS and Windows it takes the system's: robotgate env macos, robotgate env windows\n"
        ),
        credential: BY_HAND,
    },
    Client {
        name: "firefox",
        aliases: &[],
        about: "Firefox",
        group: Group::Browser,
        proxy: "# Settings, Network Settings, Manual proxy configuration: HTTP Proxy {host}, Port {port}, also for HTTPS.\n\
                # Or for all profiles, in /etc/firefox/policies/policies.json (one \"policies\", with what is there already):\n\
                #   {\"policies\": {\"Proxy\": {\"Mode\": \"manual\", \"HTTPProxy\": \"{host}:{port}\",\n\
                #     \"UseHTTPProxyForAllProtocols\": true}}}\n",
        trust: "# Settings, Certificates, View Certificates, Authorities, Import: {ca}\n\
                # Or by the same file:\n\
                #   {\"policies\": {\"Certificates\": {\"Install\": [{ca-text}]}}}\n",
        credential: BY_HAND,
    },
    Client {
        name: "playwright",
        aliases: &[],
        about: "Playwright",
        group: Group::Browser,
        proxy: "# In the program, JavaScript:\n\
                #   chromium.launch({ proxy: { server: {server-text} } })\n\
                # and Python:\n\
                #   playwright.chromium.launch(proxy={\"server\": {server-text}})\n",
        trust: concat!(
            "# Its Chromium reads this store:\n",
            nss!(),
            "# Its Firefox and WebKit do not: newContext({ ignoreHTTPSErrors: true }). That checks nothing between the\n\
             # browser and the proxy; the proxy checks each site all the same.\n"
        ),
        credential: "# The proxy asks who you are: proxy: { server: {server-text}, username: \"NAME\", password: \"SECRET\" }\n",
    },
    Client {
        name: "puppeteer",
        aliases: &[],
        about: "Puppeteer",
        group: Group::Browser,
        proxy: "# In the program:\n\
                #   puppeteer.launch({ args: [\"--proxy-server=\" + {server-text}] })\n",
        trust: concat!("# Its Chromium reads this store:\n", nss!()),
        credential: "# The proxy asks who you are: await page.authenticate({ username: \"NAME\", password: \"SECRET\" })\n",
    },
    Client {
        name: "selenium",
        aliases: &["chromedriver", "geckodriver"],
        about: "Selenium",
        group: Group::Browser,
        proxy: "# In the program, with Chromium; Python:\n\
                #   options = webdriver.ChromeOptions()\n\
                #   options.add_argument(\"--proxy-server=\" + {server-text})\n",
        trust: concat!(
            "# Its Chromium reads this store:\n",
            nss!(),
            "# With Firefox: options.set_capability(\"acceptInsecureCerts\", True), or robotgate env firefox\n"
        ),
        credential: BY_HAND,
    },
    Client {
        name: "debian",
        aliases: &["ubuntu", "mint"],
        about: "Debian, Ubuntu: the system's certificates",
        group: Group::System,
        proxy: proxy_variables!(),
        trust: "sudo install -m 644 {ca} /usr/local/share/ca-certificates/robotgate.crt && sudo update-ca-certificates\n\
                # Python's requests, Node and browsers have roots of their own: robotgate env python, node, chromium\n\
                # To undo it: sudo rm /usr/local/share/ca-certificates/robotgate.crt; sudo update-ca-certificates --fresh\n",
        credential: IN_URL,
    },
    Client {
        name: "fedora",
        aliases: &["rhel", "centos", "rocky", "alma", "amazon-linux"],
        about: "Fedora, RHEL and their kin: the system's certificates",
        group: Group::System,
        proxy: proxy_variables!(),
        trust: "sudo install -m 644 {ca} /etc/pki/ca-trust/source/anchors/robotgate.pem && sudo update-ca-trust\n\
                # Python's requests, Node and browsers have roots of their own: robotgate env python, node, chromium\n\
                # To undo it: sudo rm /etc/pki/ca-trust/source/anchors/robotgate.pem; sudo update-ca-trust\n",
        credential: IN_URL,
    },
    Client {
        name: "alpine",
        aliases: &[],
        about: "Alpine: the system's certificates (as root)",
        group: Group::System,
        proxy: proxy_variables!(),
        trust: "apk add --no-cache ca-certificates\n\
                mkdir -p /usr/local/share/ca-certificates\n\
                cp {ca} /usr/local/share/ca-certificates/robotgate.crt && update-ca-certificates\n\
                # Where apk itself has to go through the proxy first: cat {ca} >> /etc/ssl/certs/ca-certificates.crt\n",
        credential: IN_URL,
    },
    Client {
        name: "macos",
        aliases: &["mac", "osx", "safari"],
        about: "macOS: the system's certificates and proxy",
        group: Group::System,
        proxy: concat!(
            "# For programs with windows, on the network service that is in use (networksetup -listallnetworkservices):\n\
             #   networksetup -setwebproxy Wi-Fi {host} {port}\n\
             #   networksetup -setsecurewebproxy Wi-Fi {host} {port}\n\
             # For those in this shell:\n",
            proxy_variables!()
        ),
        trust: "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain {ca}\n",
        credential: IN_URL,
    },
    Client {
        name: "windows",
        aliases: &["powershell"],
        about: "Windows: the system's certificates and proxy",
        group: Group::System,
        proxy: "# In PowerShell; take the \"# \" away:\n\
                # $env:HTTP_PROXY = {proxy-text}; $env:HTTPS_PROXY = {proxy-text}\n\
                # For programs with windows: Settings, Network & internet, Proxy, Manual: {host}, port {port}\n",
        trust: "# As administrator:\n\
                # Import-Certificate -FilePath robotgate-ca.pem -CertStoreLocation Cert:\\LocalMachine\\Root\n\
                # Where the file is on this machine: {ca}\n",
        credential: IN_URL,
    },
];
