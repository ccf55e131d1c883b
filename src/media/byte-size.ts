const MIB = 1024 * 1024;

/** A size as people say it: whole MiB, rounded down, and bytes below one. */
export function toShownSize(sizeBytes: number): string {
  return sizeBytes >= MIB ? `${Math.floor(sizeBytes / MIB)} MiB` : `${sizeBytes} bytes`;
}
