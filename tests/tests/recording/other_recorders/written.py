"""Writes files as other recorders and capture programs do, from their published formats.

written.py vdif FILE FRAMES [THREADS [legacy]]    frames of 1032 (legacy: 1016) bytes, 50 a second of each thread
written.py mark5b FILE FRAMES                     Mark5B frames, 50 a second
written.py vbs FILE NAME BYTES DIR...             the bytes of FILE in chunks DIR/NAME/NAME.00000000, one DIR after the other
written.py mark6 FILE NAME BYTES DIR...           the bytes of FILE in blocks, in files DIR/NAME of a Mark 6 group
written.py pcap FILE PAYLOAD PREFIX CAPTURE       packets of PAYLOAD bytes of FILE behind PREFIX bytes with a serial number
written.py pcapng FILE PAYLOAD PREFIX CAPTURE [PORT]   the same in the newer format, on IPv6

VDIF specification 1.1.1; Mark 5B user's manual; mark6sg of DiFX; draft-ietf-opsawg-pcap and -pcapng.
"""
import pathlib
import random
import struct
import sys

RATE = 50
# 2026-01-01, and 1000 s more.
EPOCH, SECOND = 52, 1000


def main(what, *arguments):
    {"vdif": vdif, "mark5b": mark5b, "vbs": vbs, "mark6": mark6, "pcap": pcap, "pcapng": pcapng}[what](*arguments)


def vdif(file, frames, threads="1", kind="full"):
    legacy, threads = kind == "legacy", int(threads)
    header, noise = (16 if legacy else 32), random.Random(1)
    size = header + 1000
    with open(file, "wb") as to:
        for number in range(int(frames)):
            moment, thread = divmod(number, threads)
            second, frame = divmod(moment, RATE)
            words = [SECOND + second | legacy << 30, EPOCH << 24 | frame, 1 << 29 | size // 8,
                     1 << 26 | thread << 16 | int.from_bytes(b"Ef", "big")]
            words += [] if legacy else [0, 0, 0, 0]
            to.write(struct.pack(f"<{len(words)}I", *words) + noise.randbytes(1000))


def mark5b(file, frames):
    noise = random.Random(2)
    with open(file, "wb") as to:
        for number in range(int(frames)):
            second, frame = divmod(number, RATE)
            # The day is one near today's, modulo 1000.
            day = (60_000 + 1_000) % 1000
            time = int(f"{day:03}{SECOND + second:05}", 16)
            fraction = int(f"{frame * 10_000 // RATE:04}", 16)
            header = struct.pack("<4I", 0xABADDEED, frame, time, fraction << 16 | crc(time, fraction))
            to.write(header + noise.randbytes(10_000))


def crc(time, fraction):
    value, bits = 0, time << 16 | fraction
    for at in reversed(range(48)):
        value = value << 1 ^ ((value >> 15 ^ bits >> at) & 1) * 0x18005
        value &= 0xFFFF
    return value


def pieces(file, size):
    data = pathlib.Path(file).read_bytes()
    return [data[at:at + int(size)] for at in range(0, len(data), int(size))]


def vbs(file, name, size, *directories):
    for number, chunk in enumerate(pieces(file, size)):
        directory = pathlib.Path(directories[number % len(directories)]) / name
        directory.mkdir(exist_ok=True)
        (directory / f"{name}.{number:08}").write_bytes(chunk)


def mark6(file, name, size, *directories):
    blocks = list(enumerate(pieces(file, size)))
    # Disks take blocks as they are ready, not in turns.
    random.Random(3).shuffle(blocks)
    for at, directory in enumerate(directories):
        with open(pathlib.Path(directory) / name, "wb") as to:
            to.write(struct.pack("<5I", 0xFEED6666, 2, int(size) + 8, 0, 1032))
            for number, block in blocks[at::len(directories)]:
                to.write(struct.pack("<2i", number, len(block) + 8) + block)


def packets(file, payload, prefix, network, port=46227):
    for number, piece in enumerate(pieces(file, payload)):
        # The serial number is in the last four bytes before the payload for Mark5B, and in the first eight for VDIF:
        # this is right for both, as long as there are eight.
        body = {0: b"", 8: struct.pack("<2I", 0, number)}[int(prefix)] + piece
        udp = struct.pack(">4H", 5000, int(port), len(body) + 8, 0) + body
        yield network(udp)


def ipv4(udp):
    header = struct.pack(">BBHHHBBH4B4B", 0x45, 0, len(udp) + 20, 0, 0x4000, 64, 17, 0, 10, 0, 0, 1, 10, 0, 0, 2)
    return bytes(12) + struct.pack(">H", 0x0800) + header + udp


def ipv6(udp):
    return bytes(12) + struct.pack(">H", 0x86DD) + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + bytes(32) + udp


OTHER = bytes(12) + struct.pack(">H", 0x0806) + bytes(46)


def pcap(file, payload, prefix, capture):
    with open(capture, "wb") as to:
        to.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        for number, packet in enumerate(packets(file, payload, prefix, ipv4)):
            for each in (packet, OTHER) if number % 10 == 3 else (packet,):
                to.write(struct.pack("<4I", SECOND, number, len(each), len(each)) + each)


def pcapng(file, payload, prefix, capture, port=46227):
    with open(capture, "wb") as to:
        block(to, 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        block(to, 1, struct.pack("<HHI", 1, 0, 262_144))
        for number, packet in enumerate(packets(file, payload, prefix, ipv6, port)):
            block(to, 6, struct.pack("<5I", 0, 0, number, len(packet), len(packet)) + packet)
        # Interface statistics, which end most captures.
        block(to, 5, struct.pack("<3I", 0, 0, 0))


def block(to, kind, body):
    body += bytes(-len(body) % 4)
    to.write(struct.pack("<2I", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12))


main(*sys.argv[1:])
