/**
 * This module is loaded before the service. It sets its process's wall clock ahead by `CHAOS_AHEAD_MS` and does not
 * change monotonic clocks.
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
