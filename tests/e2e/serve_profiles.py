"""Profiles that make work for kiln serve."""
import gzip
import hashlib


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def large_profile(nsamples=60000, seed=0):
    """Names that do not pack: its answer is larger than the kernel's buffers."""
    strings = [b"", b"samples", b"count"] + [hashlib.sha256(b"%d" % (seed * nsamples + i)).hexdigest().encode() for i in range(nsamples)]
    out = [field(1, field(1, 1) + field(2, 2))]
    for i in range(1, nsamples + 1):
        out.append(field(2, field(1, varint(i)) + field(2, varint(i))))
        out.append(field(4, field(1, i) + field(4, field(1, i) + field(2, 1))))
        out.append(field(5, field(1, i) + field(2, i + 2)))
    return gzip.compress(b"".join(out + [field(6, s) for s in strings] + [field(9, (1700000000 + seed) * 10**9)]), 1)
