/**
 * Loaded into the service before anything else, as `breaks.ts?name,name`. Breaks the service on purpose, so that tests
 * can show that the checker notices it. Each break changes source files while they load. If a file does not contain the
 * expected text, the process exits at once and the test fails.
 */
import { registerHooks } from "node:module";

interface Change {
  file: string;
  from: string;
  to: string;
}

/** The changes of each break, by its name. */
const BREAKS: Readonly<Record<string, readonly Change[]>> = {
  "missed entries": [
    {
      file: "src/queue/redis-streams.ts",
      from: "if (accepted !== undefined) {",
      to: "if (accepted !== undefined && Math.random() < 0.5) {",
    },
  ],
  "no claim": [
    // It is not enough to remove the claim, because an event's second run would wait for the first one and find its
    // turn.
    { file: "src/queue/event-lane.ts", from: "id: event.conversationId,", to: "id: event.key," },
    {
      file: "src/queue/redis-journal.ts",
      from: "return async (event) => {",
      to: "return async (received) => { const event = { ...received, key: `${received.key} ${Math.random()}` };",
    },
  ],
  "no takeover": [{ file: "src/queue/partition-scripts.ts", from: "if isGone and not held then", to: "if false then" }],
  "no turns": [
    { file: "src/queue/event-lane.ts", from: "id: event.conversationId,", to: "id: event.key," },
    {
      file: "src/store/redis-turns.ts",
      from: "return (right, name, task) =>",
      to: "if (place) return (right, _name, task) => task(right);\n  return (right, name, task) =>",
    },
  ],
  "lost pieces": [
    {
      file: "src/gateway/chat.ts",
      from: "    onChunk(chunk);\n",
      to: "    if (Math.random() < 0.9) onChunk(chunk);\n",
    },
  ],
  "no waits": [
    { file: "src/gateway/ask.ts", from: "const asked = error.retryAfterMs;", to: "const asked = 300;" },
    // Otherwise the breaker would still hold back a retry that comes too early.
    { file: "src/gateway/breaker.ts", from: "if (asked > 0) open(model, asked, error, true);", to: "" },
  ],
  "no reservation": [
    {
      file: "src/turn/prepare.ts",
      from: "await quota.reserve(need, signal);",
      to: "{ maxTokens, settle: async () => {} };",
    },
  ],
  "no fence": [
    { file: "src/queue/redis-journal.ts", from: "async check() {", to: "async check() { return;" },
    {
      file: "src/queue/event-queue.ts",
      from: "function lose(run: Run): void {",
      to: "function lose(run: Run): void { return;",
    },
    // Writes to the store have a separate fence.
    {
      file: "src/store/fenced-script.ts",
      from: "new Map(right.fences.map(",
      to: "new Map([].map(",
    },
  ],
  "lost counts": [
    {
      file: "src/insight/trends.ts",
      from: "    batches.push(batch);\n",
      to: "    if (Math.random() < 0.5) batches.push(batch);\n",
    },
  ],
  // Each due run is accepted twice, and the second one runs although its schedule is over.
  "restless alarm": [
    {
      file: "src/schedules/alarm.ts",
      from: "const key = `${reply.platform}:schedule:${id}:${dueAt}`;",
      to: "const key = `${reply.platform}:schedule:${id}:${dueAt}:${Math.random()}`;",
    },
    {
      file: "src/schedules/alarm.ts",
      from: "  const messageId = key;",
      to: "  const messageId = key.slice(0, key.lastIndexOf(':'));",
    },
    {
      file: "src/schedules/alarm.ts",
      from: "await queue.accept(toRun(stored, due, clock()));",
      to: "for (let time = 0; time < 2; time++) await queue.accept(toRun(stored, due, clock()));",
    },
    {
      file: "src/schedules/run.ts",
      from: 'if (one === undefined || one.state !== "active") return [event];',
      to: "if (one === undefined) return deps.answer(event);",
    },
  ],
  "loose tongue": [
    {
      file: "src/main.ts",
      from: "    await run();\n",
      to: "    await run();\n    console.log(process.env.GATEWAY_API_KEY);\n",
    },
  ],
  "sudden end": [
    {
      file: "src/main.ts",
      from: "    await run();\n",
      to: "    await run();\n    if (process.env.CHAOS_LIFE === 'p1.1') setTimeout(() => process.exit(3), 3_000);\n",
    },
  ],
};

const names = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const changes = names.split(",").flatMap((name) => BREAKS[name] ?? []);

if (changes.length > 0) {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const own = changes.filter(({ file }) => url.endsWith(`/${file}`));
      if (own.length === 0 || loaded.source === undefined) return loaded;
      let source = Buffer.from(loaded.source as Uint8Array).toString();
      for (const { from, to } of own) {
        if (!source.includes(from)) throw new Error(`${url} does not contain the text that "${names}" replaces.`);
        source = source.replace(from, () => to);
      }
      return { ...loaded, source };
    },
  });
}
