//! Who gets how many rows and columns. Pure.

use super::model::Focus;

/// The size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// No less can be drawn on.
pub(super) const LEAST: Size = Size { columns: 20, rows: 4 };

/// The rows of the parts of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Whether there is a line with the sums.
    pub(super) sums: bool,
    /// Whether there is a line above the calls with the view and the order.
    pub(super) about: bool,
    /// Rows of lanes, without their heads; 0: no heads either.
    pub(super) lanes: usize,
    /// Rows of calls, without their heads.
    pub(super) calls: usize,
}

/// Shares the rows out. The list that the keys move in gets the larger part.
pub(super) fn parts(size: Size, lanes: usize, focus: Focus) -> Parts {
    let rows = usize::from(size.rows);
    let (sums, about) = (rows >= 7, rows >= 9);
    // The title, the heads of the calls, the keys.
    let taken = 3 + usize::from(sums) + usize::from(about);
    let left = rows.saturating_sub(taken);
    let wanted = lanes.max(1);
    let room = match focus {
        Focus::Calls if rows < 10 => 0,
        Focus::Calls => left / 3,
        Focus::Lanes => (left * 2 / 3).max(2).min(left),
    };
    let lanes = wanted.min(room.saturating_sub(1));
    let heads = usize::from(lanes > 0);
    Parts { sums, about, lanes, calls: left.saturating_sub(lanes + heads) }
}

/// A column as it would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// It is not narrower.
    pub(super) least: usize,
    /// What would show all of it.
    pub(super) full: usize,
    /// The smaller, the sooner it gets room.
    pub(super) rank: u8,
}

/// How wide each column is, with a gap of one behind each; 0: it is left out.
pub(super) fn widths(columns: &[Column], room: usize) -> Vec<usize> {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| columns[*at].rank);
    let mut widths = vec![0; columns.len()];
    // The last one needs no gap.
    let mut left = room + 1;
    for at in &by_rank {
        if columns[*at].least < left {
            widths[*at] = columns[*at].least;
            left -= columns[*at].least + 1;
        }
    }
    for at in by_rank {
        if widths[at] > 0 {
            let more = columns[at].full.saturating_sub(widths[at]).min(left);
            widths[at] += more;
            left -= more;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_shared_out_and_none_twice() {
        for rows in 4..60 {
            for lanes in 0..20 {
                for focus in [Focus::Calls, Focus::Lanes] {
                    let parts = parts(Size { columns: 80, rows }, lanes, focus);
                    let taken = 3 + usize::from(parts.sums) + usize::from(parts.about);
                    let heads = usize::from(parts.lanes > 0);
                    let sum = taken + parts.lanes + heads + parts.calls;
                    assert_eq!(sum, usize::from(rows), "{rows} rows, {lanes} lanes, {focus:?}: {parts:?}");
                }
            }
        }
        let usual = parts(Size { columns: 80, rows: 24 }, 30, Focus::Calls);
        assert_eq!((usual.lanes, usual.calls), (5, 13));
        let lanes = parts(Size { columns: 80, rows: 24 }, 30, Focus::Lanes);
        assert_eq!((lanes.lanes, lanes.calls), (11, 7));
        assert_eq!(parts(Size { columns: 80, rows: 24 }, 1, Focus::Calls).lanes, 1, "no more than there are");
    }

    #[test]
    fn columns_get_room_by_their_rank() {
        let column = |least, full, rank| Column { least, full, rank };
        let columns = [column(4, 4, 0), column(6, 10, 2), column(5, 20, 1)];
        assert_eq!(widths(&columns, 100), [4, 10, 20]);
        assert_eq!(widths(&columns, 17), [4, 6, 5], "4 + 1 + 6 + 1 + 5");
        assert_eq!(widths(&columns, 16), [4, 0, 11]);
        assert_eq!(widths(&columns, 19), [4, 6, 7]);
        assert_eq!(widths(&columns, 4), [4, 0, 0]);
        assert_eq!(widths(&columns, 0), [0, 0, 0]);
    }
}
