//! The capacity gate of one lane.
pub mod learned;
pub mod terms;
pub mod view;
pub use learned::Learned;
pub use terms::{Preset, Terms};
pub use view::{Place, Shut, View};
