//! Real clients, beside the same run without the relay.
