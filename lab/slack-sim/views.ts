import type { Core } from "./core.ts";
import { invalidArguments, SlackRefusal } from "./refusal.ts";
import { listOf, textOf } from "./shown-text.ts";
import type { Json, Workspace } from "./world.ts";

/** A modal or a home tab of one person. */
export interface View {
  id: string;
  hash: string;
  body: Json;
  userId: string;
  rootId: string;
  previousId: string | undefined;
  botId: string | undefined;
  appId: string;
  isOpen: boolean;
}

export interface Views {
  readonly all: readonly View[];
  /** Returns a trigger, which can open one view within three seconds. */
  newTrigger(userId: string): string;
  /** Uses a trigger and returns its owner. Throws if the trigger is unknown, expired or used. */
  spendTrigger(triggerId: string): string;
  open(workspace: Workspace, userId: string, body: Json, below: View | undefined): View;
  change(view: View, body: Json, hash: string | undefined): void;
  publish(workspace: Workspace, userId: string, body: Json, hash: string | undefined): View;
  find(idOrExternalId: string): View | undefined;
  top(userId: string): View | undefined;
  home(userId: string): View | undefined;
  /** Closes a modal, or the person's whole stack of modals. */
  close(view: View, options: { isAll: boolean }): void;
}

interface Trigger {
  userId: string;
  atMs: number;
  isUsed: boolean;
}

const MAX_BLOCKS = 100;
const MAX_TITLE_CHARS = 24;
const MAX_PRIVATE_METADATA_CHARS = 3_000;
const MAX_VIEW_BYTES = 250 * 1024;
const MAX_STACK = 3;

export function createViews({ app, changes, clock, limits, newId }: Core): Views {
  const all: View[] = [];
  const homes = new Map<string, View>();
  const triggers = new Map<string, Trigger>();

  function create({ bot }: Workspace, userId: string, body: Json, below: View | undefined): View {
    const id = newId("V");
    const { botId } = bot;
    const place = { rootId: below?.rootId ?? id, previousId: below?.id };
    return { id, hash: newId("hash."), body, userId, ...place, botId, appId: app.id, isOpen: true };
  }

  function replace(view: View, body: Json, hash: string | undefined): void {
    if (hash !== undefined && hash !== view.hash) throw new SlackRefusal("hash_conflict");
    Object.assign(view, { body, hash: newId("hash.") });
    changes.changed();
  }

  return {
    all,
    newTrigger(userId) {
      const id = `${Math.floor(clock.now())}.${newId("trigger")}`;
      triggers.set(id, { userId, atMs: clock.now(), isUsed: false });
      return id;
    },
    spendTrigger(triggerId) {
      const trigger = triggers.get(triggerId);
      if (trigger === undefined) throw new SlackRefusal("invalid_trigger_id");
      if (trigger.isUsed) throw new SlackRefusal("exchanged_trigger_id");
      if (clock.now() - trigger.atMs > limits.triggerMs) throw new SlackRefusal("expired_trigger_id");
      trigger.isUsed = true;
      return trigger.userId;
    },
    open(workspace, userId, body, below) {
      checkView(body, "modal");
      const stack = all.filter((view) => view.isOpen && view.userId === userId && view.rootId === below?.rootId);
      if (stack.length >= MAX_STACK) throw new SlackRefusal("push_limit_reached");
      const view = create(workspace, userId, body, below);
      all.push(view);
      changes.changed();
      return view;
    },
    change(view, body, hash) {
      checkView(body, "modal");
      replace(view, body, hash);
    },
    publish(workspace, userId, body, hash) {
      checkView(body, "home");
      const known = homes.get(userId);
      if (known !== undefined) {
        replace(known, body, hash);
        return known;
      }
      const home = create(workspace, userId, body, undefined);
      homes.set(userId, home);
      changes.changed();
      return home;
    },
    find: (id) => all.find((view) => view.id === id || (view.body["external_id"] === id && id !== "")),
    top: (userId) => all.findLast((view) => view.isOpen && view.userId === userId),
    home: (userId) => homes.get(userId),
    close(view, { isAll }) {
      for (const one of all) if (one === view || (isAll && one.rootId === view.rootId)) one.isOpen = false;
      changes.changed();
    },
  };
}

/** Throws if Slack would refuse the view. */
function checkView(body: Json, type: "modal" | "home"): void {
  if (body["type"] !== type) throw invalidArguments(`must be ${type} [json-pointer:/view/type]`);
  const blocks = listOf(body["blocks"]);
  if (blocks.length > MAX_BLOCKS)
    throw invalidArguments(`no more than ${MAX_BLOCKS} items [json-pointer:/view/blocks]`);
  if (textOf(body["private_metadata"]).length > MAX_PRIVATE_METADATA_CHARS) {
    throw invalidArguments("must be less than 3001 characters [json-pointer:/view/private_metadata]");
  }
  if (Buffer.byteLength(JSON.stringify(body)) > MAX_VIEW_BYTES) throw new SlackRefusal("view_too_large");
  if (blocks.some((block) => block["type"] === "markdown")) {
    throw invalidArguments("unsupported type: markdown [json-pointer:/view/blocks]");
  }
  if (type === "home") return;
  const title = (body["title"] as Json | undefined)?.["text"];
  if (typeof title !== "string" || title.length > MAX_TITLE_CHARS) {
    throw invalidArguments("must be 1 to 24 characters [json-pointer:/view/title/text]");
  }
  if (blocks.some((block) => block["type"] === "input") && body["submit"] === undefined) {
    throw invalidArguments("a view with input blocks needs submit [json-pointer:/view/submit]");
  }
}
