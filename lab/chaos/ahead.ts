/** Loaded before the service: the system's clock of its process is ahead by `CHAOS_AHEAD_MS`. Steady clocks are not. */
const aheadMs = Number(process.env["CHAOS_AHEAD_MS"] ?? 0);
const RealDate = Date;
const realNow = Date.now;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: [], asked) =>
    Reflect.construct(target, args.length === 0 ? [realNow() + aheadMs] : args, asked),
  apply: () => new RealDate(realNow() + aheadMs).toString(),
  get: (target, name) => (name === "now" ? () => realNow() + aheadMs : Reflect.get(target, name)),
});
