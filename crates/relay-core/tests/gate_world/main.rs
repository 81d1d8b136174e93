//! A million events against what a gate promises. A walk is one gate to which anything happens; whoever watches it
//! keeps a book of its own, and holds the gate against it. A scene is a service that behaves in one known way, with
//! clients that behave as clients do.
//!
//! A failure prints the seed of its walk: put it into [`one_walk`] to play it again.

mod book;
mod polls;
mod scene;
mod scenes;
mod walk;

use book::Tally;
use relay_core::SeededDice;
use walk::walk;

/// Each is the start of its own row of walks.
const SEEDS: [u64; 4] = [1, 0xC0DE, 31_415_926, u64::MAX / 3];
const EVENTS: u32 = 1_000_000;
/// Long enough for every part to learn something, short enough for many kinds of walks.
const WALK: u32 = 2000;

#[test]
fn a_million_events_keep_the_laws_of_the_gate() {
    let mut all = Tally::default();
    for seed in SEEDS {
        let mut seeds = SeededDice::new(seed);
        let goal = all.events + EVENTS / 4;
        while all.events < goal {
            let seed = seeds.bits();
            match walk(seed, WALK) {
                Ok((tally, _)) => all.add(&tally),
                Err(why) => panic!("seed {seed}: {why}"),
            }
        }
    }
    // A world in which nothing happens proves nothing.
    let Tally { by: [open, timer, follow, completion, plain], shut, slow, full, opened, .. } = all;
    let counts = [open, timer, follow, completion, plain, shut, slow, full, opened];
    let others = [all.stale, all.rates, all.asked, all.unsent, all.expired, all.honest, all.random];
    assert!(counts.into_iter().chain(others).all(|count| count > 40), "{all:#?}");
    assert!(all.events >= EVENTS && all.sends > EVENTS / 8, "{all:#?}");
}

/// Put the seed of a failure here.
#[test]
fn one_walk() {
    walk(42, WALK).unwrap();
}

#[test]
fn the_same_seed_walks_the_same_way() {
    let mut seeds = SeededDice::new(7);
    let walks: Vec<u64> = (0..12).map(|_| seeds.bits()).collect();
    let once: Vec<u64> = walks.iter().map(|seed| walk(*seed, WALK).unwrap().1).collect();
    let again: Vec<u64> = walks.iter().map(|seed| walk(*seed, WALK).unwrap().1).collect();
    assert_eq!(once, again);
    assert!(once.windows(2).all(|pair| pair[0] != pair[1]), "other seeds walk otherwise");
}
