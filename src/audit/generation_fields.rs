//! The fields of a `decision` record that describe robotgate itself: its run, its version and its configuration.

use super::value::Value;
use crate::copy::Sha256;

/// Identifies one run of robotgate, by eight random hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub struct Instance([u8; 8]);

/// The fields `config`, `instance`, `version` and `config_sha256` of a decision, formatted once for each loaded
/// configuration.
#[derive(Debug)]
pub struct GenerationFields(Box<[u8]>);

// === impl Instance ===

impl Instance {
    pub fn random() -> Self {
        // The last 32 bits of a UUIDv7 are random (RFC 9562 §5.7).
        let random = uuid::Uuid::now_v7().as_u128() as u32;
        let mut text = [0; 8];
        data_encoding::HEXLOWER.encode_mut(&random.to_be_bytes(), &mut text);
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        // The bytes are hexadecimal digits, so this cannot fail.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

// === impl GenerationFields ===

impl GenerationFields {
    /// Formats the fields. `number` is 1 at the start, and one more after each successful reload. `config_sha256` is
    /// the digest of the canonical configuration ([`crate::config::Canonical`]).
    pub fn new(number: u64, instance: &Instance, config_sha256: Sha256) -> Self {
        let mut fields = Vec::new();
        number.write(&mut fields);
        for (name, value) in [
            ("instance", instance.as_str()),
            ("version", crate::VERSION),
            ("config_sha256", &config_sha256.to_string()),
        ] {
            fields.extend_from_slice(format!(",\"{name}\":").as_bytes());
            value.write(&mut fields);
        }
        Self(fields.into())
    }
}

impl Value for GenerationFields {
    /// Writes the value of `config`, then the names and values of the other fields.
    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instance_has_a_random_id() {
        let [one, other] = [Instance::random(), Instance::random()];
        assert_ne!(one.as_str(), other.as_str());
        assert!(one.as_str().len() == 8 && one.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
