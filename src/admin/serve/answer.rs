//! An answer, made and sent a chunk at a time. The file is read between two chunks and held by
//! nobody while one is sent: who reads slowly keeps no thread and no pages of the file.

use std::{io, sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt as _, net::UnixStream};

use crate::{
    admin::{
        protocol::{Forgot, Line, Request, line},
        stats::{Count, Running, Stats},
        view,
    },
    copy::Policy,
    origin::{AuthorityError, Origin},
    store::{CopyFile, Disk, FileError, Store},
};

/// What is asked about.
pub(super) struct Desk {
    pub(super) store: Arc<Store>,
    /// The policy that is in force.
    pub(super) policy: Box<dyn Fn() -> Policy + Send + Sync>,
}

/// What is sent to a client.
pub(super) struct Answer {
    stream: UnixStream,
    chunk: Vec<u8>,
    /// How long a chunk may take.
    bound: Duration,
}

/// Why an answer ends before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("the copies on disk cannot be read now: {0}; the proxy's log says more")]
    File(#[from] FileError),
    #[error("this is no origin: {0}")]
    Origin(#[from] AuthorityError),
    #[error(
        "the proxy has forgotten it, but the disk takes nothing now, and what is there would count again after a \
         restart; the proxy's log says more"
    )]
    Unwritten,
    #[error("no copies are kept on disk")]
    NoDisk,
}

/// What went wrong with the answer, within what went wrong with the client.
type Told = io::Result<Result<(), Trouble>>;

// === impl Desk ===

impl Desk {
    /// Answers but for the last line.
    pub(super) async fn answer(&self, request: Request, answer: &mut Answer) -> Told {
        let Some(disk) = self.store.disk() else {
            return Ok(Err(Trouble::NoDisk));
        };
        let waiting = disk.waiting();
        let flushed = disk.flush().await;
        if !flushed {
            let note = "the disk takes nothing now; what is told here may not be the latest";
            answer.say(&Line::Note(note.to_owned())).await?;
        }
        let told = match request {
            Request::List { filter } => return self.list(filter, answer).await,
            Request::Show { origin } => self.show(&origin).await,
            Request::Forget { origin } => self.forget(&origin, disk).await.map(Some),
            Request::Stats {} => self.stats(disk, waiting).await.map(Some),
        };
        match told {
            Ok(Some(told)) => answer.say(&told).await.map(Ok),
            Ok(None) => Ok(Ok(())),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    async fn list(&self, filter: String, answer: &mut Answer) -> Told {
        let filter: Arc<str> = filter.into();
        let mut next = Some(String::new());
        while let Some(start) = next {
            let (filter, policy) = (filter.clone(), (self.policy)());
            let read = self.with_file(move |file| view::rows(file, &start, &filter, AT_ONCE, &policy));
            let rows = match read.await {
                Ok((rows, more)) => {
                    next = more;
                    rows
                }
                Err(trouble) => return Ok(Err(trouble)),
            };
            for row in rows {
                answer.say(&Line::Row(Box::new(row))).await?;
            }
        }
        Ok(Ok(()))
    }

    async fn show(&self, origin: &str) -> Result<Option<Line>, Trouble> {
        let (origin, policy) = (origin.parse::<Origin>()?, (self.policy)());
        let detail = self.with_file(move |file| view::detail(file, &origin, &policy)).await?;
        Ok(detail.map(|detail| Line::Detail(Box::new(detail))))
    }

    async fn forget(&self, origin: &str, disk: &Disk) -> Result<Line, Trouble> {
        let origin: Origin = origin.parse()?;
        let name = origin.to_string();
        let known = self.with_file({
            let name = name.clone();
            move |file| file.read(&name)
        });
        // What cannot be read is forgotten all the same.
        let forgotten = known.await.map_or(true, |known| known.is_some());
        self.store.forget(&origin);
        tracing::info!(%origin, "what was known of an origin is forgotten, as an operator asked");
        match disk.flush().await {
            true => Ok(Line::Forgot(Forgot {
                origin: name,
                forgotten,
            })),
            false => Err(Trouble::Unwritten),
        }
    }

    async fn stats(&self, disk: &Disk, waiting: usize) -> Result<Line, Trouble> {
        let mut count = Count::default();
        let mut next = Some(String::new());
        while let Some(start) = next {
            let policy = (self.policy)();
            let mut so_far = std::mem::take(&mut count);
            let counted = self.with_file(move |file| {
                let next = view::count(file, &start, AT_ONCE, &mut so_far, &policy)?;
                Ok((so_far, next))
            });
            (count, next) = counted.await?;
        }
        let path = disk.path().to_owned();
        let (contents, file_bytes) = self
            .with_file(move |file| Ok((file.contents()?, std::fs::metadata(path)?.len())))
            .await?;
        Ok(Line::Stats(Box::new(Stats {
            path: disk.path().display().to_string(),
            file_bytes,
            count,
            texts: contents.texts,
            text_bytes: contents.text_bytes,
            running: Some(Running::new(waiting, self.store.memory())),
        })))
    }

    /// Works with the file, off the asynchronous threads.
    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CopyFile) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let store = self.store.clone();
        let working = tokio::task::spawn_blocking(move || match store.disk() {
            Some(disk) => disk.with_file(work).map_err(Trouble::File),
            None => Err(Trouble::NoDisk),
        });
        // Where the runtime ends, there is no file either.
        working.await.unwrap_or(Err(Trouble::NoDisk))
    }
}

// === impl Answer ===

impl Answer {
    pub(super) fn new(stream: UnixStream, bound: Duration) -> Self {
        Self {
            stream,
            chunk: Vec::new(),
            bound,
        }
    }

    /// Says one line more, and sends what there is where that is a chunk.
    pub(super) async fn say(&mut self, said: &Line) -> io::Result<()> {
        self.chunk.extend(line(said));
        match self.chunk.len() < CHUNK {
            true => Ok(()),
            false => self.send().await,
        }
    }

    /// Sends what there is.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        tokio::time::timeout(self.bound, self.stream.write_all(&self.chunk)).await??;
        self.chunk.clear();
        Ok(())
    }
}

/// Origins that are looked at in one go.
const AT_ONCE: usize = 500;
/// Bytes that are sent together.
const CHUNK: usize = 64 * 1024;
