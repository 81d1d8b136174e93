use std::fs;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A folder of this test alone, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steady-relay-{}-learned-{name}", std::process::id()));
        let _not_there = fs::remove_dir_all(&path);
        Self(path)
    }

    /// One whose file holds this.
    fn holding(name: &str, text: &[u8]) -> Self {
        let folder = Self::new(name);
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.file(), text).unwrap();
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.join("lanes.json")
    }

    fn open(&self, at: u64) -> (LearnedFile, Option<String>) {
        LearnedFile::open(Some(&self.0), wall(at))
    }

    /// Opens it where nothing is wrong.
    fn opened(&self, at: u64) -> LearnedFile {
        let (file, notice) = self.open(at);
        assert_eq!(notice, None);
        file
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

const NOW: u64 = 1_800_000_000;

fn wall(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn learned(recoveries: f64) -> Learned {
    Learned {
        recoveries,
        exposure: 40.0 / 3.0,
        rate: Some(0.1 + 0.2),
        growth: 1.7,
        per_completion: 0.9,
        after_completion: [1.0 / 3.0, 2.0],
        probes: [0.0, 7.0],
        ends: [1.0, 1.0],
    }
}

fn id(number: u64) -> String {
    format!("{number:016x}")
}

fn save(file: &LearnedFile, lanes: &[(u64, f64)], at: u64) {
    let lanes = lanes.iter().map(|(number, recoveries)| (id(*number), learned(*recoveries)));
    file.save(lanes, wall(at)).unwrap();
}

/// The recoveries that each of the first ten lanes recalls.
fn recalled(file: &LearnedFile, at: u64) -> Vec<(u64, f64)> {
    let recall = |number| Some((number, file.recall(&id(number), wall(at))?.recoveries));
    (0..10).filter_map(recall).collect()
}

/// A file with these lanes.
fn written(lanes: &str) -> String {
    format!(r#"{{"v":1,"salt":"{}","lanes":{{{lanes}}}}}"#, "0f".repeat(32))
}

fn entry(number: u64, seen: u64, learned: &Learned) -> String {
    format!(r#""{}":{{"seen":{seen},"learned":{}}}"#, id(number), serde_json::to_string(learned).unwrap())
}

#[test]
fn what_was_saved_is_recalled_after_a_restart() {
    let folder = Folder::new("restart");
    let file = folder.opened(NOW);
    assert_eq!(recalled(&file, NOW), []);
    save(&file, &[(1, 3.0), (2, 4.0)], NOW);
    let again = folder.opened(NOW + 60);
    assert_eq!(recalled(&again, NOW + 60), [(1, 3.0), (2, 4.0)]);
    let Learned { exposure, rate, probes, .. } = again.recall(&id(1), wall(NOW + 60)).unwrap();
    assert_eq!((exposure, rate, probes), (13.333_333, Some(0.3), [0.0, 7.0]));
    assert_eq!(folder.names(), ["lanes.json"], "nothing else is left behind");
}

#[test]
fn a_lane_has_the_same_name_after_a_restart_and_one_that_tells_nothing() {
    let folder = Folder::new("names");
    let file = folder.opened(NOW);
    let parts = [
        ("https://a", "key-1", Some("m")),
        ("https://b", "key-1", Some("m")),
        ("https://a", "key-2", Some("m")),
        ("https://a", "key-1", Some("n")),
        ("https://a", "key-1", Some("")),
        ("https://a", "key-1", None),
        ("https://akey-1", "", Some("m")),
    ];
    let ids =
        |file: &LearnedFile| parts.map(|(origin, account, model)| file.id(origin, account.as_bytes(), model));
    let all = ids(&file);
    assert!(all.iter().all(|id| is_id(id)), "{all:?}");
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    file.save([(all[0].clone(), learned(1.0))].into_iter(), wall(NOW)).unwrap();
    let text = folder.text();
    assert!(text.contains(&all[0]) && !text.contains("key-1") && !text.contains("https"), "{text}");
    assert_eq!(ids(&folder.opened(NOW)), all);
    let elsewhere = Folder::new("names-elsewhere");
    assert!(ids(&elsewhere.opened(NOW)).iter().all(|id| !all.contains(id)), "the salt is another");
    let salt = hex(file.salt.iter());
    assert!(text.contains(&salt) && !format!("{file:?}").contains(&salt));
}

#[test]
fn what_is_older_than_a_day_or_from_the_future_is_ignored() {
    let day = 24 * 3600;
    let times = [NOW - day - 1, NOW - day, NOW, NOW + 300, NOW + 301, u64::MAX];
    let lanes = times.iter().zip(0..).map(|(seen, number)| entry(number, *seen, &learned(1.0)));
    let folder = Folder::holding("times", written(&lanes.collect::<Vec<_>>().join(",")).as_bytes());
    let numbers = |at| recalled(&folder.opened(at), at).iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!(numbers(NOW), [1, 2, 3]);
    assert_eq!(numbers(0), [] as [u64; 0]);
    // It gets old while the relay runs, too, and the next save drops it.
    let file = folder.opened(NOW);
    assert_eq!(recalled(&file, NOW + 1), [(2, 1.0), (3, 1.0)]);
    save(&file, &[], NOW + 1);
    assert!(!folder.text().contains(&id(1)) && folder.text().contains(&id(2)));
}

#[test]
fn a_bad_entry_is_dropped_alone() {
    let with = |change: &dyn Fn(&mut Learned)| {
        let mut changed = learned(1.0);
        change(&mut changed);
        entry(1, NOW, &changed)
    };
    let good = entry(1, NOW, &learned(1.0));
    let bad = [
        with(&|it| it.recoveries = -1.0),
        with(&|it| it.recoveries = 1e3 + 1.0),
        with(&|it| it.recoveries = f64::NAN),
        with(&|it| it.exposure = -0.1),
        with(&|it| it.exposure = 1e9 + 1.0),
        with(&|it| it.exposure = f64::INFINITY),
        with(&|it| it.rate = Some(0.0)),
        with(&|it| it.rate = Some(0.019)),
        with(&|it| it.rate = Some(1e6 + 1.0)),
        with(&|it| it.growth = 0.09),
        with(&|it| it.growth = 8.1),
        with(&|it| it.per_completion = 0.09),
        with(&|it| it.per_completion = 1.1),
        with(&|it| it.after_completion = [2.0, 1.0]),
        with(&|it| it.probes = [0.0, 1e3 + 1.0]),
        with(&|it| it.ends = [-1.0, 1.0]),
        good.replace("1.7", "1e999"),
        good.replace("1.7", "\"1.7\""),
        good.replace("\"growth\"", "\"grown\""),
        good.replace("\"growth\"", "\"more\":1,\"growth\""),
        good.replace(&NOW.to_string(), "-1"),
        good.replace(&NOW.to_string(), "\"now\""),
        good.replace(&id(1), "1"),
        good.replace(&id(1), "000000000000000G"),
        format!("\"{}\":null", id(1)),
    ];
    let count = |lanes: &str| parse(written(lanes).as_bytes()).ok().unwrap().lanes.len();
    let other = entry(2, NOW, &learned(2.0));
    assert_eq!(count(&format!("{good},{other}")), 2);
    for bad in bad {
        assert_ne!(bad, good);
        assert_eq!(count(&format!("{bad},{other}")), 1, "{bad}");
    }
    let bounds = with(&|it| {
        (it.recoveries, it.exposure, it.rate, it.growth) = (1e3, 1e9, None, 8.0);
        (it.per_completion, it.probes) = (0.1, [1e3, 1e3]);
    });
    assert_eq!(count(&bounds), 1);
}

#[test]
fn a_damaged_file_is_told_of_once_and_replaced_at_the_next_save() {
    let long = format!("{}{}", written(""), " ".repeat(256 << 10));
    let other_version = written("").replace("\"v\":1", "\"v\":2,\"more\":[]");
    for (text, why) in [
        ("", "it is damaged"),
        ("{", "it is damaged"),
        ("\u{0}\u{1}", "it is damaged"),
        ("[]", "it is damaged"),
        (r#"{"v":1}"#, "it is damaged"),
        (&written("").replace("0f", "0F"), "it is damaged"),
        (&written("").replace("0f0f", ""), "it is damaged"),
        (&written("\"a\""), "it is damaged"),
        (&other_version, "another version of the relay wrote it"),
        (&long, "it is too large"),
    ] {
        let folder = Folder::holding("damaged", text.as_bytes());
        let (file, notice) = folder.open(NOW);
        let words = format!(
            "{} is ignored and will be replaced, since {why}: lanes learn anew",
            folder.file().display()
        );
        assert_eq!(notice, Some(words));
        assert_eq!(folder.text(), text, "it is left as it was until then");
        save(&file, &[(1, 1.0)], NOW);
        assert_eq!(recalled(&folder.opened(NOW), NOW), [(1, 1.0)]);
    }
    let longest = format!("{}{}", written(""), " ".repeat((256 << 10) - written("").len()));
    drop(Folder::holding("longest", longest.as_bytes()).opened(NOW));
}

#[test]
fn a_file_that_is_damaged_or_deleted_while_the_relay_runs_is_written_anew() {
    let folder = Folder::new("meanwhile");
    let file = folder.opened(NOW);
    save(&file, &[(1, 1.0)], NOW);
    fs::write(folder.file(), "{").unwrap();
    save(&file, &[(1, 1.0)], NOW + 60);
    assert_eq!(recalled(&folder.opened(NOW), NOW), [(1, 1.0)]);
    fs::remove_dir_all(&folder.0).unwrap();
    save(&file, &[(1, 1.0)], NOW + 120);
    assert_eq!(recalled(&folder.opened(NOW), NOW), [(1, 1.0)]);
}

#[test]
fn where_nothing_was_learned_nothing_is_written() {
    let folder = Folder::new("unchanged");
    let file = folder.opened(NOW);
    let is_written = |lanes: &[(u64, f64)], at| {
        // A mark that no save would leave.
        let marked = folder.text() + " ";
        fs::write(folder.file(), &marked).unwrap();
        save(&file, lanes, at);
        folder.text() != marked
    };
    assert!(!is_written(&[], NOW));
    assert!(is_written(&[(1, 1.0), (2, 2.0)], NOW));
    assert!(!is_written(&[(2, 2.0), (1, 1.0)], NOW + 60));
    assert!(!is_written(&[(2, 2.0)], NOW + 120), "a lane that is gone is still known");
    assert!(is_written(&[(2, 2.5)], NOW + 180));
    assert!(!is_written(&[(2, 2.5)], NOW + 240));
    // Nor by one that recalls the same.
    let again = folder.opened(NOW + 300);
    let before = folder.text();
    let recalled = again.recall(&id(1), wall(NOW + 300)).unwrap();
    again.save([(id(1), recalled)].into_iter(), wall(NOW + 300)).unwrap();
    assert_eq!(folder.text(), before);
    // What no lane can have learned is not kept either.
    assert!(!is_written(&[(3, f64::NAN), (4, -1.0)], NOW + 300));
}

#[test]
fn what_a_lane_that_went_had_learned_is_recalled_and_saved() {
    let folder = Folder::new("went");
    let lanes = |number: u64, recoveries| [(id(number), learned(recoveries))].into_iter();
    for file in [folder.opened(NOW), LearnedFile::open(None, wall(NOW)).0] {
        file.remember(lanes(1, 1.0), wall(NOW));
        assert_eq!(recalled(&file, NOW), [(1, 1.0)]);
        save(&file, &[(1, 2.0), (2, 1.0)], NOW + 10);
        file.remember(lanes(1, 3.0), wall(NOW + 20));
        save(&file, &[(2, 1.0)], NOW + 30);
        assert_eq!(recalled(&file, NOW + 30)[0], (1, 3.0));
    }
    assert_eq!(recalled(&folder.opened(NOW + 30), NOW + 30), [(1, 3.0), (2, 1.0)]);
    let file = folder.opened(NOW + 40);
    file.remember((100..1000).map(|number| (id(number), learned(1.0))), wall(NOW + 40));
    assert_eq!(lock(&file.known).len(), LANES, "not without end");
}

#[test]
fn relays_that_share_a_folder_keep_what_the_others_learned() {
    let folder = Folder::new("shared");
    let (one, other) = (folder.opened(NOW), folder.opened(NOW));
    assert_eq!(one.salt, other.salt);
    save(&one, &[(1, 1.0), (2, 1.0)], NOW);
    save(&other, &[(2, 2.0), (3, 2.0)], NOW + 10);
    let all = [(1, 1.0), (2, 2.0), (3, 2.0)];
    assert_eq!(recalled(&folder.opened(NOW), NOW), all);
    // The first has learned nothing since: what the other learned later stays.
    let text = folder.text();
    save(&one, &[(1, 1.0), (2, 1.0)], NOW + 20);
    assert_eq!((recalled(&one, NOW + 20), folder.text()), (all.to_vec(), text));
    save(&one, &[(1, 1.0), (2, 3.0)], NOW + 30);
    assert_eq!(recalled(&folder.opened(NOW), NOW + 30), [(1, 1.0), (2, 3.0), (3, 2.0)]);
}

#[test]
fn relays_that_begin_the_file_at_the_same_time_agree_on_its_salt() {
    let folder = Folder::new("together");
    let salts: Vec<Salt> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8).map(|_| scope.spawn(|| folder.opened(NOW).salt)).collect();
        opening.into_iter().map(|opening| opening.join().unwrap()).collect()
    });
    assert!(salts.iter().all(|salt| *salt == salts[0]));
    assert_eq!(folder.names(), ["lanes.json"]);
}

#[test]
fn the_newest_256_lanes_are_kept() {
    let folder = Folder::new("many");
    let file = folder.opened(NOW);
    for batch in 0..4 {
        let lanes: Vec<_> = (0..100).map(|number| (batch * 100 + number, 1.0)).collect();
        save(&file, &lanes, NOW + batch);
    }
    let again = folder.opened(NOW);
    let kept: Vec<_> = (0..400).filter(|number| again.recall(&id(*number), wall(NOW)).is_some()).collect();
    assert_eq!((kept.len(), kept[0]), (256, 144));
    assert!((folder.text().len() as u64) < LONGEST);
}

#[test]
fn without_a_folder_all_works_from_memory() {
    let (file, notice) = LearnedFile::open(None, wall(NOW));
    assert_eq!(notice, None);
    assert!(is_id(&file.id("https://a", b"key", None)));
    save(&file, &[(1, 1.0)], NOW);
    assert_eq!(recalled(&file, NOW), []);
}

#[test]
fn what_cannot_be_written_or_is_no_file_is_named_and_left_alone() {
    let folder = Folder::holding("no-folder", b"");
    let (file, notice) = LearnedFile::open(Some(&folder.file()), wall(NOW));
    let notice = notice.unwrap();
    let begin =
        format!("what lanes learn is lost at the end ({}", folder.file().join("lanes.json").display());
    assert!(
        notice.starts_with(&begin) && notice.ends_with(": name another folder with --state-dir"),
        "{notice}"
    );
    save(&file, &[(1, 1.0)], NOW);
    assert_eq!(folder.text(), "");

    let folder = Folder::new("folder");
    fs::create_dir_all(folder.file()).unwrap();
    let (file, notice) = folder.open(NOW);
    assert!(notice.unwrap().contains(": this is no file): name another folder"));
    save(&file, &[(1, 1.0)], NOW);
    assert!(folder.file().is_dir());
}

#[test]
fn a_save_that_fails_says_so_and_the_next_one_tries_again() {
    let folder = Folder::new("fails");
    let file = folder.opened(NOW);
    fs::remove_file(folder.file()).unwrap();
    fs::create_dir(folder.file()).unwrap();
    let lanes = || [(id(1), learned(1.0))].into_iter();
    assert!(file.save(lanes(), wall(NOW)).is_err());
    fs::remove_dir(folder.file()).unwrap();
    file.save(lanes(), wall(NOW)).unwrap();
    assert_eq!(recalled(&folder.opened(NOW), NOW), [(1, 1.0)]);
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = Folder::new("modes");
    let deep = Folder(folder.0.join("steady-relay"));
    let file = deep.opened(NOW);
    assert_eq!((mode(&deep.file()), mode(&deep.0)), (0o600, 0o700));
    fs::set_permissions(deep.file(), fs::Permissions::from_mode(0o644)).unwrap();
    drop(deep.opened(NOW));
    assert_eq!(mode(&deep.file()), 0o600);
    save(&file, &[(1, 1.0)], NOW);
    assert_eq!(mode(&deep.file()), 0o600);
}

/// Numbers at and beyond every limit.
fn number() -> impl Strategy<Value = String> {
    let far =
        prop::sample::select(vec!["1e999", "-1e999", "null", "1e-400", "0.1", "1", "1e6", "1e9", "-0", "[]"]);
    prop_oneof![
        far.prop_map(str::to_owned),
        any::<f64>().prop_map(|number| serde_json::to_string(&number).unwrap()),
        (0.0..10.0).prop_map(|number: f64| number.to_string())
    ]
}

/// An entry that is nearly one.
fn near_entry() -> impl Strategy<Value = String> {
    let numbers = prop::collection::vec(number(), 11);
    (numbers, 0..4_u64, prop::sample::select(vec!["1800000000", "0", "-1", "18446744073709551615"])).prop_map(
        |(n, number, seen)| {
            format!(
                r#""{}":{{"seen":{seen},"learned":{{"recoveries":{},"exposure":{},"rate":{},"growth":{},"per_completion":{},"after_completion":[{},{}],"probes":[{},{}],"ends":[{},{}]}}}}"#,
                id(number), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _either = parse(&bytes);
    }

    #[test]
    fn no_file_yields_what_no_lane_can_have_learned(
        entries in prop::collection::vec(near_entry(), 0..4),
        cut in any::<prop::sample::Index>(),
        byte in any::<Option<u8>>(),
    ) {
        let mut bytes = written(&entries.join(",")).into_bytes();
        if let Some(byte) = byte {
            let at = cut.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(Kept { lanes, .. }) = parse(&bytes) {
            for (id, Entry { learned, .. }) in &lanes {
                let Learned { recoveries, exposure, rate, growth, per_completion, after_completion, probes, ends } = *learned;
                prop_assert!(is_id(id));
                prop_assert!((0.0..=1e3).contains(&recoveries) && (0.0..=1e9).contains(&exposure));
                prop_assert!(rate.is_none_or(|rate| (0.02..=1e6).contains(&rate)));
                prop_assert!((0.1..=8.0).contains(&growth) && (0.1..=1.0).contains(&per_completion));
                for [some, all] in [after_completion, probes, ends] {
                    prop_assert!(0.0 <= some && some <= all && all <= 1e3);
                }
            }
        } else {
            prop_assert!(byte.is_some(), "an entry alone damages no file");
        }
    }
}
