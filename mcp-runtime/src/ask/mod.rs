//! What functions ask their clients for, and what they remember between the rounds of a call: methods of
//! [`Context`](crate::Context). The engine behind them is in `context::ask`.

mod once;
