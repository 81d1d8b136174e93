//! Tells what a task was woken for. Hyper asks a body for more several times for each piece it gets, and to ask a
//! connection that has nothing costs more than all else about a small piece. So what waits below is given a bell
//! to ring, and is not asked again before it has rung.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Stands between what is waited for and the task that waits.
#[derive(Debug)]
pub(crate) struct Bell {
    rope: Arc<Rope>,
    waker: Waker,
    /// The last answer was that there is nothing yet.
    waits: bool,
}

#[derive(Debug)]
struct Rope {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order: whoever is woken finds it rung.
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

impl Default for Bell {
    fn default() -> Self {
        let rope = Arc::new(Rope { rung: AtomicBool::new(false), task: Mutex::new(Waker::noop().clone()) });
        Self { waker: Waker::from(Arc::clone(&rope)), rope, waits: false }
    }
}

impl Bell {
    /// Asks, unless the answer is known: it was "not yet", and the bell has not rung since.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        ask: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        {
            let mut task = self.rope.task.lock().unwrap_or_else(PoisonError::into_inner);
            if !task.will_wake(cx.waker()) {
                task.clone_from(cx.waker());
            }
        }
        // Looked at before asking, and after the task is known: a ring from here on wakes it.
        let rung = self.rope.rung.swap(false, Ordering::Acquire);
        if self.waits && !rung {
            return Poll::Pending;
        }
        let answer = ask(&mut Context::from_waker(&self.waker));
        self.waits = answer.is_pending();
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_has_nothing_is_not_asked_again_before_it_rings() {
        let (mut bell, count) = (Bell::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&task);
        let mut rope = None;
        assert!(bell.poll(&mut cx, |_| Poll::Ready(())).is_ready());
        // What is ready is asked again.
        let asked = bell.poll(&mut cx, |cx| {
            rope = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(asked.is_pending() && rope.is_some());
        for _ in 0..2 {
            assert!(bell.poll(&mut cx, |_| -> Poll<()> { panic!("it has not rung") }).is_pending());
        }
        rope.unwrap().wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(bell.poll(&mut cx, |_| Poll::Ready(())).is_ready());
    }

    #[test]
    fn a_ring_while_it_is_asked_is_not_lost_and_wakes_whoever_asked_last() {
        let (mut bell, first, last) =
            (Bell::default(), Arc::new(Count::default()), Arc::new(Count::default()));
        let tasks = [Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&last))];
        for task in &tasks {
            let asked = bell.poll(&mut Context::from_waker(task), |cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            });
            assert!(asked.is_pending());
        }
        assert_eq!([&first, &last].map(|count| count.0.load(Ordering::SeqCst)), [1, 1]);
        assert!(bell.poll(&mut Context::from_waker(&tasks[1]), |_| Poll::Ready(())).is_ready());
    }
}
