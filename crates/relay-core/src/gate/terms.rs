//! How hard a call asks while its lane is shut: the three presets.

use std::time::Duration;

/// Whose interest a call is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preset {
    /// A person waits.
    Interactive,
    /// Many calls, and nobody waits for a single one.
    Batch,
    /// The service's: as few wasted sends as can be.
    Strict,
}

/// The numbers of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// How many seconds of waiting one wasted send is worth.
    pub price: f64,
    /// Up to so many waiting calls make probes more frequent.
    pub crowd: f64,
    /// The shortest time between two probes.
    pub shortest: Duration,
    /// The longest time between two probes.
    pub longest: Duration,
    /// The most probes without a sign that are not yet slow.
    pub young: usize,
    /// The most probes without a sign; each ten waiting calls allow one more.
    pub unsure: usize,
    /// So many sends are kept for the time when the lane opens.
    pub reserve: u32,
    /// So many sends go at once.
    pub burst: f64,
    /// So many sends a second follow them.
    pub refill: f64,
    /// Others that came so much later go first.
    pub gives_way: Duration,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Batch, Self::Strict];

    /// The numbers.
    #[must_use]
    pub const fn terms(self) -> &'static Terms {
        const INTERACTIVE: Terms = Terms {
            price: 0.5,
            crowd: 4.0,
            shortest: Duration::from_millis(250),
            longest: Duration::from_secs(30),
            young: 2,
            unsure: 4,
            reserve: 2,
            burst: 10.0,
            refill: 50.0,
            gives_way: Duration::ZERO,
        };
        const BATCH: Terms =
            Terms { price: 2.0, crowd: 16.0, gives_way: Duration::from_secs(30), ..INTERACTIVE };
        const STRICT: Terms = Terms {
            price: 8.0,
            longest: Duration::from_secs(60),
            young: 1,
            unsure: 2,
            burst: 4.0,
            refill: 10.0,
            gives_way: Duration::from_secs(30),
            ..INTERACTIVE
        };
        match self {
            Self::Interactive => &INTERACTIVE,
            Self::Batch => &BATCH,
            Self::Strict => &STRICT,
        }
    }
}
