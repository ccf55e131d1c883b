import { describe, expect, test } from "vitest";
import type { ImagineMenu } from "../../../../src/port/catalogue.ts";
import type { TransportName } from "../../../simulators/slack/bolt-app.ts";
import type { View } from "../../../simulators/slack/views.ts";
import type { Json } from "../../../simulators/slack/world.ts";
import { blocksOf, MENU, startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const PNG = { name: "cat.png", bytes: Buffer.from("a picture") };
const prompt = (value: string | null) => ({ prompt: { value: { type: "plain_text_input", value } } });
const chosen = (name: string, value: string) => ({ [name]: { value: { selected_option: { value } } } });
const never = () => new Promise<never>(() => {});

async function openForm(stage: Awaited<ReturnType<typeof startInteractions>>) {
  await stage.ada.command("/imagine", "", stage.general);
  return stage.slack.until(() => stage.slack.view(stage.ada), "the form");
}

describe.each<TransportName>(["Socket Mode", "HTTP"])("the form for pictures over %s", (transport) => {
  test("becomes the command it stands for", async () => {
    const stage = await startInteractions({ transport });
    const { ada, general, events, slack, workspace } = stage;
    const view = await openForm(stage);
    const files = ada.attach([PNG]);
    const values = {
      ...prompt(" a cat "),
      references: { value: { type: "file_input", files } },
      ...chosen("ratio", "16:9"),
      ...chosen("count", "3"),
      size: { value: { selected_option: null } },
    };
    expect(await ada.submitView(view, values)).toMatchObject({ isAcknowledged: true });
    expect(slack.view(ada)).toBeUndefined();
    expect(events).toMatchObject([
      {
        kind: "command",
        name: "imagine",
        text: "a cat",
        options: { ratio: "16:9", count: "3" },
        attachments: [{ platform: "slack", name: "cat.png", sizeBytes: PNG.bytes.length }],
        conversationId: `slack:${workspace.teamId}:${general.id}`,
        author: { id: personOf(slack, ada) },
        reply: { channelId: general.id, extra: { responseUrl: expect.stringContaining("/response/") } },
      },
    ]);
    expect(events[0]).toHaveProperty("options", { ratio: "16:9", count: "3" });
    expect(events[0]?.reply.visibleTo).toBeUndefined();
  });

  test("without words is given back", async () => {
    const stage = await startInteractions({ transport });
    const view = await openForm(stage);
    for (const empty of [null, "   "]) {
      const { response } = await stage.ada.submitView(view, prompt(empty));
      expect(response).toMatchObject({
        response_action: "errors",
        errors: { prompt: expect.stringContaining("draw") },
      });
    }
    expect(view.isOpen).toBe(true);
    expect(stage.events).toEqual([]);
  });
});

describe("the form for pictures", () => {
  test("offers what the menu has", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    const blocks = blocksOf(view.body);
    expect(blocks.map(({ block_id }) => block_id)).toEqual(["prompt", "references", "ratio", "size", "count", "model"]);
    const offered = (name: string) => {
      const { element } = blocks.find(({ block_id }) => block_id === name) as { element: { options: Json[] } };
      return element.options.map(({ value }) => value);
    };
    expect(["ratio", "size", "count", "model"].map(offered)).toEqual([
      ["1:1", "16:9"],
      ["1K", "2K"],
      ["1", "2", "3", "4"],
      ["sandbox-image"],
    ]);
    expect(blocks[1]).toMatchObject({ optional: true, element: { type: "file_input", max_files: 3 } });
  });

  test("opens without the models when they are late", async () => {
    const stage = await startInteractions({ imagine: { ...MENU, listModels: never } });
    const view = await openForm(stage);
    expect(blocksOf(view.body).map(({ block_id }) => block_id)).not.toContain("model");
  });

  test("that does not open says so, and what else one can do", async () => {
    const { slack, ada, general } = await startInteractions();
    slack.failNext("views.open", { error: "internal_error" });
    await ada.command("/imagine", "", general);
    const [told] = await slack.until(() => slack.ephemerals(general, ada.id).length > 0 && slack.ephemerals(general));
    expect(told?.shown).toMatch(/did not let me open the form.*\/imagine/);
  });

  test("is given back where the bot is not in the channel", async () => {
    const { slack, ada, elsewhere, events } = await startInteractions();
    await ada.command("/imagine", "", elsewhere);
    const view = await slack.until(() => slack.view(ada), "the form");
    const { response } = await ada.submitView(view, prompt("a cat"));
    expect(response).toMatchObject({ errors: { prompt: expect.stringMatching(/not in this channel.*\/invite/) } });
    expect(events).toEqual([]);
  });

  test("from the list of shortcuts asks where the picture goes", async () => {
    const { slack, ada, general, elsewhere, events } = await startInteractions();
    await ada.shortcut("imagine_global");
    const view = await slack.until(() => slack.view(ada), "the form");
    const where = (id: string) => ({ where: { value: { selected_conversation: id } } });
    expect((await ada.submitView(view, prompt("a cat"))).response).toMatchObject({ errors: { where: /./ } });
    expect((await ada.submitView(view, { ...prompt("a cat"), ...where(elsewhere.id) })).response).toMatchObject({
      errors: { where: expect.stringContaining("/invite") },
    });
    await ada.submitView(view, { ...prompt("a cat"), ...where(general.id) });
    expect(events).toMatchObject([{ name: "imagine", reply: { channelId: general.id } }]);
  });

  test("sent twice is one command", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    await stage.ada.submitView(view, prompt("a cat"));
    const [delivery] = stage.slack.deliveries.filter(({ name }) => name === "view_submission");
    if (delivery !== undefined) await stage.slack.redeliver(delivery);
    expect(stage.events).toHaveLength(2);
    expect(new Set(stage.events.map(({ key }) => key)).size).toBe(1);
  });
});

/** A form as somebody sends it who has changed what it remembers. */
function forged(view: View, changes: Json): View {
  const remembered = JSON.parse(String(view.body["private_metadata"])) as Json;
  return { ...view, body: { ...view.body, private_metadata: JSON.stringify({ ...remembered, ...changes }) } };
}

describe("a form for pictures that is forged", () => {
  test("is given back to anybody but the one who opened it", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    for (const sent of [
      stage.bob.submitView(view, prompt("a cat")),
      stage.ada.submitView(forged(view, { p: undefined }), prompt("a cat")),
    ]) {
      expect((await sent).response).toMatchObject({ errors: { prompt: expect.stringContaining("somebody else") } });
    }
    expect(stage.events).toEqual([]);
  });

  test("brings no files of another workspace", async () => {
    const stage = await startInteractions();
    const { ada, events, workspace } = stage;
    const view = await openForm(stage);
    const r = [
      ["T999999999:F1", "theirs.png", 1],
      [`${workspace.teamId}:F2`, "ours.png", 1],
    ];
    await ada.submitView(forged(view, { r }), prompt("a cat"));
    expect(events).toMatchObject([{ attachments: [{ name: "ours.png" }] }]);
  });

  test.each(["private", "mpim"] as const)("brings no picture to a %s conversation of others", async (kind) => {
    const { slack, ada, bob, events } = await startInteractions();
    const theirs = slack.channel({ name: "theirs", kind, members: [bob] });
    const ours = slack.channel({ name: "ours", kind, members: [ada, bob] });
    await ada.shortcut("imagine_global");
    const view = await slack.until(() => slack.view(ada), "the form");
    const to = (id: string) => ({ ...prompt("a cat"), where: { value: { selected_conversation: id } } });
    for (const id of [theirs.id, bob.direct().id]) {
      expect((await ada.submitView(view, to(id))).response).toMatchObject({
        errors: { where: expect.stringContaining("Slack does not tell me that you are in this conversation") },
      });
    }
    expect(events).toEqual([]);
    await ada.submitView(view, to(ours.id));
    expect(events).toMatchObject([{ name: "imagine", reply: { channelId: ours.id } }]);
  });

  test("brings no picture to a private channel without the scope to see who is there, and names the scope", async () => {
    const { slack, ada, events } = await startInteractions();
    const ours = slack.channel({ name: "ours", kind: "private", members: [ada] });
    slack.workspace.scopes.delete("groups:read");
    await ada.shortcut("imagine_global");
    const view = await slack.until(() => slack.view(ada), "the form");
    const values = { ...prompt("a cat"), where: { value: { selected_conversation: ours.id } } };
    expect((await ada.submitView(view, values)).response).toMatchObject({
      errors: { where: expect.stringMatching(/I lack the permission groups:read.*administrator.*\/imagine/) },
    });
    expect(events).toEqual([]);
  });
});

describe("the form of a picture's Edit", () => {
  const described: ImagineMenu["describe"] = async (id) =>
    id === "job.1" ? { prompt: "a cat", options: { ratio: "16:9", size: "2K", model: "gone-model" } } : undefined;

  async function pressEdit(imagine: ImagineMenu) {
    const stage = await startInteractions({ imagine });
    const { slack, ada, general, call } = stage;
    const root = ada.say(general, "draw a cat");
    const elements = [
      { type: "button", action_id: "edit", value: "edit:job.1", text: { type: "plain_text", text: "Edit…" } },
    ];
    const blocks = [{ type: "actions", elements }];
    const picture = { channel: general.id, thread_ts: root.ts, text: "a cat", blocks };
    await call("chat.postMessage", picture);
    const [message] = slack.answers(general, root);
    if (message === undefined) throw new Error("There is no picture.");
    await ada.press(message, "edit");
    const view = await slack.until(() => slack.view(ada), "the form");
    return { ...stage, root, view };
  }

  test("says how the picture was asked for, and becomes a command with the picture", async () => {
    const { ada, events, view, root } = await pressEdit({ ...MENU, describe: described });
    const element = (name: string) => blocksOf(view.body).find(({ block_id }) => block_id === name)?.["element"];
    expect(element("prompt")).toMatchObject({ initial_value: "a cat" });
    expect(element("ratio")).toMatchObject({ initial_option: { value: "16:9" } });
    expect(element("model")).not.toHaveProperty("initial_option");
    await ada.submitView(view, prompt("a cat at night"));
    expect(events).toMatchObject([
      { kind: "command", text: "a cat at night", options: { basis: "job.1" }, reply: { threadId: root.ts } },
    ]);
  });

  test("asks how the picture was asked for in the name of who pressed, and for the place of the button", async () => {
    const asked: unknown[] = [];
    const imagine: ImagineMenu = { ...MENU, describe: async (...args) => void asked.push(args) };
    const { slack, ada, general, root } = await pressEdit(imagine);
    const reply = { platform: "slack", channelId: general.id, workspaceId: slack.workspace.id, threadId: root.ts };
    expect(asked).toMatchObject([["job.1", { author: { id: personOf(slack, ada) }, reply }, {}]]);
  });

  test("opens empty when nothing is known in time", async () => {
    const { view } = await pressEdit({ ...MENU, describe: never });
    const [first] = blocksOf(view.body);
    expect(first?.["element"]).not.toHaveProperty("initial_value");
  });
});
