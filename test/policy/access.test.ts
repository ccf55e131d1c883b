import { describe, expect, test } from "vitest";
import { access as accessSchema } from "../../src/config/policy/access.ts";
import { createAccess, decide } from "../../src/policy/access.ts";
import type { Permission } from "../../src/policy/rules.ts";
import type { Actor } from "../../src/port/catalogue.ts";
import type { Author, ReplyAddress } from "../../src/port/events.ts";

/**
 * A company where guests can chat, only employees can do things that cost money or change something, and one channel is
 * reserved for a group.
 */
const policy = accessSchema.parse({
  admins: ["person:T1/UROOT", "group:SOPS", "role:900"],
  rules: [
    { deny: "everything", to: "person:T1/UBAD" },
    { allow: "everything", to: ["group:SENG", "role:501"], in: ["channel:CENG", "channel:77"] },
    { deny: "everything", in: ["channel:CENG", "channel:77"] },
    { deny: ["files", "tools"], to: "external" },
    { deny: ["model:large*"], to: ["guests", "external"], because: "Ask in #help." },
    { deny: ["pictures"], to: "guests", in: "channels" },
    { allow: "tool:shop__count", to: "guests" },
    { deny: ["server:shop"], to: ["guests"] },
    { deny: "chat", in: "category:444" },
    { deny: "pictures", in: "page" },
    { allow: "settings", to: "role:501" },
    { deny: "settings", to: ["guests", "external"] },
    { deny: "chat", to: "bots" },
    { deny: "files", in: "workspace:T9" },
    { deny: "models", to: "workspace:T7" },
  ],
});

const slack = (place: Partial<ReplyAddress> = {}): ReplyAddress => ({
  platform: "slack",
  workspaceId: "T1",
  channelId: "CGEN",
  ...place,
});
const discord = (place: Partial<ReplyAddress> = {}): ReplyAddress => ({
  platform: "discord",
  workspaceId: "10",
  channelId: "70",
  ...place,
});
const page: ReplyAddress = { platform: "local", channelId: "general" };

const on = (reply: ReplyAddress, author: Partial<Author> = {}): Actor => {
  const id = reply.platform === "slack" ? "T1/U1" : "1";
  return { reply, author: { id, name: "Ada", ...author } };
};

const guest = { kind: "guest" } as const;
const external = { kind: "external", workspaceId: "T8" } as const;
const eng = { groups: ["SENG"] };
const mod = { groups: ["501"] };
const plain = { mayConfigure: false };

const DECISIONS: Array<[Actor, Permission, boolean]> = [
  // Members, the default kind.
  [on(slack()), "chat", true],
  [on(slack()), "model:large-2", true],
  [on(slack(), plain), "settings", false],
  [on(slack(), { mayConfigure: true }), "settings", true],
  [on(slack()), "settings", true],
  [on(discord(), plain), "settings", false],
  [on(discord(), { mayConfigure: true }), "settings", true],
  [on(page), "chat", true],
  [on(page), "settings", true],
  [on(page), "pictures", false],
  // One person.
  [on(slack(), { id: "T1/UBAD" }), "chat", false],
  [on(slack({ isDirect: true }), { id: "T1/UBAD" }), "chat", false],
  [on(slack({ channelId: "CENG" }), { id: "T1/UBAD", ...eng }), "chat", false],
  [on(slack(), { id: "T2/UBAD" }), "chat", true],
  // A channel for a group, or a role.
  [on(slack({ channelId: "CENG" })), "chat", false],
  [on(slack({ channelId: "CENG", threadId: "1.2" })), "chat", false],
  [on(slack({ channelId: "CENG" }), eng), "chat", true],
  [on(slack({ channelId: "CENG" }), eng), "tool:shop__buy", true],
  [on(slack({ channelId: "CENG" }), { ...eng, ...plain }), "settings", true],
  [on(slack({ channelId: "CENG" }), { mayConfigure: true }), "settings", false],
  [on(discord({ channelId: "77" })), "chat", false],
  [on(discord({ channelId: "77", threadId: "771" })), "pictures", false],
  [on(discord({ channelId: "77" }), mod), "chat", true],
  [on(discord({ channelId: "77" }), { groups: ["502", "501"] }), "pictures", true],
  [on(discord({ channelId: "77" }), { groups: ["502"] }), "pictures", false],
  // People from other organisations.
  [on(slack(), external), "chat", true],
  [on(slack(), external), "files", false],
  [on(slack(), external), "tool:current_time", false],
  [on(slack(), external), "tool:shop__count", false],
  [on(slack(), external), "model:large-2", false],
  [on(slack(), external), "model:small", true],
  [on(slack(), external), "pictures", true],
  [on(slack(), { ...external, mayConfigure: true }), "settings", false],
  [on(slack(), { ...external, workspaceId: "T7" }), "model:small", false],
  // Guests.
  [on(slack(), guest), "chat", true],
  [on(slack(), guest), "files", true],
  [on(slack(), guest), "pictures", false],
  [on(slack({ isDirect: true }), guest), "pictures", true],
  [on(slack(), guest), "model:LARGE-2", false],
  [on(slack(), guest), "model:small", true],
  [on(slack(), guest), "tool:shop__count", true],
  [on(slack(), guest), "tool:shop__buy", false],
  [on(slack(), guest), "tool:shopping", true],
  [on(slack(), { ...guest, mayConfigure: true }), "settings", false],
  [on(discord(), guest), "pictures", false],
  [on(page, guest), "model:large-2", false],
  // A category, and the workspace of a channel.
  [on(discord({ categoryId: "444" })), "chat", false],
  [on(discord({ categoryId: "444" }), mod), "chat", false],
  [on(discord({ categoryId: "444" })), "files", true],
  [on(discord({ categoryId: "445" })), "chat", true],
  [on(discord({ isDirect: true })), "chat", true],
  [on(slack({ workspaceId: "T9" })), "files", false],
  [on(slack({ workspaceId: "T9" })), "chat", true],
  // Bots.
  [on(slack(), { kind: "bot" }), "chat", false],
  [on(discord(), { kind: "bot" }), "chat", false],
  [on(slack(), { kind: "bot" }), "pictures", true],
  // Settings by role, and for admins.
  [on(discord(), { ...mod, ...plain }), "settings", true],
  [on(discord(), { groups: ["900"], ...plain }), "settings", true],
  [on(slack({ channelId: "CENG" }), { groups: ["SOPS"], ...plain }), "settings", true],
  [on(slack({ channelId: "CENG" }), { id: "T1/UROOT" }), "settings", true],
  [on(slack({ channelId: "CENG" }), { id: "T1/UROOT" }), "chat", false],
];

function describeActor({ author, reply }: Actor): string {
  const { name: _, ...who } = author;
  return `${JSON.stringify(who)} at ${JSON.stringify(reply)}`;
}

describe("the policy of a company", () => {
  test("more than sixty cases try the access policy of a company", () =>
    expect(DECISIONS.length).toBeGreaterThanOrEqual(60));

  test.each(DECISIONS.map(([by, permission, isAllowed]) => [describeActor(by), permission, isAllowed, by] as const))(
    "the access policy decides: %s: %s is allowed: %s",
    (_, permission, isAllowed, by) => expect(decide(policy, [], by, permission).isAllowed).toBe(isAllowed),
  );
});

describe("an access decision", () => {
  test("an access decision looks up a person's rules once, however many tools it decides on", async () => {
    let reads = 0;
    const to = new Proxy(["guests", "external"], {
      get(list, key, receiver): unknown {
        reads += 1;
        return Reflect.get(list, key, receiver);
      },
    });
    const access = createAccess({
      policy: () => ({ access: { rules: Array.from({ length: 500 }, () => ({ deny: "tools", to })) } }),
      chatRules: { read: async () => [] },
    });
    const judge = await access.judge();
    const { author, reply } = on(slack());
    const ask = (tool: number) => judge({ author, reply }, `tool:shop__${tool}`).isAllowed;
    expect(ask(0)).toBe(true);
    const once = reads;
    for (let tool = 1; tool < 100; tool++) expect(ask(tool)).toBe(true);
    expect(reads).toBe(once);
    expect(judge({ author: { ...author, ...guest }, reply }, "tool:shop__1").isAllowed).toBe(false);
  });

  test("an access decision names the rule, and whom to ask", () => {
    expect(decide(policy, [], on(slack(), guest), "model:large-2")).toEqual({
      isAllowed: false,
      reason: "rule 5 in the policy file says: deny model:large* to guests",
      refusal: "You can't use the model large-2 here. Ask in #help. `/access` shows what you can do.",
    });
    expect(decide(policy, [], on(slack({ channelId: "CENG" })), "chat").refusal).toBe(
      "You can't ask me here. An admin can change that with `/access`. `/access` shows what you can do.",
    );
    expect(decide({ rules: [{ deny: "chat" }] }, [], on(slack()), "chat").refusal).toContain("Ask my operator.");
  });

  test("without a policy, everything is allowed by default", () => {
    expect(decide({}, [], on(slack(), plain), "settings").refusal).toBe(
      "Only this channel's managers can change that.",
    );
    expect(decide({}, [], on(slack(), plain), "chat").isAllowed).toBe(true);
  });

  test("an access decision gives a reason that is true for the asker and for others", () => {
    expect(decide({}, [], on(slack(), plain), "settings").reason).toBe(
      "only this channel's managers can, and no rule says otherwise",
    );
    expect(decide({}, [], on(slack()), "settings").reason).not.toContain("they");
  });
});

describe("rules that admins set in the chat", () => {
  const chat = [{ id: "abc", rule: { deny: "chat" } }];

  test("rules from the chat take precedence over rules in the file", () => {
    const file = { admins: ["person:9"], rules: [{ allow: "chat" }] };
    expect(decide(file, chat, on(page), "chat")).toMatchObject({
      isAllowed: false,
      reason: "rule abc set in chat says: deny chat",
    });
    expect(decide(file, chat, on(page), "pictures").isAllowed).toBe(true);
  });

  test("rules from the chat apply only while the file names an admin who can remove them", async () => {
    let admins = ["person:9"];
    const access = createAccess({ policy: () => ({ access: { admins } }), chatRules: { read: async () => chat } });
    expect(await access.may(on(page), "chat")).toBe(false);
    admins = [];
    expect(await access.may(on(page), "chat")).toBe(true);
  });
});
