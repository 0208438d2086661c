#!/usr/bin/env python3
"""Verifies a sealed log, or a proof of a line.

Written from the C2SP texts alone (tlog-tiles, tlog-checkpoint, signed-note, tlog-proof) and RFC 6962, without
knowledge of robotgate's code, except that an entry is the SHA-256 of a line without its line feed.

    verify-seal.py log VKEY CHECKPOINT LOG...
    verify-seal.py tree VKEY FOLDER LOG...
    verify-seal.py proof VKEY PROOF LINE

`log` verifies that a log begins with the lines of a checkpoint that you kept. It needs nothing else of the seal. `tree`
verifies a log by the folder of its seal, `proof` one line. VKEY is the public key, or a file with it. The files of the
log have to be in the order of their lines, and must not contain erased lines.
"""

import base64
import hashlib
import pathlib
import sys

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ModuleNotFoundError:
    sys.exit("verify-seal.py needs the Debian package python3-cryptography, or the Python package cryptography")


def need(condition, what):
    """Raises ValueError unless the condition holds. Unlike assert, this also works with `python3 -O`."""
    if not condition:
        raise ValueError(what)


def decode(text, what):
    """Decodes base64. Raises ValueError with `what` if the text is damaged."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{what} is damaged: it is not base64") from None


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf(entry):
    return sha256(b"\x00", entry)


def node(left, right):
    return sha256(b"\x01", left, right)


def merkle(hashes):
    """Returns the Merkle Tree Hash (RFC 6962 2.1) over the hashes of leaves or of subtrees of equal size."""
    if not hashes:
        return sha256(b"")
    if len(hashes) == 1:
        return hashes[0]
    k = 1 << (len(hashes) - 1).bit_length() - 1
    return node(merkle(hashes[:k]), merkle(hashes[k:]))


def checkpoint(note, vkey):
    """Checks a signed checkpoint. Returns its size and root."""
    need(vkey.count("+") >= 2, f"this is neither a public key nor a file with one: {vkey}")
    need("\n" not in vkey, "the file has more than one public key; name the key that signed the checkpoint")
    need("\n\n" in note, "the file with the checkpoint contains none")
    name, key_id, key = vkey.split("+", 2)
    key = decode(key, "the public key")
    need(len(key) == 33 and key[0] == 1, "the public key is not an Ed25519 key")
    need(sha256(name.encode(), b"\n", key)[:4].hex() == key_id, "the public key is damaged: its id does not match")
    need(not any(ord(c) < 0x20 and c != "\n" for c in note), "the checkpoint contains control characters")
    text, signatures = note.rsplit("\n\n", 1)
    text += "\n"
    valid = 0
    for line in signatures.splitlines():
        dash, *words = line.split(" ")
        need(dash == "\u2014" and len(words) == 2, f"this line of the checkpoint is not a signature: {line}")
        signer, signature = words[0], decode(words[1], "a signature of the checkpoint")
        if signer == name and signature[:4].hex() == key_id:
            Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[4:], text.encode())
            valid += 1
    need(valid, "the checkpoint has no signature of this key")
    origin, size, root, *_ = [*text.splitlines(), "", "", ""]
    need(origin == name and size.isdecimal(), f"the checkpoint is of another log, or is damaged: {text}")
    return int(size), decode(root, "the checkpoint")


def is_vkey(text):
    name, *rest = text.split("+", 2)
    key = decode(rest[1], "the public key") if len(rest) == 2 else b""
    return len(key) == 33 and sha256(name.encode(), b"\n", key)[:4].hex() == rest[0]


def tile_path(level, index, width):
    digits = str(index)
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[i : i + 3] for i in range(0, len(digits), 3)]
    path = "/".join(["x" + group for group in groups[:-1]] + groups[-1:])
    return f"tile/{level}/{path}" + (f".p/{width}" if width < 256 else "")


def tiles(folder, level, count):
    """Reads the tiles of a level that has `count` hashes. For "entries", reads the bundles of all `count` entries."""
    for index in range(-(-count // 256)):
        width = min(256, count - index * 256)
        yield index, width, (folder / tile_path(level, index, width)).read_bytes()


def read_lines(logs):
    # The last line of a file can be incomplete, and is then not sealed.
    return [line for log in logs for line in pathlib.Path(log).read_bytes().split(b"\n")[:-1]]


def log(vkey, path, logs):
    size, root = checkpoint(pathlib.Path(path).read_text("utf-8"), vkey)
    lines = read_lines(logs)
    need(len(lines) >= size, f"the log has {len(lines)} of the {size} lines")
    need(merkle([leaf(sha256(line)) for line in lines[:size]]) == root, "the lines are not those of the checkpoint")
    print(f"{size} lines are good")


def tree(vkey, folder, logs):
    folder = pathlib.Path(folder)
    size, root = checkpoint((folder / "checkpoint").read_text("utf-8"), vkey)
    entries = []
    for index, width, data in tiles(folder, "entries", size):
        for at in range(width):
            need(data[at * 34 : at * 34 + 2] == b"\x00\x20", f"{tile_path('entries', index, width)} is damaged")
            entries.append(data[at * 34 + 2 : at * 34 + 34])
        need(len(data) == width * 34, f"{tile_path('entries', index, width)} is damaged")
    hashes, level = [leaf(entry) for entry in entries], 0
    need(merkle(hashes) == root, "the entries in the folder are not those of the checkpoint")
    while hashes:
        for index, width, data in tiles(folder, level, len(hashes)):
            expected = b"".join(hashes[index * 256 : index * 256 + width])
            need(data == expected, f"{tile_path(level, index, width)} is damaged")
        full = len(hashes) // 256
        hashes, level = [merkle(hashes[i * 256 : i * 256 + 256]) for i in range(full)], level + 1
    lines = read_lines(logs)
    need([sha256(line) for line in lines[:size]] == entries, "the lines are not the entries")
    print(f"{size} entries are good")


def proof(vkey, path, line):
    text = pathlib.Path(path).read_text("utf-8")
    need("\n\n" in text, f"this is not a proof of a line: {path}")
    head, note = text.split("\n\n", 1)
    magic, index, *hashes = head.split("\n")
    need(magic == "c2sp.org/tlog-proof@v1", f"this is not a proof of a line: {magic}")
    if index.startswith("extra "):
        index, *hashes = hashes
    index = index.removeprefix("index ")
    need(index.isdecimal(), f"the proof has no index: {index}")
    index = int(index)
    size, root = checkpoint(note, vkey)
    need(index < size, "the proof is for a line after the checkpoint")
    # The algorithm of RFC 9162 2.1.3.2, which computes the root from the line and the proof.
    place, last, computed = index, size - 1, leaf(sha256(pathlib.Path(line).read_bytes()))
    for sibling in hashes:
        sibling = decode(sibling, "the proof")
        need(last > 0 and len(sibling) == 32, "the proof has the wrong length")
        if place & 1 or place == last:
            computed = node(sibling, computed)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            computed = node(computed, sibling)
        place, last = place >> 1, last >> 1
    need(last == 0 and computed == root, "the line is not in the tree")
    print(f"entry {index} is proven by the checkpoint of {size} lines")


if __name__ == "__main__":
    is_proof = sys.argv[1:2] == ["proof"]
    if len(sys.argv) < 5 or sys.argv[1] not in ("log", "tree", "proof") or (is_proof and len(sys.argv) != 5):
        sys.exit(__doc__)
    what, vkey, first, *rest = sys.argv[1:]
    try:
        # Do not look for a file if this is a key, because somebody else could create a file with the key as its name.
        if not is_vkey(vkey) and pathlib.Path(vkey).is_file():
            vkey = pathlib.Path(vkey).read_text("utf-8").strip()
        if what == "proof":
            proof(vkey, first, *rest)
        else:
            (log if what == "log" else tree)(vkey, first, rest)
    except InvalidSignature:
        sys.exit("not proven: the signature of the checkpoint is not valid")
    except (ValueError, OSError) as error:
        sys.exit(f"not proven: {error}")
