//! Exchanges between clients and origins of which either may do anything.

pub mod ledger;
pub mod strict;
