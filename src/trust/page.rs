//! The page on how to trust robotgate, and the certificate for download, as `robotgate.internal` and the admin listener
//! serve them. Does no I/O.

use std::fmt::Write as _;

use super::{
    Certificate,
    clients::{self, ClientKind, ClientProgram},
    settings::ClientSettings,
};
use crate::text::Second;

/// A document that is served at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// The form in which a person reads a document: `Text` in a terminal, `Html` in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Html,
}

/// Why there is no document at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error(
        "there is no such page; see / (how to make clients trust this proxy) and /problems (what refusals and errors \
         mean)"
    )]
    Page,
    #[error(
        "this proxy does not intercept TLS (https.mode is not \"intercept\"), so there is no certificate to \
        trust"
    )]
    Authority,
}

/// Returns the document at `path`, ignoring its query. `settings` contain the address at which the reader reaches the
/// proxy.
///
/// # Errors
/// Fails if there is no document at the path, which means a 404.
pub fn page(
    path: &str,
    form: Form,
    certificate: Option<&Certificate>,
    settings: &ClientSettings,
) -> Result<Document, Missing> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let held = |content_type, body: fn(&Certificate) -> Vec<u8>| {
        let certificate = certificate.ok_or(Missing::Authority)?;
        Ok(Document {
            content_type,
            body: body(certificate),
        })
    };
    match path {
        "/" | "/trust" => Ok(match form {
            Form::Text => Document {
                content_type: "text/plain; charset=utf-8",
                body: text(certificate, settings).into_bytes(),
            },
            Form::Html => Document {
                content_type: "text/html; charset=utf-8",
                body: html(certificate, settings).into_bytes(),
            },
        }),
        "/ca.pem" => held("application/x-pem-file", |certificate| {
            certificate.pem.clone().into_bytes()
        }),
        "/ca.crt" => held("application/x-x509-ca-cert", |certificate| certificate.der.clone()),
        _ => Err(Missing::Page),
    }
}

fn text(certificate: Option<&Certificate>, settings: &ClientSettings) -> String {
    let mut out = String::from("This proxy is robotgate: it keeps bots to the robots.txt of each site.\n\n");
    let _ = match certificate {
        Some(certificate) => write!(
            out,
            "{INTERCEPTS}\n\nIts certificate:\n{}\nGet it:\n  {}\n\n{COMPARE}\n",
            facts(certificate, "  "),
            settings.fill(FETCH)
        ),
        None => writeln!(out, "{NOTHING_TO_TRUST}"),
    };
    out.push_str("\nSet up the client or system that you use:\n");
    for client in clients::all() {
        let _ = write!(out, "\n=== {}: {}\n\n", client.name, client.about);
        out.push_str(&settings_of(client, certificate, settings));
    }
    out
}

fn html(certificate: Option<&Certificate>, settings: &ClientSettings) -> String {
    let mut out = String::from(HTML_HEAD);
    let _ = match certificate {
        Some(certificate) => write!(
            out,
            "<p>{}</p><pre class=\"facts\">{}</pre><p><a href=\"/ca.pem\">ca.pem</a> (PEM), <a href=\"/ca.crt\">ca.crt</a> (DER), \
             or in a shell:</p><pre>{}</pre><p>{}</p>",
            with_code(INTERCEPTS),
            escaped(&facts(certificate, "")),
            escaped(&settings.fill(FETCH)),
            with_code(COMPARE),
        ),
        None => write!(out, "<p>{}</p>", with_code(NOTHING_TO_TRUST)),
    };
    for group in [ClientKind::Client, ClientKind::Browser, ClientKind::System] {
        let _ = write!(out, "<h2>{}</h2>", group.title());
        for client in clients::all().iter().filter(|client| client.group == group) {
            let _ = write!(
                out,
                "<details><summary><b>{}</b> {}</summary><pre>{}</pre></details>",
                escaped(&client.name),
                with_code(&client.about),
                escaped(&settings_of(client, certificate, settings)),
            );
        }
    }
    out.push_str("</main></html>\n");
    out
}

fn settings_of(client: &ClientProgram, certificate: Option<&Certificate>, settings: &ClientSettings) -> String {
    match certificate {
        Some(_) => client.settings(settings),
        None => client.proxy_settings(settings),
    }
}

pub(crate) fn facts(certificate: &Certificate, indent: &str) -> String {
    format!(
        "{indent}Subject:     {}\n{indent}Fingerprint: {} (SHA-256)\n{indent}Valid from:  {}\n{indent}Valid until: {}\n",
        certificate.subject,
        certificate.fingerprint,
        Second(certificate.not_before),
        Second(certificate.not_after),
    )
}

/// Escapes `text` for HTML, between tags or in an attribute in double quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Escapes `text` for HTML, and formats text between backticks as code.
pub(crate) fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.map(part).collect()
}

/// The file name under which the page tells readers to save the certificate.
pub const CA_NAME: &str = "robotgate-ca.pem";
const FETCH: &str = "curl -sSf -x {proxy} -o {ca} http://robotgate.internal/ca.pem";
const INTERCEPTS: &str = "To check each https:// URL, it decrypts the TLS of its clients. It shows them \
    certificates of its own authority, which they have to trust.";
const COMPARE: &str = "This page and the certificate come over plain HTTP. Before you trust the certificate, \
    compare its fingerprint (openssl x509 -in robotgate-ca.pem -noout -fingerprint -sha256) with the one that \
    `robotgate ca show --config FILE` prints on the proxy's machine, with the proxy's configuration file.";
const NOTHING_TO_TRUST: &str = "This proxy does not intercept TLS (https.mode is not \"intercept\"), so there is no \
    certificate to trust.";
const HTML_HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Make clients trust \
    robotgate</title><meta name=\"viewport\" content=\"width=device-width\"><style>:root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:50rem;margin:auto;padding:1rem}\
    pre{overflow-x:auto;padding:.6rem;border:1px solid #8888;border-radius:4px;font-size:13px}\
    .facts{white-space:pre-wrap;overflow-wrap:anywhere}summary{cursor:pointer;padding:.2rem 0}</style><main><h1>Make clients trust robotgate</h1>\
    <p>This proxy keeps bots to the robots.txt of each site.</p>";

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::trust::Ca;

    fn certificate() -> Certificate {
        Certificate {
            subject: "CN=robotgate <here>".to_owned(),
            fingerprint: "AB:CD".to_owned(),
            not_before: SystemTime::UNIX_EPOCH,
            not_after: SystemTime::UNIX_EPOCH,
            pem: "-----BEGIN CERTIFICATE-----\n".to_owned(),
            der: vec![0x30, 0x82],
        }
    }

    fn at(path: &str, form: Form, certificate: Option<&Certificate>) -> Result<(&'static str, String), Missing> {
        let settings = ClientSettings::new("http://gate.example:3128", Ca::InHome(CA_NAME));
        let settings = settings.unwrap_or_else(|error| panic!("{error}"));
        let document = page(path, form, certificate, &settings)?;
        Ok((
            document.content_type,
            String::from_utf8_lossy(&document.body).into_owned(),
        ))
    }

    #[test]
    fn the_certificate_is_served_as_pem_and_as_der() {
        let ca = certificate();
        let pem = at("/ca.pem?x", Form::Html, Some(&ca));
        assert_eq!(pem, Ok(("application/x-pem-file", ca.pem.clone())));
        let der = at("/ca.crt", Form::Text, Some(&ca)).map(|(content_type, _)| content_type);
        assert_eq!(der, Ok("application/x-x509-ca-cert"));
    }

    #[test]
    fn the_page_lists_every_client_as_text_and_as_html() {
        for form in [Form::Text, Form::Html] {
            let (_, body) = at("/", form, Some(&certificate())).unwrap_or_else(|missing| panic!("{missing}"));
            assert!(body.contains("AB:CD"), "{body}");
            for client in clients::all() {
                assert!(body.contains(&client.name), "{}", client.name);
            }
            assert!(body.contains("http://gate.example:3128"), "{body}");
            assert!(!body.contains("{proxy") && !body.contains("{ca"), "{body}");
            assert_eq!(body.contains("CN=robotgate <here>"), form == Form::Text);
            let shown = match form {
                Form::Text => "`robotgate ca show --config FILE`",
                Form::Html => "<code>robotgate ca show --config FILE</code>",
            };
            assert!(body.contains(shown), "{body}");
        }
    }

    #[test]
    fn without_an_authority_the_page_offers_no_certificate() {
        assert_eq!(at("/ca.pem", Form::Text, None), Err(Missing::Authority));
        let (_, body) = at("/", Form::Text, None).unwrap_or_else(|missing| panic!("{missing}"));
        assert!(
            body.contains("no certificate to trust") && !body.contains("SSL_CERT_FILE"),
            "{body}"
        );
        assert_eq!(at("/problems", Form::Text, None), Err(Missing::Page));
        assert_eq!(at("/CA.pem", Form::Text, Some(&certificate())), Err(Missing::Page));
    }
}
