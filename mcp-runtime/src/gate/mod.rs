//! What a program has around its calls only if it asks for it: an option names the code that does it, so that a program
//! without the option does not contain it.

pub mod audit;
pub(crate) mod kept_results;
pub mod layer;
pub(crate) mod result_limit;
pub(crate) mod telemetry;
