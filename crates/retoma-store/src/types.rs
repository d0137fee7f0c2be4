//! What the verbs take and answer. Plain data; no SQL type leaks out.

mod dead;
mod events;
mod flows;
mod gate;
mod operate;
mod ownership;
mod reading;
mod receipts;
mod tasks;

pub use dead::*;
pub use events::*;
pub use flows::*;
pub use gate::*;
pub use operate::*;
pub use ownership::*;
pub use reading::*;
pub use receipts::*;
pub use tasks::*;
