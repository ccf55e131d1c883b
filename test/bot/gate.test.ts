import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { access as accessSchema } from "../../src/config/policy/access.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { createInsight, type Insight } from "../../src/insight/insight.ts";
import type { Author } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { eventually } from "../support/eventually.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

const root: Author = { id: "root", name: "Root" };

function toPolicy(rules: object[]): Policy {
  return { access: accessSchema.parse({ admins: ["person:root"], rules }) };
}

/** Starts the bot with rules that can change, on a platform that can post in private. */
function start(rules: object[] = [], options: Parameters<typeof startEngine>[0] = {}) {
  let policy = toPolicy(rules);
  const platform = fakePlatform();
  const privatePosts: Array<{ to: string; text: string }> = [];
  Object.assign(platform.adapter, {
    notifyPrivately: async (_: unknown, to: string, text: string) => void privatePosts.push({ to, text }),
  });
  const engine = startEngine({ platform, policy: () => policy, scripts: [["One."], ["Two."], ["Three."]], ...options });
  return { ...engine, privatePosts, setRules: (next: object[]) => void (policy = toPolicy(next)) };
}

describe("a denied question", () => {
  test("a person who is denied a question gets one private notice in ten minutes", async () => {
    const { accept, handle, privatePosts, requests, texts } = start([{ deny: "chat", to: "person:ada" }]);
    await accept(message("hello"));
    await accept(message("hello?"));
    await handle(message("hi", { author: ben }));
    expect(privatePosts).toEqual([{ to: "ada", text: expect.stringContaining("You can't ask me here.") }]);
    expect(requests).toHaveLength(1);
    expect(texts()).toEqual(["One."]);
  });

  test("a person who is denied a question gets a notice each time on Palaver's own page, and the dashboard shows it", async () => {
    const platform = fakePlatform();
    Object.assign(platform.adapter, { isOwn: true });
    let insight: Insight | undefined;
    const engine = startEngine({
      platform,
      policy: () => toPolicy([{ deny: "chat" }]),
      openInsight(stores, database) {
        const describe = () => Promise.reject(new Error("Nobody asks."));
        insight = createInsight({ stores, database, processName: "one", describe, log: silent });
        return insight;
      },
    });
    await engine.accept(message("hello"));
    await engine.handle(message("hello?"));
    const refusal = expect.stringContaining("You can't ask me here.");
    expect(engine.texts()).toEqual([refusal, refusal]);
    const told = async () => (await insight?.turns.turns())?.map(({ outcome, note }) => [outcome, note]);
    await eventually(told).toEqual([
      ["refused", refusal],
      ["refused", refusal],
    ]);
  });

  test("the bot ignores a denied message that mentions no one, also in a channel with /listen on", async () => {
    const { accept, handle, privatePosts, requests } = start([{ deny: "chat", to: "person:ada" }]);
    await handle(message("hi", { author: ben }));
    await accept(message("and me?", { addressed: "open" }));
    await handle(message("and me?", { isListenedTo: true }));
    expect([privatePosts, requests.length]).toEqual([[], 1]);
  });

  test("a new rule does not stop answers that had already started", async () => {
    const database = new DatabaseSync(":memory:");
    const hold = Promise.withResolvers<void>();
    const scripts = [["One ", hold.promise, "more."]];
    const { accept, idle, setRules, requests, texts } = start([], { database, scripts });
    const asked = message("hello");
    await accept(asked);
    while (requests.length === 0) await new Promise(setImmediate);
    setRules([{ deny: "chat" }]);
    hold.resolve();
    await idle();
    expect(texts()).toEqual(["One more."]);
  });

  test("a denied edit does not replace the question that the bot is answering", async () => {
    const hold = Promise.withResolvers<void>();
    const { accept, handle, setRules, requests, texts, calls } = start([], {
      scripts: [["One ", hold.promise], ["Two."]],
    });
    const asked = message("hello");
    await accept(asked);
    while (requests.length === 0) await new Promise(setImmediate);
    setRules([{ deny: "chat" }]);
    await handle(edited(asked, "something else"));
    expect(calls).not.toEqual([]);
    expect(requests).toHaveLength(1);
    expect(texts().join()).toContain("You can't ask me here.");
  });

  test("a denied edit that addresses the bot asks no question, even while the message waits", async () => {
    const hold = Promise.withResolvers<void>();
    const { accept, idle, privatePosts, requests, texts, until } = start([{ deny: "chat", to: "person:ben" }], {
      scripts: [["One ", hold.promise, "more."], ["Two."]],
    });
    await accept(message("hello"));
    await until(() => texts().length === 1);
    const waiting = message("@cleo hi", { author: ben, addressed: "other" });
    await accept(waiting);
    await accept({ ...edited(waiting, "@palaver hi"), addressed: "bot" });
    hold.resolve();
    await idle();
    expect(requests).toHaveLength(1);
    expect(texts()).toEqual(["One more."]);
    expect(privatePosts).toEqual([{ to: "ben", text: expect.stringContaining("You can't ask me here.") }]);
  });

  test("a person cannot ask a denied question with a button, Continue or an edit", async () => {
    const { accept, handle, setRules, requests } = start();
    const asked = await handle(message("hello"));
    setRules([{ deny: "chat" }]);
    const turnId = toTurnId(asked.key);
    for (const name of ["regenerate", "retry", "continue", "approve", "always", "rerun"] as const) {
      await accept(action(name, turnId));
    }
    await accept(edited(asked, "hello there"));
    await handle({ ...edited(message("never seen"), "look here"), addressed: "bot" });
    expect(requests).toHaveLength(1);
  });
});

describe("the model, the tools and the files of an answer", () => {
  test("an answer uses the usual model if the channel's own is denied", async () => {
    const { handle, setRules, requests, texts } = start([], { model: "small" });
    await handle(message("hello"));
    setRules([{ deny: "model:small" }]);
    await handle(message("hello"));
    expect(requests.map(({ model }) => model)).toEqual(["small"]);
    expect(texts()).toHaveLength(1);
  });

  test("an answer gets no denied tools and files, even if the model calls them", async () => {
    let runs = 0;
    const tool = toTool("count", async () => `${(runs += 1)}`);
    const call = toCall("count");
    const scripts = [[call], ["Done."], [call], ["Done."]];
    const { handle, requests, channel } = start(
      [{ deny: ["tool:count", "tool:schedule", "files"], to: "person:ada" }],
      {
        scripts,
        tools: [tool],
      },
    );
    const file = { platform: "test", id: "file", name: "a.txt", sizeBytes: 5 };
    await handle(message("how many?", { attachments: [file] }));
    expect([runs, requests[0]?.tools]).toEqual([0, undefined]);
    expect(channel[0]?.draft.markdown).toContain("Your files were not read");
    await handle(message("how many?", { author: ben, conversationId: "test:b" }));
    expect(runs).toBe(1);
  });
});

describe("/access", () => {
  test("/access shows everyone what they can do, and why", async () => {
    const { handle, texts } = start([{ deny: "pictures", to: "person:ada" }]);
    await handle(command("access"));
    expect(texts()[0]).toContain(
      "You can't create images here: rule 1 in the policy file says: deny pictures to person:ada.",
    );
    expect(texts()[0]).toContain("You can ask me here: no rule says otherwise.");
  });

  test("/access names none of the other people, channels and models of a rule", async () => {
    const deny = ["pictures", "model:secret"];
    const { accept, handle, texts } = start([
      { deny, to: ["person:ben", "person:ada"], in: ["channel:c1", "channels"] },
    ]);
    await accept(command("access"));
    await handle(command("access", "why pictures"));
    const said = "rule 1 in the policy file says: deny pictures to person:ada in channels.";
    expect(texts()).toEqual([expect.stringContaining(said), expect.stringContaining(said)]);
    expect(texts().join()).not.toMatch(/ben|c1|secret/);
  });

  test("/access changes the rules for admins only, at once and permanently", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, handle, texts, requests } = start([], { database });
    await handle(command("access", "deny chat to person:ada", { author: ben }));
    expect(texts()[0]).toContain("Only admins can do that");
    await handle(command("access", "deny chat to person:ada in here", { author: root }));
    expect(texts()[1]).toMatch(/^From now on: deny chat to person:ada in channel:general\. `\/access remove \w{5}`/);
    await handle(message("hello"));
    expect(requests).toHaveLength(0);
    await handle(command("access", "why person:ada chat", { author: root }));
    expect(texts().at(-1)).toMatch(/^`ada` can't ask me here, because rule \w{5} set in chat says: deny chat/);
    const id = /remove (\w{5})/.exec(texts()[1] ?? "")?.[1] ?? "";
    await accept(command("access", `remove ${id}`, { author: root }));
    await handle(message("hello again"));
    expect(requests).toHaveLength(1);
  });

  test("/access says what is wrong with a rule", async () => {
    const { handle, texts } = start();
    await handle(command("access", "deny cats to person:ada", { author: root }));
    expect(texts()[0]).toContain('I changed nothing: deny has "cats", which must be one of everything, chat,');
  });
});
