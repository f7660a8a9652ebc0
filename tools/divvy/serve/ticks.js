// Round times for an axis: pure. SPDX-License-Identifier: Apache-2.0
import {clockText, dayText, minuteText} from "./text.js";

const SECOND = 1000, MINUTE = 60000, HOUR = 3600000, DAY = 86400000;
const STEPS = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND)
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR),
          [1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY));

const zone = (ms) => -new Date(ms).getTimezoneOffset() * MINUTE;
const dayOf = (ms) => Math.floor((ms + zone(ms)) / DAY);

// The first round time at or after ms, by the clock of the place.
function roundUp(ms, step) {
  const at = Math.ceil((ms + zone(ms)) / step) * step;
  return at - zone(at - zone(ms));
}

const labelOf = (ms, step) => step >= DAY ? dayText(ms) : step >= MINUTE ? minuteText(ms) : clockText(ms);

// At most `most` ticks: [{ms, text, date}]. `date` is there where the day changes, and at the first tick of a range
// that spans days or is of another day than today.
export function ticks(from, to, most, now = Date.now()) {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? STEPS.at(-1);
  const found = [];
  const dated = dayOf(from) !== dayOf(to) || dayOf(to) !== dayOf(now);
  for (let ms = roundUp(from, step); ms <= to; ms = roundUp(ms + step / 2, step)) {
    const before = found.at(-1);
    const changes = before ? dayOf(before.ms) !== dayOf(ms) : dated;
    found.push({ms, text: labelOf(ms, step), date: changes && step < DAY ? dayText(ms) : ""});
  }
  return found;
}
