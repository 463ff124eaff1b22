use proptest::prelude::*;

use super::*;
use crate::Writer;

const MODES: [Persistence; 5] = [
    Persistence::None,
    Persistence::Rdb,
    Persistence::Everysec,
    Persistence::No,
    Persistence::Always,
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Record(u8, Option<u8>),
    /// Begins a sync, or ends the one under way.
    Sync,
    /// Writes the records that have been postponed too long.
    Write,
    Save,
    BackUp,
    Kill,
    Power,
    /// Keeps this much of what might survive.
    Torn(u8),
    Restore,
    /// Rewrites the log.
    Rewrite,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3_u8, any::<Option<u8>>()).prop_map(|(key, value)| Step::Record(key, value)),
        6 => Just(Step::Sync),
        1 => Just(Step::Write),
        1 => Just(Step::Save),
        1 => Just(Step::BackUp),
        1 => Just(Step::Kill),
        1 => Just(Step::Power),
        1 => any::<u8>().prop_map(Step::Torn),
        1 => Just(Step::Restore),
        2 => Just(Step::Rewrite),
    ]
}

fn entry(value: u8) -> Entry {
    Entry {
        value: SmallBytes::new(&[value]).into(),
        expires_wall_ms: Some(u64::from(value)),
        writer: Writer::Operator,
    }
}

/// A naive disk: every record holds its own durability and history.
#[derive(Default)]
struct Naive {
    records: Vec<NaiveRecord>,
    sync_under_way: bool,
    backup: Vec<NaiveRecord>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct NaiveRecord {
    key: u8,
    value: Option<u8>,
    is_written: bool,
    is_in_sync: bool,
    is_synced: bool,
}

impl Naive {
    fn each(&mut self, change: impl FnMut(&mut NaiveRecord)) {
        self.records.iter_mut().for_each(change);
    }

    fn die(&mut self, survives: impl FnMut(&NaiveRecord) -> bool) {
        self.records.retain(survives);
        self.sync_under_way = false;
        self.each(|it| (it.is_written, it.is_in_sync) = (true, false));
    }

    fn step(&mut self, storage: Storage, step: Step) {
        let honest = !storage.lies;
        match step {
            Step::Record(..) if storage.persistence == Persistence::None => {}
            Step::Record(key, value) => {
                let is_written = match storage.persistence {
                    Persistence::None | Persistence::Rdb => false,
                    Persistence::Everysec => !self.sync_under_way,
                    Persistence::No | Persistence::Always => true,
                };
                let at_once = storage.persistence == Persistence::Always && !storage.slow;
                self.records.push(NaiveRecord {
                    key,
                    value,
                    is_written,
                    is_in_sync: false,
                    is_synced: at_once && honest,
                });
            }
            Step::Sync if storage.persistence == Persistence::Always && !storage.slow => {}
            Step::Sync if self.sync_under_way => {
                self.sync_under_way = false;
                self.each(|it| {
                    it.is_synced |= it.is_in_sync && honest;
                    (it.is_written, it.is_in_sync) = (true, false);
                });
            }
            Step::Sync => {
                self.sync_under_way = true;
                self.each(|it| it.is_in_sync = it.is_written);
            }
            Step::Write => self.each(|it| it.is_written = true),
            Step::Save if storage.persistence == Persistence::None => {}
            Step::Save => {
                self.sync_under_way = false;
                self.each(|it| {
                    (it.is_written, it.is_in_sync) = (true, false);
                    it.is_synced |= honest;
                });
            }
            Step::Rewrite => {}
            Step::BackUp => {
                self.backup = self.records.iter().filter(|it| it.is_written).copied().collect();
            }
            Step::Kill => self.die(|it| it.is_written),
            Step::Power => self.die(|it| it.is_synced),
            Step::Torn(draw) => {
                let tail = self.records.iter().filter(|it| it.is_written && !it.is_synced);
                let mut left = torn(draw, tail.count() + 1);
                self.die(|it| {
                    let in_tail = it.is_written && !it.is_synced && left > 1;
                    left -= usize::from(in_tail);
                    it.is_synced || in_tail
                });
            }
            Step::Restore => {
                self.records.clone_from(&self.backup);
                self.die(|_| true);
                self.each(|it| it.is_synced = true);
            }
        }
    }
}

fn torn(draw: u8, count: usize) -> usize {
    usize::from(draw) * count / 256
}

fn play(disk: &mut Disk, step: Step, backups: &mut u16) {
    match step {
        Step::Record(key, value) => disk.record(0, &[key], value.map(entry).as_ref()),
        Step::Sync if disk.is_syncing() => disk.end_sync(),
        Step::Sync if disk.syncs_at_once() => {}
        Step::Sync => disk.begin_sync(),
        Step::Write => disk.write(),
        Step::Save => disk.save(),
        Step::Rewrite => disk.rewrite(),
        Step::BackUp => {
            *backups += 1;
            disk.back_up(*backups);
        }
        Step::Kill => disk.keep_written(),
        Step::Power => disk.keep_synced(),
        Step::Torn(draw) => disk.keep_torn(|count| torn(draw, count)),
        Step::Restore => disk.restore(*backups),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_death_leaves_exactly_what_its_watermark_covers(
        mode in 0..MODES.len(),
        (slow, lies) in any::<(bool, bool)>(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let storage = Storage { persistence: MODES[mode], slow, lies };
        let (mut disk, mut naive, mut backups) = (Disk::new(storage), Naive::default(), 0);
        for &step in &steps {
            play(&mut disk, step, &mut backups);
            naive.step(storage, step);
            prop_assert!(disk.synced <= disk.written && disk.written <= disk.len());
            prop_assert!(disk.syncing.is_none_or(|to| disk.synced <= to && to <= disk.written));
        }
        let mut restored = Databases::default();
        restored.at(0).load(&SmallBytes::new(b"stale"), Some(&entry(9)));
        disk.replay(&mut restored);
        let restored = restored.first();
        for key in 0..3_u8 {
            let last = naive.records.iter().rev().find(|it| it.key == key);
            let expected = last.and_then(|it| it.value).map(entry);
            prop_assert_eq!(restored.stored(&[key]).cloned(), expected);
        }
        prop_assert_eq!(restored.stored(b"stale"), None);
    }
}

/// Returns the number of records, out of one, that survive a death.
fn left_by(storage: impl Into<Storage>, death: fn(&mut Disk)) -> usize {
    let mut disk = Disk::new(storage.into());
    disk.record(0, b"k", Some(&entry(1)));
    death(&mut disk);
    disk.len()
}

#[test]
fn each_mode_keeps_what_the_manual_says() {
    let left = |death: fn(&mut Disk)| MODES.map(|mode| left_by(mode, death));
    // none, rdb, everysec, no, always
    assert_eq!(left(Disk::keep_written), [0, 0, 1, 1, 1]);
    assert_eq!(left(Disk::keep_synced), [0, 0, 0, 0, 1]);
    let stops_cleanly = |disk: &mut Disk| {
        disk.save();
        disk.keep_synced();
    };
    assert_eq!(left(stops_cleanly), [0, 1, 1, 1, 1]);
}

#[test]
fn everysec_answers_before_it_writes_during_a_sync() {
    let mut disk = Disk::new(Persistence::Everysec.into());
    disk.begin_sync();
    disk.record(0, b"k", Some(&entry(1)));
    assert!(disk.is_write_postponed());
    disk.keep_written();
    assert!(disk.is_empty());
}

#[test]
fn a_lying_disk_loses_acknowledged_writes_with_the_power() {
    let lying = Storage { persistence: Persistence::Always, slow: false, lies: true };
    assert_eq!(left_by(lying, Disk::keep_synced), 0);
    assert_eq!(left_by(lying, Disk::keep_written), 1);
}

#[test]
fn the_last_record_of_a_torn_tail_is_dropped() {
    for (left, kept) in [(0, 0), (1, 0), (2, 1), (3, 2)] {
        let mut disk = Disk::new(Persistence::No.into());
        (0..3).for_each(|key| disk.record(0, &[key], Some(&entry(1))));
        disk.keep_torn(|count| {
            assert_eq!(count, 4);
            left
        });
        assert_eq!(disk.len(), kept);
    }
}

#[test]
fn a_log_does_not_grow_with_what_is_void() {
    for mode in [Persistence::Everysec, Persistence::Always] {
        let mut disk = Disk::new(mode.into());
        for number in 0..100_000_u32 {
            let value = (number % 7 != 0).then(|| entry(number as u8));
            disk.record(0, &[(number % 3) as u8], value.as_ref());
            if mode == Persistence::Everysec && number % 100 == 99 {
                disk.begin_sync();
                disk.end_sync();
            }
            assert!(disk.len() < 2 * REWRITTEN_LENGTH_MIN, "{mode:?}");
        }
        disk.save();
        disk.keep_synced();
        let mut restored = Databases::default();
        disk.replay(&mut restored);
        let last = |number: u32| restored.first().stored(&[(number % 3) as u8]).cloned();
        for number in 99_997..100_000_u32 {
            let expected = (number % 7 != 0).then(|| entry(number as u8));
            assert_eq!(last(number), expected, "{mode:?}");
        }
    }
}
