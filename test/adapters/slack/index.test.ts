import { describe, expect, test } from "vitest";
import { shownText } from "../../../lab/slack-sim/shown-text.ts";
import type { Message } from "../../../lab/slack-sim/world.ts";
import { recordingLog } from "../../../lab/support/log.ts";
import type { Accept } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type AdapterUnderTest, adapterContract } from "../../support/adapter-contract.ts";
import type { TransportName } from "../../support/bolt-app.ts";
import { eventually } from "../../support/eventually.ts";
import { draft, signal, startStage, TRANSPORTS } from "./stage.ts";

for (const transport of TRANSPORTS) {
  adapterContract(`Slack (${transport})`, (accept) => startUnderTest(accept, transport));
}

/** Each conversation is the thread of a direct message. */
async function startUnderTest(accept: Accept, transport: TransportName): Promise<AdapterUnderTest> {
  const { slack, adapter, ada, general } = await startStage({ accept, transport });
  let root: Message | undefined;
  let newest: Message | undefined;
  let thread: Message | undefined;

  /** Resolves when Slack has its acknowledgement. Rejects if the first delivery got none. */
  async function delivered(act: () => void): Promise<void> {
    const before = slack.deliveries.length;
    act();
    // Slack repeats an event that arrives while the adapter accepts no events.
    if (!adapter.isConnected()) return slack.allow("late-ack");
    for (const delivery of slack.deliveries.slice(before)) {
      const first = await slack.until(() => delivery.attempts[0], "the first attempt");
      if (first.isAcknowledged) continue;
      slack.allow("late-ack");
      throw new Error(`It was not acknowledged: ${first.detail}.`);
    }
  }

  const there = () => newest ?? fail();
  const at = (where: "channel" | "thread") => (where === "thread" ? { thread: thread ?? fail() } : {});
  return {
    adapter,
    mention: `<@${ada.id}>`,
    begin: (text, file) =>
      delivered(() => {
        root = newest = file === undefined ? ada.dm(text) : ada.upload(ada.direct(), [file], text);
      }),
    goOn: (text) => delivered(() => (newest = ada.dm(text, { thread: root ?? fail() }))),
    redeliver: async () => void (await slack.redeliver(there())),
    editNewest: (text) => delivered(() => ada.edit(there(), text)),
    deleteNewest: () => delivered(() => ada.delete(there())),
    press: (id, label) =>
      delivered(() => {
        const message = slack.answers(ada.direct(), root).find(({ ts }) => id.endsWith(ts)) ?? fail();
        const button = buttonsOf(message).find((one) => one.label === label) ?? fail();
        void ada.press(message, button.actionId);
      }),
    discussion: {
      say(text, where) {
        const said = ada.say(general, text, at(where));
        thread ??= said;
      },
      ask: (text, where) => void ada.mention(general, text, at(where)),
    },
    async seen() {
      return slack.answers(ada.direct(), root).map((message) => ({
        text: shownText(message.content),
        fileNames: message.content.files.map(({ title }) => title),
        buttons: buttonsOf(message).map(({ label }) => label),
      }));
    },
    // The stage closes this adapter.
    close: async () => {},
  };
}

function buttonsOf({ content }: Message): Array<{ label: string; actionId: string }> {
  const elements = content.blocks.flatMap(({ elements }) => (Array.isArray(elements) ? elements : []));
  return elements.flatMap(({ type, text, action_id }) =>
    type === "button" ? [{ label: String(text?.text), actionId: String(action_id) }] : [],
  );
}

function fail(): never {
  throw new Error("There is none yet.");
}

describe.each(TRANSPORTS)("the Slack adapter over %s", (transport) => {
  test("the Slack adapter logs no text by people", async () => {
    const { log, lines } = recordingLog();
    const { slack, adapter, ada, general, message, heard } = await startStage({ log, transport });
    ada.mention(general, "SECRET-WORD one");
    const event = await message(0);
    slack.failNext("chat.postMessage", { status: 500 });
    await adapter
      .sink(event.reply, NO_RIGHT)
      .post(draft("SECRET-WORD two"), "n", signal)
      .catch(() => {});
    await ada.command("/ask", "SECRET-WORD three", general);
    slack.dropConnections();
    ada.dm("SECRET-WORD four");
    await heard();
    for (const secret of ["SECRET-WORD", slack.botToken, slack.appToken, slack.signingSecret]) {
      expect(JSON.stringify(lines)).not.toContain(secret);
    }
  });

  test("the Slack adapter gives up with a plain sentence if Slack permanently refuses its token, even without an event", async () => {
    const { slack, adapter, ada, general, message, reasons } = await startStage({ transport });
    ada.mention(general, "hello");
    const { reply } = await message(0);
    slack.revoke("token_revoked");
    const post = () => adapter.sink(reply, NO_RIGHT).post(draft("hi"), "n", signal);
    await expect(post()).rejects.toMatchObject({ kind: "forbidden" });
    await expect(post()).rejects.toMatchObject({ kind: "forbidden" });
    expect(reasons).toEqual([expect.stringMatching(/does not accept the bot token.*SLACK_BOT_TOKEN/)]);
  });

  test("a stopping Slack adapter says nothing about its token", async () => {
    const { slack, adapter, ada, general, message, reasons } = await startStage({ transport });
    ada.mention(general, "hello");
    const { reply } = await message(0);
    await adapter.pause();
    slack.revoke("token_revoked");
    await expect(adapter.sink(reply, NO_RIGHT).post(draft("hi"), "n", signal)).rejects.toMatchObject({
      kind: "forbidden",
    });
    expect(reasons).toEqual([]);
  });

  test("a wait for Slack ends on time even if the wall clock is set back", async () => {
    let wall = Date.now();
    const { slack, adapter, ada, general, message } = await startStage({
      transport,
      now: () => wall,
    });
    ada.mention(general, "hello");
    const { reply } = await message(0);
    slack.failNext("chat.postMessage", { retryAfterS: 1 });
    const post = () => adapter.sink(reply, NO_RIGHT).post(draft("hi"), "n", signal);
    await expect(post()).rejects.toMatchObject({ kind: "rate-limited" });
    wall -= 3_600_000;
    await eventually(() => post().then(() => "posted", String)).toBe("posted");
  });
});

test("namePlace returns the names of workspace and channel, and no person's name for a group direct message", async () => {
  const { slack, adapter, general, ada, bob } = await startStage();
  const group = slack.channel({ name: "mpdm-ada--bob-1", kind: "mpim", members: [ada, bob] });
  const workspaceId = slack.workspace.id;
  const nameOf = async (channelId: string) => adapter.namePlace?.({ workspaceId, channelId }, signal);
  expect(await nameOf(general.id)).toEqual({ workspace: "Acme", channel: "#general", isDirect: false });
  expect(await nameOf(group.id)).toMatchObject({ channel: "group message" });
  expect(await nameOf("D1")).toMatchObject({ channel: "direct message", isDirect: true });
});
