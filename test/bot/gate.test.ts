import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { access as accessSchema } from "../../src/config/policy/access.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import type { Author } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command, edited, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const root: Author = { id: "root", name: "Root" };

function toPolicy(rules: object[]): Policy {
  return { access: accessSchema.parse({ admins: ["person:root"], rules }) };
}

/** The bot under rules that can be changed, on a platform that posts in private. */
function start(rules: object[] = [], options: Parameters<typeof startEngine>[0] = {}) {
  let policy = toPolicy(rules);
  const platform = fakePlatform();
  const privatePosts: Array<{ to: string; text: string }> = [];
  Object.assign(platform.adapter, {
    postPrivately: async (_: unknown, to: string, text: string) => void privatePosts.push({ to, text }),
  });
  const engine = startEngine({ platform, policy: () => policy, scripts: [["One."], ["Two."], ["Three."]], ...options });
  return { ...engine, privatePosts, setRules: (next: object[]) => void (policy = toPolicy(next)) };
}

describe("a question that is denied", () => {
  test("is answered by one private notice in ten minutes", async () => {
    const { accept, idle, privatePosts, requests, texts } = start([{ deny: "chat", to: "person:ada" }]);
    await accept(message("hello"));
    await accept(message("hello?"));
    await accept(message("hi", { author: ben }));
    await idle();
    expect(privatePosts).toEqual([{ to: "ada", text: expect.stringContaining("You may not ask me here.") }]);
    expect(requests).toHaveLength(1);
    expect(texts()).toEqual(["One."]);
  });

  test("and was said to nobody, or in a channel with /listen on, is ignored", async () => {
    const { accept, idle, privatePosts, requests } = start([{ deny: "chat", to: "person:ada" }]);
    await accept(message("hi", { author: ben }));
    await idle();
    await accept(message("and me?", { addressed: "open" }));
    await accept(message("and me?", { isListenedTo: true }));
    await idle();
    expect([privatePosts, requests.length]).toEqual([[], 1]);
  });

  test("does not concern answers that were begun before", async () => {
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

  test("is not put in place of another one by an edit while that is answered", async () => {
    const hold = Promise.withResolvers<void>();
    const { accept, idle, setRules, requests, texts, calls } = start([], {
      scripts: [["One ", hold.promise], ["Two."]],
    });
    const asked = message("hello");
    await accept(asked);
    while (requests.length === 0) await new Promise(setImmediate);
    setRules([{ deny: "chat" }]);
    await accept(edited(asked, "something else"));
    await idle();
    expect(calls).not.toEqual([]);
    expect(requests).toHaveLength(1);
    expect(texts().join()).toContain("You may not ask me here.");
  });

  test("is not asked by an edit that addresses the bot while the message waits", async () => {
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
    expect(privatePosts).toEqual([{ to: "ben", text: expect.stringContaining("You may not ask me here.") }]);
  });

  test("is asked again neither by a button, nor by going on, nor by an edit", async () => {
    const { accept, idle, setRules, requests } = start();
    const asked = message("hello");
    await accept(asked);
    await idle();
    setRules([{ deny: "chat" }]);
    const turnId = toTurnId(asked.key);
    for (const name of ["regenerate", "retry", "continue", "approve", "always", "rerun"] as const) {
      await accept(action(name, turnId));
    }
    await accept(edited(asked, "hello there"));
    await accept({ ...edited(message("never seen"), "look here"), addressed: "bot" });
    await idle();
    expect(requests).toHaveLength(1);
  });
});

describe("the model, the tools and the files of an answer", () => {
  test("fall back to the usual model where the channel's own is denied", async () => {
    const { accept, idle, setRules, requests, texts } = start([], { model: "small" });
    await accept(message("hello"));
    await idle();
    setRules([{ deny: "model:small" }]);
    await accept(message("hello"));
    await idle();
    expect(requests.map(({ model }) => model)).toEqual(["small"]);
    expect(texts()).toHaveLength(1);
  });

  test("leave out denied tools and files, even if the model calls them", async () => {
    let runs = 0;
    const tool = defineTool({
      name: "count",
      description: "Counts.",
      schema: z.object({}),
      timeoutMs: 1_000,
      describeCall: () => "counting",
      run: async () => `${(runs += 1)}`,
    });
    const call = {
      tool_calls: [{ index: 0, id: "c", type: "function" as const, function: { name: "count", arguments: "{}" } }],
    };
    const scripts = [[call], ["Done."], [call], ["Done."]];
    const { accept, idle, requests, channel } = start([{ deny: ["tool:count", "files"], to: "person:ada" }], {
      scripts,
      tools: [tool],
    });
    const file = { platform: "test", id: "file", name: "a.txt", sizeBytes: 5 };
    await accept(message("how many?", { attachments: [file] }));
    await idle();
    expect([runs, requests[0]?.tools]).toEqual([0, undefined]);
    expect(channel[0]?.draft.markdown).toContain("Your files were not read");
    await accept(message("how many?", { author: ben, conversationId: "test:b" }));
    await idle();
    expect(runs).toBe(1);
  });
});

describe("/access", () => {
  test("tells everybody what they may do, and why", async () => {
    const { accept, idle, texts } = start([{ deny: "pictures", to: "person:ada" }]);
    await accept(command("access"));
    await idle();
    expect(texts()[0]).toContain(
      "You may not have pictures drawn here: rule 1 of the policy file says: deny pictures to person:ada.",
    );
    expect(texts()[0]).toContain("You may ask me here: no rule says otherwise.");
  });

  test("names no other people, places and models of a rule", async () => {
    const deny = ["pictures", "model:secret"];
    const { accept, idle, texts } = start([{ deny, to: ["person:ben", "person:ada"], in: ["channel:c1", "channels"] }]);
    await accept(command("access"));
    await accept(command("access", "why pictures"));
    await idle();
    const said = "rule 1 of the policy file says: deny pictures to person:ada in channels.";
    expect(texts()).toEqual([expect.stringContaining(said), expect.stringContaining(said)]);
    expect(texts().join()).not.toMatch(/ben|c1|secret/);
  });

  test("changes the rules for admins alone, at once and for good", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, idle, texts, requests } = start([], { database });
    await accept(command("access", "deny chat to person:ada", { author: ben }));
    await idle();
    expect(texts()[0]).toContain("Only admins may do that");
    await accept(command("access", "deny chat to person:ada in here", { author: root }));
    await idle();
    expect(texts()[1]).toMatch(/^From now on: deny chat to person:ada in channel:general\. `\/access remove \w{5}`/);
    await accept(message("hello"));
    await idle();
    expect(requests).toHaveLength(0);
    await accept(command("access", "why person:ada chat", { author: root }));
    await idle();
    expect(texts().at(-1)).toMatch(/^`ada` may not ask me here, because rule \w{5} of the chat says: deny chat/);
    const id = /remove (\w{5})/.exec(texts()[1] ?? "")?.[1] ?? "";
    await accept(command("access", `remove ${id}`, { author: root }));
    await accept(message("hello again"));
    await idle();
    expect(requests).toHaveLength(1);
  });

  test("says what is wrong with a rule", async () => {
    const { accept, idle, texts } = start();
    await accept(command("access", "deny cats to person:ada", { author: root }));
    await idle();
    expect(texts()[0]).toContain('I changed nothing: deny has "cats", which must be one of everything, chat,');
  });
});
