//! What is chosen in a list that changes: it stays chosen wherever it goes. Until somebody moves, that is whatever stands
//! first.

/// The choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor<K> {
    chosen: Option<K>,
    /// Where it stood last: what stands there is chosen once it is gone.
    at: usize,
}

/// Where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// So many lines up.
    Up(usize),
    /// So many lines down.
    Down(usize),
    /// The first, whichever that is.
    First,
    /// The last.
    Last,
}

impl<K: Clone + PartialEq> Cursor<K> {
    /// Where the choice stands among these; `None`: there are none.
    pub(super) fn index(&self, among: &[K]) -> Option<usize> {
        let last = among.len().checked_sub(1)?;
        let Some(chosen) = &self.chosen else { return Some(0) };
        Some(among.iter().position(|key| key == chosen).unwrap_or(self.at.min(last)))
    }

    /// Moves it.
    pub(super) fn go(&mut self, step: Step, among: &[K]) {
        let Some(index) = self.index(among) else { return };
        let last = among.len() - 1;
        let at = match step {
            Step::Up(lines) => index.saturating_sub(lines),
            Step::Down(lines) => index.saturating_add(lines).min(last),
            Step::First => 0,
            Step::Last => last,
        };
        let chosen = if step == Step::First { None } else { among.get(at).cloned() };
        *self = Self { chosen, at };
    }

    /// The list has changed to these.
    pub(super) fn settle(&mut self, among: &[K]) {
        if self.chosen.is_some() {
            let at = self.index(among);
            *self = Self { chosen: at.and_then(|at| among.get(at).cloned()), at: at.unwrap_or(0) };
        }
    }
}

/// The first line in view where `at` has to be, of so many in all: it stands in the middle where it can.
pub(super) fn first_in_view(at: usize, all: usize, room: usize) -> usize {
    at.saturating_sub(room / 2).min(all.saturating_sub(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_stays_chosen() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.index(&[] as &[u8]), None);
        cursor.go(Step::Down(1), &[]);
        assert_eq!(cursor.index(&[9, 8, 7]), Some(0));
        cursor.settle(&[10, 9]);
        assert_eq!(cursor.index(&[10, 9]), Some(0), "nobody has moved: whatever is first");
        cursor.go(Step::Down(1), &[9, 8, 7]);
        cursor.settle(&[10, 9, 8, 7]);
        assert_eq!(cursor.index(&[10, 9, 8, 7]), Some(2));
        cursor.settle(&[10, 9, 7, 6]);
        assert_eq!(cursor.index(&[10, 9, 7, 6]), Some(2), "its neighbour takes its place");
        cursor.go(Step::Last, &[10, 9, 7, 6]);
        cursor.settle(&[10]);
        assert_eq!(cursor.index(&[10]), Some(0));
        cursor.settle(&[]);
        cursor.go(Step::Down(9), &[3, 2]);
        cursor.go(Step::Up(1), &[3, 2]);
        cursor.settle(&[4, 3, 2]);
        assert_eq!(cursor.index(&[4, 3, 2]), Some(1), "up to the first is a choice");
        cursor.go(Step::First, &[4, 3, 2]);
        cursor.settle(&[5, 4, 3, 2]);
        assert_eq!(cursor.index(&[5, 4, 3, 2]), Some(0), "Home stays at the top");
    }

    #[test]
    fn the_choice_is_always_in_view() {
        for all in 0..30_usize {
            for room in 0..12 {
                for at in 0..all {
                    let first = first_in_view(at, all, room);
                    assert!(room == 0 || (first <= at && at < first + room), "{at} of {all} in {room}");
                    assert!(first == 0 || first + room <= all);
                }
            }
        }
    }
}
