//! The engine: stated cases, and properties that hold for any bytes.

mod cases;
mod engine;
mod explain;
mod invariants;
mod model;
mod properties;
mod rfc9309;
mod usage;
mod usage_model;
