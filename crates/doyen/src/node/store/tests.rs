use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use doyen_core::algorithm::quorum::{Drain, Pause, Stored};
use doyen_core::members::{SessionId, Term};
use doyen_core::session::{Kept, Met};
use doyen_core::time::Span;
use sha2::{Digest as _, Sha256};

use super::slot::FILE;
use super::*;
use crate::config::members::MOST_MEMBERS;
use crate::scratch::{Scratch, as_nobody, set_mode};

fn owner() -> Owner {
    Owner {
        cluster: "orders".to_owned(),
        member: NodeId(2),
        algorithm: Algorithm::Quorum,
        members: [1, 2, 3].map(NodeId).to_vec(),
    }
}

fn created() -> Scratch {
    let folder = Scratch::new();
    Store::create(&folder, &owner(), None).unwrap();
    folder
}

/// Opens it. A process that another test starts at this moment may have inherited the lock of the last one that had it open,
/// until it executes its own program.
fn open(folder: &Path) -> Opened {
    for _ in 0..1000 {
        match Store::open(folder, &owner()) {
            Err(StoreError::Locked { .. }) => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", folder.display());
}

fn kept(bytes: &[u8]) -> Option<Saved> {
    Some(Saved::Kept(bytes.to_vec()))
}

/// Starts and saves a record.
fn save_once(folder: &Path, durable: &[u8]) -> Incarnation {
    let Opened { mut store, incarnation, .. } = open(folder);
    store.save(incarnation, false, durable).unwrap();
    incarnation
}

/// Rejoins in this incarnation or the lowest possible one, and stores that.
fn rejoin(folder: &Path, incarnation: u32) -> Incarnation {
    let (mut store, lowest) = Store::rejoin(folder, &owner()).unwrap();
    let life = Incarnation(incarnation).max(lowest);
    store.save(life, true, b"rejoining").unwrap();
    assert_eq!(store.incarnation(), life);
    life
}

fn refusal(folder: &Path, owner: &Owner) -> StoreError {
    let refused = Store::open(folder, owner).expect_err("it must not open");
    if !matches!(refused, StoreError::Locked { .. } | StoreError::WornOut(_)) {
        let checked =
            Store::check(folder, owner, |_| true).expect_err("a check says what an opening would");
        assert_eq!(checked.to_string(), refused.to_string());
    }
    refused
}

#[test]
fn the_last_record_survives_a_restart_and_starts_are_counted() {
    let folder = created();
    for start in 1..=5_u8 {
        let mut opened = open(&folder);
        assert_eq!(opened.incarnation, Incarnation(u32::from(start)));
        assert!(!opened.rejoining);
        // What the last process saved last: its third.
        assert_eq!(opened.durable, (start > 1).then(|| Saved::Kept(vec![start - 1, 3])));
        for saved in 1..=3 {
            opened.store.save(opened.incarnation, false, &[start, saved]).unwrap();
        }
    }
}

#[test]
fn a_start_counts_though_nothing_was_saved() {
    let folder = created();
    for start in 1..=2 {
        let opened = open(&folder);
        assert_eq!((opened.incarnation, opened.origin()), (Incarnation(start), Origin::Joining));
        assert_eq!(opened.durable, None);
    }
}

#[test]
fn a_state_with_a_term_floor_has_an_initial_record() {
    let folder = Scratch::new();
    let inside = folder.join("made");
    Store::create(&inside, &owner(), Some(b"floor")).unwrap();
    assert_eq!(fs::metadata(&inside).unwrap().mode() & 0o777, 0o700);
    for _ in 0..2 {
        let opened = open(&inside);
        assert_eq!(opened.durable, Some(Saved::Bare(b"floor".to_vec())));
        assert_eq!(opened.origin(), Origin::Joining);
    }
    save_once(&inside, b"term");
    assert_eq!(open(&inside).durable, kept(b"term"));
}

/// The state of member 2 of `orders` after two starts and a vote, as version 1 wrote it.
fn of_version_1() -> Image {
    let slot = |sequence: u8, incarnation: u8, durable: &[u8]| {
        let mut slot = b"doyen\0st\x01\0".to_vec();
        slot.push(sequence);
        slot.extend(b"\x06orders\x02");
        slot.extend([incarnation, 0]);
        slot.extend(b"\x06quorum");
        slot.extend(durable);
        slot.resize(496, 0);
        let sum = Sha256::digest(&slot);
        slot.extend(&sum[..16]);
        slot
    };
    let mut image = [0; FILE];
    image[..512].copy_from_slice(&slot(2, 2, b"\x00"));
    image[4096..4608].copy_from_slice(&slot(3, 2, b"\x01\x04vote"));
    image
}

#[test]
fn a_state_of_version_1_is_continued() {
    let folder = Scratch::new();
    let (path, before) = (folder.join("state"), of_version_1());
    fs::write(&path, before).unwrap();
    set_mode(&path, 0o600);
    let bare = Saved::EarlierBare(b"vote".to_vec());
    Store::check(&folder, &owner(), |saved| *saved == bare).unwrap();
    assert!(!Store::is_lost(&folder, &owner(), |saved| *saved == bare).unwrap());
    let opened = open(&folder);
    assert_eq!((opened.incarnation, opened.durable), (Incarnation(3), Some(bare.clone())));
    drop(opened.store);

    // One slot of each version: what was found is there as it was, for the case that the other one is torn.
    let after = fs::read(&path).unwrap();
    assert_eq!((after[8], after[4096 + 8]), (4, 1));
    assert_eq!(after[4096..], before[4096..]);
    for cut in [10, 511, 512, 513, SLOT - 1] {
        let mut torn = before;
        torn[..cut].copy_from_slice(&after[..cut]);
        fs::write(&path, torn).unwrap();
        let opened = open(&folder);
        assert_eq!((opened.incarnation, opened.durable), (Incarnation(3), Some(bare.clone())));
    }

    save_once(&folder, &[7; LONGEST_DURABLE]);
    assert_eq!(open(&folder).durable, kept(&[7; LONGEST_DURABLE]));
    let after = fs::read(&path).unwrap();
    assert_eq!((after[8], after[4096 + 8]), (4, 4), "both have been written");
}

#[test]
fn a_torn_start_leaves_the_start_before() {
    let folder = created();
    save_once(&folder, b"vote");
    let before = fs::read(folder.join("state")).unwrap();
    drop(open(&folder));
    let after = fs::read(folder.join("state")).unwrap();
    let changed = (0..FILE).find(|&byte| before[byte] != after[byte]).unwrap() / SLOT * SLOT;
    for cut in [1, 100, 511, 512, 1000, SLOT - 1] {
        let mut torn = before.clone();
        torn[changed..changed + cut].copy_from_slice(&after[changed..changed + cut]);
        fs::write(folder.join("state"), &torn).unwrap();
        let opened = open(&folder);
        assert_eq!((opened.incarnation, opened.durable), (Incarnation(2), kept(b"vote")));
    }
}

#[test]
fn a_file_cut_short_is_read_as_far_as_it_goes() {
    let folder = created();
    drop(open(&folder));
    for length in [FILE - 1, FILE / 2, SLOT] {
        File::options()
            .write(true)
            .open(folder.join("state"))
            .unwrap()
            .set_len(length as u64)
            .unwrap();
        drop(open(&folder));
        File::options()
            .write(true)
            .open(folder.join("state"))
            .unwrap()
            .set_len(length as u64)
            .unwrap();
        assert!(Store::check(&folder, &owner(), |_| true).is_ok(), "{length} bytes");
    }
    File::options()
        .write(true)
        .open(folder.join("state"))
        .unwrap()
        .set_len(SLOT as u64 - 1)
        .unwrap();
    assert!(matches!(refusal(&folder, &owner()), StoreError::Damaged(_)));
}

#[test]
fn every_durable_record_of_a_quorum_fits() {
    let most = Stored {
        term: Term(u64::MAX),
        voted: Some(NodeId(u32::MAX)),
        longest: Span::from_nanos(u64::MAX),
        drained: Some(Drain::For(Span::from_nanos(u64::MAX))),
        pause: Some(Pause {
            given: (u64::MAX, NodeId(u32::MAX)),
            left: Span::from_nanos(u64::MAX),
        }),
    };
    let session = SessionId::from_random(u64::MAX);
    let met = Met { incarnation: Incarnation(u32::MAX), session };
    let others = (0..MOST_MEMBERS as u32 - 1).map(|id| (NodeId(u32::MAX - id), met));
    let incarnation = Incarnation(u32::MAX);
    let kept = Kept { incarnation, rejoining: true, roster: others.collect(), inner: Some(most) };
    assert!(postcard::to_allocvec(&kept).unwrap().len() <= LONGEST_DURABLE);
}

#[test]
fn a_lost_state_does_not_look_like_a_first_start() {
    let folder = created();
    fs::remove_file(folder.join("state")).unwrap();
    let refused = refusal(&folder, &owner()).to_string();
    assert!(refused.contains("doyen init") && refused.contains("doyen rejoin"), "{refused}");
    assert!(!folder.join("lock").exists(), "nothing is made where nothing is");
    let nowhere = folder.join("no").join("folder");
    assert!(matches!(refusal(&nowhere, &owner()), StoreError::Missing(_)));
}

#[test]
fn damage_to_both_slots_is_refused() {
    let folder = created();
    fs::write(folder.join("state"), vec![0x55; FILE]).unwrap();
    let refused = refusal(&folder, &owner());
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
    assert!(refused.to_string().contains("doyen rejoin"));
    fs::write(folder.join("state"), b"").unwrap();
    assert!(matches!(refusal(&folder, &owner()), StoreError::Damaged(_)));
}

#[test]
fn the_state_of_another_member_or_cluster_is_refused() {
    let folder = created();
    let other = Owner { member: NodeId(3), ..owner() };
    let refused = refusal(&folder, &other).to_string();
    let named = "the state of member 2 of cluster `orders`, not of member 3 of `orders`";
    assert!(refused.contains(named), "{refused}");
    let elsewhere = Owner { cluster: "invoices".to_owned(), ..owner() };
    assert!(refusal(&folder, &elsewhere).to_string().contains("not of member 2 of `invoices`"));
    let rejoined = Store::rejoin(&folder, &other).unwrap_err();
    assert!(matches!(rejoined, StoreError::Foreign { .. }), "nor is it thrown away: {rejoined}");
    assert_eq!(open(&folder).incarnation, Incarnation(1));
}

#[test]
fn what_another_algorithm_stored_is_not_read() {
    let folder = created();
    let bully = Owner { algorithm: Algorithm::Bully, ..owner() };
    // As long as nothing was stored, there is nothing to misread.
    let Opened { mut store, incarnation, .. } = Store::open(&folder, &bully).unwrap();
    store.save(incarnation, false, b"term").unwrap();
    drop(store);
    let refused = refusal(&folder, &owner()).to_string();
    assert!(refused.contains("was stored by `bully`"), "{refused}");
}

#[test]
fn a_member_that_has_started_keeps_to_its_list() {
    let folder = created();
    let longer = Owner { members: [1, 2, 3, 4, 5].map(NodeId).to_vec(), ..owner() };
    // No list has counted before the first start.
    drop(Store::open(&folder, &longer).unwrap());
    let refused = refusal(&folder, &owner()).to_string();
    let told =
        "has run in a cluster of the members 1, 2, 3, 4, 5, and the configuration lists 1, 2, 3;";
    assert!(refused.contains(told), "{refused}");
    let rejoined = Store::rejoin(&folder, &owner()).unwrap_err();
    assert!(
        matches!(rejoined, StoreError::OtherMembers { .. }),
        "nor is it thrown away: {rejoined}"
    );
    let opened = Store::open(&folder, &longer).expect("the refused starts change nothing");
    assert_eq!(opened.incarnation, Incarnation(2));
}

#[test]
fn nothing_is_stored_in_a_file_that_was_removed_or_moved() {
    type Loss = fn(&Path);
    let losses: [(&str, Loss); 4] = [
        ("removed", |state| fs::remove_file(state).unwrap()),
        ("moved", |state| fs::rename(state, state.with_extension("moved")).unwrap()),
        ("its folder was moved", |state| {
            let folder = state.parent().unwrap();
            fs::rename(folder, folder.with_extension("moved")).unwrap();
        }),
        ("replaced by a copy", |state| {
            let kept = state.with_extension("kept");
            fs::rename(state, &kept).unwrap();
            fs::copy(&kept, state).unwrap();
        }),
    ];
    for (what, lose) in losses {
        let scratch = created();
        let folder = scratch.join("state_dir");
        Store::create(&folder, &owner(), None).unwrap();
        let Opened { mut store, incarnation, .. } = open(&folder);
        store.save(incarnation, false, b"vote").unwrap();
        lose(&folder.join("state"));
        let error = store.save(incarnation, false, b"another vote").expect_err(what);
        assert!(error.to_string().contains("was removed or replaced"), "{what}: {error}");
        store.save(incarnation, false, b"another vote").expect_err("it has failed for good");
    }
}

#[test]
fn a_second_process_is_refused_and_told_of_the_first() {
    let folder = created();
    let first = open(&folder);
    let refused = refusal(&folder, &owner()).to_string();
    let named = format!("another doyen runs with this state, process {};", std::process::id());
    assert!(refused.contains(&named), "{refused}");
    let rejoined = Store::rejoin(&folder, &owner()).unwrap_err();
    assert!(matches!(rejoined, StoreError::Locked { .. }), "{rejoined}");
    Store::check(&folder, &owner(), |_| true).expect("a check may be made while it runs");
    drop(first);
    assert_eq!(open(&folder).incarnation, Incarnation(2), "the refused start does not count");
}

#[test]
fn a_start_beside_a_rejoin_is_told_of_it_before_and_after_the_first_record() {
    let folder = created();
    fs::remove_file(folder.join("state")).unwrap();
    Store::check_free(&folder).expect("no process runs here");
    let (mut store, lowest) = Store::rejoin(&folder, &owner()).unwrap();
    let told = || Store::check_free(&folder).unwrap_err().to_string();
    let expected = format!("process {} is rejoining", std::process::id());
    assert!(told().contains(&expected), "{}", told());
    store.save(lowest, true, b"rejoining").unwrap();
    assert!(told().contains(&expected), "{}", told());
    store.save(lowest, false, b"rejoined").unwrap();
    assert!(told().contains("another doyen runs with this state"), "{}", told());
    drop(store);
    Store::check_free(&folder).expect("it has ended");
}

#[test]
fn what_others_can_write_is_refused() {
    let folder = created();
    for (path, mode) in [(folder.to_path_buf(), 0o777), (folder.join("state"), 0o620)] {
        let before = fs::metadata(&path).unwrap().mode();
        set_mode(&path, mode);
        let refused = refusal(&folder, &owner());
        assert!(matches!(refused, StoreError::Exposed { .. }), "{refused}");
        assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        set_mode(&path, before);
    }
    assert_eq!(open(&folder).incarnation, Incarnation(1));
}

#[test]
fn what_cannot_be_written_is_refused() {
    as_nobody(|| {
        let folder = created();
        set_mode(&folder.join("state"), 0o400);
        let refused = refusal(&folder, &owner()).to_string();
        assert!(refused.contains("make it belong to the user that doyen runs as"), "{refused}");
        set_mode(&folder.join("state"), 0o600);

        fs::remove_file(folder.join("lock")).unwrap();
        set_mode(&folder, 0o500);
        let refused = Store::open(&folder, &owner()).unwrap_err().to_string();
        assert!(refused.contains("lock: cannot be opened"), "{refused}");
        let other = Store::create(&folder.join("inside"), &owner(), None).unwrap_err();
        assert!(other.to_string().contains("inside: cannot be created"), "{other}");
        set_mode(&folder, 0o700);
        assert_eq!(open(&folder).incarnation, Incarnation(1));
    });
}

#[test]
fn a_file_for_a_folder_and_a_folder_for_a_file_are_refused() {
    let folder = Scratch::new();
    fs::write(folder.join("file"), b"").unwrap();
    let refused = refusal(&folder.join("file"), &owner()).to_string();
    assert!(refused.contains("must name a folder"), "{refused}");
    let refused = Store::create(&folder.join("file"), &owner(), None).unwrap_err().to_string();
    assert!(refused.contains("must name a folder"), "{refused}");
    fs::create_dir(folder.join("state")).unwrap();
    let refused = refusal(&folder, &owner()).to_string();
    assert!(refused.contains("it must be a file"), "{refused}");
}

#[test]
fn a_state_is_never_overwritten() {
    let folder = created();
    let refused = Store::create(&folder, &owner(), None).unwrap_err();
    assert!(matches!(refused, StoreError::Exists(_)), "{refused}");
    assert_eq!(open(&folder).incarnation, Incarnation(1));
}

#[test]
fn after_a_failed_write_nothing_is_stored_any_more() {
    let folder = created();
    let mut store = open(&folder).store;
    // Every write there fails as on a full disk.
    let full = PathBuf::from("/dev/full");
    let medium = Medium::File(File::options().write(true).open(&full).unwrap());
    let sound = std::mem::replace(&mut store.medium, medium);
    let path = std::mem::replace(&mut store.path, full);
    let save = |store: &mut Store| store.save(Incarnation(1), false, b"vote");
    assert_eq!(save(&mut store).unwrap_err().kind(), io::ErrorKind::StorageFull);
    (store.medium, store.path) = (sound, path);
    assert!(save(&mut store).is_err(), "the state of the disk is unknown");
    drop(store);
    let opened = open(&folder);
    assert_eq!((opened.incarnation, opened.durable), (Incarnation(2), None));
}

#[test]
fn a_record_that_is_too_long_is_an_error() {
    let folder = created();
    let long = [0; LONGEST_DURABLE + 1];
    let error = open(&folder).store.save(Incarnation(1), false, &long).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let long = Owner { cluster: "c".repeat(LONGEST_CLUSTER + 1), ..owner() };
    let inside = folder.join("long");
    assert!(Store::create(&inside, &long, None).is_err());
    assert!(!inside.join("state").exists(), "half a state is none");
}

#[test]
fn an_incarnation_never_falls() {
    let folder = created();
    drop(open(&folder));
    let mut store = open(&folder).store;
    let error = store.save(Incarnation(1), false, b"vote").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    store.save(Incarnation(40), false, b"vote").unwrap();
    assert_eq!(store.incarnation(), Incarnation(40));
    assert!(store.save(Incarnation(39), false, b"vote").is_err());
    drop(store);
    assert_eq!(open(&folder).incarnation, Incarnation(41));
}

#[test]
fn a_member_rejoins_until_it_has_finished() {
    let folder = Scratch::new();
    assert_eq!(rejoin(&folder, 7), Incarnation(7));
    let again = open(&folder);
    assert_eq!((again.incarnation, again.origin()), (Incarnation(8), Origin::Rejoining));
    assert_eq!(again.durable, kept(b"rejoining"));
    drop(again);
    // Peers may not have heard of the eighth.
    let (mut store, lowest) = Store::rejoin(&folder, &owner()).unwrap();
    assert_eq!(lowest, Incarnation(9));
    assert!(store.save(Incarnation(8), true, b"").is_err(), "the eighth has been");
    for (saved, rejoining) in [(b"asked", true), (b"other", true), (b"knows", false)] {
        store.save(lowest, rejoining, saved).unwrap();
    }
    assert!(!folder.join("state.old").exists(), "there was nothing worth keeping");
    drop(store);
    let after = open(&folder);
    assert_eq!((after.incarnation, after.origin()), (Incarnation(10), Origin::Joining));
    assert_eq!(after.durable, kept(b"knows"));
}

#[test]
fn who_rejoins_keeps_what_was_there() {
    let folder = created();
    save_once(&folder, b"old copy");
    let old = fs::read(folder.join("state")).unwrap();
    assert_eq!(rejoin(&folder, 5), Incarnation(5));
    assert_eq!(fs::read(folder.join("state.old")).unwrap(), old);
    // Left by one that was killed in the middle.
    fs::write(folder.join("state.new"), b"half").unwrap();
    fs::write(folder.join("state"), b"damaged").unwrap();
    assert_eq!(rejoin(&folder, 6), Incarnation(6));
    assert_eq!(fs::read(folder.join("state.old")).unwrap(), b"damaged");
    assert!(!folder.join("state.new").exists());
    assert_eq!(open(&folder).incarnation, Incarnation(7));
}

/// The node asks the other members first, which may take long and may never end.
#[test]
fn nothing_is_replaced_before_the_first_save() {
    let folder = created();
    let life = save_once(&folder, b"old copy");
    refused::note(&folder, life).unwrap();
    let before = fs::read(folder.join("state")).unwrap();
    let (store, lowest) = Store::rejoin(&folder, &owner()).unwrap();
    assert_eq!(lowest, Incarnation(2));
    assert!(matches!(Store::open(&folder, &owner()), Err(StoreError::Locked { .. })));
    drop(store);
    assert_eq!(fs::read(folder.join("state")).unwrap(), before);
    assert!(folder.join("refused").exists());
    for made in ["state.old", "state.new"] {
        assert!(!folder.join(made).exists(), "{made}");
    }
}

/// Whatever stands in the way of the first save, the old state is still there, and so is its refusal.
#[test]
fn a_first_save_that_fails_loses_nothing() {
    let folder = created();
    let life = save_once(&folder, b"old copy");
    refused::note(&folder, life).unwrap();
    let before = fs::read(folder.join("state")).unwrap();
    for obstacle in ["state.new", "state.old"] {
        fs::create_dir(folder.join(obstacle)).unwrap();
        let (mut store, lowest) = Store::rejoin(&folder, &owner()).unwrap();
        let error = store.save(lowest, true, b"new").unwrap_err().to_string();
        assert!(error.contains(obstacle), "{error}");
        assert!(store.save(lowest, true, b"new").is_err(), "the process must end");
        assert_eq!(fs::read(folder.join("state")).unwrap(), before, "{obstacle}");
        drop(store);
        assert!(matches!(refusal(&folder, &owner()), StoreError::Refused(_)));
        fs::remove_dir(folder.join(obstacle)).unwrap();
    }
    assert_eq!(rejoin(&folder, 1), Incarnation(2));
    assert_eq!(fs::read(folder.join("state.old")).unwrap(), before);
}

/// The disk is new.
#[test]
fn rejoining_needs_no_folder() {
    let scratch = Scratch::new();
    let folder = scratch.join("state");
    assert!(Store::is_lost(&folder, &owner(), |_| true).unwrap());
    assert_eq!(rejoin(&folder, 4), Incarnation(4));
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(folder.join("state")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(open(&folder).incarnation, Incarnation(5));
    let refused = Store::rejoin(&scratch.join("no").join("folder"), &owner()).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("create its parent folder"), "{refused}");
    let other = scratch.join("others");
    fs::create_dir(&other).unwrap();
    set_mode(&other, 0o777);
    let refused = Store::rejoin(&other, &owner()).unwrap_err();
    assert!(matches!(refused, StoreError::Exposed { .. }), "{refused}");
}

#[test]
fn starts_that_cannot_be_counted_are_refused() {
    let folder = Scratch::new();
    assert_eq!(rejoin(&folder, u32::MAX), Incarnation(u32::MAX));
    assert!(matches!(refusal(&folder, &owner()), StoreError::WornOut(_)));
    let rejoined = Store::rejoin(&folder, &owner()).unwrap_err();
    assert!(matches!(rejoined, StoreError::WornOut(_)), "{rejoined}");
}

#[test]
fn only_what_is_lost_needs_a_rejoin() {
    let strange = Saved::Kept(b"strange".to_vec());
    let is_lost = |folder: &Path| Store::is_lost(folder, &owner(), |saved| *saved != strange);
    let folder = created();
    assert!(is_lost(&folder).unwrap(), "it may have run elsewhere");
    save_once(&folder, b"vote");
    assert!(!is_lost(&folder).unwrap());
    // A file that was refused, for as long as it is that file.
    let life = open(&folder).incarnation;
    refused::note(&folder, life).unwrap();
    assert!(is_lost(&folder).unwrap());
    let error = refusal(&folder, &owner());
    assert!(matches!(error, StoreError::Refused(_)) && error.to_string().contains("doyen rejoin"));
    rejoin(&folder, 9);
    assert!(is_lost(&folder).unwrap(), "it has not finished rejoining");
    save_once(&folder, b"vote");
    assert!(!is_lost(&folder).unwrap());
    save_once(&folder, b"strange");
    assert!(is_lost(&folder).unwrap(), "another version's");
    fs::write(folder.join("state"), [7; 4608]).unwrap();
    assert!(is_lost(&folder).unwrap(), "damaged");
    fs::remove_file(folder.join("state")).unwrap();
    assert!(is_lost(&folder).unwrap(), "missing");
    fs::remove_dir_all(&*folder).unwrap();
    assert!(is_lost(&folder).unwrap(), "its folder is missing, too");
    // The state of another cluster is not lost, and must not be given up.
    let other = Owner { cluster: "others".to_owned(), ..owner() };
    let folder = created();
    assert!(matches!(Store::is_lost(&folder, &other, |_| true), Err(StoreError::Foreign { .. })));
}

#[test]
fn an_unreadable_state_is_distinguished_from_a_valid_one() {
    let folder = created();
    save_once(&folder, b"from another world");
    let check = |can_read: bool| Store::check(&folder, &owner(), |_| can_read);
    assert!(check(true).is_ok());
    assert!(matches!(check(false), Err(StoreError::Unreadable(_))));
    assert!(!Store::is_lost(&folder, &owner(), |_| true).unwrap());
    assert!(Store::is_lost(&folder, &owner(), |_| false).unwrap());
}

/// A state that is made later in the same folder comes to the life that was refused, too.
#[test]
fn a_refusal_is_forgotten_with_the_state_that_was_refused() {
    let folder = created();
    let life = open(&folder).incarnation;
    refused::note(&folder, life).unwrap();
    assert!(matches!(refusal(&folder, &owner()), StoreError::Refused(_)));
    rejoin(&folder, 1);
    assert!(!folder.join("refused").exists());

    fs::remove_file(folder.join("state")).unwrap();
    refused::note(&folder, life).unwrap();
    Store::create(&folder, &owner(), None).unwrap();
    for _ in 0..3 {
        open(&folder);
    }
}
