/** Asks for something that Discord does not wait long for; what is not there in time, or fails, is `otherwise`. */
export async function askWithin<T>(ms: number, ask: (signal: AbortSignal) => Promise<T>, otherwise: T): Promise<T> {
  const signal = AbortSignal.timeout(ms);
  const late = new Promise<T>((resolve) => {
    signal.addEventListener("abort", () => resolve(otherwise), { once: true });
  });
  return Promise.race([ask(signal).catch(() => otherwise), late]);
}
