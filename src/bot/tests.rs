mod basic;
mod certificate;
mod credentials;
mod identify;

use super::*;

fn line(name: &str, secret: &str) -> String {
    SecretHash::new([7; SALT], secret.as_bytes()).line(name)
}

fn basic(credential: &str) -> String {
    format!("Basic {}", data_encoding::BASE64.encode(credential.as_bytes()))
}
