//! `setup` and `undo` as people run them: the program, a home of its own, what it prints, what it writes, how it ends.

#[cfg(test)]
mod program;
