//! Standard input, whoever else holds it.

use std::io::{self, BufRead, BufReader, Read};

/// Reads standard input, and waits for what is not there yet, even where another program that has the same input has said
/// that nobody waits for it: `O_NONBLOCK` is of the open file, which parent and child share, and not of one of them
/// (open(2)). Node says so to each pipe that it looks at.
pub fn standard_input() -> impl BufRead {
    #[cfg(unix)]
    let input = patient::Patient(io::stdin().lock());
    #[cfg(not(unix))]
    let input = io::stdin().lock();
    BufReader::new(input)
}

#[cfg(unix)]
mod patient {
    use super::{Read, io};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use std::os::fd::AsFd;

    pub(super) struct Patient<R>(pub(super) R);

    impl<R: Read + AsFd> Read for Patient<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            loop {
                match self.0.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        // Its end and an error wake this as well; the next read tells which it was.
                        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
                            Ok(_) | Err(Errno::INTR) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    read => return read,
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::io::Write as _;

        #[test]
        fn an_input_that_does_not_wait_is_waited_for() {
            let (input, mut output) = io::pipe().unwrap();
            rustix::io::ioctl_fionbio(&input, true).unwrap();
            let mut input = Patient(input);
            let writes = std::thread::spawn(move || {
                for word in ["one ", "two"] {
                    std::thread::yield_now();
                    output.write_all(word.as_bytes()).unwrap();
                }
            });
            let mut text = String::new();
            input.read_to_string(&mut text).unwrap();
            writes.join().unwrap();
            assert_eq!(text, "one two");
        }
    }
}
