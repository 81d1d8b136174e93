//! How much of the processor a thread gets where all want it.

/// How far a thread steps back: it gets a tenth of what another gets, where none is free (nice, sched(7)).
#[cfg(target_os = "linux")]
const BACK: i32 = 10;

/// The calling thread gives way to all others from now on: telling of calls must not slow them. Elsewhere than on Linux a
/// thread cannot do that for itself alone, and nothing changes.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    // Linux takes the calling thread for the calling process here (setpriority(2)). A thread that may not is one like others.
    let _as_it_was = rustix::process::setpriority_process(None, BACK);
}
