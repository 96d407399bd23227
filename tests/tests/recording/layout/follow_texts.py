"""The other side of the tests of texts that grow: h5py with swmr=True.

follow_texts.py FILE DATASET ENDED   reads the texts of DATASET in FILE while it grows. Each must be that of its frame, or empty if
                                     it did not come yet; one that is being written may lack its end at one look, and no
                                     more. Prints how many were right, at each look that found more; when ENDED exists, looks
                                     a last time and prints "end" and the numbers of the frames that have none, as JSON
"""
import json
import pathlib
import sys
import time

import h5py


def expected(number):
    """What is said of a frame: of some as much as there is room for."""
    return "ä" * 128 if number % 100 == 0 else f"Probe {number} äöü €"


def opened(path, ended):
    """A file that was just begun can be opened a moment later."""
    while True:
        try:
            return h5py.File(path, "r", swmr=True)
        except OSError:
            assert not pathlib.Path(ended).exists(), "it can't be opened when it is whole"
            time.sleep(0.01)


def looked_at(dataset, unfinished):
    """The numbers of frames with their text, and of those without any."""
    dataset.refresh()
    texts = dataset[:]
    assert dataset.dtype.itemsize == 256, dataset.dtype
    right, empty = set(), []
    for number, text in enumerate(texts):
        wanted = expected(number).encode()
        if text == wanted:
            right.add(number)
        elif text == b"":
            empty.append(number)
        else:
            assert wanted.startswith(text) and number not in unfinished, f"frame {number}: {text!r}"
            unfinished.add(number)
    return right, empty


def follow(path, name, ended):
    with opened(path, ended) as file:
        dataset = file[name]
        known, unfinished, over = set(), set(), False
        latest = time.monotonic()
        while not over:
            over = pathlib.Path(ended).exists()
            right, empty = looked_at(dataset, unfinished)
            unfinished -= right
            assert known <= right, f"frames {sorted(known - right)} lost their texts"
            assert time.monotonic() - latest < 60, f"no text for a minute, {len(known)} were right"
            if len(right) > len(known):
                latest = time.monotonic()
                print(len(right), flush=True)
            known = right
    assert not unfinished, f"{sorted(unfinished)} were never whole"
    print("end", json.dumps(empty), flush=True)


follow(*sys.argv[1:])
