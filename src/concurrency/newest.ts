/** Shows a value that can change faster than it can be shown. */
export interface Newest<T> {
  /** Shows this value after the current one, unless a newer value replaces it first. */
  show(value: T): void;
  /** Resolves when no value is being shown or waits. */
  settled(): Promise<void>;
}

/**
 * Calls `show` with the newest value, one call at a time. Skips values replaced in the meantime. Ignores rejections.
 */
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
