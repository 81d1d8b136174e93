//! The pure parts together: keys and news in, pictures out.

mod keys;
mod pictures;
pub(super) mod scene;
