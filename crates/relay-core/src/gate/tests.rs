//! What a lane as a whole does.
