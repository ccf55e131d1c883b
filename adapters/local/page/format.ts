const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const DAY_MS = 24 * 60 * 60_000;

export function formatTime(at: number): string {
  return TIME.format(at);
}

export function formatWhole(at: number): string {
  return WHOLE.format(at);
}

export function formatDay(at: number, now: number): string {
  if (isSameDay(at, now)) return "Today";
  if (isSameDay(at, now - DAY_MS)) return "Yesterday";
  return DAY.format(at);
}

export function isSameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Returns `at`, or the next index if `at` would split a character, but at most the end of the text. */
export function toBoundary(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
  return Math.min(isLowSurrogate ? at + 1 : at, text.length);
}
