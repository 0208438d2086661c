use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn the_socket_is_for_its_user_alone_and_goes_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robots.redb");
    let (socket, _listener) = Socket::bind(&file).unwrap();
    let path = folder.path().join("robots.redb.sock");
    assert_eq!(socket.path, path);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    assert!(UnixStream::connect(&path).is_ok());
    drop(socket);
    assert!(!path.exists());
}

#[test]
fn the_socket_of_one_that_was_killed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robots.redb");
    let killed = StdListener::bind(path_beside(&file)).unwrap();
    drop(killed);
    assert!(UnixStream::connect(path_beside(&file)).is_err());
    let (socket, _listener) = Socket::bind(&file).unwrap();
    assert!(UnixStream::connect(&socket.path).is_ok());
}

#[test]
fn what_is_no_socket_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("robots.redb.sock");
    fs::write(&taken, "precious").unwrap();
    let bound = Socket::bind(&folder.path().join("robots.redb"));
    assert!(matches!(bound, Err(SocketError::Taken)));
    assert_eq!(fs::read_to_string(taken).unwrap(), "precious");
}

#[test]
fn a_path_that_is_too_long_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let bound = Socket::bind(&folder.path().join("x".repeat(MAX_PATH)));
    assert!(matches!(bound, Err(SocketError::TooLong)));
}
