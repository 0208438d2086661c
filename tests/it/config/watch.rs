//! The watcher reports every kind of change to the file, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use robotgate::config::Watcher;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::wait;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("robotgate.toml", "1");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn replace(&self, name: &str, content: &str) {
        self.write("new~", content);
        fs::rename(self.path("new~"), self.path(name)).unwrap();
    }

    fn watch(&self) -> Watcher {
        Watcher::new(&self.path("robotgate.toml")).unwrap()
    }
}

async fn is_seen(watcher: &mut Watcher) {
    wait::within("the change to be seen", watcher.changed()).await;
}

async fn only_this_change_is_seen(watcher: &mut Watcher, path: &Path, change: impl FnOnce()) {
    // Wait longer than the debouncer's quiet time, so that a wrong report cannot be mistaken for the right one.
    let early = timeout(Duration::from_millis(600), watcher.changed()).await;
    assert!(early.is_err(), "{} was reported and had not changed", path.display());
    change();
    is_seen(watcher).await;
}

#[tokio::test]
async fn the_watcher_sees_a_file_replaced_by_rename() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    for content in ["2", "3"] {
        folder.replace("robotgate.toml", content);
        is_seen(&mut watcher).await;
    }
}

#[tokio::test]
async fn the_watcher_sees_a_file_written_in_place() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    for content in ["2", "3"] {
        folder.write("robotgate.toml", content);
        is_seen(&mut watcher).await;
    }
}

#[tokio::test]
async fn the_watcher_sees_a_file_deleted_and_created_again() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    let path = folder.path("robotgate.toml");
    fs::remove_file(&path).unwrap();
    only_this_change_is_seen(&mut watcher, &path, || folder.write("robotgate.toml", "2")).await;
}

#[tokio::test]
async fn the_watcher_sees_a_file_created_later() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let mut watcher = folder.watch();
    folder.write("robotgate.toml", "1");
    is_seen(&mut watcher).await;
}

#[tokio::test]
async fn the_watcher_ignores_other_files_and_unchanged_contents() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    let path = folder.path("robotgate.toml");
    folder.write("other", "x");
    folder.write("robotgate.toml", "1");
    folder.replace("robotgate.toml", "1");
    fs::File::open(&path)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    only_this_change_is_seen(&mut watcher, &path, || folder.replace("robotgate.toml", "2")).await;
}

/// Simulates how Kubernetes mounts a ConfigMap: `robotgate.toml` → `..data/robotgate.toml`, `..data` → `..1`.
#[tokio::test]
async fn the_watcher_sees_a_symbolic_link_changed_two_steps_away() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let version = |name: &str, content: &str| {
        fs::create_dir(folder.path(name)).unwrap();
        folder.write(&format!("{name}/robotgate.toml"), content);
    };
    let swap = |name: &str| {
        symlink(name, folder.path("..data_tmp")).unwrap();
        fs::rename(folder.path("..data_tmp"), folder.path("..data")).unwrap();
    };
    version("..1", "1");
    swap("..1");
    symlink("..data/robotgate.toml", folder.path("robotgate.toml")).unwrap();

    let mut watcher = folder.watch();
    for (old, new) in [("..1", "..2"), ("..2", "..3")] {
        version(new, new);
        swap(new);
        fs::remove_dir_all(folder.path(old)).unwrap();
        is_seen(&mut watcher).await;
    }
    folder.write("..3/robotgate.toml", "in place");
    is_seen(&mut watcher).await;
}

#[tokio::test]
async fn the_watcher_follows_links_to_files_and_folders() {
    let (links, files) = (Folder(tempfile::tempdir().unwrap()), Folder::new());
    symlink(files.0.path(), links.path("conf")).unwrap();
    let mut watcher = Watcher::new(&links.path("conf/robotgate.toml")).unwrap();
    files.replace("robotgate.toml", "2");
    is_seen(&mut watcher).await;

    let other = Folder::new();
    symlink(other.0.path(), links.path("conf_tmp")).unwrap();
    fs::rename(links.path("conf_tmp"), links.path("conf")).unwrap();
    is_seen(&mut watcher).await;
    other.write("robotgate.toml", "4");
    is_seen(&mut watcher).await;
}

#[tokio::test]
async fn the_watcher_sees_a_folder_removed_and_created_again() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let conf = folder.path("conf");
    fs::create_dir(&conf).unwrap();
    folder.write("conf/robotgate.toml", "1");
    let file = conf.join("robotgate.toml");
    let mut watcher = Watcher::new(&file).unwrap();
    fs::remove_dir_all(&conf).unwrap();
    only_this_change_is_seen(&mut watcher, &file, || {
        fs::create_dir(&conf).unwrap();
        folder.write("conf/robotgate.toml", "2");
    })
    .await;
    folder.write("conf/robotgate.toml", "3");
    is_seen(&mut watcher).await;
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_change() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    folder.write("robotgate.toml", "2");
    wait::within("the change to be seen", async {
        // This is like a `select!` whose other branch is always faster.
        while timeout(Duration::from_micros(100), watcher.changed()).await.is_err() {}
    })
    .await;
}

#[tokio::test]
async fn the_watcher_sees_changes_of_additional_files() {
    let folder = Folder::new();
    let mut watcher = folder.watch();
    watcher.follow(&[folder.path("credentials")]).unwrap();

    folder.write("credentials", "a");
    is_seen(&mut watcher).await;
    fs::remove_file(folder.path("credentials")).unwrap();
    let path = folder.path("credentials");
    only_this_change_is_seen(&mut watcher, &path, || folder.replace("credentials", "b")).await;
    folder.write("robotgate.toml", "2");
    is_seen(&mut watcher).await;

    // The old path is no longer watched.
    fs::create_dir(folder.path("secrets")).unwrap();
    watcher.follow(&[folder.path("secrets/credentials")]).unwrap();
    folder.write("credentials", "c");
    only_this_change_is_seen(&mut watcher, &path, || folder.write("secrets/credentials", "d")).await;
}
