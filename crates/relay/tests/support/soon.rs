//! What comes a moment later: it is looked for again and again, long enough for a machine that has much else to do.

use std::time::Duration;

use tokio::time::Instant;

/// Looks until this finds something.
///
/// # Panics
/// With this message, where it finds nothing for twenty seconds.
pub(crate) async fn soon<T>(never: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{never}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
