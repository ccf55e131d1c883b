/** Such as "420 ms", "3.2 s", "4 min 10 s", "2 h 5 min", "3 days". */
export function describeMs(ms: number): string {
  if (ms < 995) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function describeCount(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** Few digits, as an axis has room for. */
export function describeShort(count: number): string {
  return new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

export function describeCost(cost: number): string {
  return cost.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: cost < 1 ? 4 : 2 });
}

export function describeBytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576).toLocaleString("en-US")} MiB`;
}

export function describeTime(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

export function describeMoment(at: number): string {
  const date = new Date(at);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toISOString().slice(0, 10)} `;
  return `${day}${describeTime(at)}`;
}

/** The place of an answer, as far as its ids tell. */
export function describePlace({ platform, channelId }: { platform: string; channelId: string }): string {
  return `${platform} · ${channelId}`;
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
