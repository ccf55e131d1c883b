/**
 * Loaded into the service before anything else, as `breaks.ts?name,name`: breaks the product on purpose, so that a
 * checker can be seen to notice. Each break changes the sources as they are loaded; where the words are not there any
 * more the process ends at once, and the test that wanted it fails.
 */
import { registerHooks } from "node:module";

interface Change {
  file: string;
  from: string;
  to: string;
}

/** No change is known to be needed for what another one does. */
const BREAKS: Readonly<Record<string, readonly Change[]>> = {
  "no sweep": [
    {
      file: "src/queue/redis/sweep.ts",
      from: "async function ringUnheard(): Promise<void> {",
      to: "async function ringUnheard(): Promise<void> { return;",
    },
    // A sweep is missed only where a bell was not rung, as when its process dies in between.
    {
      file: "src/queue/redis/redis-queue.ts",
      from: "void ring(laneOf(event).id);",
      to: "if (Math.random() < 0.5) void ring(laneOf(event).id);",
    },
  ],
  "no claim": [
    // Without the claim alone nothing is doubled: the second time comes behind the first one, and finds its turn.
    { file: "src/queue/event-lane.ts", from: "id: event.conversationId,", to: "id: event.key," },
    {
      file: "src/queue/redis/lanes.ts",
      from: "async accept(event) {",
      to: "async accept(told) { const event = { ...told, key: `${told.key} ${Math.random()}` };",
    },
  ],
  "no takeover": [
    {
      file: "src/queue/redis/sweep.ts",
      from: "async function ringUnheard(): Promise<void> {",
      to: "async function ringUnheard(): Promise<void> { return;",
    },
    {
      file: "src/queue/redis/sweep.ts",
      from: "async function takeFromTheGone(): Promise<void> {",
      to: "async function takeFromTheGone(): Promise<void> { return;",
    },
    {
      file: "src/queue/redis/bells.ts",
      from: "const STALLED_LOOK_MS = 1_000;",
      to: "const STALLED_LOOK_MS = 600_000;",
    },
  ],
  "no turns": [
    { file: "src/queue/event-lane.ts", from: "id: event.conversationId,", to: "id: event.key," },
    {
      file: "src/store/redis-turns.ts",
      from: "return (key, task) =>",
      to: "if (place) return (_key, task) => task();\n  return (key, task) =>",
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
    // A call that would come back too early waits all the same while the model is left alone.
    { file: "src/gateway/breaker.ts", from: "if (asked > 0) open(model, asked, error, true);", to: "" },
  ],
  "no reservation": [
    {
      file: "src/turn/spending.ts",
      from: "await quota.reserve(need, signal);",
      to: "{ maxTokens, confirm: async () => {}, settle: async () => {} };",
    },
  ],
  "no fence": [
    {
      file: "src/queue/redis/leases.ts",
      from: "async function check(entry: Entry): Promise<void> {",
      to: "async function check(entry: Entry): Promise<void> { return;",
    },
    {
      file: "src/queue/redis/leases.ts",
      from: "function lose({ laneId, controller }: Entry): void {",
      to: "function lose({ laneId, controller }: Entry): void { return;",
    },
    // What it stores is fenced apart from what it says.
    {
      file: "src/store/fenced-script.ts",
      from: "const fences = fencesHeld();",
      to: "const fences: { key: string; value: string }[] = [];",
    },
  ],
  "lost counts": [
    {
      file: "src/insight/trends.ts",
      from: "    batches.push(batch);\n",
      to: "    if (Math.random() < 0.5) batches.push(batch);\n",
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
        if (!source.includes(from)) throw new Error(`${url} has nothing to be broken by "${names}".`);
        source = source.replace(from, () => to);
      }
      return { ...loaded, source };
    },
  });
}
