/**
 * Loaded before the service. Sets the wall clock of its process ahead by `CHAOS_AHEAD_MS`; monotonic clocks stay the
 * same.
 */
const aheadMs = Number(process.env["CHAOS_AHEAD_MS"] ?? 0);
const RealDate = Date;
const realNow = Date.now;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: [], newTarget) =>
    Reflect.construct(target, args.length === 0 ? [realNow() + aheadMs] : args, newTarget),
  apply: () => new RealDate(realNow() + aheadMs).toString(),
  get: (target, name) => (name === "now" ? () => realNow() + aheadMs : Reflect.get(target, name)),
});
