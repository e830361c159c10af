use std::os::unix::fs::MetadataExt;

use doyen_core::protocol::Origin;

use super::*;
use crate::config::members::MOST_MEMBERS;
use crate::config::{Configuration, Env};
use crate::node::store::Saved;
use crate::scratch::{Scratch, as_nobody, set_mode};

fn founding() -> Founding {
    let members = ["n1=10.0.0.1:7400", "n2=10.0.0.2:7400", "n3=c.example:7400"];
    let members = (1..).zip(members).map(|(id, text)| NewMember::parse(id, text).unwrap());
    let mut members: Vec<NewMember> = members.collect();
    members[0].priority = 3;
    members[2].witness = true;
    Founding {
        cluster: "orders".to_owned(),
        algorithm: Algorithm::Quorum,
        profile: Profile::Fast,
        members,
        term_floor: 0,
        groups: Vec::new(),
        settings: String::new(),
    }
}

fn load(folder: &Path) -> Configuration {
    let folder = folder.to_path_buf();
    let nothing = Env { variables: [].into(), system: folder.join("none"), folder };
    Configuration::load(None, &[], &nothing).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_member_can_start_with_its_folder() {
    let scratch = Scratch::new();
    let folder = scratch.join("orders");
    founding().write(&folder).unwrap();
    assert_eq!(names(&scratch), ["orders"]);
    assert_eq!(names(&folder), ["n1", "n2", "n3"]);
    let key = fs::read(folder.join("n1/key")).unwrap();
    for (id, name) in [(1, "n1"), (2, "n2"), (3, "n3")] {
        let own = folder.join(name);
        assert_eq!(fs::read(own.join("key")).unwrap(), key, "one key for all");
        assert_eq!(fs::metadata(own.join("key")).unwrap().mode() & 0o777, 0o600);
        let Configuration { settings, warnings, .. } = load(&own);
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!((settings.me, settings.own().name.as_str()), (NodeId(id), name));
        assert_eq!(settings.members[0].priority, 3);
        assert!(settings.members[2].witness);
        settings.check().unwrap();
        let opened = Store::open(&settings.state_dir, &settings.owner()).unwrap();
        assert_eq!((opened.origin(), opened.durable), (Origin::Joining, None));
    }
    assert_eq!(load(&folder.join("n3")).settings.listen, "0.0.0.0:7400".parse().unwrap());
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left_of_what_failed() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("n2")).unwrap();
    let refused = founding().write(&scratch).unwrap_err();
    assert!(matches!(&refused, FoundingError::Exists(path) if path.ends_with("n2")), "{refused}");
    assert_eq!(names(&scratch), ["n2"]);
    fs::remove_dir(scratch.join("n2")).unwrap();
    founding().write(&scratch).expect("an existing folder will do");
    assert_eq!(names(&scratch), ["n1", "n2", "n3"]);

    let elsewhere = scratch.join("no").join("where");
    let refused = founding().write(&elsewhere).unwrap_err();
    assert!(matches!(refused, FoundingError::Io(..)), "{refused}");
    as_nobody(|| {
        let folder = Scratch::new();
        set_mode(&folder, 0o500);
        assert!(founding().write(&folder).is_err());
        set_mode(&folder, 0o700);
        assert!(names(&folder).is_empty());
    });
}

#[test]
fn terms_begin_above_the_floor() {
    for algorithm in [Algorithm::Quorum, Algorithm::RingList] {
        let scratch = Scratch::new();
        let mut founding = Founding { algorithm, term_floor: 77, ..founding() };
        founding.members[2].witness = false;
        founding.write(&scratch).unwrap();
        let settings = load(&scratch.join("n1")).settings;
        let opened = Store::open(&settings.state_dir, &settings.owner()).unwrap();
        let Some(Saved::Bare(durable)) = opened.durable else { panic!("no record of its own") };
        let term = match algorithm {
            Algorithm::Quorum => postcard::from_bytes::<Stored>(&durable).unwrap().term,
            _ => postcard::from_bytes(&durable).unwrap(),
        };
        assert_eq!(term, Term(77));
    }
    let scratch = Scratch::new();
    let highest = Founding { term_floor: u64::MAX, ..founding() };
    let refused = highest.write(&scratch).unwrap_err().to_string();
    assert!(refused.starts_with("term_floor: there is no higher term"), "{refused}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let mut founding = founding();
    founding.cluster = "two\nlines".to_owned();
    founding.term_floor = u64::MAX;
    founding.members[0].address = "10.0.0.1".to_owned();
    founding.members[1].name = "../n2".to_owned();
    let problems = founding.check().unwrap_err().problems;
    let expected = [
        "cluster: `two\nlines` contains `\n`; use letters, digits, `-`, `_` and `.`",
        "term_floor: there is no higher term; use a lower one",
        "member 1 (n1): address: `10.0.0.1` is not an address; write for example 10.0.0.1:7400, [fd00::1]:7400 or \
         n1.example:7400",
        "member 2 (../n2): name: `../n2` contains `/`; use letters, digits, `-`, `_` and `.`",
    ];
    assert_eq!(problems, expected, "{problems:#?}");
}

/// A folder whose entries cannot be synced would not be there after a power cut.
#[test]
fn the_folder_that_gets_the_entries_is_synced_or_nothing_is_left() {
    as_nobody(|| {
        let folder = Scratch::new();
        // Entries can be made here, and the folder cannot be opened.
        set_mode(&folder, 0o300);
        for place in [folder.join("orders"), folder.to_path_buf()] {
            let refused = founding().write(&place).unwrap_err();
            assert!(
                matches!(&refused, FoundingError::Io(path, _) if *path == *folder),
                "{refused}"
            );
        }
        set_mode(&folder, 0o700);
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    });
}

#[test]
fn a_cluster_of_more_members_than_a_state_can_hold_is_not_written() {
    let member = |id: u32| NewMember::parse(id, &format!("n{id}=10.0.0.{id}:7400")).unwrap();
    let of = |count| Founding { members: (1..=count).map(member).collect(), ..founding() };
    let most = MOST_MEMBERS as u32;
    of(most).check().unwrap();
    let scratch = Scratch::new();
    let refused = of(most + 1).write(&scratch.join("orders")).unwrap_err().to_string();
    let expected = "member: 65 members are too many; a cluster has at most 64: leave some out";
    assert_eq!(refused, expected);
    assert!(names(&scratch).is_empty());
}
