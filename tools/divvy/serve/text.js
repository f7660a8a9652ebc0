// Words and numbers as people read them: pure. SPDX-License-Identifier: Apache-2.0

const clock = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const minute = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit"});
const day = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"});
const date = new Intl.DateTimeFormat("en-GB", {weekday: "short", day: "numeric", month: "long", year: "numeric"});

export const number = (n) => n.toLocaleString("en");
export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
export const clockText = (ms) => clock.format(ms);
export const minuteText = (ms) => minute.format(ms);
export const dayText = (ms) => day.format(ms);
export const momentText = (ms) => `${clock.format(ms)} of ${date.format(ms)}`;

// The time of day; with its date if that is not today's.
export function whenText(ms, now) {
  return day.format(ms) === day.format(now) ? clock.format(ms) : `${day.format(ms)}, ${clock.format(ms)}`;
}

export function durationText(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

// How long something took, where parts of a second count.
export const shortText = (ms) => ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : durationText(ms);

// Shortens a name in the middle: its beginning and its end tell names apart.
export function middle(text, most) {
  const letters = [...text];
  if (letters.length <= most) return text;
  if (most < 3) return most < 1 ? "" : "…";
  const tail = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
}

const octal = (letter) => `\\${letter.charCodeAt(0).toString(8).padStart(3, "0")}`;

// A word of a command line, quoted where a shell needs it. A terminal acts upon control characters that are pasted.
export function quoted(word) {
  if (/^[A-Za-z0-9_/.,:@%+][A-Za-z0-9_/.,:=@%+-]*$/.test(word)) return word;
  if (/[\x00-\x1f\x7f]/.test(word)) return `$'${word.replace(/[\x00-\x1f\x7f'\\!]/g, octal)}'`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

// The same for the last word, which must not be taken for an option.
export const operand = (word) => (word.startsWith("-") ? "-- " : "") + quoted(word);

const programs = "divvy|kill|zkCli\\.sh|export|ss|getent|chronyc|iostat|systemctl";
const strange = "\\$?'[^']*'(?:\\\\''[^']*')*"; // as shell_word.c quotes it; it may have anything in it
const word = `(?!shows\\b)(?:${strange}|[^ ']*[^ ,;'])(?=[,; ]|$)`;
const command = new RegExp(`(?<=^| )${strange}|(^|: |\\bby )((?:${programs})(?: ${word})+)`, "g");

// Splits a remedy into [{text}, {command}]: what to do in words, and what can be typed.
export function remedyParts(remedy) {
  const parts = [];
  let at = 0;
  for (const match of remedy.matchAll(command)) {
    if (!match[2]) continue;
    const start = match.index + match[1].length;
    if (start > at) parts.push({text: remedy.slice(at, start)});
    parts.push({command: match[2]});
    at = start + match[2].length;
  }
  if (at < remedy.length) parts.push({text: remedy.slice(at)});
  return parts;
}
