import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { createInstallations } from "../../../adapters/slack/install/installations.ts";
import type { Workspace } from "../../../lab/slack-sim/world.ts";
import { silent } from "../../../lab/support/log.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import type { Button } from "../../../src/port/sink.ts";
import { startSlack } from "../../support/slack.ts";
import { MENU } from "./interaction-stage.ts";
import { draft, signal, startAdapter, startStage, TRANSPORTS } from "./stage.ts";

const RETRY: Button = { action: "retry", turnId: "turn:1", label: "Retry" };
const EDIT: Button = { action: "edit", turnId: "job.1", label: "Edit…" };

describe.each(TRANSPORTS)("the whole adapter over %s", (transport) => {
  test("/ask is answered in the thread of the question, and the conversation continues there", async () => {
    const { slack, adapter, ada, general, message } = await startStage({ transport });
    expect(await ada.command("/ask", "why?", general)).toMatchObject({ isAcknowledged: true });
    const { reply, conversationId } = await message(0);
    const [question] = slack.answers(general);
    await adapter.sink(reply, NO_RIGHT).post(draft("Because."), "n", signal);
    expect(slack.texts(general, question)).toEqual(["*Ada* asks:\n&gt; why?", expect.stringContaining("Because.")]);
    if (question === undefined) throw new Error("There is no question.");
    ada.say(general, "and then?", { thread: question });
    expect(await message(1)).toMatchObject({ conversationId, text: "and then?" });
  });

  test("a person learns that a command, a button press or a form could not be stored, and the form stays open", async () => {
    const accept = async ({ kind }: InboundEvent) => {
      if (kind !== "message") throw new Error("the disk is full");
    };
    const { slack, adapter, ada, bob, general, message } = await startStage({ transport, imagine: MENU, accept });
    ada.mention(general, "hi");
    await adapter
      .sink((await message(0)).reply, NO_RIGHT)
      .post(draft("Hello.", { buttons: [RETRY, EDIT] }), "n", signal);
    const [answer] = slack.answers(general);
    if (answer === undefined) throw new Error("There is no answer.");
    const told = () => slack.ephemerals(general, bob.id).map(({ shown }) => shown);
    await bob.command("/help", "", general);
    expect(told()).toEqual([expect.stringMatching(/Try again/)]);
    await bob.press(answer, "retry");
    await slack.until(() => told().length === 2, "the second answer");
    expect(told()[1]).toMatch(/Try again/);
    await bob.press(answer, "edit");
    const form = await slack.until(() => slack.view(bob), "the form");
    const sent = await bob.submitView(form, { prompt: { value: { value: "a cat" } } });
    const errors = { prompt: expect.stringMatching(/Try again/) };
    expect(sent).toMatchObject({ response: { response_action: "errors", errors } });
    expect(slack.view(bob)).toBeDefined();
  });
});

describe("two workspaces on one bot", () => {
  test("the bot answers each workspace with that workspace's token, whatever people do there", async () => {
    const slack = await startSlack();
    const beta = slack.addWorkspace("Beta");
    const installations = createInstallations({
      store: new Keyv(),
      encryptionKey: randomBytes(32),
      refresh: () => Promise.reject(new Error("nothing expires here")),
      log: silent,
      now: slack.now,
    });
    const places = [slack.workspace, beta];
    for (const { id, bot, botToken } of places) {
      const owner = { teamId: id, isOrgWide: false, botUserId: bot.id, botId: bot.botId ?? "" };
      await installations.keep({ ...owner, token: botToken, installedAt: 0 });
    }
    const { adapter, events } = await startAdapter(slack, { installed: { workspaces: installations }, imagine: MENU });
    const people = places.map((workspace) => {
      const person = slack.user({ name: `Ada of ${workspace.name}`, workspace });
      return { workspace, person, channel: slack.channel({ name: "general", members: [person], workspace }) };
    });
    for (const { person, channel } of people) {
      person.mention(channel, "hi");
      person.openHome();
      person.openHome("messages");
    }
    await Promise.all(
      people.flatMap(({ person, channel }) => [
        person.command("/ask", "why?", channel),
        person.command("/imagine", "", channel),
      ]),
    );
    for (const { person } of people) await slack.until(() => slack.home(person) && slack.view(person), "the surfaces");
    // Slack sends two events for a mention, which become one event.
    const unique = () => [...new Map(events.map((event) => [event.key, event])).values()];
    await slack.until(() => unique().length === 4, "the events");
    slack.advance(5_000);
    await Promise.all(
      unique().map(({ reply }, index) => adapter.sink(reply, NO_RIGHT).post(draft(`to ${index}`), `n${index}`, signal)),
    );

    for (const { workspace, channel } of people) {
      const own = unique().filter(({ reply }) => reply.extra?.["team"] === workspace.id);
      expect(own).toHaveLength(2);
      expect(own.every(({ reply }) => reply.channelId === channel.id)).toBe(true);
      expect(slack.answers(channel)).toHaveLength(3);
    }
    expect(strangers(slack.requests, places)).toEqual([]);
  });

  test("a workspace that uninstalled the bot is not answered, and the other one is", async () => {
    const slack = await startSlack();
    const workspaces = {
      find: async (teamId: string) =>
        teamId === slack.workspace.id
          ? { teamId, botUserId: slack.workspace.bot.id, botId: "B", token: slack.botToken }
          : undefined,
    };
    const beta = slack.addWorkspace("Beta");
    const { adapter, events, event } = await startAdapter(slack, { installed: { workspaces } });
    slack.allow("late-ack");
    const bob = slack.user({ name: "Bob", workspace: beta });
    bob.mention(slack.channel({ name: "general", members: [bob], workspace: beta }), "hi");
    const ada = slack.user({ name: "Ada" });
    ada.mention(slack.channel({ name: "general", members: [ada] }), "hi");
    await event(0);
    expect(new Set(events.map(({ author }) => author.name))).toEqual(new Set(["Ada"]));
    const reply: InboundEvent["reply"] = {
      platform: "slack",
      channelId: "C",
      threadId: "1.1",
      extra: { team: beta.id },
    };
    await expect(adapter.sink(reply, NO_RIGHT).post(draft("psst"), "n", signal)).rejects.toThrow(/not installed/);
    expect(slack.requests.filter(({ workspaceId }) => workspaceId === beta.id)).toEqual([]);
  });
});

/** Calls that name a channel, a person or a trigger in another workspace than the token's. */
function strangers(
  requests: readonly { args: Record<string, unknown>; workspaceId: string | undefined }[],
  places: Workspace[],
) {
  return requests.filter(({ args, workspaceId }) => {
    const named = [args["channel"], args["channel_id"], args["user"], args["user_id"], args["recipient_user_id"]];
    const owner = places.find(({ channels, users }) =>
      named.some((id) => typeof id === "string" && (channels.has(id) || users.has(id))),
    );
    return owner !== undefined && owner.id !== workspaceId;
  });
}
