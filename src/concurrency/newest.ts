/** Shows a value that changes faster than it can be shown. */
export interface Newest<T> {
  /** Shows the value as soon as no other is being shown, unless a newer one takes its place before. */
  show(value: T): void;
  /** Resolves when nothing is being shown, and nothing waits to be. */
  settled(): Promise<void>;
}

/** Calls `show` with the newest value, one call at a time, skipping those in between. Ignores rejections. */
export function createNewest<T>(show: (value: T) => Promise<unknown>, shown: T): Newest<T> {
  let newest = shown;
  let latest = shown;
  let showing: Promise<void> | undefined;

  async function catchUp(): Promise<void> {
    while (latest !== newest) {
      latest = newest;
      await show(latest).catch(() => {});
    }
    showing = undefined;
  }

  return {
    show(value) {
      newest = value;
      if (latest !== newest) showing ??= catchUp();
    },
    async settled() {
      await showing;
    },
  };
}
