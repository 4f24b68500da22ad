"""Writes pictures with 256 colours: a page has few, and the file is a third as large."""

import collections
import struct
import zlib


def rows_of(png):
    """Returns the width of a PNG of three bytes a pixel, and its rows."""
    at, data, width = 8, b"", 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, _, depth, colours = struct.unpack(">IIBB", body[:10])
            assert (depth, colours) == (8, 2), "the browser writes three bytes a pixel"
        elif kind == b"IDAT":
            data += body
    data, stride, rows = zlib.decompress(data), width * 3, []
    above = bytes(stride)
    for start in range(0, len(data), stride + 1):
        row = bytearray(data[start + 1:start + 1 + stride])
        kind = data[start]
        for x in range(stride if kind else 0):
            left, up, corner = (row[x - 3], above[x], above[x - 3]) if x > 2 else (0, above[x], 0)
            near = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
            paeth = (left, up, corner)[near.index(min(near))]
            row[x] = row[x] + (0, left, up, (left + up) // 2, paeth)[kind] & 255
        rows.append(bytes(row))
        above = row
    return width, rows


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other))


def with_palette(png):
    """Returns a PNG whose colours are 256 frequent ones that are not too near to each other."""
    width, rows = rows_of(png)
    pixels = [[row[x:x + 3] for x in range(0, len(row), 3)] for row in rows]
    counts = collections.Counter(pixel for row in pixels for pixel in row)
    palette = []
    for colour, _ in counts.most_common():
        apart = 300 if len(palette) > 40 else 20
        if len(palette) < 256 and all(distance(colour, other) > apart for other in palette):
            palette.append(colour)

    def nearest(colour):
        return min(range(len(palette)), key=lambda at: distance(palette[at], colour))

    index = {colour: nearest(colour) for colour in counts}
    data = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels)

    def chunk(kind, body):
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"PLTE", b"".join(palette))
            + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))
