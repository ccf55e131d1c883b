/** Seconds before a call is repeated that failed `failures` times in a row for another reason than the rate. */
export function toBackoff(failures: number): number {
  return Math.min(0.5 * 2 ** (failures - 1), 8);
}
