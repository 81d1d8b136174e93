//! What one side has sent and nobody has taken yet.

use std::collections::VecDeque;

use relay_core::dialect::responses_socket::is_create;

use super::leg::Said;

/// Messages in their order, up to a limit.
pub(super) struct Queue {
    /// With whether it asks for an answer: to see that may take reading a whole one.
    messages: VecDeque<(Said, bool)>,
    bytes: usize,
    limit: usize,
}

impl Queue {
    /// With so many bytes nothing more is taken in.
    pub(super) const fn new(limit: usize) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, limit }
    }

    pub(super) fn push(&mut self, message: Said) {
        let asks = matches!(&message, Said::Text(text, _) if is_create(text));
        self.bytes += message.len() + Said::OVERHEAD;
        self.messages.push_back((message.compact(), asks));
    }

    pub(super) fn pop(&mut self) -> Option<Said> {
        let (message, _) = self.messages.pop_front()?;
        self.bytes -= message.len() + Said::OVERHEAD;
        Some(message)
    }

    /// The first, unless it asks for an answer.
    pub(super) fn pop_beside(&mut self) -> Option<Said> {
        let (_, asks) = self.messages.front()?;
        if *asks { None } else { self.pop() }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= self.limit
    }
}
