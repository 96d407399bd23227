"""Whether programs that no one here wrote take an HDF5 file as NeXus: prints a line for each problem, nothing if there is none.

nexus.py nxmx FILE...  as NXmx: pynx validate (pynxtools), what the definition demands, the geometry as nxmx of Diamond reads
                       it, and what follows
nexus.py plot FILE...  the default plot: h5py follows @default and @signal, old and new, and silx finds the same dataset
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import h5py
import numpy
import nxmx
import pynxtools
import silx.io.nxdata

NXDL = "{http://definition.nexusformat.org/nxdl/3.1}"
# pixel_mask is a field of NXmx itself; pynxtools 0.16 takes the end of the name for that of a mask of a field `pixel`.
DETECTOR = "/entry/instrument/detector"
# Likewise module_offset is a field of NXdetector_module.
MODULES = f"{DETECTOR}/modules/"
NO_PROBLEM = [f"Reserved suffix '_mask' was used in {DETECTOR}/{mask}, but there is no associated field pixel."
              for mask in ("pixel_mask", "detectorSpecific/pixel_mask")]
# The ends and increments of a rotation are angles; pynxtools looks for a transformation_type at them, not at their axis.
ANGLES = ("unit category NX_TRANSFORMATION of 'AXISNAME_end'", "unit category NX_TRANSFORMATION of 'AXISNAME_increment_set'")


def main(check, *paths):
    checks = [validated, complete, geometry, plotted] if check == "nxmx" else [plotted]
    for path in paths:
        name = f"{path}: " if len(paths) > 1 else ""
        for each in checks:
            for problem in each(path):
                print(f"{name}{each.__name__}: {problem}")


def validated(path):
    pynx = pathlib.Path(sys.executable).parent / "pynx"
    with tempfile.TemporaryDirectory() as home:
        copy = pathlib.Path(home) / pathlib.Path(path).name
        shutil.copy(path, copy)
        decode(copy)
        done = subprocess.run([pynx, "validate", copy], capture_output=True, text=True)
    said = [line.removeprefix("WARNING: ") for line in (done.stdout + done.stderr).splitlines() if line]
    known = [line for line in said if line in NO_PROBLEM or any(words in line for words in ANGLES)]
    # It knows no members of a collection.
    known += [line for line in said if MODULES in line
              and (line.startswith("Field ") and line.endswith("has no documentation.") or "no associated field module." in line)]
    problems = [line for line in said if line not in known and not line.endswith("application definition.")]
    if not any("application definition" in line for line in said):
        yield "no word of a definition"
    if any("NOT valid" in line for line in said) and not problems and not known:
        yield "not valid"
    yield from problems


def decode(path):
    """pynxtools 0.16 puts NX_class into an XPath as h5py gives it, and stops at the bytes of a text of fixed length. It also
    takes no such text for a time."""
    with h5py.File(path, "r+") as file:
        things = [file]
        file.visititems(lambda _, thing: things.append(thing))
        for thing in things:
            for name, value in dict(thing.attrs).items():
                if isinstance(value, bytes):
                    thing.attrs[name] = text(value)
            if thing.name.rpartition("/")[2] in ("start_time", "end_time", "end_time_estimated") and not thing.ndim:
                group, name, value = thing.parent, thing.name, text(thing[()])
                del group[name]
                group[name] = value


def complete(path):
    """What the definition demands, group by group: pynxtools 0.16 does not notice that a whole group is not there."""
    definition = pathlib.Path(pynxtools.__file__).parent / "definitions/applications/NXmx.nxdl.xml"
    entry = xml.etree.ElementTree.parse(definition).getroot().find(f"{NXDL}group")
    with h5py.File(path) as file:
        yield from lacking(entry, file["entry"])


def text(value):
    """h5py reads texts of fixed length as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def lacking(definition, thing):
    for part in definition:
        kind = part.tag.removeprefix(NXDL)
        name = part.get("name")
        demanded = part.get("minOccurs") != "0" and "true" not in (part.get("optional"), part.get("recommended"))
        if kind == "group":
            there = [member for member in thing.values() if text(member.attrs.get("NX_class")) == part.get("type")]
        elif kind == "field":
            there = [thing[name]] if name in thing else []
        elif kind == "attribute":
            there = [None] if name in thing.attrs else []
        else:
            continue
        if demanded and not there:
            yield f"{thing.name} has no {kind} {name or part.get('type')}"
        for member in there:
            if member is not None:
                yield from lacking(part, member)


def geometry(path):
    """Where the corner of the first pixel is follows from the chain, and has to be where beam centre and distance put it."""
    with h5py.File(path) as file:
        entry = nxmx.NXmx(file).entries[0]
        if entry.definition != "NXmx":
            yield f"definition {entry.definition}"
        detector = entry.instruments[0].detectors[0]
        module = detector.modules[0]
        if list(module.data_size) != list(file["entry/data/data"].shape[1:]):
            yield f"a module of {list(module.data_size)} pixels"
        if detector.beam_center_x is None or detector.distance is None:
            return
        fast, slow = (file[f"entry/instrument/detector/{axis}_pixel_size"][()] * 1e3 for axis in "xy")
        placed = file["entry/instrument/detector"].get("modules", {}).values()
        for module in [module, *(nxmx.NXdetector_module(group) for group in placed)]:
            chain = nxmx.get_dependency_chain(module.fast_pixel_direction)
            corner = nxmx.get_cumulative_transformation(chain[1:])[0][:3, 3]
            row, column = module.data_origin
            expected = [(detector.beam_center_x.magnitude - column) * fast,
                        (detector.beam_center_y.magnitude - row) * slow, detector.distance.to("mm").magnitude]
            if not numpy.allclose(corner, expected):
                yield f"the first pixel of a module is at {corner}, not at {expected} mm"
        if [bool(value) for value in corrections(file)] != [value.dtype == bool for value in corrections(file)]:
            yield "corrections are no booleans"


def corrections(file):
    """h5py reads the enumeration of its own booleans as such."""
    detector = file["entry/instrument/detector"]
    return [field[()] for name, field in detector.items() if name.endswith("_applied")]


def plotted(path):
    with h5py.File(path) as file:
        group = file
        while "signal" not in group.attrs:
            if "default" not in group.attrs:
                yield f"{group.name} has neither @default nor @signal"
                return
            group = group[text(group.attrs["default"])]
        signal = group[text(group.attrs["signal"])]
        old = [name for name, field in group.items() if field.attrs.get("signal") == 1]
        if old != [text(group.attrs["signal"])]:
            yield f"@signal=1 at {old}"
        default = silx.io.nxdata.get_default(file, validate=True)
        if default is None or not default.is_valid:
            yield f"silx finds no plot: {default and default.issues}"
        elif default.signal.name != signal.name:
            yield f"silx plots {default.signal.name}, h5py finds {signal.name}"


if __name__ == "__main__":
    main(*sys.argv[1:])
