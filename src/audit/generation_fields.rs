//! The fields of a decision's record that describe robotgate itself: its run, its version and its configuration.

use super::value::Value;
use crate::copy::Sha256;

/// Identifies one run of robotgate, by eight random hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub struct Instance([u8; 8]);

/// The fields `config`, `instance`, `version` and `config_sha256` of a decision. They are formatted only once for each
/// loaded configuration, because all its decisions have the same values.
#[derive(Debug)]
pub struct GenerationFields(Box<[u8]>);

// === impl Instance ===

impl Instance {
    pub fn random() -> Self {
        // Take the last 32 bits of a UUIDv7, because these are random (RFC 9562 §5.7).
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
    /// Formats the fields. `number` is the configuration's number: 1 at the start, and one more with each reload.
    /// `config_sha256` is the SHA-256 of the configuration's text in canonical form ([`crate::config::Canonical`]).
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
    /// Writes the value of the field `config`, whose name the caller has written. Then writes the names and values of
    /// the other fields.
    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_differ() {
        let [one, other] = [Instance::random(), Instance::random()];
        assert_ne!(one.as_str(), other.as_str());
        assert!(one.as_str().len() == 8 && one.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
