"""Statements that nothing reads."""

import numpy as np

from jaxsim.native.writer import Writer


def test_what_nothing_reads_is_left_out_with_all_that_only_it_reads():
    w = Writer()
    read, unread, chained, turned = (w.buffer(np.float64, 2) for _ in range(4))
    out = w.buffer(np.float64, 2, "out0")
    kept = [
        f"PUT({read.name}, 0, 1);",
        f"LET(double, a, AT({read.name}, 0));",
        "PUT(out0, 0, a);",
    ]
    w.lines = [
        kept[0],
        f"PUT({chained.name}, 0, AT({turned.name}, 1));",  # in a loop: what it reads is set in the turn before
        f"LET(double, b, AT({chained.name}, 0));",
        "LET(double, c, (b + b));",
        kept[1],
        f"PUT({unread.name}, 0, c);",
        f"PUT({turned.name}, 1, a);",
        kept[2],
    ]
    w.ends = [0, 5, 8]
    w.leave_out_unread()
    assert w.lines == kept
    assert w.ends == [0, 2, 3]
    assert w.buffers == [read, out]
