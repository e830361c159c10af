use doyen_core::algorithm::quorum::{Drain, Stored};
use doyen_core::members::Epoch;
use doyen_core::time::Span;

use super::*;
use crate::scratch::{Scratch, as_nobody, set_mode};

fn owner() -> Owner {
    Owner { cluster: "orders".to_owned(), member: NodeId(2), algorithm: Algorithm::Quorum }
}

fn created() -> Scratch {
    let folder = Scratch::new();
    Store::create(&folder, &owner(), None).unwrap();
    folder
}

fn open(folder: &Path) -> Opened {
    Store::open(folder, &owner()).unwrap()
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
fn what_was_saved_last_is_there_after_a_restart_and_starts_are_counted() {
    let folder = created();
    for start in 1..=5_u8 {
        let mut opened = open(&folder);
        assert_eq!(opened.incarnation, Incarnation(u32::from(start)));
        assert_eq!(opened.first, start == 1);
        assert!(!opened.rejoining);
        // What the last process saved last: its third.
        assert_eq!(opened.durable, (start > 1).then(|| vec![start - 1, 3]));
        for saved in 1..=3 {
            opened.store.save(&[start, saved]).unwrap();
        }
    }
}

#[test]
fn a_start_counts_though_nothing_was_saved() {
    let folder = created();
    assert_eq!(open(&folder).origin(), Origin::Founding { leader: None });
    let second = open(&folder);
    assert_eq!((second.incarnation, second.first), (Incarnation(2), false));
    assert_eq!(second.durable, None);
    assert_eq!(second.origin(), Origin::Joining);
}

#[test]
fn a_state_made_with_a_floor_does_not_begin_from_nothing() {
    let folder = Scratch::new();
    let inside = folder.join("made");
    Store::create(&inside, &owner(), Some(b"floor")).unwrap();
    assert_eq!(fs::metadata(&inside).unwrap().mode() & 0o777, 0o700);
    let opened = open(&inside);
    assert_eq!(opened.durable.as_deref(), Some(&b"floor"[..]));
    assert_eq!(opened.origin(), Origin::Joining);
}

#[test]
fn a_torn_start_leaves_the_start_before() {
    let folder = created();
    open(&folder).store.save(b"vote").unwrap();
    let before = fs::read(folder.join("state")).unwrap();
    drop(open(&folder));
    let after = fs::read(folder.join("state")).unwrap();
    let changed = (0..FILE).find(|&byte| before[byte] != after[byte]).unwrap() / SLOT * SLOT;
    for cut in [1, 100, 300, SLOT - 1] {
        let mut torn = before.clone();
        torn[changed..changed + cut].copy_from_slice(&after[changed..changed + cut]);
        fs::write(folder.join("state"), &torn).unwrap();
        let opened = open(&folder);
        assert_eq!((opened.incarnation, opened.durable), (Incarnation(2), Some(b"vote".to_vec())));
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
        term: Epoch(u64::MAX),
        voted: Some(NodeId(u32::MAX)),
        longest: Span::from_nanos(u64::MAX),
        drained: Some(Drain::For(Span::from_nanos(u64::MAX))),
    };
    assert!(postcard::to_allocvec(&most).unwrap().len() <= LONGEST_DURABLE);
}

#[test]
fn a_lost_state_does_not_look_like_a_first_start() {
    let folder = created();
    fs::remove_file(folder.join("state")).unwrap();
    let refused = refusal(&folder, &owner()).to_string();
    assert!(refused.contains("doyen init") && refused.contains("--rejoin"), "{refused}");
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
    assert!(refused.to_string().contains("--rejoin"));
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
    let rejoined = Store::rejoin(&folder, &other, Incarnation(9)).unwrap_err();
    assert!(matches!(rejoined, StoreError::Foreign { .. }), "nor is it thrown away: {rejoined}");
    assert_eq!(open(&folder).incarnation, Incarnation(1));
}

#[test]
fn what_another_algorithm_stored_is_not_read() {
    let folder = created();
    let bully = Owner { algorithm: Algorithm::Bully, ..owner() };
    // As long as nothing was stored, there is nothing to misread.
    Store::open(&folder, &bully).unwrap().store.save(b"epoch").unwrap();
    let refused = refusal(&folder, &owner()).to_string();
    assert!(refused.contains("holds what `bully` stored"), "{refused}");
}

#[test]
fn a_second_process_is_refused_and_told_of_the_first() {
    let folder = created();
    let first = open(&folder);
    let refused = refusal(&folder, &owner()).to_string();
    let named = format!("another doyen runs with this state, pid {};", std::process::id());
    assert!(refused.contains(&named), "{refused}");
    let rejoined = Store::rejoin(&folder, &owner(), Incarnation(9)).unwrap_err();
    assert!(matches!(rejoined, StoreError::Locked { .. }), "{rejoined}");
    Store::check(&folder, &owner(), |_| true).expect("a check may be made while it runs");
    drop(first);
    assert_eq!(open(&folder).incarnation, Incarnation(2), "the refused start does not count");
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
        assert!(refused.contains("give it to the user that doyen runs as"), "{refused}");
        set_mode(&folder.join("state"), 0o600);

        fs::remove_file(folder.join("lock")).unwrap();
        set_mode(&folder, 0o500);
        let refused = Store::open(&folder, &owner()).unwrap_err().to_string();
        assert!(refused.contains("lock: cannot be opened"), "{refused}");
        let other = Store::create(&folder.join("inside"), &owner(), None).unwrap_err();
        assert!(other.to_string().contains("inside: cannot be made"), "{other}");
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
    assert!(refused.contains("there must be a file"), "{refused}");
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
    let sound =
        std::mem::replace(&mut store.file, File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(store.save(b"vote").unwrap_err().kind(), io::ErrorKind::StorageFull);
    store.file = sound;
    assert!(store.save(b"vote").is_err(), "nobody knows what is on the disk");
    drop(store);
    let opened = open(&folder);
    assert_eq!((opened.incarnation, opened.durable), (Incarnation(2), None));
}

#[test]
fn a_record_that_is_too_long_is_an_error() {
    let folder = created();
    let error = open(&folder).store.save(&[0; LONGEST_DURABLE + 1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let long = Owner { cluster: "c".repeat(LONGEST_CLUSTER + 1), ..owner() };
    let inside = folder.join("long");
    assert!(Store::create(&inside, &long, None).is_err());
    assert!(!inside.join("state").exists(), "half a state is none");
}

#[test]
fn who_rejoins_does_so_until_something_is_stored() {
    let folder = Scratch::new();
    let opened = Store::rejoin(&folder, &owner(), Incarnation(7)).unwrap();
    assert_eq!((opened.incarnation, opened.origin()), (Incarnation(7), Origin::Rejoining));
    drop(opened);
    let again = open(&folder);
    assert_eq!((again.incarnation, again.origin()), (Incarnation(8), Origin::Rejoining));
    drop(again);
    // Peers may not have heard of the eighth.
    let mut opened = Store::rejoin(&folder, &owner(), Incarnation(8)).unwrap();
    assert_eq!(opened.incarnation, Incarnation(9));
    assert!(!folder.join("state.old").exists(), "there was nothing worth keeping");
    opened.store.save(b"adopted").unwrap();
    drop(opened);
    let after = open(&folder);
    assert_eq!((after.incarnation, after.origin()), (Incarnation(10), Origin::Joining));
    assert_eq!(after.durable.as_deref(), Some(&b"adopted"[..]));
}

#[test]
fn who_rejoins_keeps_what_was_there() {
    let folder = created();
    open(&folder).store.save(b"old copy").unwrap();
    let old = fs::read(folder.join("state")).unwrap();
    assert_eq!(
        Store::rejoin(&folder, &owner(), Incarnation(5)).unwrap().incarnation,
        Incarnation(5)
    );
    assert_eq!(fs::read(folder.join("state.old")).unwrap(), old);
    // Left by one that was killed in the middle.
    fs::write(folder.join("state.new"), b"half").unwrap();
    fs::write(folder.join("state"), b"damaged").unwrap();
    drop(Store::rejoin(&folder, &owner(), Incarnation(6)).unwrap());
    assert_eq!(fs::read(folder.join("state.old")).unwrap(), b"damaged");
    assert_eq!(open(&folder).incarnation, Incarnation(7));
}

#[test]
fn starts_that_cannot_be_counted_are_refused() {
    let folder = Scratch::new();
    drop(Store::rejoin(&folder, &owner(), Incarnation(u32::MAX)).unwrap());
    assert!(matches!(refusal(&folder, &owner()), StoreError::WornOut(_)));
    let rejoined = Store::rejoin(&folder, &owner(), Incarnation(1)).unwrap_err();
    assert!(matches!(rejoined, StoreError::WornOut(_)), "{rejoined}");
}

#[test]
fn only_what_is_lost_needs_a_rejoin() {
    let is_lost = |folder: &Path| Store::is_lost(folder, &owner(), |stored| stored != b"strange");
    let folder = created();
    assert!(is_lost(&folder).unwrap(), "nobody can say whether it has run elsewhere");
    open(&folder).store.save(b"vote").unwrap();
    assert!(!is_lost(&folder).unwrap());
    // A file that was refused, for as long as it is that file.
    let life = open(&folder).incarnation;
    refused::note(&folder, life).unwrap();
    assert!(is_lost(&folder).unwrap());
    let error = refusal(&folder, &owner());
    assert!(matches!(error, StoreError::Refused(_)) && error.to_string().contains("--rejoin"));
    let mut rejoined = Store::rejoin(&folder, &owner(), Incarnation(9)).unwrap();
    rejoined.store.save(b"vote").unwrap();
    drop(rejoined);
    assert!(!is_lost(&folder).unwrap());
    open(&folder).store.save(b"strange").unwrap();
    assert!(is_lost(&folder).unwrap(), "another version's");
    fs::write(folder.join("state"), [7; 4608]).unwrap();
    assert!(is_lost(&folder).unwrap(), "damaged");
    fs::remove_file(folder.join("state")).unwrap();
    assert!(is_lost(&folder).unwrap(), "missing");
    // Somebody else's is not lost, and not for this member to give up.
    let other = Owner { cluster: "others".to_owned(), ..owner() };
    let folder = created();
    assert!(matches!(Store::is_lost(&folder, &other, |_| true), Err(StoreError::Foreign { .. })));
}

#[test]
fn what_cannot_be_read_is_told_from_what_is_sound() {
    let folder = created();
    open(&folder).store.save(b"from another world").unwrap();
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
    Store::rejoin(&folder, &owner(), Incarnation(1)).unwrap();
    assert!(!folder.join("refused").exists());

    fs::remove_file(folder.join("state")).unwrap();
    refused::note(&folder, life).unwrap();
    Store::create(&folder, &owner(), None).unwrap();
    for _ in 0..3 {
        open(&folder);
    }
}
