//! The thread that writes to the store of evidence, and the state that it shares with other threads.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Condvar, Mutex};

use super::{
    EvidenceOptions,
    file::{Batch, EVIDENCE, EvidenceFile, WriteOutcome},
    history::{Sighting, day_of},
    queue::{PutResult, Queue},
};
use crate::{
    copy::Sha256,
    database::{Check, FileError, Pause, Trouble, close, guarded, open_patiently},
};

pub(super) struct Shared {
    pub(super) path: PathBuf,
    limits: Mutex<WriterLimits>,
    queue: Mutex<Queue>,
    /// Signalled when there is something to write, and when the store is closed.
    work: Condvar,
    /// Signalled after each write, even if it failed.
    done: Condvar,
    /// The current configuration, which is stored again if the store's file is deleted or replaced.
    config: Mutex<(Sha256, Arc<str>)>,
    pub(super) trouble: Trouble,
    pub(super) is_failing: AtomicBool,
    pub(super) failures: AtomicU64,
    pub(super) texts: AtomicU64,
    pub(super) bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WriterLimits {
    keep: Duration,
    pub(super) max_bytes: u64,
}

#[derive(Default)]
struct Writer {
    file: Option<Opened>,
    /// The device and inode of the file (`identity`), and the random number in it (`id`). They show whether somebody
    /// deleted or replaced the file.
    identity: Option<(u64, u64)>,
    id: Option<u64>,
    /// Whether the file was found damaged. If so, the next opening checks all of it.
    is_suspect: bool,
    pause: Pause,
    /// The last day on which the operational log said that texts were removed because the file was full.
    told_crowded: u32,
}

struct Opened {
    file: EvidenceFile,
    since: Instant,
}

enum Wake {
    Work,
    Idle,
    Closing,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(options: &EvidenceOptions) -> Self {
        Self {
            path: options.path.clone(),
            limits: Mutex::new(WriterLimits::of(options)),
            queue: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            config: Mutex::new((Sha256::of(b""), Arc::default())),
            trouble: Trouble::default(),
            is_failing: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            texts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn put(&self, sha256: Sha256, text: &[u8], day: u32) -> PutResult {
        let mut queue = self.queue.lock();
        let had_work = queue.has_work();
        let result = queue.put(sha256, text, day, self.is_failing.load(Ordering::Relaxed));
        if !had_work && queue.has_work() {
            self.work.notify_one();
        }
        result
    }

    pub(super) fn saw(&self, before: Option<Sighting>, seen: Sighting, day: u32) {
        let mut queue = self.queue.lock();
        let had_work = queue.has_work();
        queue.saw(before, seen, day);
        if !had_work && queue.has_work() {
            self.work.notify_one();
        }
    }

    pub(super) fn set_config(&self, text: &Arc<str>) -> Sha256 {
        let sha256 = Sha256::of(text.as_bytes());
        *self.config.lock() = (sha256, text.clone());
        self.place_config();
        sha256
    }

    fn place_config(&self) {
        let (sha256, text) = self.config.lock().clone();
        self.put(sha256, text.as_bytes(), day_of(SystemTime::now()));
    }

    /// Returns `false` if writing failed or the deadline passed.
    pub(super) fn wait_until_stored(&self, sha256: &Sha256, deadline: Instant) -> bool {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_known(sha256) {
                return true;
            }
            if Instant::now() >= deadline || self.is_failing.load(Ordering::Relaxed) {
                return false;
            }
            self.done.wait_until(&mut queue, deadline);
        }
    }

    pub(super) fn limits(&self) -> WriterLimits {
        *self.limits.lock()
    }

    pub(super) fn set_limits(&self, options: &EvidenceOptions) {
        *self.limits.lock() = WriterLimits::of(options);
    }

    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.work.notify_one();
    }

    pub(super) fn write_until_closed(&self) {
        let mut writer = Writer::default();
        loop {
            let wake = self.wait(&writer);
            match wake {
                Wake::Work | Wake::Closing if self.queue.lock().has_work() => self.write(&mut writer),
                Wake::Work | Wake::Closing => {}
                Wake::Idle => {
                    writer.close();
                    self.look_after(&mut writer);
                }
            }
            if matches!(wake, Wake::Closing) {
                break;
            }
            // Close the file for a moment, so that another process can open it.
            if writer
                .file
                .as_ref()
                .is_some_and(|opened| opened.since.elapsed() > MAX_OPEN)
            {
                writer.close();
                std::thread::sleep(SHARE);
            }
        }
        writer.close();
        if self.queue.lock().has_work() {
            tracing::error!(
                path = %self.path.display(),
                "the evidence that still had to be stored is lost. An earlier message says why it could not be stored. \
                 A decision that is based on a lost robots.txt, tdmrep.json or configuration can be replayed only if \
                 robotgate stores the same text again"
            );
        }
    }

    fn wait(&self, writer: &Writer) -> Wake {
        let idle = match writer.file {
            Some(_) => IDLE,
            None => LOOK_EVERY,
        };
        let until = Instant::now() + idle;
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                return Wake::Closing;
            }
            let pause = writer.pause.rest();
            if queue.has_work() && pause.is_zero() {
                return Wake::Work;
            }
            let idle = until.saturating_duration_since(Instant::now());
            if idle.is_zero() {
                return Wake::Idle;
            }
            let rest = match queue.has_work() {
                true => idle.min(pause),
                false => idle,
            };
            self.work.wait_for(&mut queue, rest);
        }
    }

    /// Checks whether the file was deleted or replaced. Queues the configuration, unless its use today is recorded.
    fn look_after(&self, writer: &mut Writer) {
        if writer.identity.is_some() && identity(&self.path) != writer.identity {
            self.start_anew(writer);
        }
        self.place_config();
    }

    /// Forgets what was in a deleted or replaced file, so that each text is stored again when it is next used.
    fn start_anew(&self, writer: &mut Writer) {
        (writer.identity, writer.id) = (None, None);
        self.queue.lock().forget_all();
        tracing::warn!(
            path = %self.path.display(),
            "the store of evidence was deleted or replaced. Decisions that are based on a robots.txt, tdmrep.json or \
             configuration that only the old file has cannot be replayed without the old file. robotgate stores each \
             robots.txt and tdmrep.json again when it next fetches it"
        );
    }

    fn write(&self, writer: &mut Writer) {
        let taken = self.queue.lock().take();
        let texts: Vec<(Sha256, &[u8])> = taken.texts.iter().map(|(sha256, text)| (*sha256, &**text)).collect();
        let limits = self.limits();
        let day = day_of(SystemTime::now());
        let batch = Batch {
            texts: &texts,
            seen: &taken.seen,
            day,
            oldest: day.saturating_sub(u32::try_from(limits.keep.as_secs() / (24 * 60 * 60)).unwrap_or(u32::MAX)),
            max_bytes: limits.max_bytes,
        };
        let result = writer.open(self).and_then(|file| guarded(|| file.write(&batch)));
        let (stored, callers) = match result {
            Ok(outcome) => {
                self.queue.lock().mark_stored(taken.texts.into_keys(), day);
                self.succeeded(writer, &outcome, day);
                (true, taken.callers)
            }
            Err(error) => {
                writer.is_suspect |= matches!(error, FileError::Damaged(_));
                writer.close();
                writer.pause.lengthen();
                self.failed(&error);
                (false, self.queue.lock().give_back(taken))
            }
        };
        for caller in callers {
            // Sending fails if the caller no longer waits.
            let _ = caller.send(stored);
        }
        self.done.notify_all();
    }

    fn succeeded(&self, writer: &mut Writer, outcome: &WriteOutcome, day: u32) {
        writer.pause = Pause::default();
        self.texts.store(outcome.texts, Ordering::Relaxed);
        self.bytes.store(outcome.bytes, Ordering::Relaxed);
        self.is_failing.store(false, Ordering::Relaxed);
        let message = "robots.txt files, tdmrep.json files and configurations are stored as evidence again";
        self.trouble.end(&self.path, message);
        let mut queue = self.queue.lock();
        queue.forget(&outcome.expired);
        queue.forget(&outcome.crowded_out);
        drop(queue);
        if !outcome.expired.is_empty() {
            tracing::info!(
                texts = outcome.expired.len(),
                "removed texts (robots.txt files, tdmrep.json files or configurations) from the store of evidence, \
                 because they were not used for longer than evidence.keep"
            );
        }
        if !outcome.crowded_out.is_empty() && writer.told_crowded != day {
            writer.told_crowded = day;
            tracing::warn!(
                texts = outcome.crowded_out.len(),
                "the store of evidence reached evidence.max-bytes, so robotgate removed the texts (robots.txt files, \
                 tdmrep.json files or configurations) that have been out of use for the longest time. Decisions that \
                 are based on these texts cannot be replayed; to keep more, raise evidence.max-bytes"
            );
        }
    }

    fn failed(&self, error: &FileError) {
        let text = format!(
            "robots.txt files, tdmrep.json files and configurations cannot be stored in the file of evidence.path: \
             {error}"
        );
        self.trouble.begin(&self.path, text);
        self.is_failing.store(true, Ordering::Relaxed);
    }
}

// === impl WriterLimits ===

impl WriterLimits {
    fn of(options: &EvidenceOptions) -> Self {
        Self {
            keep: options.keep,
            max_bytes: options.max_bytes,
        }
    }
}

// === impl Writer ===

impl Writer {
    fn open(&mut self, shared: &Shared) -> Result<&EvidenceFile, FileError> {
        let opened = match self.file.take() {
            Some(opened) => opened,
            None => {
                let check = match self.is_suspect {
                    true => Check::Full,
                    false => Check::Skip,
                };
                let file = open_patiently(&EVIDENCE, &shared.path, CACHE, check)?;
                self.is_suspect = false;
                if self.id.is_some_and(|id| id != file.id) {
                    shared.start_anew(self);
                }
                (self.id, self.identity) = (Some(file.id), identity(&shared.path));
                Opened {
                    file,
                    since: Instant::now(),
                }
            }
        };
        Ok(&self.file.insert(opened).file)
    }

    fn close(&mut self) {
        close(self.file.take());
    }
}

fn identity(path: &std::path::Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Maximum memory for pages of the open file, in bytes.
const CACHE: usize = 8 * 1024 * 1024;
/// The file is closed when nothing was written for this time.
const IDLE: Duration = Duration::from_millis(100);
/// When the file has been open for this time, it is closed even if more has to be written.
const MAX_OPEN: Duration = Duration::from_secs(2);
/// How long the file stays closed after `MAX_OPEN`, so that other processes can open it.
const SHARE: Duration = Duration::from_millis(50);
/// How often to check that the file still exists and was not replaced.
const LOOK_EVERY: Duration = Duration::from_secs(60);
