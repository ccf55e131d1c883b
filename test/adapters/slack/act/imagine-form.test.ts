import { describe, expect, test } from "vitest";
import { readContext, toImagineForm } from "../../../../adapters/slack/act/imagine-form.ts";
import type { View } from "../../../../lab/slack-sim/views.ts";
import type { Json } from "../../../../lab/slack-sim/world.ts";
import type { ImagineMenu } from "../../../../src/port/catalogue.ts";
import { blocksOf, MENU, startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const PREFILL = { prompt: "", options: {}, models: [] };
const reference = (index: number) => ({
  platform: "slack",
  id: `T012345678:F${index}:${"x".repeat(20)}`,
  name: `picture ${index} ${"é".repeat(300)}.png`,
  sizeBytes: 1_000_000 + index,
});

describe("the content of an imagine form", () => {
  test("the context of an imagine form fits into Slack's limit with any number of images", () => {
    const references = Array.from({ length: 40 }, (_, index) => reference(index));
    const menu = { ...MENU, maxReferences: 40 };
    const { private_metadata } = toImagineForm(menu, { channelId: "C1", personId: "U1", references }, PREFILL);
    expect(String(private_metadata).length).toBeLessThanOrEqual(3_000);
    const kept = readContext(String(private_metadata)).references;
    expect(kept.length).toBeGreaterThanOrEqual(10);
    expect(kept.map(({ id }) => id)).toEqual(references.slice(0, kept.length).map(({ id }) => id));
  });

  test("the imagine form counts its images and the edited one against the file limit", () => {
    const toView = (about: { basis?: string; references: ReturnType<typeof reference>[] }) =>
      JSON.stringify(toImagineForm(MENU, { channelId: "C1", personId: "U1", ...about }, PREFILL));
    expect(toView({ references: [reference(0), reference(1), reference(2)] })).not.toContain("file_input");
    const edited = toView({ basis: "job.1", references: [] });
    expect(edited).toContain('"max_files":2');
    expect(edited).toContain("the image itself");
  });

  test("the imagine form accepts the longest prompt", () => {
    const view = toImagineForm(
      MENU,
      { channelId: "C1", personId: "U1", references: [] },
      { ...PREFILL, prompt: "x".repeat(9_000) },
    );
    expect(JSON.stringify(view)).toContain(`"initial_value":"${"x".repeat(3_000)}"`);
  });
});

const PNG = { name: "cat.png", bytes: Buffer.from("a picture") };
const prompt = (value: string | null) => ({ prompt: { value: { type: "plain_text_input", value } } });
const chosen = (name: string, value: string) => ({ [name]: { value: { selected_option: { value } } } });
const never = () => new Promise<never>(() => {});

async function openForm(stage: Awaited<ReturnType<typeof startInteractions>>) {
  await stage.ada.command("/imagine", "", stage.general);
  return stage.slack.until(() => stage.slack.view(stage.ada), "the form");
}

describe("the form for images", () => {
  test("a submitted imagine form becomes the /imagine command", async () => {
    const stage = await startInteractions();
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

  test("an imagine form without words is rejected with an error at the field", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    for (const empty of [null, "   "]) {
      const { response } = await stage.ada.submitView(view, prompt(empty));
      expect(response).toMatchObject({
        response_action: "errors",
        errors: { prompt: expect.stringContaining("what the image should show") },
      });
    }
    expect(view.isOpen).toBe(true);
    expect(stage.events).toEqual([]);
  });

  test("the imagine form offers the choices of the menu", async () => {
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

  test("the imagine form opens without models if the list of models comes too late", async () => {
    const stage = await startInteractions({ imagine: { ...MENU, listModels: never } });
    const view = await openForm(stage);
    expect(blocksOf(view.body).map(({ block_id }) => block_id)).not.toContain("model");
  });

  test("the adapter tells the person that the imagine form did not open, and what to do instead", async () => {
    const { slack, ada, general } = await startInteractions();
    slack.failNext("views.open", { error: "internal_error" });
    await ada.command("/imagine", "", general);
    const [told] = await slack.until(() => slack.ephemerals(general, ada.id).length > 0 && slack.ephemerals(general));
    expect(told?.shown).toMatch(/couldn't open the form.*\/imagine/);
  });

  test("the adapter rejects the imagine form if the bot is not in the channel", async () => {
    const { slack, ada, elsewhere, events } = await startInteractions();
    await ada.command("/imagine", "", elsewhere);
    const view = await slack.until(() => slack.view(ada), "the form");
    const { response } = await ada.submitView(view, prompt("a cat"));
    expect(response).toMatchObject({ errors: { prompt: expect.stringMatching(/not in this channel.*\/invite/) } });
    expect(events).toEqual([]);
  });

  test("the imagine form of the global shortcut asks for the channel", async () => {
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

  test("an imagine form that is sent twice is one command", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    await stage.ada.submitView(view, prompt("a cat"));
    const [delivery] = stage.slack.deliveries.filter(({ name }) => name === "view_submission");
    if (delivery !== undefined) await stage.slack.redeliver(delivery);
    expect(stage.events).toHaveLength(2);
    expect(new Set(stage.events.map(({ key }) => key)).size).toBe(1);
  });
});

/** A form whose stored context the sender has changed. */
function forged(view: View, changes: Json): View {
  const remembered = JSON.parse(String(view.body["private_metadata"])) as Json;
  return { ...view, body: { ...view.body, private_metadata: JSON.stringify({ ...remembered, ...changes }) } };
}

describe("a forged imagine form", () => {
  test("an imagine form is rejected if anyone but its opener sends it", async () => {
    const stage = await startInteractions();
    const view = await openForm(stage);
    for (const sent of [
      stage.bob.submitView(view, prompt("a cat")),
      stage.ada.submitView(forged(view, { p: undefined }), prompt("a cat")),
    ]) {
      expect((await sent).response).toMatchObject({ errors: { prompt: expect.stringContaining("Someone else") } });
    }
    expect(stage.events).toEqual([]);
  });

  test("a forged imagine form gets no files of another workspace", async () => {
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

  test.each(["private", "mpim"] as const)(
    "a forged imagine form posts no image to a %s conversation of others",
    async (kind) => {
      const { slack, ada, bob, events } = await startInteractions();
      const theirs = slack.channel({ name: "theirs", kind, members: [bob] });
      const ours = slack.channel({ name: "ours", kind, members: [ada, bob] });
      await ada.shortcut("imagine_global");
      const view = await slack.until(() => slack.view(ada), "the form");
      const to = (id: string) => ({ ...prompt("a cat"), where: { value: { selected_conversation: id } } });
      for (const id of [theirs.id, bob.direct().id]) {
        expect((await ada.submitView(view, to(id))).response).toMatchObject({
          errors: { where: expect.stringContaining("couldn't check whether you're in this conversation") },
        });
      }
      expect(events).toEqual([]);
      await ada.submitView(view, to(ours.id));
      expect(events).toMatchObject([{ name: "imagine", reply: { channelId: ours.id } }]);
    },
  );

  test("a forged imagine form posts no image to a private channel without the scope to list its members, and names the scope", async () => {
    const { slack, ada, events } = await startInteractions();
    const ours = slack.channel({ name: "ours", kind: "private", members: [ada] });
    slack.workspace.scopes.delete("groups:read");
    await ada.shortcut("imagine_global");
    const view = await slack.until(() => slack.view(ada), "the form");
    const values = { ...prompt("a cat"), where: { value: { selected_conversation: ours.id } } };
    expect((await ada.submitView(view, values)).response).toMatchObject({
      errors: { where: expect.stringMatching(/I need the permission groups:read.*admin.*\/imagine/) },
    });
    expect(events).toEqual([]);
  });
});

describe("the form for editing an image", () => {
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

  test("the form for editing an image shows its prompt, and becomes a command with the image", async () => {
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

  test("the form for editing an image reads the prompt with the rights of the person who pressed, for the button's channel", async () => {
    const asked: unknown[] = [];
    const imagine: ImagineMenu = { ...MENU, describe: async (...args) => void asked.push(args) };
    const { slack, ada, general, root } = await pressEdit(imagine);
    const reply = { platform: "slack", channelId: general.id, workspaceId: slack.workspace.id, threadId: root.ts };
    expect(asked).toMatchObject([["job.1", { author: { id: personOf(slack, ada) }, reply }, {}]]);
  });

  test("the form for editing an image opens empty if reading the prompt takes too long", async () => {
    const { view } = await pressEdit({ ...MENU, describe: never });
    const [first] = blocksOf(view.body);
    expect(first?.["element"]).not.toHaveProperty("initial_value");
  });
});
