#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/schemes: what happens to a lost packet under each scheme. Time runs
down, the sender is left, the receiver right; one way takes HALF, a packet takes SLOT.

    docs/schemes/draw.py DIR     writes DIR/SCHEME.svg for each
"""
import os
import sys
from xml.sax.saxutils import escape

SLOT, HALF = 11, 66           # pixels of time
LEFT, RIGHT, TOP, WIDTH = 205, 445, 58, 720
INK, GREY = "#222222", "#777777"
DATA, PARITY, AGAIN, BAD, FEEDBACK, GOOD = "#0072B2", "#009E73", "#E69F00", "#D55E00", "#8A8A8A", "#EAF4EA"


class Picture:
    def __init__(self, title):
        self.title, self.body, self.bottom = title, [], 0

    def line(self, x1, y1, x2, y2, colour, dash="", arrow=True, width=1.5):
        self.bottom = max(self.bottom, y1, y2)
        self.body.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}'
            f'{f" marker-end={chr(34)}url(#a{colour[1:]}){chr(34)}" if arrow else ""}/>')

    def text(self, x, y, words, anchor="start", colour=INK, size=12, weight="normal"):
        self.bottom = max(self.bottom, y)
        self.body.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
                         f'font-size="{size}" font-weight="{weight}">{escape(words)}</text>')

    def packet(self, at, name, colour=DATA, lost=False):
        """Sent at `at` pixels; returns when it arrives."""
        y1, y2 = TOP + at, TOP + at + HALF
        self.text(LEFT - 8, y1 + 4, name, "end", colour, 11)
        if not lost:
            self.line(LEFT, y1, RIGHT, y2, colour)
            return at + HALF
        x, y = (LEFT + RIGHT) / 2, (y1 + y2) / 2
        self.line(LEFT, y1, x, y, colour, arrow=False)
        for s in (-1, 1):
            self.line(x - 5, y - 5 * s, x + 5, y + 5 * s, BAD, arrow=False, width=2.5)
        return None

    def back(self, at, words):
        """Feedback that leaves the receiver at `at`; returns when it arrives."""
        self.line(RIGHT, TOP + at, LEFT, TOP + at + HALF, FEEDBACK, "5,3")
        self.note_right(at, words)
        return at + HALF

    def note_left(self, at, *lines):
        for i, words in enumerate(lines):
            self.text(8, TOP + at + 4 + 14 * i, words, colour=INK, size=11)

    def note_right(self, at, *lines):
        for i, words in enumerate(lines):
            self.text(RIGHT + 12, TOP + at + 4 + 14 * i, words, colour=INK, size=11)

    def brace_left(self, start, end, words):
        x = LEFT - 62
        self.line(x, TOP + start, x, TOP + end, GREY, arrow=False)
        for y in (start, end):
            self.line(x, TOP + y, x + 6, TOP + y, GREY, arrow=False)
        self.text(x - 6, TOP + (start + end) / 2 + 4, words, "end", GREY, 11)

    def whole(self, at, words="all is there"):
        self.line(RIGHT, TOP + at, WIDTH - 12, TOP + at, "#1B7837", "2,3", arrow=False)
        self.text(RIGHT + 12, TOP + at + 15, words, colour="#1B7837", size=12, weight="bold")

    def svg(self):
        end = self.bottom + 24
        markers = "".join(
            f'<marker id="a{c[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{c}"/></marker>'
            for c in (DATA, PARITY, AGAIN, FEEDBACK))
        axes = "".join(f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{end - 10:.0f}" stroke="{INK}" '
                       f'stroke-width="1.5"/>' for x in (LEFT, RIGHT))
        heads = (f'<text x="{LEFT}" y="{TOP - 16}" text-anchor="middle" font-size="12" fill="{INK}">sender</text>'
                 f'<text x="{RIGHT}" y="{TOP - 16}" text-anchor="middle" font-size="12" fill="{INK}">receiver</text>')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end:.0f}" width="{WIDTH}" '
                f'height="{end:.0f}" font-family="DejaVu Sans, Arial, sans-serif" role="img">\n'
                f'<title>{escape(self.title)}</title>\n<defs>{markers}</defs>\n'
                f'<rect width="100%" height="100%" fill="white"/>\n'
                f'<text x="12" y="20" font-size="14" font-weight="bold" fill="{INK}">{escape(self.title)}</text>\n'
                f'{axes}{heads}\n' + "\n".join(self.body) + "\n</svg>\n")


def burst(p, names, lost=(), start=0, colour=DATA):
    """Packets back to back; returns (time after the last, last arrival)."""
    arrived = start
    for i, name in enumerate(names):
        at = p.packet(start + i * SLOT, name, colour, name in lost)
        arrived = at if at is not None else arrived
    return start + len(names) * SLOT, arrived


def gbn():
    p = Picture("gbn: the first hole sends everything after it again")
    sent, _ = burst(p, list("01234567"), "2")
    at = p.back(3 * SLOT + HALF + 14, "ACK: 0, 1, 3 … are here, 2 is not")
    p.brace_left(0, sent, "8 packets")
    p.note_left(at, "back to 2: six packets", "for one loss")
    _, end = burst(p, list("234567"), (), at + 8, AGAIN)
    p.whole(end)
    return p


def sr():
    p = Picture("sr: what is not acknowledged for an RTO goes again")
    burst(p, list("01234567"), "2")
    ack = p.back(7 * SLOT + HALF + 6, "ACK: all but 2")
    rto = 2 * SLOT + 3 * 2 * HALF
    p.note_left(ack - 70, "knows of the hole", "now, but waits for", "the timer")
    p.brace_left(2 * SLOT, rto, "RTO, e.g. 3 RTT")
    end = p.packet(rto, "2", AGAIN)
    p.whole(end)
    return p


def sr_nack():
    p = Picture("sr-nack: a hole that an ACK proves goes again")
    burst(p, list("01234567"), "2")
    hole = 3 * SLOT + HALF
    at = p.back(hole + 10, "ACK: 3 is here, 2 is not: sent later, came first")
    p.note_left(at, "reorder window over:", "2 is lost, again")
    end = p.packet(at + 8, "2", AGAIN)
    p.brace_left(2 * SLOT, at + 8, "about 1 RTT")
    p.whole(end)
    return p


def ec_xor():
    p = Picture("ec-xor:6,2: one loss in each of two groups is made good at once")
    sent, _ = burst(p, list("012345"), "2")
    p.brace_left(0, sent, "block, k = 6")
    sent, end = burst(p, ["0+2+4", "1+3+5"], (), sent, PARITY)
    p.note_right(end - 2 * SLOT - 24, "2 is missing")
    p.note_right(end - SLOT, "2 = (0+2+4) + 0 + 4")
    p.whole(end + 12, "all is there, without a round trip")
    p.note_left(end + 40, "two losses of one group:", "an ACK names the block,", "its missing packets", "go again")
    return p


def ec():
    p = Picture("ec:6,2: any six of a block's eight packets will do")
    sent, _ = burst(p, list("012345"), "24")
    p.brace_left(0, sent, "block, k = 6")
    sent, end = burst(p, ["p0", "p1"], (), sent, PARITY)
    p.note_right(end - SLOT - 24, "2 and 4 are missing")
    p.note_right(end - SLOT + 4, "two equations, two unknowns")
    p.whole(end + 14, "all is there, without a round trip")
    p.note_left(end + 40, "three losses:", "an ACK names the block", "and its deficit, 1")
    return p


def hybrid():
    p = Picture("hybrid:k=4,m=1: what no resend could repair in time is coded")
    sent, _ = burst(p, ["0", "1", "2", "3"], "1")
    p.brace_left(0, sent, "before the span")
    ack = p.back(2 * SLOT + HALF + 10, "ACK: 1 is missing")
    at = sent
    names = ["4", "5", "6", "7"]
    a, _ = burst(p, names, "5", at)
    a, done = burst(p, ["p0"], (), a, PARITY)
    p.note_right(done + 4, "5 from 4, 6, 7 and p0")
    p.packet(ack + 6, "1", AGAIN)
    p.note_left(ack - 8, "1 goes again while", "others still leave:", "it costs no time")
    b = max(a, ack + 6 + SLOT)
    b2, _ = burst(p, ["8", "9", "10", "11"], ("8", "10"), b)
    p.brace_left(b, b2, "last RTT")
    b3, last = burst(p, ["p1"], (), b2, PARITY)
    nack = p.back(last + 8, "ACK: this block lacks 1")
    p.note_left(nack - 6, "one fresh packet of", "parity, one to insure it")
    burst(p, ["p1'", "p1\""], ("p1'",), nack + 10, PARITY)
    p.whole(nack + 10 + SLOT + HALF, "all is there, one round trip later")
    return p


def auto():
    p = Picture("auto: each write gets what the path and its size ask for")
    _, end = burst(p, ["0", "1", "2", "3"])
    p.brace_left(0, 4 * SLOT, "clean path")
    p.note_right(end - HALF / 2, "no parity: loss is too rare", "for any quantile to see")
    ack = p.back(end + 4, "ACK: counts by path: sent, arrived, duplicates")
    p.note_left(ack + 2, "loss and bursts are", "estimated; the table by", "size is made anew")
    start = ack + 52
    sent, _ = burst(p, ["4", "5", "6", "7", "8", "9"], "6", start)
    p.brace_left(start, sent, "lossy now")
    _, end = burst(p, ["p0", "p1"], (), sent, PARITY)
    p.note_right(start + HALF, "6 is lost")
    p.note_right(end - SLOT + 2, "6 from the others and p0")
    p.whole(end + 8, "all is there, without a round trip")
    return p


PICTURES = {"gbn": gbn, "sr": sr, "sr-nack": sr_nack, "ec-xor": ec_xor, "ec": ec, "hybrid": hybrid, "auto": auto}


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: draw.py DIR (an existing directory)")
    for name, draw in PICTURES.items():
        with open(os.path.join(sys.argv[1], name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw().svg())


if __name__ == "__main__":
    main()
