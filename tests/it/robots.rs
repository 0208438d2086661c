//! The robots.txt engine: the stated cases, and properties that all inputs have.

mod cases;
mod engine;
mod explain;
mod invariants;
mod model;
mod properties;
mod rfc9309;
mod usage;
mod usage_model;
