//! Every file of the committed corpora, through the body of its target.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use relay_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn what_was_found_once_stays_mended() {
    for (name, body) in TARGETS {
        let files = files_in(&format!("corpus/{name}"));
        assert!((1..=50).contains(&files.len()), "{name}: {} files", files.len());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let shown = format!("{name}/{}", file.file_name().unwrap().display());
            assert!(bytes.len() <= 4096, "{shown} is too large for a corpus");
            // A panic is told with the name of its thread, and that is the file.
            let run = thread::Builder::new().name(shown.clone()).spawn(move || body(&bytes)).unwrap();
            assert!(run.join().is_ok(), "{shown}");
        }
    }
}

#[test]
fn every_body_has_a_program_and_a_corpus_and_nothing_else_has() {
    let bodies: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    for folder in ["fuzz_targets", "corpus"] {
        let stems = files_in(folder).into_iter().map(|path| path.file_stem().unwrap().display().to_string());
        assert_eq!(stems.collect::<BTreeSet<_>>(), bodies, "{folder}");
    }
}
