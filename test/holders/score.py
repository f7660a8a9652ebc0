"""What two processes have said, added up, for test/holders/run. SPDX-License-Identifier: Apache-2.0

A process says yes or no every 10 ms. A yes counts until the next line of the process, if that comes within STALE_S.
Else the process was stopped or has ended, and the yes counts for one period: a stopped process claims nothing.
"""
STALE_S, PERIOD_S = 0.2, 0.01


def parse(text):
    """Returns [(time, holds, token)] of the whole lines of a holder's output."""
    said = []
    for line in text[:text.rfind("\n") + 1].splitlines():
        try:
            time, word, token = line.split()
        except ValueError:
            raise ValueError("not a holder's line: %r" % line) from None
        said.append((float(time), word == "yes", int(token)))
    return said


def spans(said):
    """Returns [(begin, end)] in which the process said that it holds, in order."""
    found = []
    for i, (time, holds, _) in enumerate(said):
        if not holds:
            continue
        end = said[i + 1][0] if i + 1 < len(said) else time + PERIOD_S
        if end - time > STALE_S:
            end = time + PERIOD_S
        if found and time <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((time, end))
    return found


def both_s(one, other, since, until):
    """Returns the seconds within [since, until] that are in spans of both."""
    return sum(max(0.0, min(a_end, b_end, until) - max(a, b, since)) for a, a_end in one for b, b_end in other)


def held_s(one, since, until):
    return sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in one)


def nobody_s(one, other, since, until):
    """Returns the seconds within [since, until] that are in no span of either."""
    return until - since - held_s(one, since, until) - held_s(other, since, until) + both_s(one, other, since, until)


def late_s(said, since, until, pardoned=None):
    """Returns for how long within [since, until] no line came that was due. `pardoned`: a span in which none is due."""
    late = 0.0
    for (begin, _, _), (end, _, _) in zip(said, said[1:]):
        is_pardoned = pardoned and begin < pardoned[1] and end > pardoned[0]
        if end - begin > STALE_S and end > since and begin < until and not is_pardoned:
            late += min(end, until) - max(begin, since)
    return late


def parts(one, other, since, until):
    """Returns [(begin, end, how many hold)] within [since, until], in seconds from since on, without gaps."""
    edges = sorted({since, until} | {edge for span in [*one, *other] for edge in span if since < edge < until})
    found = []
    for begin, end in zip(edges, edges[1:]):
        count = sum(any(a <= begin and end <= b for a, b in spans_of) for spans_of in (one, other))
        if found and found[-1][2] == count:
            found[-1][1] = round(end - since, 3)
        else:
            found.append([round(begin - since, 3), round(end - since, 3), count])
    return [tuple(part) for part in found]
